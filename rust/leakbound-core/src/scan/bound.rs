//! The outcome of a test over cuts.

use leakbound_math::Probability;

use crate::guesses::path::Cut;

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
