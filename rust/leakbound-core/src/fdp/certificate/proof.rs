//! Slopes λ(y) and κ that prove a bound for one number of guesses.

use super::envelope::Envelope;
use super::inequalities::{MARGIN, Segment, highest_price, integral, segments_of};
use super::law::Law;
use super::prices::Prices;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;

/// κ is raised by this share, then by ever larger ones, until the inequalities hold.
const FIRST_RAISE: f64 = 1e-9;
const RAISE_GROWTH: f64 = 8.0;

/// A proof that P(W ≥ c) ≤ κ + (m/c') ∫₀^Y D(λ(y)) dy for every curve f with δ_f(ln λ) ≤ D(λ).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Proof {
    segments: Vec<Segment>,
    kappa: f64,
    /// Y, the largest y_s.
    highest: f64,
}

impl Proof {
    /// Slopes from the prices of a law; κ is the least found for which the inequalities hold, if
    /// any below 1 is.
    pub(super) fn new(
        counts: &Counts,
        envelope: &Envelope,
        law: &Law,
        prices: &Prices,
    ) -> Option<Self> {
        let segments = segments(envelope, law, prices);
        Self::feasible(counts, segments, prices.kappa, law.edges_above())
    }

    fn feasible(counts: &Counts, segments: Vec<Segment>, least: f64, above: u64) -> Option<Self> {
        let least = least.max(f64::MIN_POSITIVE);
        let unit = counts.guesses() as f64;
        let mut raise = FIRST_RAISE;
        loop {
            let kappa = least * (1.0 + raise);
            if kappa >= 1.0 || raise > 1e3 {
                return None;
            }
            if let Some(highest) = highest_price(counts, &segments, unit, kappa, above) {
                return Some(Self {
                    segments,
                    kappa,
                    highest,
                });
            }
            raise *= RAISE_GROWTH;
        }
    }

    /// The bound for a curve, rounded up.
    pub(super) fn bound(&self, counts: &Counts, curve: &dyn TradeOff) -> f64 {
        let integral = integral(&self.segments, self.highest, curve);
        let scale = counts.examples() / counts.guesses() as f64;
        (self.kappa + scale * integral) * (1.0 + 2.0 * MARGIN)
    }

    /// Smallest and largest ln λ that count.
    pub(super) fn range(&self) -> (f64, f64) {
        let used = self
            .segments
            .iter()
            .filter(|s| s.from < self.highest && s.slope > 0.0);
        used.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| {
            let epsilon = s.slope.ln();
            (low.min(epsilon), high.max(epsilon))
        })
    }
}

/// λ(y) between the prices of neighbouring sets is the slope of f̄ at the outer one. Where prices do
/// not fall outwards, their largest value further out stands for them.
fn segments(envelope: &Envelope, law: &Law, prices: &Prices) -> Vec<Segment> {
    let lines = std::iter::once(law.first).chain(law.steps.iter().map(|step| step.line));
    let sets: Vec<(usize, f64)> = lines.zip(prices.values.iter().copied()).collect();
    let mut reached = 0.0_f64;
    segments_of(sets.iter().rev().map(|&(line, y)| {
        let start = (envelope.lines[line].slope, reached);
        reached = reached.max(y);
        start
    }))
}
