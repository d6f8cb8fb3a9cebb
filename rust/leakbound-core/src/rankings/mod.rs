//! Rankings of independent trials: their worst law, a statistic of all ranks, and simulations.
//!
//! `docs/theory/trials.md` has theorem and proof. Of the two laws of a trade-off function together,
//! the share u with the largest likelihood ratios holds members of mass A(u). Ranked trials have
//! uniform order statistics as their u, whatever the function, and given those at fixed ranks the
//! members between them are binomial.

mod cells;
mod law;
mod reference;
mod simulation;

pub use cells::Cells;
pub use law::PooledLaw;
pub use reference::{Reached, Reference};
pub use simulation::{draw, reaching};
