//! The binomial distribution: point probabilities and both tails, in logarithms too.
//!
//! A tail is a point probability by Loader's saddle-point formula times a Mills ratio
//! h = P(X ≥ v)/P(X = v), summed or expanded at a cost that does not grow with the number of
//! trials. Only the tail on the far side of the mean is computed so; the other, which is at least
//! about a half, is one minus it. scipy's `betainc` errs by 3e-12 and statrs' loop by 27 % at ten
//! million trials.

mod mills;

use std::f64::consts::TAU;

use crate::deviance::{Mean, binomial_divergence, stirling_error};
use crate::probability::Probability;

/// Relative error of every probability of this module down to 1e-300: multiply by
/// 1 + `RELATIVE_ERROR` for an upper bound, divide for a lower one. See [`relative_error`] for what
/// holds at other depths.
pub const RELATIVE_ERROR: f64 = 6.5e-13;

/// Relative error of a point probability or tail whose logarithm is `ln`, and absolute error of that
/// logarithm: 2e-14 + 8.5e-16 |ln|, for up to 2⁵³ trials.
///
/// Its parts: the exponent, two deviances of 6e-16 of themselves each, and their sum; its rounding as
/// a double; the Mills ratio, to 1e-14. Hundreds of thousands of random laws reach four fifths of it.
pub fn relative_error(ln: f64) -> f64 {
    2e-14 + 8.5e-16 * ln.abs()
}

/// The law of the number of successes X in independent trials of one probability.
///
/// The smaller of the probability's p and q is taken as exact. Trials beyond 2⁵³ are not told
/// apart from their nearest double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binomial {
    trials: u64,
    p: Probability,
}

impl Binomial {
    /// The law of the number of successes in `trials` trials, each of probability `p`.
    pub const fn new(trials: u64, p: Probability) -> Self {
        Self { trials, p }
    }

    /// P(X = v) = C(n, v) p^v q^{n−v}.
    ///
    /// Domain: every v; 0 above n. Accuracy: [`RELATIVE_ERROR`] down to 1e-300, nearest, no
    /// direction. Source: Loader 2000, eq. (4), with deviances that do not cancel.
    pub fn pmf(self, v: u64) -> f64 {
        self.ln_pmf(v).exp()
    }

    /// ln P(X = v); −∞ where P is 0.
    ///
    /// Domain, accuracy and source: those of [`pmf`](Self::pmf), and beyond: see
    /// [`RELATIVE_ERROR`].
    pub fn ln_pmf(self, v: u64) -> f64 {
        let n = self.trials;
        if v > n {
            return f64::NEG_INFINITY;
        }
        if v == 0 || v == n {
            return power(if v == 0 { self.p.ln_q() } else { self.p.ln_p() }, n);
        }
        let (successes, failures, trials) = (v as f64, (n - v) as f64, n as f64);
        let stirling = stirling_error(n) - stirling_error(v) - stirling_error(n - v);
        let scale = 0.5 * (trials / successes / failures / TAU).ln();
        (scale + stirling) - binomial_divergence(successes, trials, self.p)
    }

    /// Upper tail P(X ≥ v).
    ///
    /// Domain: every v; 1 at 0, and 0 above n. Accuracy: [`RELATIVE_ERROR`] down to 1e-300,
    /// nearest, no direction; never one minus the lower tail where that is close to 1. Cost: below
    /// a microsecond for any n.
    pub fn upper_tail(self, v: u64) -> f64 {
        match self.tail(v) {
            Tail::Small(ln) => ln.exp(),
            Tail::Complement(ln) => 1.0 - ln.exp(),
        }
    }

    /// ln P(X ≥ v); −∞ where P is 0.
    ///
    /// Domain: every v. Accuracy: [`RELATIVE_ERROR`], far below 1e-300 too and relative to the
    /// logarithm where P is close to 1; nearest, no direction.
    pub fn ln_upper_tail(self, v: u64) -> f64 {
        match self.tail(v) {
            Tail::Small(ln) => ln,
            Tail::Complement(ln) => (-ln.exp()).ln_1p(),
        }
    }

    /// Lower tail P(X ≤ v).
    ///
    /// Domain: every v; 1 from n on. Accuracy and cost: those of
    /// [`upper_tail`](Self::upper_tail), of which it is the mirror image.
    pub fn lower_tail(self, v: u64) -> f64 {
        if v >= self.trials {
            1.0
        } else {
            self.failures().upper_tail(self.trials - v)
        }
    }

    /// ln P(X ≤ v); −∞ where P is 0.
    ///
    /// Domain: every v. Accuracy: that of [`ln_upper_tail`](Self::ln_upper_tail).
    pub fn ln_lower_tail(self, v: u64) -> f64 {
        if v >= self.trials {
            0.0
        } else {
            self.failures().ln_upper_tail(self.trials - v)
        }
    }

    /// P(X ≥ v), through the side of the mean on which it is computed.
    fn tail(self, v: u64) -> Tail {
        if v == 0 {
            return Tail::Complement(f64::NEG_INFINITY);
        }
        if v > self.trials {
            return Tail::Small(f64::NEG_INFINITY);
        }
        let excess = self.excess(v);
        if excess >= 0.0 {
            Tail::Small(self.far_tail(v, excess).0)
        } else {
            Tail::Complement(self.failures().far_tail(self.trials - v + 1, -excess).0)
        }
    }

    /// ln T and d ln T / d logit p for T = P(X ≥ v), 1 ≤ v ≤ n and 0 < p < 1.
    ///
    /// dT/dp = (v/p) P(X = v), so the slope is v q/h for the upper tail's own Mills ratio h.
    pub(crate) fn ln_upper_tail_and_slope(self, v: u64) -> (f64, f64) {
        let excess = self.excess(v);
        if excess >= 0.0 {
            let (ln, mills) = self.far_tail(v, excess);
            return (ln, v as f64 * self.p.q() / mills);
        }
        let failures = self.trials - v + 1;
        let (ln, mills) = self.failures().far_tail(failures, -excess);
        let other = ln.exp();
        (
            (-other).ln_1p(),
            failures as f64 * self.p.p() / mills * other / (1.0 - other),
        )
    }

    /// a = v − (n + 1) p, as v − n p with the rounding of the product carried along, less p.
    pub(crate) fn excess(self, v: u64) -> f64 {
        let n = self.trials as f64;
        let above_mean = if self.p.p() <= self.p.q() {
            Mean::new(n, self.p.p()).below(v as f64)
        } else {
            -Mean::new(n, self.p.q()).below((self.trials - v) as f64)
        };
        above_mean - self.p.p()
    }

    /// The derivatives of (n + 1) p in logit p, second to fifth of the cumulant function: cumulants
    /// of n + 1 trials.
    pub(crate) fn cumulants(self) -> [f64; 4] {
        let (d, y) = (self.p.q() - self.p.p(), self.p.p() * self.p.q());
        let variance = (self.trials as f64 + 1.0) * y;
        [
            variance,
            variance * d,
            variance * (1.0 - 6.0 * y),
            variance * d * (1.0 - 12.0 * y),
        ]
    }

    /// ln P(X ≥ v) and its ratio to P(X = v), for 1 ≤ v ≤ n and a ≥ 0.
    fn far_tail(self, v: u64, excess: f64) -> (f64, f64) {
        if self.p == Probability::ZERO {
            return (f64::NEG_INFINITY, 1.0);
        }
        let mills = mills::ratio(v, self.trials, self.p, excess);
        (self.ln_pmf(v) + mills.ln(), mills)
    }

    /// The law of n − X.
    const fn failures(self) -> Self {
        Self {
            trials: self.trials,
            p: self.p.complement(),
        }
    }
}

/// A probability by its own logarithm, or by that of its complement.
enum Tail {
    Small(f64),
    Complement(f64),
}

/// n times the logarithm of a probability: that of a product of n such, 0 for none of them.
fn power(ln: f64, n: u64) -> f64 {
    if n == 0 { 0.0 } else { n as f64 * ln }
}
