//! Tails, limits and special functions, each with its accuracy and the direction of its rounding.
//!
//! Nothing here knows of privacy or audits. Every function computes the tail it is asked for, in
//! logarithms where that can underflow, and states how far off it may be.
//!
//! - [`normal`]: the normal distribution, its quantiles and their logarithms.
//! - [`logistic`]: σ, its inverse and their logarithms.
//! - [`probability`]: a probability that carries its complement at full precision.
//! - [`deviance`]: the exponents of the saddle-point formulas, without cancellation.
//! - [`binomial`]: the binomial distribution, right to ten million trials and beyond.
//! - [`clopper_pearson`]: exact limits for a binomial probability, rounded outward.
//! - [`hypergeometric`]: draws without replacement, from a stream.
//! - [`poisson_binomial`]: sums of unlike Bernoulli terms, their tails and inverses.
//! - [`stream`]: random numbers, one stream for each purpose, seed and index.
//! - [`error`]: what can be wrong with an argument.

pub mod binomial;
pub mod clopper_pearson;
pub mod deviance;
pub mod error;
pub mod hypergeometric;
pub mod logistic;
pub mod normal;
pub mod poisson_binomial;
pub mod probability;
pub mod stream;

pub use binomial::Binomial;
pub use error::MathError;
pub use probability::Probability;
