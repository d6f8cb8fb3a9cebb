//! 10⁵ random tails and their certified errors against a direct convolution in double-double.
#![allow(clippy::unwrap_used)]

use leakbound_math::poisson_binomial::{Level, Terms};

/// An unevaluated sum of two doubles times a power of two: wide enough for any coefficient here.
#[derive(Clone, Copy)]
struct Wide {
    high: f64,
    low: f64,
    exponent: i64,
}

impl Wide {
    const ZERO: Self = Self {
        high: 0.0,
        low: 0.0,
        exponent: -1_000_000,
    };
    const ONE: Self = Self {
        high: 1.0,
        low: 0.0,
        exponent: 0,
    };

    fn new(high: f64, low: f64, exponent: i64) -> Self {
        let sum = high + low;
        let low = low - (sum - high);
        if sum == 0.0 {
            return Self::ZERO;
        }
        let shift = (sum.abs().to_bits() >> 52).cast_signed() - 1023;
        let scale = f64::from_bits(((1023 - shift) as u64) << 52);
        Self {
            high: sum * scale,
            low: low * scale,
            exponent: exponent + shift,
        }
    }

    fn plus(self, other: Self) -> Self {
        let (a, b) = if self.exponent >= other.exponent {
            (self, other)
        } else {
            (other, self)
        };
        let gap = a.exponent - b.exponent;
        if gap > 200 {
            return a;
        }
        let scale = f64::from_bits(((1023 - gap) as u64) << 52);
        let (bh, bl) = (b.high * scale, b.low * scale);
        let sum = a.high + bh;
        let part = sum - a.high;
        let error = (a.high - (sum - part)) + (bh - part);
        Self::new(sum, error + (a.low + bl), a.exponent)
    }

    fn times(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        let low = error + (self.high * other.low + self.low * other.high);
        Self::new(product, low, self.exponent + other.exponent)
    }

    fn over(self, other: Self) -> Self {
        let quotient = self.high / other.high;
        let rest = (-quotient).mul_add(other.high, self.high) + (self.low - quotient * other.low);
        Self::new(quotient, rest / other.high, self.exponent - other.exponent)
    }

    /// The logarithm, rounded to a double.
    fn ln(self) -> f64 {
        let exponent = self.exponent as f64;
        exponent.mul_add(std::f64::consts::LN_2, self.high.ln())
            + (self.low / self.high + exponent * 2.319_046_813_846_299_6e-17)
    }
}

/// e^a to about 100 bits, by halving and a Taylor series.
fn exp(a: f64) -> Wide {
    let mut sum = Wide::ONE;
    let reduced = Wide::new(a / 1024.0, 0.0, 0);
    for k in (1..=14).rev() {
        let step = reduced.times(sum).over(Wide::new(f64::from(k), 0.0, 0));
        sum = Wide::ONE.plus(step);
    }
    (0..10).fold(sum, |power, _| power.times(power))
}

/// P(S ≥ v) and P(S < v) for every v: convolution, then sums from the far ends.
fn tails(offsets: &[f64]) -> Vec<(Wide, Wide)> {
    let mut pmf = vec![Wide::ONE];
    for &a in offsets {
        let odds = exp(a);
        let q = Wide::ONE.over(Wide::ONE.plus(odds));
        let p = odds.times(q);
        pmf.push(Wide::ZERO);
        for k in (0..pmf.len()).rev() {
            let below = if k > 0 {
                pmf[k - 1].times(p)
            } else {
                Wide::ZERO
            };
            pmf[k] = below.plus(pmf[k].times(q));
        }
    }
    let mut tails = vec![(Wide::ZERO, Wide::ZERO); pmf.len() + 1];
    for v in (0..pmf.len()).rev() {
        tails[v].0 = tails[v + 1].0.plus(pmf[v]);
    }
    for v in 0..pmf.len() {
        tails[v + 1].1 = tails[v].1.plus(pmf[v]);
    }
    tails
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
        let reference = tails(&offsets);
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
