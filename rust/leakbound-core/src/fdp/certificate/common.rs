//! One certificate for several numbers of guesses: slopes λ(A) and a κ that all have in common.

use rayon::prelude::*;

use super::inequalities::{MARGIN, Segment, highest_price, integral, segments_of};
use super::window::edges_above;
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// Prices and κ are raised by this share, then by ever larger ones, until the inequalities hold, and
/// then by less again, to within a share.
const FIRST_RAISE: f64 = 1e-6;
const RAISE_GROWTH: f64 = 8.0;
const MOST_RAISE: f64 = 1.0;
const LEAST_RAISE: f64 = 2e-4;

/// A proof that P(W ≥ v_L) ≤ κ + ∫ D(λ(A)) dA, whatever the number of guesses chosen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommonProof {
    /// λ(A).
    segments: Vec<Segment>,
    kappa: f64,
    /// The largest price of all numbers of guesses.
    highest: f64,
}

impl CommonProof {
    /// A proof with slopes, as values and the A from which on each holds, and κ, if A and κ divided
    /// by `force` satisfy the inequalities of all levels, or nearly; none else.
    pub(super) fn of(
        starts: &[(f64, f64)],
        kappa: f64,
        force: f64,
        levels: &[Counts],
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, AuditError> {
        let raised = |raise: f64| {
            let scale = (1.0 + raise) / force;
            let kappa = kappa * scale;
            let scaled = starts.iter().map(|&(slope, from)| (slope, from * scale));
            let segments = segments_of(scaled);
            let highest = (kappa < 1.0).then(|| highest(&segments, kappa, levels))??;
            Some(Self {
                segments,
                kappa,
                highest,
            })
        };
        let (mut low, mut high) = (0.0, FIRST_RAISE);
        let mut proof = loop {
            interrupt.check()?;
            if let Some(proof) = raised(high) {
                break proof;
            }
            (low, high) = (high, high * RAISE_GROWTH);
            if high > MOST_RAISE {
                return Ok(None);
            }
        };
        while high - low > LEAST_RAISE {
            interrupt.check()?;
            let middle = 0.5 * (low + high);
            if let Some(closer) = raised(middle) {
                (proof, high) = (closer, middle);
            } else {
                low = middle;
            }
        }
        Ok(Some(proof))
    }

    /// κ + ∫ D(λ(A)) dA for a curve, rounded up.
    pub(super) fn bound(&self, curve: &dyn TradeOff) -> f64 {
        let integral = integral(&self.segments, self.highest, curve);
        (self.kappa + integral) * (1.0 + 2.0 * MARGIN)
    }
}

/// The largest price of all numbers of guesses; none if κ is too small for one of them.
fn highest(segments: &[Segment], kappa: f64, levels: &[Counts]) -> Option<f64> {
    let prices: Option<Vec<f64>> = levels
        .par_iter()
        .map(|level| {
            let (unit, above) = (level.examples(), edges_above(level) as u64);
            highest_price(level, segments, unit, kappa, above)
        })
        .collect();
    Some(prices?.into_iter().fold(0.0, f64::max))
}
