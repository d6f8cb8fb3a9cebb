//! What makes a cut stand out: the statistics over which an audit takes its maximum.

use leakbound_math::{Binomial, Probability, binomial, clopper_pearson, deviance};

use crate::error::{AuditError, check_level, out_of_range};
use crate::guesses::path::Cut;
use crate::interrupt::Interrupt;

/// A pointwise limit: at each cut, the largest probability of a correct guess that the cut refutes.
///
/// Both methods must be nondecreasing in the number of correct guesses; that is all validity asks
/// of a statistic (Buehler's construction), its shape only decides power.
pub trait CutStatistic: Sync {
    /// The largest probability refuted at this cut, rounded down; none if even 0 is not.
    fn limit(&self, cut: Cut, interrupt: &Interrupt) -> Result<Option<Probability>, AuditError>;

    /// Could [`limit`](Self::limit) exceed `level` here? Says yes when in doubt, quickly.
    fn may_exceed(&self, cut: Cut, level: Probability) -> bool;
}

/// Bounds of r·KL(w/r ‖ p), without a logarithm.
pub(crate) fn divergence_bounds(cut: Cut, level: Probability) -> (f64, f64) {
    let (successes, trials) = (f64::from(cut.correct), f64::from(cut.guesses));
    deviance::binomial_divergence_bounds(successes, trials, level)
}

/// r·KL(w/r ‖ p).
pub(crate) fn divergence(cut: Cut, p: Probability) -> f64 {
    deviance::binomial_divergence(f64::from(cut.correct), f64::from(cut.guesses), p)
}

/// Is w/r above p?
pub(crate) fn is_above(cut: Cut, p: Probability) -> bool {
    f64::from(cut.correct) > f64::from(cut.guesses) * p.p()
}

/// Kullback–Leibler limits: refute q at a cut if w/r > q and r·KL(w/r ‖ q) ≥ κ.
///
/// κ = ln(1/β) + 1 is the default of the scan; smaller favours few guesses, larger broad weak
/// signals. It is fixed before membership is seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KlDivergence {
    kappa: f64,
}

impl KlDivergence {
    /// Relative slack of the thresholds: a cut within rounding of κ counts as reaching it, which
    /// can only enlarge the rejection region that the calibration covers.
    const SLACK: f64 = 1e-12;

    /// A statistic with threshold `kappa`.
    pub fn new(kappa: f64) -> Result<Self, AuditError> {
        if kappa > 0.0 && kappa.is_finite() {
            return Ok(Self { kappa });
        }
        out_of_range("kappa", kappa, "a positive number")
    }

    /// The default for a scan at error probability `beta`: κ = ln(1/β) + 1.
    pub fn for_level(beta: f64) -> Result<Self, AuditError> {
        Self::new(1.0 - check_level("beta", beta)?.ln())
    }

    /// κ.
    pub(crate) fn kappa(self) -> f64 {
        self.kappa
    }

    /// Does the cut refute this probability?
    pub(crate) fn reaches(self, cut: Cut, level: Probability) -> bool {
        if !is_above(cut, level) {
            return false;
        }
        let needed = self.kappa * (1.0 - Self::SLACK);
        let (low, high) = divergence_bounds(cut, level);
        high >= needed && (low >= needed || divergence(cut, level) >= needed)
    }
}

impl CutStatistic for KlDivergence {
    fn limit(&self, cut: Cut, _: &Interrupt) -> Result<Option<Probability>, AuditError> {
        if cut.correct == 0 {
            return Ok(None);
        }
        let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
        if cut.correct == cut.guesses {
            // r ln(1/q) = κ
            let ln_q = -self.kappa / r;
            return Ok(Some(Probability::from_logit(ln_q - (-ln_q.exp_m1()).ln())?));
        }
        // In θ = logit q the signed root √(2 r KL) is smooth and nearly linear: Newton on it, held
        // in a bracket. r KL(w/r ‖ σ(θ)) has the derivative r σ(θ) − w.
        let center = (w / (r - w)).ln();
        let target = (2.0 * self.kappa).sqrt();
        let (mut low, mut high) = (f64::NEG_INFINITY, center);
        let mut theta = center - target / (w * (r - w) / r).sqrt();
        for _ in 0..MAX_NEWTON {
            let level = Probability::from_logit(theta)?;
            let root = (2.0 * divergence(cut, level)).sqrt();
            if root >= target {
                low = theta
            } else {
                high = theta
            }
            let slope = (w - r * level.p()) / root;
            let mut next = theta + (root - target) / slope;
            if !(next > low && next < high) {
                next = if low.is_finite() {
                    0.5 * (low + high)
                } else {
                    2.0 * theta - center
                };
            }
            if (next - theta).abs() <= NEWTON_TOLERANCE * theta.abs().max(1.0) {
                return Ok(Some(Probability::from_logit(next)?));
            }
            theta = next;
        }
        // The bracket still holds: its lower end is a level that the cut was seen to refute.
        Ok(Some(Probability::from_logit(low)?))
    }

    fn may_exceed(&self, cut: Cut, level: Probability) -> bool {
        is_above(cut, level)
            && divergence_bounds(cut, level).1 > self.kappa
            && divergence(cut, level) > self.kappa
    }
}

/// Newton on a nearly linear function halves its error's exponent at each step and needs under
/// ten; bisection steps in between bring the worst case to about sixty.
const MAX_NEWTON: usize = 128;
/// Where Newton stops, in logit units.
const NEWTON_TOLERANCE: f64 = 1e-15;

/// Clopper–Pearson limits at one pointwise level: refute q if P(Bin(r, q) ≥ w) ≤ α.
///
/// The maximum over cuts is a union bound when α = β divided by their number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EqualLevel {
    alpha: f64,
    /// ln(1/α)
    strength: f64,
}

impl EqualLevel {
    /// Limits at the pointwise level `alpha`.
    pub fn new(alpha: f64) -> Result<Self, AuditError> {
        let alpha = check_level("alpha", alpha)?;
        Ok(Self {
            alpha,
            strength: -alpha.ln(),
        })
    }

    /// P(Bin(r, level) ≥ w) ≤ α, decided exactly up to the tail's documented error, which counts
    /// towards yes.
    fn reaches(&self, cut: Cut, level: Probability) -> bool {
        let tail = Binomial::new(u64::from(cut.guesses), level).ln_upper_tail(cut.correct.into());
        tail <= -self.strength + binomial::RELATIVE_ERROR * self.strength.max(1.0)
    }
}

impl CutStatistic for EqualLevel {
    fn limit(&self, cut: Cut, _: &Interrupt) -> Result<Option<Probability>, AuditError> {
        if cut.correct == 0 {
            return Ok(None);
        }
        let limit =
            clopper_pearson::lower_limit(cut.correct.into(), cut.guesses.into(), self.alpha)?;
        Ok(Some(limit))
    }

    fn may_exceed(&self, cut: Cut, level: Probability) -> bool {
        // Ash's lemma: P(X ≥ w) ≥ P(X = w) ≥ exp(−r KL) / √(8 w (r−w)/r) for 0 < w < r, and the
        // median of X lies above r·p − 1, so that the tail is at least ½ when w does.
        if !is_above(cut, level) && self.alpha < 0.5 {
            return false;
        }
        let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
        let prefactor = (8.0 * w * (r - w) / r).max(1.0);
        let needed = self.strength - 0.5 * prefactor.ln();
        divergence_bounds(cut, level).1 > needed && self.reaches(cut, level)
    }
}

/// Hoeffding limits at one pointwise level: w/r − √(ln(1/α) / 2r).
///
/// The form of PANORAMIA (Kazmi et al. 2024, equation 1); never above Clopper–Pearson by more
/// than rounding, and offered for comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hoeffding {
    strength: f64,
}

impl Hoeffding {
    /// Limits at the pointwise level `alpha`.
    pub fn new(alpha: f64) -> Result<Self, AuditError> {
        Ok(Self {
            strength: -check_level("alpha", alpha)?.ln(),
        })
    }

    fn value(self, cut: Cut) -> f64 {
        let r = f64::from(cut.guesses);
        f64::from(cut.correct) / r - (0.5 * self.strength / r).sqrt()
    }
}

impl CutStatistic for Hoeffding {
    fn limit(&self, cut: Cut, _: &Interrupt) -> Result<Option<Probability>, AuditError> {
        let value = self.value(cut).next_down();
        Ok(if value > 0.0 {
            Some(Probability::new(value)?)
        } else {
            None
        })
    }

    fn may_exceed(&self, cut: Cut, level: Probability) -> bool {
        self.value(cut) > level.p()
    }
}
