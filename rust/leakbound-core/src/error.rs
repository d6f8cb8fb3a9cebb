//! What can be wrong with an audit.

use leakbound_math::MathError;

/// Why no bound could be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages say what variants and fields are")]
pub enum AuditError {
    #[error("there are no examples to audit")]
    Empty,
    #[error(
        "{examples} examples are more than the {} that one audit can hold",
        u32::MAX
    )]
    TooManyExamples { examples: usize },
    #[error("{scores} scores but {members} membership values: give one of each per example")]
    LengthMismatch { scores: usize, members: usize },
    #[error("the score at index {index} is NaN: score every example, or drop it before the audit")]
    ScoreIsNan { index: usize },
    #[error(
        "all {examples} scores are equal, so nothing can be guessed: \
         use a score that tells examples apart"
    )]
    EveryExampleAbstains { examples: usize },
    #[error("the plan is for guesses from {planned}: choose by it")]
    OtherGuesses { planned: &'static str },
    #[error("{guesses} guesses cannot be made on a path of {available}: choose 1 to {available}")]
    GuessesOutOfRange { guesses: u64, available: u64 },
    #[error("{name} = {value} is outside its range: {range}")]
    ParameterOutOfRange {
        name: &'static str,
        value: f64,
        range: &'static str,
    },
    #[error("{given} probabilities for {steps} steps: give one, or one per step")]
    StepMismatch { given: usize, steps: usize },
    #[error("a trade-off table needs at least two levels, alpha[0] = 0 and the last alpha = 1")]
    TableEnds,
    #[error("alpha[{index}] is not above the level before it: sort the table, without repeats")]
    LevelsNotIncreasing { index: usize },
    #[error("this is no trade-off function: f[{index}] {what}")]
    NotATradeOff { index: usize, what: &'static str },
    #[error("a privacy profile needs at least one pair of epsilon and delta")]
    EmptyProfile,
    #[error(
        "delta[{index}] = {delta} is impossible: 1 - exp(epsilon[{index}]) = {least} is the least, \
         of a mechanism that ignores its data"
    )]
    DeltaTooSmall {
        index: usize,
        delta: f64,
        least: f64,
    },
    #[error("epsilon[{index}] = {value} is not between -700 and 700")]
    EpsilonTooFar { index: usize, value: f64 },
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Math(#[from] MathError),
}

/// The error of a parameter outside its range.
pub(crate) fn out_of_range<T>(
    name: &'static str,
    value: f64,
    range: &'static str,
) -> Result<T, AuditError> {
    Err(AuditError::ParameterOutOfRange { name, value, range })
}

/// Check that there are examples, no more than an audit can hold, and the membership of each.
pub(crate) fn check_examples(scores: usize, members: usize) -> Result<(), AuditError> {
    if scores != members {
        return Err(AuditError::LengthMismatch { scores, members });
    }
    if scores == 0 {
        return Err(AuditError::Empty);
    }
    if u32::try_from(scores).is_err() {
        return Err(AuditError::TooManyExamples { examples: scores });
    }
    Ok(())
}

/// Check an error probability.
pub(crate) fn check_level(name: &'static str, value: f64) -> Result<f64, AuditError> {
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    out_of_range(name, value, "between 0 and 1, both excluded")
}

/// Check a parameter of at least 0.
pub(crate) fn check_non_negative(name: &'static str, value: f64) -> Result<f64, AuditError> {
    if value >= 0.0 && value.is_finite() {
        return Ok(value);
    }
    out_of_range(name, value, "at least 0 and finite")
}

/// Check a δ.
pub(crate) fn check_delta(value: f64) -> Result<f64, AuditError> {
    if (0.0..1.0).contains(&value) {
        return Ok(value);
    }
    out_of_range("delta", value, "at least 0 and below 1")
}
