//! What can be wrong with an audit.

use leakbound_math::MathError;

/// Why no bound could be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// There is no example to audit.
    #[error("there are no examples to audit")]
    Empty,
    /// Cut positions are stored in 32 bits.
    #[error(
        "{examples} examples are more than the {} that one audit can hold",
        u32::MAX
    )]
    TooManyExamples {
        /// How many were given.
        examples: usize,
    },
    /// Scores and membership are of different lengths.
    #[error("{scores} scores but {members} membership values: give one of each per example")]
    LengthMismatch {
        /// Number of scores.
        scores: usize,
        /// Number of membership values.
        members: usize,
    },
    /// A score is NaN and has no place in a ranking.
    #[error("the score at index {index} is NaN: score every example, or drop it before the audit")]
    ScoreIsNan {
        /// The first such position.
        index: usize,
    },
    /// No score differs from another, so no example is more likely a member than another.
    #[error(
        "all {examples} scores are equal, so every example abstains: \
         use a score that tells examples apart"
    )]
    EveryExampleAbstains {
        /// How many examples share the score.
        examples: usize,
    },
    /// A fixed number of guesses must lie between one and the length of the path.
    #[error("{guesses} guesses cannot be made on a path of {available}: choose 1 to {available}")]
    GuessesOutOfRange {
        /// The number asked for.
        guesses: u64,
        /// How many can be made.
        available: u64,
    },
    /// A parameter lies outside its range.
    #[error("{name} = {value} is outside its range: {range}")]
    ParameterOutOfRange {
        /// The parameter's public name.
        name: &'static str,
        /// The value received.
        value: f64,
        /// What is allowed, in words.
        range: &'static str,
    },
    /// A per-step probability has the wrong count.
    #[error("{given} probabilities for {steps} steps: give one, or one per step")]
    StepMismatch {
        /// How many were given.
        given: usize,
        /// How many steps the boundary has.
        steps: usize,
    },
    /// A table of a trade-off function does not reach from level 0 to level 1.
    #[error("a trade-off table needs at least two levels, alpha[0] = 0 and the last alpha = 1")]
    TableEnds,
    /// The levels of such a table do not increase.
    #[error("alpha[{index}] is not above the level before it: sort the table, without repeats")]
    LevelsNotIncreasing {
        /// The first such position.
        index: usize,
    },
    /// The values of such a table are not those of a trade-off function.
    #[error("this is no trade-off function: f[{index}] {what}")]
    NotATradeOff {
        /// The first such position.
        index: usize,
        /// What is wrong there, and the rule.
        what: &'static str,
    },
    /// A privacy profile without a single pair.
    #[error("a privacy profile needs at least one pair of epsilon and delta")]
    EmptyProfile,
    /// An ε whose exponential is no normal number.
    #[error("epsilon[{index}] = {value} is not between -700 and 700")]
    EpsilonTooFar {
        /// The first such position.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A tail or limit could not be computed.
    #[error(transparent)]
    Math(#[from] MathError),
}

/// Check an error probability.
pub(crate) fn check_level(name: &'static str, value: f64) -> Result<f64, AuditError> {
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(AuditError::ParameterOutOfRange {
        name,
        value,
        range: "between 0 and 1, both excluded",
    })
}
