//! Kernels of a walk over counts: one step, and many at once.
//!
//! All terms are nonnegative in use, so each output has a relative error of at most its number of
//! roundings times half an ulp, whichever instructions compute it.

/// Outputs computed together: they stay in registers while the kernel is read.
const TILE: usize = 32;

/// One step: `output[i]` = q·`input[i]` + p·`input[i − 1]`, reading zero beyond the ends.
///
/// `output` holds one entry more than `input`; entries beyond what both allow are left alone.
///
/// ```
/// let mut output = [0.0; 3];
/// leakbound_simd::walk::bernoulli_step(&[0.5, 0.5], 0.25, 0.75, &mut output);
/// assert_eq!(output, [0.375, 0.5, 0.125]);
/// ```
pub fn bernoulli_step(input: &[f64], p: f64, q: f64, output: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just detected.
            return unsafe { bernoulli_step_avx512(input, p, q, output) };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: both features were just detected.
            return unsafe { bernoulli_step_avx2(input, p, q, output) };
        }
    }
    bernoulli_step_body::<false>(input, p, q, output);
}

/// Correlation: `output[i]` = Σ_k `kernel[k]`·`input[i + k]`.
///
/// Computes as many outputs as `input` has full windows for, and no more than `output` holds.
///
/// ```
/// let mut output = [0.0; 2];
/// leakbound_simd::walk::correlate(&[1.0, 2.0, 4.0], &[0.5, 0.25], &mut output);
/// assert_eq!(output, [1.0, 2.0]);
/// ```
pub fn correlate(input: &[f64], kernel: &[f64], output: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just detected.
            return unsafe { correlate_avx512(input, kernel, output) };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: both features were just detected.
            return unsafe { correlate_avx2(input, kernel, output) };
        }
    }
    correlate_body::<false>(input, kernel, output);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn bernoulli_step_avx512(input: &[f64], p: f64, q: f64, output: &mut [f64]) {
    bernoulli_step_body::<true>(input, p, q, output);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn bernoulli_step_avx2(input: &[f64], p: f64, q: f64, output: &mut [f64]) {
    bernoulli_step_body::<true>(input, p, q, output);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn correlate_avx512(input: &[f64], kernel: &[f64], output: &mut [f64]) {
    correlate_body::<true>(input, kernel, output);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn correlate_avx2(input: &[f64], kernel: &[f64], output: &mut [f64]) {
    correlate_body::<true>(input, kernel, output);
}

#[inline(always)]
fn bernoulli_step_body<const FUSED: bool>(input: &[f64], p: f64, q: f64, output: &mut [f64]) {
    let (Some(&first), Some(&last)) = (input.first(), input.last()) else { return };
    if output.len() != input.len() + 1 {
        return;
    }
    output[0] = q * first;
    for ((out, &stay), &rise) in output[1..].iter_mut().zip(&input[1..]).zip(input) {
        *out = multiply_add::<FUSED>(q, stay, p * rise);
    }
    output[input.len()] = p * last;
}

#[inline(always)]
fn correlate_body<const FUSED: bool>(input: &[f64], kernel: &[f64], output: &mut [f64]) {
    if kernel.is_empty() || input.len() < kernel.len() {
        return;
    }
    let windows = input.len() - kernel.len() + 1;
    let outputs = output.len().min(windows);
    let (tiles, rest) = output[..outputs].as_chunks_mut::<TILE>();
    let whole = tiles.len() * TILE;
    for (tile, outputs) in tiles.iter_mut().enumerate() {
        let mut sums = [0.0; TILE];
        let inputs = input[tile * TILE..].windows(TILE);
        for (&weight, inputs) in kernel.iter().zip(inputs) {
            for (sum, &value) in sums.iter_mut().zip(inputs) {
                *sum = multiply_add::<FUSED>(weight, value, *sum);
            }
        }
        *outputs = sums;
    }
    for (index, out) in rest.iter_mut().enumerate() {
        let inputs = &input[whole + index..];
        let mut sum = 0.0;
        for (&weight, &value) in kernel.iter().zip(inputs) {
            sum = multiply_add::<FUSED>(weight, value, sum);
        }
        *out = sum;
    }
}

/// a·b + c, in one rounding where the processor has the instruction.
#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-14 * (a + b))
    }

    proptest! {
        #[test]
        fn a_step_agrees_with_the_portable_path(
            input in prop::collection::vec(0.0..1.0_f64, 1..200),
            p in 0.0..1.0_f64,
        ) {
            let mut output = vec![0.0; input.len() + 1];
            let mut portable = output.clone();
            bernoulli_step(&input, p, 1.0 - p, &mut output);
            bernoulli_step_body::<false>(&input, p, 1.0 - p, &mut portable);
            prop_assert!(close(&output, &portable));
            let (before, after): (f64, f64) = (input.iter().sum(), output.iter().sum());
            prop_assert!((before - after).abs() <= 1e-13 * before.max(1e-300));
        }

        #[test]
        fn a_correlation_agrees_with_its_definition(
            input in prop::collection::vec(0.0..1.0_f64, 1..300),
            kernel in prop::collection::vec(0.0..1.0_f64, 1..90),
        ) {
            let outputs = (input.len() + 1).saturating_sub(kernel.len());
            let expected: Vec<f64> = (0..outputs)
                .map(|i| kernel.iter().zip(&input[i..]).map(|(k, x)| k * x).sum())
                .collect();
            let mut output = vec![0.0; outputs];
            correlate(&input, &kernel, &mut output);
            prop_assert!(close(&output, &expected));
            correlate_body::<false>(&input, &kernel, &mut output);
            prop_assert!(close(&output, &expected));
        }
    }
}
