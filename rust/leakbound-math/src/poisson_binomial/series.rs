//! How far off the series of a tilted law may be, and how many of its terms are enough.

use leakbound_simd::{MAX_TERMS, PowerSums};

/// Accepted remainder of the series, relative to the generating function.
pub(super) const REMAINDER: f64 = 2e-16;

/// What an earlier pass says about a later one.
#[derive(Clone, Copy)]
pub(super) struct Estimate {
    pub(super) variance: f64,
    pub(super) largest: f64,
}

/// κ₂…κ₅ of a law.
#[derive(Clone, Copy)]
pub(super) struct Cumulants(pub(super) [f64; 4]);

impl Cumulants {
    pub(super) fn of(sums: &PowerSums) -> Self {
        let (a, b) = (&sums.even, &sums.odd);
        Self([a[0], b[0], a[0] - 6.0 * a[1], b[0] - 12.0 * b[1]])
    }

    /// Adds one trial with odds `o`.
    pub(super) fn add(&mut self, o: f64) {
        let q = 1.0 / (1.0 + o);
        let (w, t) = (o * q * q, q - o * q);
        for (sum, term) in
            self.0
                .iter_mut()
                .zip([w, t * w, w - 6.0 * w * w, t * (w - 12.0 * w * w)])
        {
            *sum += term;
        }
    }

    /// The root d of κ₂d + κ₃d²/2 + κ₄d³/6 + κ₅d⁴/24 = `delta`, by Newton from d = delta/κ₂. Any d
    /// is valid where it is used, so four steps and no test are enough.
    pub(super) fn shift(self, delta: f64) -> f64 {
        let [k2, k3, k4, k5] = self.0;
        let mut d = delta / k2;
        for _ in 0..4 {
            let value = d * (k2 + d * (k3 / 2.0 + d * (k4 / 6.0 + d * k5 / 24.0)));
            let slope = self.variance(d);
            if slope.is_nan() || slope <= 0.0 {
                return delta / k2;
            }
            d -= (value - delta) / slope;
        }
        d
    }

    /// κ₂ + κ₃d + κ₄d²/2 + κ₅d³/6.
    pub(super) fn variance(self, d: f64) -> f64 {
        let [k2, k3, k4, k5] = self.0;
        k2 + d * (k3 + d * (k4 / 2.0 + d * k5 / 6.0))
    }
}

/// Bounds the error of `terms` terms of the series at |S| = `s`.
pub(super) fn remainder(variance: f64, largest: f64, terms: usize, s: f64) -> f64 {
    let ratio = largest * s;
    if ratio >= 0.95 {
        return f64::INFINITY;
    }
    let terms = terms as f64;
    variance * s * ratio.powf(terms) / ((terms + 1.0) * (1.0 - ratio))
}

/// Bounds the error of `terms` terms over the nodes of a contour: at distance s from a real tilt the
/// tilted characteristic function is below e^{−var·s/2}, and the product peaks at s = 2(L+1)/var.
/// `share` is the part of the `variance` that is in the series.
pub(super) fn node_remainder(share: f64, variance: f64, largest: f64, terms: usize, d: f64) -> f64 {
    let widest = (80.0 / variance).min(4.0);
    let shifted = 4.0 * (0.5 * d).sinh().powi(2);
    let peak = (2.0 * (terms as f64 + 1.0) / variance).min(widest);
    if largest * (widest + shifted) >= 0.95 {
        return f64::INFINITY;
    }
    remainder(share, largest, terms, peak + shifted) * (-0.5 * variance * peak).exp()
}

/// The remainder allowed at a real argument, where ln P is about −variance·s/2.
pub(super) fn allowance(variance: f64, s: f64) -> f64 {
    REMAINDER * (1.0 + variance * s)
}

/// The fewest terms that serve the nodes and, if 24 can, the real argument `theta` too; none if even
/// 24 do not serve the nodes.
pub(super) fn enough_terms(estimate: Estimate, theta: f64) -> Option<usize> {
    let Estimate { variance, largest } = estimate;
    let s = 4.0 * (0.5 * theta).sinh().powi(2);
    let mut for_nodes = None;
    for terms in (2..=MAX_TERMS).step_by(2) {
        if node_remainder(variance, variance, largest, terms, 0.0) > REMAINDER {
            continue;
        }
        for_nodes = for_nodes.or(Some(terms));
        if remainder(variance, largest, terms, s) < allowance(variance, s) {
            return Some(terms);
        }
    }
    for_nodes
}
