//! The tail near one point, as a function of logit p.

use crate::binomial::Binomial;

/// |ln T − target| from which the local series is used: about a quarter of a standard deviation.
pub(super) const NEAR: f64 = 0.5;

/// Relative error of slope and excess, ten times over: a bend below it is not told from none.
const SLOPE_ERROR: f64 = 1e-13;

/// Terms of the series for the slope.
const TERMS: usize = 6;

/// f(δ) = ln P(X ≥ v) − target at logit p + δ, to sixth order in δ.
///
/// The slope g = f′ obeys g′ = g (a − g), because ln g = ln(v q) + ln P(X = v) − ln T up to a
/// constant, ln P(X = v) has slope v − n p, and a = v − (n + 1) p. The slope of a is −(n + 1) p q.
pub(super) struct Local {
    off: f64,
    /// Coefficients of a.
    excess: [f64; TERMS - 1],
    /// Coefficients of g.
    slope: [f64; TERMS],
}

impl Local {
    pub(super) fn new(law: Binomial, successes: u64, target: f64) -> Self {
        let (ln, slope) = law.ln_upper_tail_and_slope(successes);
        let [k2, k3, k4, k5] = law.cumulants();
        let excess = [law.excess(successes), -k2, -k3 / 2.0, -k4 / 6.0, -k5 / 24.0];
        Self {
            off: ln - target,
            excess,
            slope: series(slope, excess),
        }
    }

    /// |f(0)|.
    pub(super) fn off(&self) -> f64 {
        self.off.abs()
    }

    /// Where the tangent at 0 meets the target: there f ≤ 0, f being concave.
    pub(super) fn tangent(&self) -> f64 {
        -self.off / self.slope[0]
    }

    /// How far f is below 0 there, to second order: f² |f″| / (2 g²), where f″ = g (a − g) < 0.
    pub(super) fn given_away(&self) -> f64 {
        let bend = 1.0 - self.excess[0] / self.slope[0];
        0.5 * self.off * self.off * bend.max(SLOPE_ERROR)
    }

    /// The zero of the series: three Newton steps from the tangent's.
    pub(super) fn root(&self) -> f64 {
        let mut step = self.tangent();
        for _ in 0..3 {
            let (mut value, mut slope) = (0.0, 0.0);
            for (k, g) in self.slope.iter().enumerate().rev() {
                value = value * step + g / (k + 1) as f64;
                slope = slope * step + g;
            }
            step -= (self.off + value * step) / slope;
        }
        step
    }
}

/// Coefficients of g from its first and those of a: (k + 1) gₖ₊₁ = Σ gᵢ (aₖ₋ᵢ − gₖ₋ᵢ).
fn series(slope: f64, excess: [f64; TERMS - 1]) -> [f64; TERMS] {
    let mut g = [slope, 0.0, 0.0, 0.0, 0.0, 0.0];
    for k in 0..TERMS - 1 {
        let sum: f64 = (0..=k).map(|i| g[i] * (excess[k - i] - g[k - i])).sum();
        g[k + 1] = sum / (k + 1) as f64;
    }
    g
}
