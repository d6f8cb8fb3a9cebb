//! Clopper–Pearson limits for a binomial probability, rounded outward.

use crate::MathError;
use crate::binomial::{Binomial, RELATIVE_ERROR};
use crate::probability::Probability;

/// The largest p with P(Bin(n, p) ≥ v) ≤ β, rounded down.
///
/// # Errors
///
/// [`MathError::CountAboveTrials`] and [`MathError::LevelOutOfRange`].
pub fn lower_limit(successes: u64, trials: u64, beta: f64) -> Result<Probability, MathError> {
    lower_limit_from(successes, trials, beta, Probability::HALF)
}

/// The smallest p with P(Bin(n, p) ≤ v) ≤ β, rounded up.
///
/// # Errors
///
/// Those of [`lower_limit`].
pub fn upper_limit(successes: u64, trials: u64, beta: f64) -> Result<Probability, MathError> {
    let failures = trials
        .checked_sub(successes)
        .ok_or(MathError::CountAboveTrials { successes, trials })?;
    Ok(lower_limit(failures, trials, beta)?.complement())
}

/// [`lower_limit`], from a guess.
///
/// # Errors
///
/// Those of [`lower_limit`].
pub fn lower_limit_from(
    successes: u64,
    trials: u64,
    beta: f64,
    guess: Probability,
) -> Result<Probability, MathError> {
    if successes > trials {
        return Err(MathError::CountAboveTrials { successes, trials });
    }
    if !(beta > 0.0 && beta < 1.0) {
        return Err(MathError::LevelOutOfRange {
            name: "beta",
            value: beta,
        });
    }
    if successes == 0 {
        return Ok(Probability::ZERO);
    }
    let target = beta.ln() - 3.0 * RELATIVE_ERROR;
    let safe = |p: Probability| Binomial::new(trials, p).ln_upper_tail(successes) <= target;
    let (mut low, mut high) = (-800.0, 800.0);
    let mut logit = guess.logit().clamp(-700.0, 700.0);
    for _ in 0..64 {
        if safe(Probability::from_logit(logit)?) {
            low = logit;
        } else {
            high = logit;
        }
        logit = 0.5 * (low + high);
    }
    Ok(Probability::from_logit(low)?.next_down())
}
