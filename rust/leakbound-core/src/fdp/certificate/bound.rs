//! A certificate: the search for the best proof of a bound.

use super::envelope::{Envelope, survey};
use super::prices::Order;
use super::proof::Proof;
use super::window::{edges_above, line_count};
use super::worst::Worst;
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

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
/// The most guesses for which a certificate is looked for: as many take seconds.
const MOST_GUESSES: u64 = 10_000_000;

/// A proof of an upper bound on the probability of so many correct guesses.
#[derive(Debug, Clone)]
pub struct Certificate {
    counts: Counts,
    bound: f64,
    proof: Option<Proof>,
    order: Order,
    ln_first: f64,
}

impl Certificate {
    /// A certificate for P(W ≥ c) under f-DP. It proves nothing for more than ten million guesses,
    /// where [`recursion`](crate::fdp::recursion) alone is quick.
    pub fn new(
        counts: &Counts,
        curve: &dyn TradeOff,
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        let mut certificate = Self {
            counts: *counts,
            bound: 1.0,
            proof: None,
            order: Order::alternating(edges_above(counts)),
            ln_first: LN_FIRST,
        };
        if counts.correct() > 0 && counts.guesses() <= MOST_GUESSES {
            certificate.improve(curve, certificate.epsilon_survey(curve), ROUGH, interrupt)?;
            certificate.refine(curve, FEW, ROUGH, interrupt)?;
            certificate.refine(curve, line_count(counts), CLOSE, interrupt)?;
        }
        Ok(certificate)
    }

    /// The bound on P(W ≥ c), rounded up; 1 if nothing below is proved.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Values of ε, far apart, for levels up to the largest that all edges together reach.
    fn epsilon_survey(&self, curve: &dyn TradeOff) -> Vec<f64> {
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
        let mut epsilons = self.epsilon_survey(curve);
        let step = (high - low) / lines as f64;
        epsilons.extend((0..=lines).map(|i| low + step * i as f64));
        let within = |epsilon: &f64| (low..=high).contains(epsilon);
        epsilons.extend(curve.linear_slopes().into_iter().filter(within));
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
