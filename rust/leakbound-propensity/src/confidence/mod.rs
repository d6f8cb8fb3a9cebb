//! A confidence set of the log-odds of membership, and its least favourable member.

mod ascent;
mod balance;
mod draws;
mod guesses;
mod halves;
mod matched;
mod saddle;
mod set;

pub use balance::{Balance, balanced};
pub use guesses::{Guess, Least};
pub use matched::{Matched, Matching, Prices};
pub use set::{ConfidenceSet, Labelled};
