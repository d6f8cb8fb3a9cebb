//! Sums, products and logarithms with their rounding errors.

use leakbound_simd::{Level, LogRatio, odds_from_logits};

/// Half a unit in the last place of 1.
pub(super) const UNIT: f64 = 0.5 * f64::EPSILON;

/// `a + b` and its rounding error.
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// `a * b` and its rounding error.
pub(super) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// A value, and the sum of the sizes of what was added to make it: its rounding error is a few units
/// in the last place of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sized {
    pub(super) value: f64,
    pub(super) size: f64,
}

/// A sum that keeps what rounding takes away (Neumaier 1974).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    high: f64,
    low: f64,
    size: f64,
}

impl Sum {
    pub(super) fn add(&mut self, term: f64) {
        let (high, error) = two_sum(self.high, term);
        self.high = high;
        self.low += error;
        self.size += term.abs();
    }

    pub(super) fn sized(self) -> Sized {
        Sized {
            value: self.high + self.low,
            size: self.size,
        }
    }
}

/// ln x for x within e^±700, as an unevaluated sum of two doubles, right to about 10⁻¹⁹ absolutely;
/// rounded once beyond.
pub(super) fn log(x: f64) -> (f64, f64) {
    let high = x.ln();
    if high.is_nan() || high.abs() > 700.0 {
        return (high, 0.0);
    }
    let (mut near, mut residual) = ([0.0], [0.0]);
    odds_from_logits(Level::PORTABLE, &[high], 0.0, &mut near, &mut residual);
    (high, (x - near[0]) / near[0] - f64::from(residual[0]))
}

/// Σ cᵢ ln\[(1+Eᵢy)/(1+Eᵢx)\] for odds Eᵢ(1+rᵢ), each logarithm to about 10⁻¹⁹; and Σ cᵢEᵢy/(1+Eᵢy).
pub(super) fn counted_log_ratio(
    odds: &[f64],
    residuals: &[f32],
    counts: &[f64],
    x: f64,
    y: f64,
) -> LogRatio {
    let (mut high, mut low, mut mean) = (0.0, 0.0, 0.0);
    for ((&e, &residual), &count) in odds.iter().zip(residuals).zip(counts) {
        let ((o, o_error), (u, u_error)) = (two_product(e, x), two_product(e, y));
        let ((s, s_error), (t, t_error)) = (two_sum(1.0, o), two_sum(1.0, u));
        let ratio = t / s;
        let left = (-ratio).mul_add(s, t) + (t_error + u_error);
        let error = left / t - (s_error + o_error) / s + f64::from(residual) * (u / t - o / s);
        let log = log(ratio);
        let (product, product_error) = two_product(count, log.0);
        let (sum, sum_error) = two_sum(high, product);
        high = sum;
        low += sum_error + product_error + count * (log.1 + error);
        mean += count * (u / t);
    }
    LogRatio {
        log: two_sum(high, low),
        mean,
    }
}
