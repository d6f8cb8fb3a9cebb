//! Tails, limits and special functions, each with its accuracy and the direction of its rounding.
//!
//! Nothing here knows of privacy or audits. Every function computes the tail it is asked for, in
//! logarithms where that can underflow, and states how far off it may be.

pub mod binomial;
pub mod clopper_pearson;
pub mod deviance;
pub mod error;
pub mod hull;
pub mod hypergeometric;
pub mod logistic;
pub mod memory;
pub mod normal;
pub mod poisson_binomial;
pub mod probability;
pub mod stream;
pub mod variates;

pub use binomial::Binomial;
pub use error::MathError;
pub use probability::Probability;
