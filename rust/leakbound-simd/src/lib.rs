//! The vector kernels of leakbound.
//!
//! Every kernel is written once against the private `Vector` trait and compiled three times: for
//! AVX-512, for AVX2 with FMA, and portably (fixed-width arrays that LLVM turns into NEON or SSE2).
//! A [`Level`] says which copy to run; [`Level::best`] is detected once per process (or named by
//! [`SWITCH`]) and [`Level::available`] lists every copy this machine can run, for tests and
//! benchmarks.
//!
//! The tests of this crate hold every level against plain loops. They also pass under
//! `AddressSanitizer`, for which a nightly toolchain is needed:
//! `RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p leakbound-simd --target
//! x86_64-unknown-linux-gnu`.
//!
//! This is the only crate of the workspace with `unsafe`, and it is used for two things alone: to
//! call a function compiled for a CPU feature once that feature was detected, and to name an
//! intrinsic inside that function. Sums are taken in a fixed order, so a kernel returns the same
//! bits on every call at the same level.

mod convolve;
mod dispatch;
mod exponential;
mod level;
mod log_ratio;
mod logistic;
mod nodes;
mod odds;
mod portable;
mod power_sums;
mod vector;
mod walk;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use convolve::multiply_by_terms;
pub use level::{Level, SWITCH};
pub use log_ratio::{LogRatio, log_ratio};
pub use logistic::{GROUP, LineSums, REPLICATES, line_sums, linear_scores, logistic_gradient};
pub use nodes::{Nodes, multiply_nodes, series_at_nodes};
pub use odds::{odds_from_logits, odds_from_probabilities};
pub use power_sums::{MAX_TERMS, PowerSums, power_sums, rough_power_sums};
pub use walk::{bernoulli_step, correlate};
