//! The trade-off between two normal distributions.

use leakbound_math::{Probability, normal};

use super::function::{TradeOff, least_epsilon, perfect_privacy_delta};
use crate::error::{AuditError, check_delta, check_non_negative};

/// What the roundings of Φ(Φ⁻¹(x) − μ) can add to it, relative, for normal scores of order 1; by
/// their square more for larger ones.
const ROUNDING: f64 = 1e-12;
const ROUNDING_SQUARED: f64 = 4e-15;
/// Roundings of a difference of two tails, in units of the larger.
const CANCELLED: f64 = 8.0 * f64::EPSILON;

/// Roundings of tails too small for full precision.
const SUBNORMAL: f64 = 1e-321;

/// Gaussian differential privacy: f̄(x) = Φ(Φ⁻¹(x) + μ), except for a failure of probability δ.
///
/// With δ > 0 it is f̄(x) = δ + (1 − δ) Φ(Φ⁻¹(x/(1−δ)) + μ) for x ≤ 1 − δ and 1 above, the curve of
/// a mechanism that is μ-GDP and fails with probability δ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    mu: f64,
    delta: f64,
}

impl Gaussian {
    /// The curve at `mu` ≥ 0, with failures of probability `delta`.
    pub fn new(mu: f64, delta: f64) -> Result<Self, AuditError> {
        Ok(Self {
            mu: check_non_negative("mu", mu)?,
            delta: check_delta(delta)?,
        })
    }

    /// Φ(Φ⁻¹(x) − μ), rounded down, for x in (0, 1).
    fn inverse_without_failures(&self, x: f64) -> f64 {
        if self.mu == 0.0 {
            return x;
        }
        let Ok(x) = Probability::new(x) else {
            return 0.0;
        };
        let z = normal::quantile(x) - self.mu;
        let below = z.min(0.0);
        normal::cdf(z) * (1.0 - (ROUNDING + ROUNDING_SQUARED * below * below)).max(0.0)
    }

    /// δ(ε) of the curve without failures, for ε ≥ 0 and μ > 0, and what rounding may add.
    ///
    /// With a, b = ε/μ ∓ μ/2 it is Φ(−a) − e^ε Φ(−b), where e^ε φ(b) = φ(a).
    fn excess(&self, epsilon: f64) -> (f64, f64) {
        let centre = epsilon / self.mu;
        let (a, b) = (centre - 0.5 * self.mu, centre + 0.5 * self.mu);
        let first = normal::sf(a);
        // The rounding of ε/μ moves ln Φ(−a) by at most (1 + |a|) times as much.
        let moved = 2.0 * f64::EPSILON * (1.0 + a.abs()) * (centre + self.mu);
        let error = first * (CANCELLED + moved);
        if a <= 0.0 {
            let second = (epsilon + normal::ln_sf(b)).exp();
            let scale = CANCELLED * (1.0 + epsilon + b * b);
            return (first - second, error + second * scale);
        }
        // Both tails are φ(a) times their Mills ratios.
        let ratio = normal::mills_ratio(b) / normal::mills_ratio(a);
        (first * (1.0 - ratio), error)
    }
}

impl TradeOff for Gaussian {
    fn f(&self, alpha: f64) -> f64 {
        let kept = 1.0 - self.delta;
        let share = (alpha / kept).clamp(0.0, 1.0);
        let power =
            Probability::new(share).map_or(1.0, |x| normal::sf(normal::quantile(x) + self.mu));
        kept * power
    }

    fn inverse(&self, x: f64) -> f64 {
        if x <= self.delta {
            return 0.0;
        }
        if self.delta == 0.0 {
            return self.inverse_without_failures(x.min(1.0));
        }
        let kept = 1.0 - self.delta;
        // Half an ulp of x is lost from x − δ and must not be gained.
        let share = ((x.min(1.0) - self.delta) / kept)
            .next_down()
            .clamp(0.0, 1.0);
        kept * self.inverse_without_failures(share) * (1.0 - ROUNDING)
    }

    fn delta_between(&self, epsilon: f64) -> (f64, f64) {
        let (value, error) = if epsilon == f64::INFINITY {
            (0.0, 0.0)
        } else if self.mu == 0.0 {
            (perfect_privacy_delta(epsilon), 0.0)
        } else if epsilon < 0.0 {
            // δ(ε) = 1 − e^ε + e^ε δ(−ε).
            let (value, error) = self.excess(-epsilon);
            let weight = epsilon.exp();
            let value = perfect_privacy_delta(epsilon) + weight * value;
            (value, weight * error + CANCELLED * value)
        } else {
            let (value, error) = self.excess(epsilon);
            (value, error + SUBNORMAL)
        };
        let total = |value: f64| self.delta + (1.0 - self.delta) * value.clamp(0.0, 1.0);
        (total(value - error), total(value + error).min(1.0))
    }

    fn tangent(&self, epsilon: f64) -> f64 {
        if self.mu == 0.0 {
            return if epsilon < 0.0 { 1.0 } else { 0.0 };
        }
        (1.0 - self.delta) * normal::sf(epsilon / self.mu + 0.5 * self.mu)
    }

    fn epsilon(&self, delta: f64) -> f64 {
        if self.mu > 0.0 && delta <= self.delta {
            return f64::INFINITY;
        }
        least_epsilon(self, delta)
    }
}
