//! The test: the better of a certificate and the recursion.

use super::bound::Certificate;
use crate::error::{AuditError, check_level};
use crate::fdp::counts::Counts;
use crate::fdp::recursion;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// An upper bound on the probability that at least `counts.correct()` guesses are correct under
/// f-DP: a p-value, the lower of the certificate's bound and [`recursion::p_value`].
///
/// Direction: rounded up. Whatever the bounds for other counts, it is valid: with c₀ the least
/// count whose bound is at most τ, rejection means W ≥ c₀, of probability at most the bound for c₀.
pub fn p_value(
    counts: &Counts,
    curve: &dyn TradeOff,
    interrupt: &Interrupt,
) -> Result<f64, AuditError> {
    let bound = Certificate::new(counts, curve, interrupt)?.bound();
    let below = bound.next_down();
    if below > 0.0 && !recursion::decide(counts, curve, below, interrupt)?.rejected() {
        return Ok(bound);
    }
    Ok(bound.min(recursion::p_value(counts, curve, interrupt)?))
}

/// Whether an f-DP mechanism has so many correct guesses with probability at most τ, by the
/// recursion or by a certificate.
pub fn rejects(
    counts: &Counts,
    curve: &dyn TradeOff,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<bool, AuditError> {
    let tau = check_level("tau", tau)?;
    Ok(recursion::decide(counts, curve, tau, interrupt)?.rejected()
        || Certificate::new(counts, curve, interrupt)?.bound() <= tau)
}
