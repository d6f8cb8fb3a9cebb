//! The tight count test: the most probable that so many correct guesses can be under f-DP.
//!
//! Let p be the law of W, the correct guesses among c', in a game of m examples with k values each.
//! Theorem 3.1 of Mahloujifar, Melis and Chaudhuri (2025) bounds, for every set of *edges*
//! s ∈ {0, …, c'−1} between s and s + 1 correct guesses,
//!
//! a = Σ (s+1) p_{s+1}/m by f̄(b), b = Σ (c'−s) p_s/((k−1) m).
//!
//! Their Algorithm 3 ([`recursion`](super::recursion)) uses upper sets only. Here all sets are used.
//! No test that sees only m, c' and c can do better: every law that obeys all inequalities could be
//! the truth for all it knows. This goes beyond the paper.
//!
//! # The proof behind every bound
//!
//! Take any λ(y) ≥ 0 on y ≥ 0 with integral Ψ(y) = ∫₀^y λ, any y_0, …, y_{c'−1} ≥ 0 and κ ≥ 0 with,
//! for j = 0, …, c',
//!
//! (j/c') y_{j−1} − ((c'−j)/(c'(k−1))) Ψ(y_j) ≥ 1{j ≥ c} − κ.  (1)
//!
//! Then P(W ≥ c) ≤ J = κ + (m/c') ∫₀^Y D(λ(y)) dy, where Y is the largest y_s and
//! D(λ) = sup_x f̄(x) − λ x = δ_f(ln λ).
//!
//! *Proof.* Theorem 3.1 for the set {s : y_s > y} says a(y) ≤ f̄(b(y)) ≤ λ(y) b(y) + D(λ(y)).
//! Integrate over y from 0 to Y: since ∫ 1{y_s > y} dy = y_s and ∫ 1{y_s > y} λ(y) dy = Ψ(y_s),
//! Σ_s y_s (s+1) p_{s+1}/m ≤ Σ_s Ψ(y_s) (c'−s) p_s/((k−1) m) + ∫₀^Y D(λ). Multiply (1) by p_j, sum
//! over j, and insert: P(W ≥ c) − κ ≤ (m/c') ∫₀^Y D(λ). ∎
//!
//! How λ, y and κ were found does not matter for the proof. A bound is computed from (1) with
//! sums rounded up and κ raised until (1) holds, D rounded up by
//! [`TradeOff::delta`](super::tradeoff::TradeOff::delta), and J rounded up: see `inequalities.rs`.
//!
//! # How the best are found
//!
//! The bounds are the dual of a linear programme: maximise P(W ≥ c) over the laws that obey all
//! inequalities. f̄ is replaced by the lower envelope of tangents. A worst law is tight on nested
//! sets that grow from the edge c − 1 by one neighbour at a time, below or above it; for a given
//! order of these steps a recursion gives the law (`law.rs`), and back-substitution its multipliers
//! (`prices.rs`), in as many operations as there are edges that matter. In the best order prices y
//! decrease, so the next order is that of decreasing prices. It settles in two or three rounds,
//! with a bound within 1e-5 of the law's own probability, and the slopes of the envelope at the
//! nested sets are λ. Where two edges should enter together, or where κ is below the rounding of
//! Σ p, it may not settle, and the best bound met stands.

mod adjoint;
mod bound;
mod bracket;
mod common;
mod decision;
mod descent;
mod envelope;
mod flow;
mod inequalities;
mod joint;
mod law;
mod matrix;
mod point;
mod prices;
mod proof;
mod shooting;
mod single;
mod slopes;
mod window;
mod worst;

pub use bound::Certificate;
pub use decision::{critical, p_value, rejects};
pub use joint::JointCertificate;
