//! Guesses of membership: which are made, in which order, and which of them are correct.

pub(crate) mod bits;
pub(crate) mod counts;
pub(crate) mod grid;
pub(crate) mod matching;
pub(crate) mod path;
pub(crate) mod ranking;
pub(crate) mod shuffled;
pub(crate) mod sorted;
