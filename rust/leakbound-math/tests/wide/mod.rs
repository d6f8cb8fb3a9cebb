//! Sums of Bernoulli terms by convolution in double-double: no logarithm, nothing subtracted.

/// An unevaluated sum of two doubles times a power of two: wide enough for any coefficient here.
#[derive(Clone, Copy)]
pub(crate) struct Wide {
    pub(crate) high: f64,
    pub(crate) low: f64,
    pub(crate) exponent: i64,
}

impl Wide {
    pub(crate) const ZERO: Self = Self {
        high: 0.0,
        low: 0.0,
        exponent: -1_000_000,
    };
    pub(crate) const ONE: Self = Self {
        high: 1.0,
        low: 0.0,
        exponent: 0,
    };

    pub(crate) fn new(high: f64, low: f64, exponent: i64) -> Self {
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

    pub(crate) fn plus(self, other: Self) -> Self {
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

    pub(crate) fn times(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        let low = error + (self.high * other.low + self.low * other.high);
        Self::new(product, low, self.exponent + other.exponent)
    }

    /// The logarithm, rounded to a double.
    pub(crate) fn ln(self) -> f64 {
        let exponent = self.exponent as f64;
        exponent.mul_add(std::f64::consts::LN_2, self.high.ln())
            + (self.low / self.high + exponent * 2.319_046_813_846_299_6e-17)
    }
}

/// P(S ≥ v) and P(S < v) for every v: convolution, then sums from the far ends.
pub(crate) fn tails(p_and_q: impl Iterator<Item = (Wide, Wide)>) -> Vec<(Wide, Wide)> {
    let mut pmf = vec![Wide::ONE];
    for (p, q) in p_and_q {
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
