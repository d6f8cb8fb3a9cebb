//! How planning weighs counts: by the claim, at one level of confidence.

use leakbound_math::clopper_pearson;

use super::allowance::Allowance;
use super::joint_tail::JointTail;
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::fdp::recursion;
use crate::fdp::tradeoff::gaussian::Gaussian;
use crate::interrupt::Interrupt;

/// Bounds are found to this share of themselves.
const ROUGH: f64 = 1e-3;
/// Standard scores of counts over which planning averages.
pub(super) const SPREAD: [f64; 3] = [-1.0, 0.0, 1.0];

/// What a count is worth in planning. It has no part in any proof.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// ε-DP, by the limit of Clopper and Pearson.
    Pure,
    /// (ε, δ)-DP, by [`JointTail`] with this share of β for failures.
    Approximate {
        /// δ.
        delta: f64,
        /// φ.
        share: f64,
    },
    /// (ε, δ)-DP of independent trials, by [`Allowance`].
    Trials(Allowance),
    /// A family of trade-off functions, by the recursion for Gaussian ones.
    Family,
}

impl Form {
    /// The bound of a count, roughly; 0 if nothing is refuted. For a family it is that of a test at
    /// this share of the level.
    pub(super) fn bound(
        &self,
        counts: &Counts,
        level: f64,
        share_of_level: f64,
        interrupt: &Interrupt,
    ) -> Result<f64, AuditError> {
        let found = match self {
            Self::Pure => {
                let limit =
                    clopper_pearson::lower_limit(counts.correct(), counts.guesses(), level)?;
                Some(limit.logit() + counts.others().ln())
            }
            Self::Approximate { delta, share } => {
                JointTail::new(*delta, level, *share)?.limit(counts)
            }
            Self::Trials(allowance) => allowance.limit(counts.guesses(), counts.correct())?,
            Self::Family => Some(rough_mu(counts, share_of_level * level, interrupt)?),
        };
        Ok(found.unwrap_or(0.0).max(0.0))
    }
}

/// The largest μ that the recursion rejects, nearly.
fn rough_mu(counts: &Counts, tau: f64, interrupt: &Interrupt) -> Result<f64, AuditError> {
    let rejects = |mu: f64| -> Result<bool, AuditError> {
        Ok(recursion::decide(counts, &Gaussian::new(mu, 0.0)?, tau, interrupt)?.rejected())
    };
    if !rejects(0.0)? {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 0.25);
    while rejects(high)? {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > ROUGH * high.max(0.25) {
        let middle = 0.5 * (low + high);
        if rejects(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// A line through two points that are next to each other, level beyond the ends.
pub(super) fn interpolated(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < x);
    match (points.get(after.wrapping_sub(1)), points.get(after)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
        (Some(end), None) | (None, Some(end)) => end.1,
        (None, None) => 0.0,
    }
}
