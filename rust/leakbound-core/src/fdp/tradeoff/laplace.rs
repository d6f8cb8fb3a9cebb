//! The trade-off between two Laplace distributions.

use std::f64::consts::LN_2;

use super::function::{TradeOff, perfect_privacy_delta};
use crate::error::{AuditError, check_non_negative};

/// Up to here e^{−ε} is a normal number.
const NORMAL: f64 = 700.0;
/// Roundings of three exponentials and their sums.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// The Laplace mechanism at ε: the trade-off between noise of scale 1/ε around 0 and around 1.
///
/// f̄(x) is e^ε x up to power ½, then 1 − e^{−ε}/(4x) up to x = ½, then 1 − e^{−ε}(1 − x). It is
/// ε-DP, and more private than every ε-DP mechanism must be. Source: Dong, Roth and Su (2022),
/// Proposition A.6.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laplace {
    epsilon: f64,
}

impl Laplace {
    /// The curve at `epsilon` ≥ 0.
    pub fn new(epsilon: f64) -> Result<Self, AuditError> {
        Ok(Self {
            epsilon: check_non_negative("epsilon", epsilon)?,
        })
    }
}

impl TradeOff for Laplace {
    fn f(&self, alpha: f64) -> f64 {
        let x = alpha.clamp(0.0, 1.0);
        let shrink = (-self.epsilon).exp();
        if x >= 0.5 {
            shrink * (1.0 - x)
        } else if self.epsilon > NORMAL {
            let log_power = x.ln() + self.epsilon;
            if log_power >= -LN_2 {
                0.25 * (-log_power).exp()
            } else {
                1.0 - log_power.exp()
            }
        } else if x >= 0.5 * shrink {
            shrink / (4.0 * x)
        } else {
            1.0 - x / shrink
        }
    }

    fn inverse(&self, x: f64) -> f64 {
        let y = x.clamp(0.0, 1.0);
        if self.epsilon == 0.0 {
            return y;
        }
        let shrink = (-self.epsilon).exp();
        let level = if y <= 0.5 {
            shrink * y
        } else if y >= 1.0 {
            1.0
        } else if 1.0 - y >= 0.5 * shrink {
            shrink / (4.0 * (1.0 - y))
        } else {
            1.0 - (1.0 - y) / shrink
        };
        level * (1.0 - ROUNDING)
    }

    fn delta_between(&self, epsilon: f64) -> (f64, f64) {
        if epsilon >= self.epsilon {
            return (0.0, 0.0);
        }
        if epsilon < -self.epsilon {
            return (
                perfect_privacy_delta(epsilon),
                perfect_privacy_delta(epsilon),
            );
        }
        let value = -(0.5 * (epsilon - self.epsilon)).exp_m1();
        (
            value * (1.0 - ROUNDING),
            (value * (1.0 + ROUNDING)).min(1.0),
        )
    }

    fn linear_slopes(&self) -> Vec<f64> {
        vec![self.epsilon, -self.epsilon]
    }

    fn tangent(&self, epsilon: f64) -> f64 {
        if epsilon > self.epsilon {
            0.0
        } else if epsilon < -self.epsilon {
            1.0
        } else {
            0.5 * (-0.5 * (self.epsilon + epsilon)).exp()
        }
    }
}
