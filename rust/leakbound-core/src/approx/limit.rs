//! Limits on ε under (ε, δ)-DP, from how likely so many correct guesses are.

use leakbound_math::{Binomial, Probability, clopper_pearson};

use super::tail::ApproxTail;
use crate::error::{AuditError, check_level};
use crate::guesses::path::Cut;
use crate::halving::halve;
use crate::interrupt::Interrupt;
use crate::scan::statistic::CutStatistic;

/// A bracket of width 1400 shrinks to 1e-13 in 54 halvings.
const HALVINGS: usize = 60;

/// Limits under (ε, δ)-DP at one pointwise level: refute ε if the bound on P(W ≥ w) is at most α.
///
/// The bound need not rise with ε, since the budget of failures falls with it. Any ε at which it is
/// at most α will do nevertheless, because the claims are nested. Let ε* be the truth, and A the
/// counts w at which some ε ≥ ε* is refuted. What is (ε*, δ)-DP is (ε, δ)-DP for each such ε, so
/// P(W ≥ w) ≤ α for every w in A; and A has a least element w₀, so P(W ∈ A) ≤ P(W ≥ w₀) ≤ α.
///
/// The limits are on p = e^ε/(e^ε + k − 1), and only of ε ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApproxLimit {
    tail: ApproxTail,
    alpha: f64,
}

impl ApproxLimit {
    /// Limits at the pointwise level `alpha`.
    pub fn new(tail: ApproxTail, alpha: f64) -> Result<Self, AuditError> {
        let alpha = check_level("alpha", alpha)?;
        Ok(Self { tail, alpha })
    }

    fn refutes(&self, cut: Cut, p: Probability) -> bool {
        // Every form adds to what δ = 0 allows, which is quick to compute.
        let pure = Binomial::new(cut.guesses.into(), p).upper_tail(cut.correct.into());
        pure <= self.alpha && self.tail.upper_tail(cut, p) <= self.alpha
    }
}

impl CutStatistic for ApproxLimit {
    fn limit(&self, cut: Cut, interrupt: &Interrupt) -> Result<Option<Probability>, AuditError> {
        let (guesses, correct) = (cut.guesses.into(), cut.correct.into());
        // Failures only add to what δ = 0 allows.
        let highest = clopper_pearson::lower_limit(correct, guesses, self.alpha)?;
        let lowest = self.tail.success_probability(0.0)?;
        if highest.p() < lowest.p() || !self.refutes(cut, lowest) {
            return Ok(None);
        }
        let mut verified = lowest;
        halve((lowest.logit(), highest.logit()), HALVINGS, 0.0, |logit| {
            interrupt.check()?;
            let p = Probability::from_logit(logit)?;
            let refuted = self.refutes(cut, p);
            verified = if refuted { p } else { verified };
            Ok(refuted)
        })?;
        Ok(Some(verified.next_down()))
    }

    fn may_exceed(&self, cut: Cut, level: Probability) -> bool {
        // The quick part: half of the law lies above its mean less one.
        let mean = f64::from(cut.guesses) * level.p();
        (f64::from(cut.correct) + 1.0 > mean || self.alpha >= 0.5) && self.refutes(cut, level)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tail::ApproxForm;
    use super::*;

    #[test]
    fn an_interrupt_stops_a_limit() {
        let stop = Interrupt::default();
        stop.request();
        let tail = ApproxTail::new(ApproxForm::ZeroRun, 1000.0, 1e-6, 2, false).unwrap();
        let limits = ApproxLimit::new(tail, 0.05).unwrap();
        let cut = Cut {
            guesses: 100,
            correct: 90,
        };
        let stopped = limits.limit(cut, &stop);
        assert!(matches!(stopped, Err(AuditError::Interrupted)));
    }
}
