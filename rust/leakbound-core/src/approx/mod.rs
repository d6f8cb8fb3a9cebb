//! (ε, δ)-differential privacy at one number of guesses.

pub(crate) mod limit;
pub(crate) mod tail;
