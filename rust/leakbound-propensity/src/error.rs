//! Why a propensity model cannot be fitted.

use leakbound_math::MathError;

/// What is wrong with the data of a fit, or with the fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages say what variants and fields are")]
pub enum PropensityError {
    #[error("{name} has {given} entries where {needed} are needed")]
    LengthMismatch {
        name: &'static str,
        given: usize,
        needed: usize,
    },
    #[error("the feature at row {row}, column {column} is {value}: drop the row or fill it in")]
    NotFinite {
        row: usize,
        column: usize,
        value: f64,
    },
    #[error(transparent)]
    Math(#[from] MathError),
    #[error("l2 must be a number of at least 0, got {value}")]
    Penalty { value: f64 },
    #[error(
        "{}, so the odds of membership cannot be learnt: give rows of both classes, several of \
         each for every fold",
        class_missing(*member, *fold)
    )]
    ClassMissing { member: bool, fold: Option<usize> },
    #[error(
        "{tried} resamples in a row lack a class outside of some fold: the smaller class has too \
         few rows for a bootstrap"
    )]
    ClassTooRare { tried: u64 },
    #[error(
        "a plane through the features separates members from non-members, and without a penalty \
         the fit is then infinite: set l2 above 0"
    )]
    Separable,
    #[error(
        "the features are constant or depend on one another linearly, and without a penalty no fit \
         is best: set l2 above 0 or drop columns"
    )]
    Unidentified,
    #[error("the fit does not settle: rescale the features, or raise l2")]
    NotConverged,
    #[error(
        "{rows} labels for {coefficients} coefficients: a confidence set of their log-odds needs \
         five for each, so use fewer features or more examples"
    )]
    TooFewRows { rows: usize, coefficients: usize },
    #[error(
        "features separate members from non-members, completely or within a group that one feature \
         marks, so no bound is possible: use fewer features, or examples that could have been both"
    )]
    Separated,
    #[error(
        "some features are constant or depend on one another linearly, so that coefficients cannot \
         be told apart: drop columns, such as one of the indicators of all categories"
    )]
    DependentColumns,
    #[error(
        "no coefficients explain the labels of both halves of the data: the log-odds of membership \
         are not linear in the features, or rows are not independent"
    )]
    EmptySet,
    #[error("a level must be a number in (0, 1), got {value}")]
    Level { value: f64 },
    #[error("guess {index} is about row {row}, and rows are below {rows}")]
    Guess {
        index: usize,
        row: usize,
        rows: usize,
    },
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
