//! Propensities: the odds that an example with given features is a member.
//!
//! An L2-regularised logistic regression, Platt's calibration of it, and the refits of both on
//! bootstrap resamples of the rows.

mod bootstrap;
mod cholesky;
mod error;
mod fit;
mod newton;
mod predict;
mod resample;
mod training;

pub use error::PropensityError;
pub use fit::{Calibration, LogisticFit, calibrate};
pub use predict::log_odds;
pub use training::Training;
