//! A test of the number of correct guesses in a few steps, whatever the number of examples.

use super::counts::Counts;
use super::search::{largest_rejected, smallest_level};
use super::tradeoff::function::TradeOff;
use crate::error::{AuditError, check_level};
use crate::interrupt::Interrupt;

/// Steps between two looks at the interrupt.
const POLL: u64 = 1 << 16;

/// What the test decided, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The mechanism is not f-DP, or an event of probability below τ happened.
    Rejected {
        /// The count i at which the inequalities contradicted each other.
        exit: u64,
    },
    /// The inequalities agree.
    Kept,
}

impl Decision {
    /// Whether f-DP was rejected.
    pub fn rejected(self) -> bool {
        self != Self::Kept
    }
}

/// Test whether an f-DP mechanism has at least `counts.correct` correct guesses with probability τ.
///
/// With p_i = P(W = i) and g(x) = (k − 1) f̄⁻¹(x), every upper set of counts obeys
/// Σ (c' − i + 1) p_{i−1}/m ≥ g(Σ i p_i/m), the sums over i ≥ j. Suppose P(W ≥ c) ≥ τ. From j = c
/// down, r_j bounds Σ i p_i/m from below and h_j the other sum; once
/// r + h > c'/m, of which Σ i p_i/m + Σ (c' − i) p_i/m is a part, or r > 1 ≥ f̄, the supposition is
/// refuted. Where g(r) ≤ h nothing can change further down.
///
/// Source: Mahloujifar, Melis and Chaudhuri (2025), Algorithm 3, with both exits. Neither the
/// largest h so far nor a strict order of the steps is needed: the decision is the same.
///
/// Domain: τ in (0, 1). Direction: [`TradeOff::inverse`] is rounded down, so that roundings keep
/// rather than reject. Cost: tens to thousands of steps, each one `inverse`.
pub fn decide(
    counts: &Counts,
    curve: &(impl TradeOff + ?Sized),
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Decision, AuditError> {
    interrupt.check()?;
    let tau = check_level("tau", tau)?;
    let (guesses, correct) = (counts.guesses() as f64, counts.correct() as f64);
    let others = counts.others();
    let cap = guesses / counts.examples();
    let mut r = tau * correct / counts.examples();
    let mut h = tau * (guesses - correct) / counts.examples();
    if r > 1.0 {
        return Ok(Decision::Rejected {
            exit: counts.correct(),
        });
    }
    for i in (0..counts.correct()).rev() {
        if i % POLL == 0 {
            interrupt.check()?;
        }
        let next = others * curve.inverse(r);
        if next <= h {
            return Ok(Decision::Kept);
        }
        let right = i as f64;
        r += right / (guesses - right) * (next - h);
        h = next;
        if r + h > cap || r > 1.0 {
            return Ok(Decision::Rejected { exit: i });
        }
    }
    Ok(Decision::Kept)
}

/// The least count of correct guesses at which an f-DP mechanism is rejected at level τ, c' + 1 if
/// none is; the count observed has no part in it.
///
/// Counts are halved as if rejection went on from one count to all larger ones. Whether or not it
/// does, the count never falls from a curve to one that allows more: at each halving the larger
/// curve rejects only if the smaller one does.
pub fn least_rejected(
    counts: &Counts,
    curve: &(impl TradeOff + ?Sized),
    tau: f64,
    interrupt: &Interrupt,
) -> Result<u64, AuditError> {
    let (mut kept, mut rejected) = (0, counts.guesses() + 1);
    while rejected - kept > 1 {
        let middle = kept + (rejected - kept) / 2;
        if decide(&counts.with_correct(middle), curve, tau, interrupt)?.rejected() {
            rejected = middle;
        } else {
            kept = middle;
        }
    }
    Ok(rejected)
}

/// The smallest level at which an f-DP mechanism is rejected: an upper bound on the probability
/// that at least `counts.correct` guesses are correct.
///
/// Direction: rounded up, to the end of a bracket at which [`decide`] rejects; 1 if none does.
pub fn p_value(
    counts: &Counts,
    curve: &(impl TradeOff + ?Sized),
    interrupt: &Interrupt,
) -> Result<f64, AuditError> {
    smallest_level(|tau| Ok(decide(counts, curve, tau, interrupt)?.rejected()))
}

/// The largest θ at which the curves `family` are rejected at level τ; none if not even θ = 0.
///
/// The curves must allow more the larger θ, from θ = 0 on. Direction: the rejected end of a bracket
/// 1e-13 wide, relative.
pub fn critical<T: TradeOff>(
    counts: &Counts,
    family: impl Fn(f64) -> Result<T, AuditError>,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Option<f64>, AuditError> {
    largest_rejected(|theta| Ok(decide(counts, &family(theta)?, tau, interrupt)?.rejected()))
}
