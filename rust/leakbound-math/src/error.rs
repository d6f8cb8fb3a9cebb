//! What can be wrong with the arguments of this crate, and the values that were.

use thiserror::Error;

/// A precondition that an argument broke, or a search that did not reach its accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages say what variants and fields are")]
pub enum MathError {
    #[error("{name} must be a probability between 0 and 1, got {value}")]
    NotAProbability { name: &'static str, value: f64 },
    #[error("{name} must be a number, got NaN")]
    NotANumber { name: &'static str },
    #[error("successes must be at most trials, got {successes} successes in {trials} trials")]
    CountAboveTrials { successes: u64, trials: u64 },
    #[error("{name} must lie strictly between 0 and 1, got {value}")]
    LevelOutOfRange { name: &'static str, value: f64 },
    #[error("{name} must hold probabilities between 0 and 1, got {name}[{index}] = {value}")]
    NotAProbabilityAt {
        name: &'static str,
        index: usize,
        value: f64,
    },
    #[error("{name} must hold numbers, got {name}[{index}] = NaN")]
    NotANumberAt { name: &'static str, index: usize },
    #[error(
        "offsets must lie within 300 of the middle of their range, {middle}, \
         got offsets[{index}] = {value}; use an infinite offset for certainty"
    )]
    OffsetTooFar {
        index: usize,
        value: f64,
        middle: f64,
    },
    #[error("{name} must be as long as {like}, got {got} entries beside {expected}")]
    LengthMismatch {
        name: &'static str,
        like: &'static str,
        expected: usize,
        got: usize,
    },
    #[error("counts must add up to at most {most} trials")]
    TooManyTrials { most: u64 },
    #[error("weights must add up to at most {largest}")]
    WeightsTooLarge { largest: u64 },
    #[error(
        "weights up to {largest} would need a contour of more than {most} nodes: divide them by a \
         common factor, or round them"
    )]
    WeightsTooUnlike { largest: u64, most: usize },
    #[error("there is no memory for {bytes} bytes: pass fewer examples at once")]
    OutOfMemory { bytes: usize },
    #[error("{what} did not converge in {steps} steps")]
    NotConverged { what: &'static str, steps: u32 },
}

/// Refuses a level that is not strictly between 0 and 1.
pub(crate) fn check_level(name: &'static str, value: f64) -> Result<(), MathError> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(MathError::LevelOutOfRange { name, value })
}

/// Refuses an array that is not as long as another.
pub fn check_length(
    name: &'static str,
    got: usize,
    like: &'static str,
    expected: usize,
) -> Result<(), MathError> {
    if got == expected {
        return Ok(());
    }
    Err(MathError::LengthMismatch {
        name,
        like,
        expected,
        got,
    })
}

/// Refuses an array with an entry outside \[0, 1\], and names the first.
pub fn check_probabilities(name: &'static str, values: &[f64]) -> Result<(), MathError> {
    match values.iter().position(|x| !(0.0..=1.0).contains(x)) {
        None => Ok(()),
        Some(index) => Err(MathError::NotAProbabilityAt {
            name,
            index,
            value: values[index],
        }),
    }
}
