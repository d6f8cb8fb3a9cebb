//! The critical parameter of a family of curves.

use super::Certificate;
use crate::fdp::counts::{Counts, check_tau};
use crate::fdp::{TradeOff, recursion};
use crate::{AuditError, Interrupt};

/// Certificates made at most.
const MOST_CERTIFICATES: usize = 16;
/// A relative step that brings nothing.
const NARROW: f64 = 1e-7;
/// |ln (bound/τ)| from which the last certificate's slopes do as well as any.
const SETTLED: f64 = 1e-4;
/// The first certificate is made so far above what the recursion rejects, relative.
const AHEAD: f64 = 0.03;
/// θ = 0 is followed by at most so much.
const LEAST_STEP: f64 = 1e-3;
/// Relative width of a bracket at which a certificate's own limit is found.
const BRACKET: f64 = 1e-12;
const MOST_TRIALS: usize = 200;

/// The largest θ found at which the curves `family` are rejected at level τ; none if not even θ = 0.
///
/// The curves must allow more the larger θ, from θ = 0 on. Direction: a θ at which the recursion
/// or a certificate rejects. The slopes of a certificate for one θ prove bounds for others, too; near
/// enough to the limit these are as good as any, since the best bounds are stationary in the slopes.
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
///
/// # Errors
/// Those of `family`, τ outside (0, 1), or an interruption.
pub fn critical<T: TradeOff>(
    counts: &Counts,
    family: impl Fn(f64) -> Result<T, AuditError>,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Option<f64>, AuditError> {
    let tau = check_tau(tau)?;
    let known = recursion::critical(counts, &family, tau, interrupt)?;
    let mut at = known.unwrap_or(0.0) * (1.0 + AHEAD);
    let mut certificate = Certificate::new(counts, &family(at)?, interrupt)?;
    let mut best = known;
    let (mut low, mut high, mut last) = (None, None, None);
    for _ in 0..MOST_CERTIFICATES {
        let trial = (at, (certificate.bound() / tau).ln());
        let limit = limit(&certificate, &family, tau, at)?;
        best = limit.into_iter().chain(best).reduce(f64::max);
        if trial.1.abs() <= SETTLED {
            break;
        }
        if trial.1 <= 0.0 {
            low = Some(trial);
        } else {
            high = Some(trial);
        }
        let next = following(trial, last, limit, (low, high));
        if (next - at).abs() <= NARROW * at {
            break;
        }
        (last, at) = (Some(trial), next);
        certificate = certificate.moved(&family(at)?, interrupt)?;
    }
    Ok(best)
}

/// A θ, and ln (bound/τ) there.
type Trial = (f64, f64);

/// Where to make the next certificate: by the secant of two, or the limit of the first.
fn following(
    trial: Trial,
    last: Option<Trial>,
    limit: Option<f64>,
    bracket: (Option<Trial>, Option<Trial>),
) -> f64 {
    let (at, value) = trial;
    let next = match (last, limit) {
        (Some(last), _) if last.1 != value => at - value * (at - last.0) / (value - last.1),
        (_, Some(limit)) => limit,
        _ => 0.9 * at,
    };
    match bracket {
        (Some(low), Some(high)) if next <= low.0 || next >= high.0 => between(low, high, 1),
        (Some(_), Some(_)) => next,
        (None, _) => next.clamp(0.5 * at, at),
        (_, None) => next.clamp(at, 2.0 * at + LEAST_STEP),
    }
}

/// The largest θ at which the certificate still proves P(W ≥ c) ≤ τ, from a guess `start`.
fn limit<T: TradeOff>(
    certificate: &Certificate,
    family: &impl Fn(f64) -> Result<T, AuditError>,
    tau: f64,
    start: f64,
) -> Result<Option<f64>, AuditError> {
    let excess = |theta: f64| -> Result<f64, AuditError> {
        Ok((certificate.bound_for(&family(theta)?) / tau).ln())
    };
    let (mut low, mut high) = (None, None);
    let mut at = start;
    let mut stride = 1e-3 * if start > 0.0 { start } else { 1.0 };
    let mut run = 0_i32;
    for _ in 0..MOST_TRIALS {
        let value = excess(at)?;
        if value <= 0.0 {
            (low, run) = (Some((at, value)), run.max(0) + 1);
        } else {
            (high, run) = (Some((at, value)), run.min(0) - 1);
        }
        at = match (low, high) {
            (None, _) if at == 0.0 => return Ok(None),
            (None, _) => (at - stride).max(0.0),
            (_, None) => at + stride,
            (Some(low), Some(high)) => {
                if high.0 - low.0 <= BRACKET * high.0 {
                    break;
                }
                between(low, high, run)
            }
        };
        stride *= 2.0;
    }
    Ok(low.map(|(theta, _)| theta))
}

/// The next trial of a bracket: false position, an end that has not moved for a while counting
/// less, and halving if that does not help either.
pub(super) fn between(low: Trial, high: Trial, run: i32) -> f64 {
    let middle = 0.5 * (low.0 + high.0);
    if run.abs() > 6 {
        return middle;
    }
    let weight = 0.5_f64.powi(run.abs() - 1);
    let (below, above) = if run > 0 {
        (low.1, high.1 * weight)
    } else {
        (low.1 * weight, high.1)
    };
    let at = low.0 + (high.0 - low.0) * below / (below - above);
    if at > low.0 && at < high.0 {
        at
    } else {
        middle
    }
}
