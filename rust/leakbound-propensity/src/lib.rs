//! Propensities: the odds that an example with given features is a member.
//!
//! An L2-regularised logistic regression, Platt's calibration of it, and the refits of both on
//! bootstrap resamples of the rows.
//!
//! ```
//! use leakbound_propensity::{LogisticFit, Training, log_odds};
//! let features = [0.1, 0.9, 0.3, 1.2, 0.2, 0.8, 0.7, 1.1, 0.4, 0.5, 0.6, 1.3];
//! let member = [0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0].map(|one| one == 1);
//! let folds = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
//! let training = Training::new(&features, 1, &member, Some(&folds), 1.0)?;
//! let fit = LogisticFit::new(&training, None)?;
//! let refits = fit.bootstrap(&training, 0, 0, 100, &|| false)?;
//! let draws = log_odds(&refits, &[0.5, 1.0], 1, &|| false)?;
//! assert_eq!(draws.len(), 100 * 2);
//! # Ok::<(), leakbound_propensity::PropensityError>(())
//! ```
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

pub use confidence::{Balance, ConfidenceSet, Guess, Labelled, Least, balanced};
pub use error::PropensityError;
pub use fit::LogisticFit;
pub use predict::log_odds;
pub use training::Training;
