//! A Bernoulli walk over counts: one step, and many at once.

use crate::dispatch::dispatch;
use crate::vector::Vector;

/// Vectors of outputs computed together: they stay in registers while the kernel is read.
const TILE: usize = 4;

dispatch! {
    /// One step: `output[i]` = q·`input[i]` + p·`input[i − 1]`, reading zero beyond the ends.
    ///
    /// With nonnegative arguments each output is within two roundings of its value.
    ///
    /// # Panics
    /// If `input` is empty or `output` does not hold one entry more.
    pub fn bernoulli_step(input: &[f64], p: f64, q: f64, output: &mut [f64]) = step;
}

dispatch! {
    /// Correlation: `output[i]` = Σₖ `kernel[k]`·`input[i + k]`.
    ///
    /// With nonnegative arguments each output is within as many roundings of its value as the
    /// kernel is long, and one more.
    ///
    /// # Panics
    /// If `input` does not hold a window of the kernel's length for every output.
    pub fn correlate(input: &[f64], kernel: &[f64], output: &mut [f64]) = slide;
}

#[inline(always)]
fn step<V: Vector>(input: &[f64], p: f64, q: f64, output: &mut [f64]) {
    let last = input.len();
    assert!(last > 0 && output.len() == last + 1);
    output[0] = q * input[0];
    output[last] = p * input[last - 1];
    let (vp, vq) = (V::splat(p), V::splat(q));
    let mut i = 1;
    while i + V::LANES <= last {
        let rising = V::load(&input[i - 1..]).mul(vp);
        V::load(&input[i..])
            .mul_add(vq, rising)
            .store(&mut output[i..]);
        i += V::LANES;
    }
    for i in i..last {
        output[i] = q * input[i] + p * input[i - 1];
    }
}

#[inline(always)]
fn slide<V: Vector>(input: &[f64], kernel: &[f64], output: &mut [f64]) {
    assert!(input.len() + 1 >= output.len() + kernel.len());
    let mut start = 0;
    while start + TILE * V::LANES <= output.len() {
        let mut sums = [V::zero(); TILE];
        for (&weight, window) in kernel.iter().zip(input[start..].windows(TILE * V::LANES)) {
            let weight = V::splat(weight);
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(&window[j * V::LANES..]).mul_add(weight, *sum);
            }
        }
        for (j, sum) in sums.into_iter().enumerate() {
            sum.store(&mut output[start + j * V::LANES..]);
        }
        start += TILE * V::LANES;
    }
    for (i, output) in output.iter_mut().enumerate().skip(start) {
        let mut sum = 0.0;
        for (weight, value) in kernel.iter().zip(&input[i..]) {
            sum += weight * value;
        }
        *output = sum;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{bernoulli_step, correlate};
    use crate::level::Level;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(a, b)| (a - b).abs() <= 2e-14 * (a + b))
    }

    proptest! {
        #[test]
        fn a_step_agrees_with_its_definition(
            input in prop::collection::vec(0.0..1.0_f64, 1..200),
            p in 0.0..1.0_f64,
        ) {
            let q = 1.0 - p;
            let before = |i: usize| if i == 0 { 0.0 } else { input[i - 1] };
            let here = |i: usize| input.get(i).copied().unwrap_or(0.0);
            let expected: Vec<f64> =
                (0..=input.len()).map(|i| q * here(i) + p * before(i)).collect();
            for level in Level::available() {
                let mut output = vec![f64::NAN; input.len() + 1];
                bernoulli_step(level, &input, p, q, &mut output);
                prop_assert!(close(&output, &expected), "{}", level);
            }
        }

        #[test]
        fn a_correlation_agrees_with_its_definition(
            kernel in prop::collection::vec(0.0..1.0_f64, 1..90),
            values in prop::collection::vec(0.0..1.0_f64, 1..300),
        ) {
            let input = [values.as_slice(), &vec![0.5; kernel.len()]].concat();
            let expected: Vec<f64> = (0..=values.len())
                .map(|i| kernel.iter().zip(&input[i..]).map(|(k, x)| k * x).sum())
                .collect();
            for level in Level::available() {
                let mut output = vec![f64::NAN; expected.len()];
                correlate(level, &input, &kernel, &mut output);
                prop_assert!(close(&output, &expected), "{}", level);
            }
        }
    }
}
