//! f-differential privacy in one run: trade-off functions, and tests of the number of correct
//! guesses.
//!
//! A mechanism is f-DP if every test of "this example took part", at level x, has power at most
//! f̄(x) = 1 − f(x). Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run"
//! (2025), turn this into inequalities between the probabilities of so many correct guesses.

pub mod certificate;
pub(crate) mod counts;
pub mod recursion;
pub mod search;
pub mod tradeoff;

pub use certificate::Certificate;
pub use counts::Counts;
pub use tradeoff::TradeOff;
