//! A confidence set of the log-odds of membership, and its least favourable member.
//!
//! - `set`: the set, C = {θ : ℓ(θ) ≥ c}.
//! - `ascent`: the largest value of a function over it.
//! - `guesses`: what an audit maximises over it.
//! - `balance`: guesses about which C has little to say.

mod ascent;
mod balance;
mod guesses;
mod set;

pub use balance::{Balance, balanced};
pub use guesses::{Guess, Least};
pub use set::{ConfidenceSet, Labelled};
