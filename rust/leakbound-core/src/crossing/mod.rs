//! The probability that a Bernoulli walk crosses a boundary.

pub(crate) mod backward;
pub(crate) mod boundary;
pub(crate) mod first_crossing;
pub(crate) mod knapsack;
pub(crate) mod success_probabilities;
pub(crate) mod walk;
