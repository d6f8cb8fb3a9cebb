//! Guesses of membership: which are made, in which order, and which of them are correct.
//!
//! - `bits`: one bit per example.
//! - `grid`: the numbers of guesses looked at.
//! - `path`: guesses in visiting order, and the cuts that scores allow.
//! - `ranking`: scores in order, and the paths through them.
//! - `counts`: examples counted by score, in place of examples.
//! - `shuffled`: their order where ties are broken at random, of which only what is needed is drawn.
//! - `matching`: the same for matched examples, replicate by replicate.

pub(crate) mod bits;
pub(crate) mod counts;
pub(crate) mod grid;
pub(crate) mod matching;
pub(crate) mod path;
pub(crate) mod ranking;
pub(crate) mod shuffled;
