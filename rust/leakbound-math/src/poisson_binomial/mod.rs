//! The Poisson-binomial distribution: tails of sums of independent Bernoulli terms.
mod base;
mod bounds;
mod contour;
mod everyone;
mod exact;
mod inverse;
mod lattice;
mod pmf;
mod prefixes;
mod tail;
mod terms;
mod tilted;
mod weights;

pub use bounds::Bounds;
pub use inverse::replicate_epsilons;
pub use lattice::{BracketedTail, RealWeighted};
pub use leakbound_simd::Level;
pub use pmf::pmf;
pub use prefixes::prefix_log_tails;
pub use tail::Tail;
pub use terms::Terms;
pub use weights::Weighted;
