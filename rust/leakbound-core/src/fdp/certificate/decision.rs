//! The test, the better of a certificate and the recursion, and the critical parameter of a family.

use super::bound::Certificate;
use super::bracket::{NARROW, Trial, next_trial};
use crate::error::{AuditError, check_level};
use crate::fdp::counts::Counts;
use crate::fdp::recursion;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// The first step up from what the recursion rejects, relative, and where that is 0.
const AHEAD: f64 = 0.02;
const FIRST_STEP: f64 = 1e-2;
/// A bound that jumps by roundings would halve the bracket for long.
const MOST_TRIALS: usize = 16;

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

/// The largest θ at which the curves `family` are rejected at level τ; none if not even θ = 0 is.
///
/// The curves must allow more the larger θ, from θ = 0 on. Direction: a θ that
/// [`rejects`](super::rejects()) rejects, the end of a bracket 1e-12 wide, relative.
pub fn critical<T: TradeOff>(
    counts: &Counts,
    family: impl Fn(f64) -> Result<T, AuditError>,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Option<f64>, AuditError> {
    let tau = check_level("tau", tau)?;
    let known = recursion::critical(counts, &family, tau, interrupt)?;
    let trial = |theta: f64| -> Result<Trial, AuditError> {
        let bound = Certificate::new(counts, &family(theta)?, interrupt)?.bound();
        Ok((theta, (bound / tau).ln()))
    };
    let mut low = trial(known.unwrap_or(0.0))?;
    if low.1 > 0.0 {
        // Not even here is the certificate as good as the recursion.
        return Ok(known);
    }
    let mut step = known.map_or(FIRST_STEP, |theta| AHEAD * theta.max(FIRST_STEP));
    let mut high = trial(low.0 + step)?;
    while high.1 <= 0.0 {
        low = high;
        step *= 2.0;
        high = trial(low.0 + step)?;
    }
    // How often in a row the lower end has moved, or less than zero: the upper.
    let mut run = 0_i32;
    for _ in 0..MOST_TRIALS {
        if high.0 - low.0 <= NARROW * high.0 {
            break;
        }
        let next = trial(next_trial(low, high, run))?;
        if next.1 <= 0.0 {
            (low, run) = (next, run.max(0) + 1);
        } else {
            (high, run) = (next, run.min(0) - 1);
        }
    }
    Ok(Some(low.0))
}
