//! The trade-off of (ε, δ)-differential privacy.

use super::function::{TradeOff, perfect_privacy_delta};
use crate::error::{AuditError, check_delta, check_non_negative};

/// Roundings of an exponential, a product and a sum.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// (ε, δ)-DP: f̄(x) = min(1, e^ε x + δ, 1 − e^{−ε}(1 − δ − x)).
///
/// Source: Wasserman and Zhou, "A statistical framework for differential privacy" (2010).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Approx {
    epsilon: f64,
    delta: f64,
}

impl Approx {
    /// The curve at `epsilon` ≥ 0 and `delta` in [0, 1).
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, AuditError> {
        Ok(Self {
            epsilon: check_non_negative("epsilon", epsilon)?,
            delta: check_delta(delta)?,
        })
    }

    /// Where the two slopes meet: x, with f̄(x) = 1 − x.
    fn corner(&self) -> f64 {
        (1.0 - self.delta) / (1.0 + self.epsilon.exp())
    }
}

impl TradeOff for Approx {
    fn f(&self, alpha: f64) -> f64 {
        let x = alpha.clamp(0.0, 1.0);
        let kept = 1.0 - self.delta;
        let rising = kept - self.epsilon.exp() * x;
        let late = (-self.epsilon).exp() * (kept - x);
        rising.max(late).max(0.0)
    }

    fn inverse(&self, x: f64) -> f64 {
        let y = x.clamp(0.0, 1.0);
        if self.epsilon == 0.0 && self.delta == 0.0 {
            return y;
        }
        let rising = (-self.epsilon).exp() * (y - self.delta);
        let late = 1.0 - self.delta - self.epsilon.exp() * (1.0 - y);
        // Rounding of `late` is relative to 1, and matters above the corner only.
        (rising * (1.0 - ROUNDING)).max(late - ROUNDING).max(0.0)
    }

    fn delta_between(&self, epsilon: f64) -> (f64, f64) {
        if epsilon >= self.epsilon {
            return (self.delta, self.delta);
        }
        let kept = 1.0 - self.delta;
        let value = if epsilon <= -self.epsilon {
            self.delta * epsilon.exp() + perfect_privacy_delta(epsilon)
        } else {
            // 1 − x − e^ε x at the corner x = (1 − δ)/(1 + e^{ε'}), ε' the claimed ε.
            let excess = -(epsilon - self.epsilon).exp_m1() / (1.0 + (-self.epsilon).exp());
            self.delta + kept * excess
        };
        (
            value * (1.0 - ROUNDING),
            (value * (1.0 + ROUNDING)).min(1.0),
        )
    }

    fn linear_slopes(&self) -> Vec<f64> {
        vec![self.epsilon, -self.epsilon]
    }

    fn tangent(&self, epsilon: f64) -> f64 {
        if epsilon >= self.epsilon {
            0.0
        } else if epsilon > -self.epsilon {
            self.corner()
        } else {
            1.0 - self.delta
        }
    }
}
