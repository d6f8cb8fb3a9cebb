//! What can be wrong with the arguments of this crate, and the values that were.

use thiserror::Error;

/// A precondition that an argument broke, or a search that did not reach its accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MathError {
    /// A probability (or its complement) outside \[0, 1\], or not a number.
    #[error("{name} must be a probability between 0 and 1, got {value}")]
    NotAProbability {
        /// The argument.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// An argument that is not a number.
    #[error("{name} must be a number, got NaN")]
    NotANumber {
        /// The argument.
        name: &'static str,
    },
    /// More successes than trials.
    #[error("successes must be at most trials, got {successes} successes in {trials} trials")]
    CountAboveTrials {
        /// The successes.
        successes: u64,
        /// The trials.
        trials: u64,
    },
    /// A level that is not strictly between 0 and 1.
    #[error("{name} must lie strictly between 0 and 1, got {value}")]
    LevelOutOfRange {
        /// The argument.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// An entry of an array of probabilities outside \[0, 1\], or not a number.
    #[error("{name} must hold probabilities between 0 and 1, got {name}[{index}] = {value}")]
    NotAProbabilityAt {
        /// The argument.
        name: &'static str,
        /// The first offending entry.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// An entry of an array that is not a number.
    #[error("{name} must hold numbers, got {name}[{index}] = NaN")]
    NotANumberAt {
        /// The argument.
        name: &'static str,
        /// The first offending entry.
        index: usize,
    },
    /// Finite offsets too far apart for their odds to be held together.
    #[error(
        "offsets must lie within 300 of the middle of their range, {middle}, \
         got offsets[{index}] = {value}; use an infinite offset for certainty"
    )]
    OffsetTooFar {
        /// The first offending entry.
        index: usize,
        /// Its value.
        value: f64,
        /// The middle of the range.
        middle: f64,
    },
    /// Two arrays that belong together and differ in length.
    #[error("{name} must be as long as {like}, got {got} entries beside {expected}")]
    LengthMismatch {
        /// The argument.
        name: &'static str,
        /// The argument it belongs to.
        like: &'static str,
        /// The length of the latter.
        expected: usize,
        /// The length of the former.
        got: usize,
    },
    /// More trials than a double can count.
    #[error("counts must add up to at most {most} trials")]
    TooManyTrials {
        /// The largest number of trials.
        most: u64,
    },
    /// Weights whose sum is more than a double can count.
    #[error("weights must add up to at most {largest}")]
    WeightsTooLarge {
        /// The largest sum.
        largest: u64,
    },
    /// Weights too large and too unlike for the terms they belong to.
    #[error(
        "weights up to {largest} would need a contour of more than {most} nodes: divide them by a \
         common factor, or round them"
    )]
    WeightsTooUnlike {
        /// The largest weight.
        largest: u64,
        /// The most nodes that are held.
        most: usize,
    },
    /// A search that used all its steps; its limit is argued where it is set, so this is a defect.
    #[error("{what} did not converge in {steps} steps")]
    NotConverged {
        /// What was searched for.
        what: &'static str,
        /// The steps taken.
        steps: u32,
    },
}
