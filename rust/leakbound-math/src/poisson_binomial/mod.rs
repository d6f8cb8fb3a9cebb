//! The Poisson-binomial distribution: tails of sums of independent Bernoulli terms.
mod base;
mod contour;
mod exact;
mod tail;
mod terms;
mod tilted;

pub use leakbound_simd::Level;
pub use tail::Tail;
pub use terms::Terms;
