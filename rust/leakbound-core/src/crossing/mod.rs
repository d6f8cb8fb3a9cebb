//! The probability that a Bernoulli walk crosses a boundary.
//!
//! - `success_probabilities`: how likely each guess is correct.
//! - `walk`: the law of a walk that has not crossed yet.
//! - `first_crossing`: the law of the first crossing, reweighted to nearby probabilities.
//! - `backward`: the probability of a crossing from every head start.
//! - `knapsack`: the worst that failures of a bounded mean can add.
//! - `boundary`: the boundary itself, and the calibration of a level.

pub(crate) mod backward;
pub(crate) mod boundary;
pub(crate) mod first_crossing;
pub(crate) mod knapsack;
pub(crate) mod success_probabilities;
pub(crate) mod walk;
