//! The Poisson-binomial distribution: tails of sums of independent Bernoulli terms.
mod base;
mod bounds;
mod contour;
mod everyone;
mod exact;
mod inverse;
mod pmf;
mod tail;
mod terms;
mod tilted;

pub use bounds::Bounds;
pub use inverse::replicate_epsilons;
pub use leakbound_simd::Level;
pub use pmf::pmf;
pub use tail::Tail;
pub use terms::Terms;
