//! The Poisson-binomial distribution: sums S = ΣXᵢ of independent Bernoulli terms.
//!
//! [`Terms`] holds the terms, as probabilities or as offsets aᵢ with pᵢ = σ(ε + aᵢ), and gives tails
//! P(S ≥ v) and their inverse in ε at O(n) each and at the relative accuracy of a double, from 1 down
//! to e^−10⁶ and from one term to ten million. [`Weighted`] does the same for ΣtᵢXᵢ.
//!
//! # Method
//!
//! Tilting all odds by a factor x moves the mean to v, where the law is near its centre and all its
//! probabilities are of one size. There
//!
//! ```text
//! P(S ≥ v) = e^{K(θ)−θv} Σ_{j≥0} e^{−θj} P̃(S = v+j),   θ = ln x − ε,
//! K(θ) = Σ ln[(1+Eᵢe^{ε+θ})/(1+Eᵢe^ε)],                Eᵢ = e^{aᵢ},
//! ```
//!
//! and the sum is a trapezoidal rule for the tilted characteristic function at M equispaced nodes, of
//! which about 25 matter whatever n is. At the nodes its logarithm is a series in the power sums
//! Σwᵢᵐ and Σ(1−2pᵢ)wᵢᵐ, wᵢ = pᵢ(1−pᵢ), of which four to twenty-four are collected in one vectorised
//! pass. Nothing is ever formed as 1 − cdf, and no probability is a difference of larger ones.
//!
//! # Error
//!
//! Each part is bounded, and the bounds are returned with the value ([`Tail::relative_error`]):
//!
//! - aliasing: P̃(|S−v| ≥ M/2) ≤ 2e^{−38}, by Bennett's inequality;
//! - dropped nodes: |ψ(φ)| ≤ e^{−var(1−cos φ)} ≤ e^{−38};
//! - the series: A₁|S|(w|S|)ᴸ/((L+1)(1−w|S|)) after L terms, S = 4 sinh²(z/2), w = max wᵢ, held below
//!   2·10⁻¹⁶ by the choice of L; where no L ≤ 24 does, the terms with large wᵢ (117 at most) are
//!   multiplied out at every node;
//! - rounding: the mean is summed to 100 bits, rounded odds carry their residuals, and the rest is
//!   charged to the sizes of what was added.
//!
//! # Sources
//!
//! - G. Bennett (1962), Probability inequalities for the sum of independent random variables, Journal
//!   of the American Statistical Association 57.
//! - H. E. Daniels (1954), Saddlepoint approximations in statistics, Annals of Mathematical
//!   Statistics 25: the tilt.
//! - L. N. Trefethen & J. A. C. Weideman (2014), The exponentially convergent trapezoidal rule, SIAM
//!   Review 56.

mod all_succeed;
mod base;
mod contour;
mod exact;
mod inverse;
mod points;
mod series;
mod tail;
mod tail_value;
mod terms;
mod tilted;
mod weights;

pub use inverse::{RUN, replicate_epsilons};
pub use leakbound_simd::Level;
pub use tail_value::Tail;
pub use terms::Terms;
pub use weights::Weighted;
