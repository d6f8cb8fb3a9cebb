//! The worst law of one order.

use super::envelope::Envelope;
use super::law::{LOWEST, Law};
use super::prices::{Order, Prices};
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::interrupt::Interrupt;

/// Halvings of a bracket for b of the first set.
const HALVINGS: usize = 24;
/// The first step down in ln b; each is twice as wide as the one before.
const STRIDE: f64 = 0.25;

/// A law, its prices, P(W ≥ c) and ln b of its first set.
#[derive(Debug, Clone)]
pub(super) struct Worst {
    pub(super) law: Law,
    pub(super) prices: Prices,
    pub(super) tail: f64,
    pub(super) ln_first: f64,
    /// Steps made to find it.
    pub(super) work: usize,
}

impl Worst {
    /// The worst law of an order; none if its prices are no numbers. The search for b starts from
    /// its logarithm `start`.
    ///
    /// Mass that is left over does no harm at 0 correct guesses, so the law is worst with total
    /// mass 1 if κ ≥ 0, and otherwise where κ vanishes, at a smaller b of the first set.
    pub(super) fn new(
        counts: &Counts,
        envelope: &Envelope,
        order: &Order,
        start: f64,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, AuditError> {
        let sides = order.sides();
        let mut law = Law::default();
        let (tail, ln_first) = law.solve(counts, envelope, &sides, start, interrupt)?;
        let Some(prices) = Prices::new(counts, envelope, &law) else {
            return Ok(None);
        };
        let mut work = law.work;
        if prices.kappa >= 0.0 {
            return Ok(Some(Self {
                law,
                prices,
                tail,
                ln_first,
                work,
            }));
        }
        let mut priced = |ln_first: f64| {
            let mut law = Law::default();
            let tail = law.extend(counts, envelope, &sides, ln_first.exp()).tail;
            work += law.work;
            let prices = Prices::new(counts, envelope, &law)?;
            (prices.kappa >= 0.0).then_some(Self {
                law,
                prices,
                tail,
                ln_first,
                work,
            })
        };
        let (mut high, mut stride) = (ln_first, STRIDE);
        let mut best = loop {
            interrupt.check()?;
            let low = high - stride;
            if low < LOWEST {
                return Ok(None);
            }
            if let Some(worst) = priced(low) {
                break worst;
            }
            (high, stride) = (low, 2.0 * stride);
        };
        for _ in 0..HALVINGS {
            interrupt.check()?;
            let middle = 0.5 * (best.ln_first + high);
            match priced(middle) {
                Some(worst) => best = worst,
                None => high = middle,
            }
        }
        Ok(Some(best))
    }
}
