//! Propensities: the odds that an example with given features is a member.
//!
//! An L2-regularised logistic regression, Platt's calibration of it, and the refits of both on
//! bootstrap resamples of the rows.
//!
//! # Glossary
//!
//! | symbol | meaning |
//! |---|---|
//! | `η` | log-odds of membership, a + x·b |
//! | `β` | intercept and slopes for standardised features |
//! | `l2` | penalty, of ½ l2 ‖b‖² in the features' own units |
//! | replicate | a fit of one resample |

mod bootstrap;
mod cholesky;
mod confidence;
mod error;
mod fit;
mod newton;
mod panel;
mod predict;
mod resample;
mod training;

pub use confidence::{
    Balance, ConfidenceSet, Guess, Labelled, Least, Matched, Matching, Prices, balanced,
};
pub use error::PropensityError;
pub use fit::LogisticFit;
pub use predict::log_odds;
pub use training::Training;
