//! The binomial distribution: point probabilities and both tails, in logarithms too.

mod mills;

use std::f64::consts::TAU;

use crate::deviance::{binomial_divergence, stirling_error};
use crate::probability::Probability;

/// Relative error of every probability of this module that is at least 1e-300: multiply by
/// 1 + `RELATIVE_ERROR` for an upper bound, divide for a lower one.
///
/// Below 1e-300 the logarithms are within `RELATIVE_ERROR` · max(1, |ln T| / 690).
pub const RELATIVE_ERROR: f64 = 1e-12;

/// Number of successes in independent trials of one probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binomial {
    trials: u64,
    p: Probability,
}

impl Binomial {
    /// The law of the number of successes in `trials` trials, each of probability `p`.
    #[must_use]
    pub const fn new(trials: u64, p: Probability) -> Self {
        Self { trials, p }
    }

    /// ln P(X = v); −∞ where P is 0.
    #[must_use]
    pub fn ln_pmf(self, v: u64) -> f64 {
        let n = self.trials;
        if v > n {
            return f64::NEG_INFINITY;
        }
        if v == 0 || v == n {
            let ln = if v == 0 { self.p.ln_q() } else { self.p.ln_p() };
            return if n == 0 { 0.0 } else { n as f64 * ln };
        }
        let (x, y, r) = (v as f64, (n - v) as f64, n as f64);
        let stirling = stirling_error(n) - stirling_error(v) - stirling_error(n - v);
        stirling - binomial_divergence(x, r, self.p) + 0.5 * (r / (TAU * x * y)).ln()
    }

    /// P(X = v).
    #[must_use]
    pub fn pmf(self, v: u64) -> f64 {
        self.ln_pmf(v).exp()
    }

    /// P(X ≥ v).
    #[must_use]
    pub fn upper_tail(self, v: u64) -> f64 {
        self.ln_upper_tail(v).exp()
    }

    /// ln P(X ≥ v).
    #[must_use]
    pub fn ln_upper_tail(self, v: u64) -> f64 {
        if v == 0 {
            return 0.0;
        }
        if v > self.trials {
            return f64::NEG_INFINITY;
        }
        if v as f64 > self.trials as f64 * self.p.p() {
            self.ln_far_tail(v)
        } else {
            let mirrored = Self::new(self.trials, self.p.complement());
            (-mirrored.ln_far_tail(self.trials - v + 1).exp()).ln_1p()
        }
    }

    /// P(X ≤ v).
    #[must_use]
    pub fn lower_tail(self, v: u64) -> f64 {
        self.ln_lower_tail(v).exp()
    }

    /// ln P(X ≤ v).
    #[must_use]
    pub fn ln_lower_tail(self, v: u64) -> f64 {
        if v >= self.trials {
            return 0.0;
        }
        Self::new(self.trials, self.p.complement()).ln_upper_tail(self.trials - v)
    }

    fn ln_far_tail(self, v: u64) -> f64 {
        self.ln_pmf(v) + mills::ratio(v, self.trials, self.p).ln()
    }
}
