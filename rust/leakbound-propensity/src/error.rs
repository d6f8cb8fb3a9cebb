//! Why a propensity model cannot be fitted.

/// What is wrong with the data of a fit, or with the fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PropensityError {
    /// Features, classes, folds or counts that do not describe the same rows.
    #[error("{name} has {given} entries where {needed} are needed")]
    LengthMismatch {
        /// The argument.
        name: &'static str,
        /// How many entries it has.
        given: usize,
        /// How many it should have.
        needed: usize,
    },
    /// A feature that is NaN or infinite.
    #[error("the feature at row {row}, column {column} is {value}: drop the row or fill it in")]
    NotFinite {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A penalty below zero, or not a number.
    #[error("l2 must be a number of at least 0, got {value}")]
    Penalty {
        /// The value received.
        value: f64,
    },
    /// No row of one class, in all rows or outside of a fold.
    #[error(
        "{}, so the odds of membership cannot be learnt: give rows of both classes, several of \
         each for every fold",
        class_missing(*member, *fold)
    )]
    ClassMissing {
        /// Whether it is the members that are missing.
        member: bool,
        /// The fold outside of which they are missing, if it is not everywhere.
        fold: Option<usize>,
    },
    /// Resample after resample lacks a class.
    #[error(
        "{tried} resamples in a row lack a class outside of some fold: the smaller class has too \
         few rows for a bootstrap"
    )]
    ClassTooRare {
        /// How many resamples were drawn.
        tried: u64,
    },
    /// Without a penalty, classes that a hyperplane separates have no best fit.
    #[error(
        "a plane through the features separates members from non-members, and without a penalty \
         the fit is then infinite: set l2 above 0"
    )]
    Separable,
    /// Without a penalty, features that depend on one another have no unique fit.
    #[error(
        "the features are constant or depend on one another linearly, and without a penalty no fit \
         is best: set l2 above 0 or drop columns"
    )]
    Unidentified,
    /// Newton's method did not settle.
    #[error("the fit does not settle: rescale the features, or raise l2")]
    NotConverged,
    /// Fewer than five labels for each coefficient: no confidence set.
    #[error(
        "{rows} labels for {coefficients} coefficients: a confidence set of their log-odds needs \
         five for each, so use fewer features or more examples"
    )]
    TooFewRows {
        /// How many labels there are.
        rows: usize,
        /// How many coefficients.
        coefficients: usize,
    },
    /// A plane through the features separates the classes, or all rows but those on it: no
    /// confidence set.
    #[error(
        "features separate members from non-members, all or those that some feature marks, so that \
         nothing bounds the log-odds: use fewer features, or examples that could have been both"
    )]
    Separated,
    /// A column that others determine: no confidence set.
    #[error(
        "some features are constant or depend on one another linearly, so that coefficients cannot \
         be told apart: drop columns, such as one of the indicators of all categories"
    )]
    DependentColumns,
    /// No coefficients explain the labels well enough.
    #[error(
        "no coefficients explain the labels of both halves of the data: the log-odds of membership \
         are not linear in the features, or rows are not independent"
    )]
    EmptySet,
    /// A level outside (0, 1).
    #[error("a level must be a number in (0, 1), got {value}")]
    Level {
        /// The value received.
        value: f64,
    },
    /// A guess about a row that is not there.
    #[error("guess {index} is about row {row}, and rows are below {rows}")]
    Guess {
        /// Which guess.
        index: usize,
        /// The row it is about.
        row: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

fn class_missing(member: bool, fold: Option<usize>) -> String {
    let class = if member { "members" } else { "non-members" };
    match fold {
        None => format!("there are no {class}"),
        Some(fold) => format!("there are no {class} outside of fold {fold}"),
    }
}
