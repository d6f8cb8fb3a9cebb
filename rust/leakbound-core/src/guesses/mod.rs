//! Guesses of membership: which are made, in which order, and which of them are correct.
//!
//! - `bits`: one bit per example.
//! - `grid`: the numbers of guesses looked at.
//! - `path`: guesses in visiting order, and the cuts that scores allow.
//! - `ranking`: scores in order, and the paths through them.
//! - `matching`: the same for matched examples, replicate by replicate.

pub(crate) mod bits;
pub(crate) mod grid;
pub(crate) mod matching;
pub(crate) mod path;
pub(crate) mod ranking;
