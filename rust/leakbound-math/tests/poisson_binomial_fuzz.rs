//! 10⁵ random tails and their certified errors against a direct convolution in double-double.
#![allow(clippy::unwrap_used)]

use leakbound_math::poisson_binomial::{Level, Terms};
use wide::{Wide, tails};

mod wide;

fn over(a: Wide, b: Wide) -> Wide {
    let quotient = a.high / b.high;
    let rest = (-quotient).mul_add(b.high, a.high) + (a.low - quotient * b.low);
    Wide::new(quotient, rest / b.high, a.exponent - b.exponent)
}

/// e^a to about 100 bits, by halving and a Taylor series.
fn exp(a: f64) -> Wide {
    let mut sum = Wide::ONE;
    let reduced = Wide::new(a / 1024.0, 0.0, 0);
    for k in (1..=14).rev() {
        let step = over(reduced.times(sum), Wide::new(f64::from(k), 0.0, 0));
        sum = Wide::ONE.plus(step);
    }
    (0..10).fold(sum, |power, _| power.times(power))
}

/// The probability σ(a) and its complement.
fn terms(offsets: &[f64]) -> impl Iterator<Item = (Wide, Wide)> {
    offsets.iter().map(|&a| {
        let odds = exp(a);
        let q = over(Wide::ONE, Wide::ONE.plus(odds));
        (odds.times(q), q)
    })
}

/// ln P(S ≥ v) through the smaller side.
fn log_upper((upper, lower): (Wide, Wide)) -> f64 {
    if upper.exponent < lower.exponent {
        upper.ln()
    } else {
        (-lower.ln().exp()).ln_1p()
    }
}

struct Random(u64);

impl Random {
    /// Uniform on \[0, 1): splitmix64.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 * 2f64.powi(-53)
    }
}

#[test]
fn a_hundred_thousand_tails_match() {
    const LAWS: usize = 1250;
    const TAILS: usize = 80;
    let mut random = Random(20_260_101);
    let levels = Level::available();
    for law in 0..LAWS {
        let n = 1 + (random.uniform() * 400.0) as usize;
        // From all alike to spread over the whole range.
        let spread = 20.0 * random.uniform().powi(3);
        let centre = (20.0 - spread) * (2.0 * random.uniform() - 1.0);
        let offsets: Vec<f64> = (0..n)
            .map(|_| centre + spread * (2.0 * random.uniform() - 1.0))
            .collect();
        let reference = tails(terms(&offsets));
        let terms = Terms::from_offsets(&offsets)
            .unwrap()
            .at_level(levels[law % levels.len()]);
        for _ in 0..TAILS {
            let v = 1 + (random.uniform() * n as f64) as usize;
            let (expected, tail) = (
                log_upper(reference[v]),
                terms.tail(v.cast_signed() as i64, 0.0),
            );
            let error = (tail.log - expected).abs();
            assert!(
                error <= 5e-15 * expected.abs().max(1.0),
                "law {law}, n = {n}, v = {v}: {} instead of {expected}, {error:e}",
                tail.log
            );
            assert!(
                error <= tail.relative_error,
                "law {law}, n = {n}, v = {v}: {error:e}"
            );
        }
    }
}
