//! The tight count test: the most probable that so many right guesses can be under f-DP.
//!
//! Let p be the law of W, the right guesses among c', in a game of m examples with k values each.
//! Theorem 3.1 of Mahloujifar, Melis and Chaudhuri (2025) bounds, for every set of *edges*
//! s ∈ {0, …, c'−1} between s and s + 1 right guesses,
//!
//! a = Σ (s+1) p_{s+1}/m by f̄(b), b = Σ (c'−s) p_s/((k−1) m).
//!
//! Their Algorithm 3 ([`recursion`]) uses upper sets only. Here all sets are used. No test that
//! sees only m, c' and c can do better: every law that obeys all inequalities could be the truth
//! for all it knows. This goes beyond the paper.
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
//! sums rounded up and κ raised until (1) holds, D rounded up by [`TradeOff::delta`], and J rounded
//! up: see `proof.rs`.
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

mod critical;
mod envelope;
mod joint;
mod law;
mod prices;
mod proof;
mod worst;

pub use critical::critical;
pub use joint::least_correct;

use envelope::{Envelope, survey};
use prices::Order;
use proof::Proof;
use worst::Worst;

use super::counts::{Counts, check_tau};
use super::recursion;
use super::tradeoff::TradeOff;
use crate::{AuditError, Interrupt};

/// Orders tried for one envelope, and steps made for all but the fewest.
const MOST_ORDERS: usize = 24;
const FEWEST_ORDERS: usize = 3;
const MOST_STEPS: usize = 60_000;
/// So many orders in a row may bring nothing.
const MOST_IDLE: usize = 4;
/// An order may lower the law's probability by this share; else it goes only part of the way.
const SLACK: f64 = 1e-3;
const SMALLEST_SHARE: f64 = 0.05;
/// A bound within this share of the law's own probability is as good as any.
const CLOSE: f64 = 1e-5;
/// And within this share it has found the slopes that matter.
const ROUGH: f64 = 1e-2;
/// Lines of a look at these slopes.
const FEW: usize = 64;
/// ln b of a first set to start from.
const LN_FIRST: f64 = -10.0;

/// A proof of an upper bound on the probability of so many right guesses.
///
/// ```
/// use leakbound_core::Interrupt;
/// use leakbound_core::fdp::{Certificate, Counts, tradeoff::Gaussian};
/// let counts = Counts::new(100.0, 100, 79, 2, false)?;
/// let curve = Gaussian::new(0.53299, 0.0)?;
/// let certificate = Certificate::new(&counts, &curve, &Interrupt::default())?;
/// assert!((certificate.bound() - 0.04968).abs() < 1e-4);
/// assert!(certificate.bound_for(&Gaussian::new(0.5, 0.0)?) < certificate.bound());
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Certificate {
    counts: Counts,
    bound: f64,
    proof: Option<Proof>,
    order: Order,
    ln_first: f64,
}

impl Certificate {
    /// A certificate for P(W ≥ c) under f-DP.
    ///
    /// # Errors
    /// An interruption.
    pub fn new(
        counts: &Counts,
        curve: &dyn TradeOff,
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        let mut certificate = Self {
            counts: *counts,
            bound: 1.0,
            proof: None,
            order: Order::alternating(aboves(counts)),
            ln_first: LN_FIRST,
        };
        if counts.correct() > 0 {
            certificate.improve(curve, certificate.surveyed(curve), ROUGH, interrupt)?;
            certificate.refine(curve, FEW, ROUGH, interrupt)?;
            certificate.refine(curve, lines(counts), CLOSE, interrupt)?;
        }
        Ok(certificate)
    }

    /// The bound on P(W ≥ c), rounded up; 1 if nothing below is proved.
    #[must_use]
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// What the same slopes prove for another curve, rounded up.
    #[must_use]
    pub fn bound_for(&self, curve: &dyn TradeOff) -> f64 {
        let proof = self.proof.as_ref();
        proof.map_or(1.0, |proof| proof.bound(&self.counts, curve).min(1.0))
    }

    /// Values of ε, far apart, for levels up to the largest that all edges together reach.
    fn surveyed(&self, curve: &dyn TradeOff) -> Vec<f64> {
        let reached = self.counts.examples() * self.counts.others();
        survey(curve, (self.counts.guesses() as f64 / reached).min(1.0))
    }

    /// Look again with so many lines of the slopes that matter.
    fn refine(
        &mut self,
        curve: &dyn TradeOff,
        lines: usize,
        close: f64,
        interrupt: &Interrupt,
    ) -> Result<(), AuditError> {
        let Some(proof) = &self.proof else {
            return Ok(());
        };
        let (low, high) = proof.range();
        // Slopes not met yet may lie as far off as the survey was coarse.
        let pad = 0.15 * (high - low) + 2e-3 * low.abs().max(high.abs()) + 1e-9;
        let (low, high) = (low - pad, high + pad);
        let mut epsilons = self.surveyed(curve);
        let step = (high - low) / lines as f64;
        epsilons.extend((0..=lines).map(|i| low + step * i as f64));
        let within = |epsilon: &f64| (low..=high).contains(epsilon);
        epsilons.extend(curve.straight().into_iter().filter(within));
        self.improve(curve, epsilons, close, interrupt)
    }

    /// Try orders that follow from lines of these slopes, until the bound is within `close` of the
    /// probability under the law.
    fn improve(
        &mut self,
        curve: &dyn TradeOff,
        epsilons: Vec<f64>,
        close: f64,
        interrupt: &Interrupt,
    ) -> Result<(), AuditError> {
        let counts = self.counts;
        let envelope = Envelope::new(curve, epsilons);
        let start = self.ln_first;
        let Some(mut worst) = Worst::new(&counts, &envelope, &self.order, start, interrupt)? else {
            return Ok(());
        };
        self.record(curve, &envelope, &worst);
        let (mut share, mut idle, mut work) = (1.0, 0, worst.work);
        for round in 0..MOST_ORDERS {
            let spent = round >= FEWEST_ORDERS && work > MOST_STEPS;
            if self.bound <= worst.tail * (1.0 + close) || idle > MOST_IDLE || spent {
                break;
            }
            let before = self.bound;
            let target = self.order.by_price(&worst.law, &worst.prices);
            let next = self.order.towards(&target, share);
            let found = Worst::new(&counts, &envelope, &next, self.ln_first, interrupt)?;
            if let Some(found) = &found {
                self.record(curve, &envelope, found);
                work += found.work;
            }
            idle = if self.bound < before { 0 } else { idle + 1 };
            match found {
                Some(found) if found.tail > worst.tail * (1.0 - SLACK) => {
                    (self.order, self.ln_first) = (next, found.ln_first);
                    // Half ways from the third order on: two edges that belong together would
                    // change places for ever.
                    let farthest = if round == 0 { 1.0 } else { 0.5 };
                    share = f64::min(farthest, 2.0 * share);
                    worst = found;
                }
                _ if share < SMALLEST_SHARE => break,
                _ => share *= 0.5,
            }
        }
        Ok(())
    }

    /// Keep what a law proves, if it is the best so far.
    fn record(&mut self, curve: &dyn TradeOff, envelope: &Envelope, worst: &Worst) {
        if let Some(proof) = Proof::new(&self.counts, envelope, &worst.law, &worst.prices) {
            let bound = proof.bound(&self.counts, curve);
            if bound < self.bound {
                (self.bound, self.proof) = (bound, Some(proof));
            }
        }
    }
}

/// An upper bound on the probability that at least `counts.correct()` guesses are right under f-DP:
/// a p-value, the lower of the certificate's bound and [`recursion::p_value`].
///
/// Direction: rounded up. Whatever the bounds for other counts, it is valid: with c₀ the least
/// count whose bound is at most τ, rejection means W ≥ c₀, of probability at most the bound for c₀.
///
/// # Errors
/// An interruption.
///
/// ```
/// use leakbound_core::Interrupt;
/// use leakbound_core::fdp::{Counts, certificate, tradeoff::Gaussian};
/// // Without leakage it is the binomial tail; Algorithm 3 says 0.0324.
/// let counts = Counts::new(100.0, 100, 60, 2, false)?;
/// let p = certificate::p_value(&counts, &Gaussian::new(0.0, 0.0)?, &Interrupt::default())?;
/// assert!((p - 0.028_443_966_82).abs() < 1e-10);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
pub fn p_value(
    counts: &Counts,
    curve: &dyn TradeOff,
    interrupt: &Interrupt,
) -> Result<f64, AuditError> {
    let bound = Certificate::new(counts, curve, interrupt)?.bound();
    let below = bound.next_down();
    if below > 0.0 && !recursion::decide(counts, curve, below, interrupt)?.rejected() {
        return Ok(bound);
    }
    Ok(bound.min(recursion::p_value(counts, curve, interrupt)?))
}

/// Whether an f-DP mechanism has so many right guesses with probability at most τ, by the
/// recursion or by a certificate.
///
/// # Errors
/// τ outside (0, 1), or an interruption.
///
/// ```
/// use leakbound_core::Interrupt;
/// use leakbound_core::fdp::{Counts, certificate, tradeoff::Gaussian};
/// let counts = Counts::new(1000.0, 100, 95, 2, false)?;
/// let curve = Gaussian::new(0.8, 0.0)?;
/// assert!(certificate::rejects(&counts, &curve, 0.05, &Interrupt::default())?);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
pub fn rejects(
    counts: &Counts,
    curve: &dyn TradeOff,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<bool, AuditError> {
    let tau = check_tau(tau)?;
    Ok(recursion::decide(counts, curve, tau, interrupt)?.rejected()
        || Certificate::new(counts, curve, interrupt)?.bound() <= tau)
}

/// √(c (c' − c)/c'), about how far the counts that matter reach.
fn spread(counts: &Counts) -> f64 {
    let (guesses, correct) = (counts.guesses() as f64, counts.correct() as f64);
    (correct * (guesses - correct) / guesses).sqrt()
}

/// So many edges above may matter.
fn aboves(counts: &Counts) -> usize {
    let wrong = (counts.guesses() - counts.correct()) as f64;
    wrong.min(8.0 * spread(counts) + 16.0) as usize
}

/// Enough lines that what they add to a bound is some 1e-4 of it.
fn lines(counts: &Counts) -> usize {
    ((64.0 * spread(counts).sqrt()) as usize).clamp(512, 4096)
}
