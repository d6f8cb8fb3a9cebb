//! The critical parameter of a family of curves.

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
