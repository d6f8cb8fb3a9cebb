//! What every trade-off function answers.

use crate::halving::halve;

/// A bracket of ε below 1e308 narrows to neighbouring doubles in so many halvings: 1100 leave none.
const HALVINGS: usize = 1100;

/// A trade-off function f, through its complement f̄ = 1 − f: concave, increasing, f̄(x) ≥ x.
pub trait TradeOff: std::fmt::Debug + Send + Sync {
    /// f(α), the smallest error of the second kind at level α; to 1e-12, no direction.
    ///
    /// Domain: α in [0, 1]; values outside count as the nearer end.
    fn f(&self, alpha: f64) -> f64;

    /// f̄⁻¹(x) = inf {α : f̄(α) ≥ x}, the lowest level at which power x can be reached.
    ///
    /// Domain: x in [0, 1]; values outside count as the nearer end. Direction: rounded down, by no
    /// more than 1e-11 of itself where it is above 1e-100. It is 0 at 0, and increases with x.
    fn inverse(&self, x: f64) -> f64;

    /// Lower and upper bound on δ(ε) = sup over x of f̄(x) − e^ε x, a few roundings apart.
    ///
    /// Domain: every real ε, ±∞ included.
    fn delta_between(&self, epsilon: f64) -> (f64, f64);

    /// An x at which f̄(x) − e^ε x is largest: −dδ/dλ at λ = e^ε, where that exists; no direction.
    fn tangent(&self, epsilon: f64) -> f64;

    /// The ε of slopes e^ε that f̄ has on whole intervals: with tangents at these it is known there.
    fn linear_slopes(&self) -> Vec<f64> {
        Vec::new()
    }

    /// δ(ε) = sup over x of f̄(x) − e^ε x: f-DP implies (ε, δ(ε))-DP for every real ε.
    ///
    /// Direction: rounded up. Source: Dong, Roth and Su, "Gaussian differential privacy" (2022),
    /// Proposition 2.12.
    fn delta(&self, epsilon: f64) -> f64 {
        self.delta_between(epsilon).1
    }

    /// inf {ε ≥ 0 : δ(ε) ≤ δ}, the ε at which f promises no more than (ε, δ)-DP; ∞ if no ε does.
    ///
    /// Domain: δ in [0, 1]. Direction: rounded down, to the ends of a bracket that cannot shrink;
    /// what remains is the gap of [`delta_between`](Self::delta_between).
    fn epsilon(&self, delta: f64) -> f64 {
        least_epsilon(self, delta)
    }
}

/// [`TradeOff::epsilon`] by doubling and bisection.
pub(super) fn least_epsilon(curve: &(impl TradeOff + ?Sized), delta: f64) -> f64 {
    let exceeds = |epsilon: f64| curve.delta_between(epsilon).0 > delta;
    if exceeds(f64::INFINITY) {
        return f64::INFINITY;
    }
    if !exceeds(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while exceeds(high) && high < f64::MAX {
        (low, high) = (high, (2.0 * high).min(f64::MAX));
    }
    halve((low, high), HALVINGS, 0.0, |epsilon| Ok(exceeds(epsilon))).unwrap_or(low)
}

/// δ(ε) ≥ 1 − e^ε, attained by f̄(x) = x where ε ≤ 0.
pub(super) fn perfect_privacy_delta(epsilon: f64) -> f64 {
    (-epsilon.exp_m1()).max(0.0)
}
