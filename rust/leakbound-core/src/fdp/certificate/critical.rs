//! The critical parameter of a family of curves.

use super::Certificate;
use crate::fdp::counts::{Counts, check_tau};
use crate::fdp::{TradeOff, recursion};
use crate::{AuditError, Interrupt};

/// The first step up from what the recursion rejects, relative, and where that is 0.
const AHEAD: f64 = 0.02;
const FIRST_STEP: f64 = 1e-2;
/// Relative width at which a bracket is narrow enough.
const NARROW: f64 = 1e-12;
/// A bound that jumps by roundings would halve the bracket for long.
const MOST_TRIALS: usize = 16;

/// A θ, and ln (bound/τ) there.
type Trial = (f64, f64);

/// The largest θ at which the curves `family` are rejected at level τ; none if not even θ = 0 is.
///
/// The curves must allow more the larger θ, from θ = 0 on. Direction: a θ that
/// [`rejects`](super::rejects) rejects, the end of a bracket 1e-12 wide, relative.
///
/// # Errors
/// Those of `family`, τ outside (0, 1), or an interruption.
///
/// ```
/// use leakbound_core::Interrupt;
/// use leakbound_core::fdp::{Counts, certificate, tradeoff::Gaussian};
/// let counts = Counts::new(1000.0, 100, 95, 2, false)?;
/// let gaussian = |mu| Gaussian::new(mu, 0.0);
/// let mu = certificate::critical(&counts, gaussian, 0.05, &Interrupt::default())?;
/// assert!(mu.is_some_and(|mu| mu > 0.8025 && mu < 0.8027));
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
pub fn critical<T: TradeOff>(
    counts: &Counts,
    family: impl Fn(f64) -> Result<T, AuditError>,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Option<f64>, AuditError> {
    let tau = check_tau(tau)?;
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
        let next = trial(between(low, high, run))?;
        if next.1 <= 0.0 {
            (low, run) = (next, run.max(0) + 1);
        } else {
            (high, run) = (next, run.min(0) - 1);
        }
    }
    Ok(Some(low.0))
}

/// The next trial of a bracket: false position, an end that has not moved for a while counting
/// less, and halving if that does not help either. It lands on neither end.
pub(super) fn between(low: Trial, high: Trial, run: i32) -> f64 {
    let middle = 0.5 * (low.0 + high.0);
    if run.abs() > 4 {
        return middle;
    }
    let weight = 0.5_f64.powi((run.abs() - 1).max(0));
    let (below, above) = if run > 0 {
        (low.1, high.1 * weight)
    } else {
        (low.1 * weight, high.1)
    };
    let width = high.0 - low.0;
    let at = low.0 + width * below / (below - above);
    // Half a tolerance inside, so that the other end follows.
    let least = 0.5 * NARROW * high.0.abs().min(1.0);
    let at = at.clamp(
        low.0 + least.min(0.25 * width),
        high.0 - least.min(0.25 * width),
    );
    if at > low.0 && at < high.0 {
        at
    } else {
        middle
    }
}
