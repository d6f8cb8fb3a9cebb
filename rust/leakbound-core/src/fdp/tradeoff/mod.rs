//! Trade-off functions f, as their concave complements f̄ = 1 − f.
//!
//! f̄(x) is the largest power of a test at level x. Everything here errs so that a mechanism is
//! allowed too much rather than too little: f̄⁻¹ is rounded down, δ(ε) up, ε(δ) down.

mod approx;
pub(crate) mod function;
pub(crate) mod gaussian;
mod laplace;
mod profile;
mod tabulated;

pub use approx::Approx;
pub use function::TradeOff;
pub use gaussian::Gaussian;
pub use laplace::Laplace;
pub use profile::Profile;
pub use tabulated::Tabulated;
