//! The cut at which a statistic is largest.

use leakbound_math::Probability;

use crate::error::AuditError;
use crate::guesses::path::Cut;
use crate::interrupt::Interrupt;
use crate::scan::statistic::CutStatistic;

/// Every how many cuts the first, sparse pass looks.
const SPARSE: usize = 512;
/// Cuts between two looks at the interrupt.
const CUTS_PER_CHECK: usize = 1 << 8;

/// A lower confidence bound on the probability of a correct guess, and the cut that gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutBound {
    /// Largest probability that was rejected; 0 if none was.
    pub probability: Probability,
    /// The cut at which the statistic is largest; none if no cut stands out.
    pub cut: Option<Cut>,
    /// The statistic at that cut, before calibration; 0 if no cut stands out.
    pub statistic: Probability,
}

impl CutBound {
    /// Nothing can be rejected.
    pub const NONE: Self = Self {
        probability: Probability::ZERO,
        cut: None,
        statistic: Probability::ZERO,
    };
}

/// The maximum over `cuts` of a statistic's limits.
///
/// With [`EqualLevel`](crate::EqualLevel) at level β/n, n ≥ the number of cuts that scores
/// allow, the result is a lower confidence bound at error probability β by the union bound; with
/// the level β itself it is not.
///
/// A sparse pass first finds a high level, so that almost every cut of the second pass is ruled
/// out by [`may_exceed`](CutStatistic::may_exceed). The maximum does not depend on the order.
pub fn best_cut(
    cuts: &[Cut],
    statistic: &(impl CutStatistic + ?Sized),
    interrupt: &Interrupt,
) -> Result<CutBound, AuditError> {
    let mut best = CutBound::NONE;
    for &cut in cuts.iter().step_by(SPARSE) {
        interrupt.check()?;
        raise(&mut best, cut, statistic, interrupt)?;
    }
    for chunk in cuts.chunks(CUTS_PER_CHECK) {
        interrupt.check()?;
        for &cut in chunk {
            raise(&mut best, cut, statistic, interrupt)?;
        }
    }
    Ok(best)
}

fn raise(
    best: &mut CutBound,
    cut: Cut,
    statistic: &(impl CutStatistic + ?Sized),
    interrupt: &Interrupt,
) -> Result<(), AuditError> {
    if best.cut.is_some() && !statistic.may_exceed(cut, best.statistic) {
        return Ok(());
    }
    match statistic.limit(cut, interrupt)? {
        Some(limit) if best.cut.is_none() || exceeds(limit, best.statistic) => {
            *best = CutBound {
                probability: limit,
                cut: Some(cut),
                statistic: limit,
            };
        }
        _ => {}
    }
    Ok(())
}

/// Larger, where probabilities near 1 are told apart by their complements.
fn exceeds(a: Probability, b: Probability) -> bool {
    a.p() > b.p() || (a.p() == b.p() && a.q() < b.q())
}
