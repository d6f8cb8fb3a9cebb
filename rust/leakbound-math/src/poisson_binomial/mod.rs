//! The Poisson-binomial distribution: tails of sums of independent Bernoulli terms.
mod base;
mod contour;
mod everyone;
mod exact;
mod inverse;
mod tail;
mod terms;
mod tilted;

pub use inverse::replicate_epsilons;
pub use leakbound_simd::Level;
pub use tail::Tail;
pub use terms::Terms;
