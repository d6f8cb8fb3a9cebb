//! Slopes λ(y) and κ that prove a bound, and its evaluation rounded outward.

use super::envelope::Envelope;
use super::law::Law;
use super::prices::Prices;
use super::window::edges_above;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;

/// Relative margin of every sum that must not be too small: some thousand roundings' worth.
const MARGIN: f64 = 1e-12;
/// κ is raised by this share, then by ever larger ones, until the inequalities hold.
const FIRST_RAISE: f64 = 1e-9;
const RAISE_GROWTH: f64 = 8.0;
/// κ of a bound for several numbers of guesses is found by so many halvings.
const KAPPA_HALVINGS: usize = 20;
/// Rounds of the search for the price far above c.
const ROUNDS: usize = 64;
/// So many edges above c are walked through without looking for a shorter way.
const SHORT: u64 = 512;

/// λ(y) = `slope` from y = `from` on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    from: f64,
    slope: f64,
    /// At least Ψ(`from`) = ∫₀^from λ.
    area: f64,
}

/// A proof that P(W ≥ c) ≤ κ + (m/c') ∫₀^Y D(λ(y)) dy for every curve f with δ_f(ln λ) ≤ D(λ).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Proof {
    segments: Vec<Segment>,
    kappa: f64,
    /// Y, the largest y_s.
    highest: f64,
}

/// A proof's segments in units of another number of guesses.
struct Rescaling {
    ratio: f64,
    segments: Vec<Segment>,
}

/// Ψ, read at places that move little from one to the next.
struct Area<'a> {
    segments: &'a [Segment],
    at: usize,
}

impl Area<'_> {
    /// At least Ψ(y), for y ≥ 0.
    fn up_to(&mut self, y: f64) -> f64 {
        while self
            .segments
            .get(self.at + 1)
            .is_some_and(|next| next.from <= y)
        {
            self.at += 1;
        }
        while self.segments[self.at].from > y {
            self.at -= 1;
        }
        let Segment { from, slope, area } = self.segments[self.at];
        (area + slope * (y - from)) * (1.0 + MARGIN)
    }
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
        let mut raise = FIRST_RAISE;
        loop {
            let kappa = least * (1.0 + raise);
            if kappa >= 1.0 || raise > 1e3 {
                return None;
            }
            if let Some(highest) = highest_price(counts, &segments, kappa, above) {
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
        let mut integral = 0.0;
        for (i, segment) in self.segments.iter().enumerate() {
            let end = self
                .segments
                .get(i + 1)
                .map_or(f64::INFINITY, |next| next.from);
            let length = end.min(self.highest) - segment.from;
            if length > 0.0 {
                integral += length * excess(curve, segment.slope);
            }
        }
        let scale = counts.examples() / counts.guesses() as f64;
        (self.kappa + scale * integral) * (1.0 + 2.0 * MARGIN)
    }

    /// The least bound found with these slopes for several numbers of guesses together, rounded up;
    /// none if κ would have to be above `most`. `own` is what the slopes were found for.
    pub(super) fn joint(
        &self,
        own: &Counts,
        levels: &[Counts],
        curve: &dyn TradeOff,
        most: f64,
    ) -> Option<f64> {
        let rescalings: Vec<Rescaling> = levels
            .iter()
            .map(|level| self.rescaling(own, level))
            .collect();
        let bound = |kappa: f64| -> Option<f64> {
            let mut highest = 0.0_f64;
            for (level, Rescaling { ratio, segments }) in levels.iter().zip(&rescalings) {
                let above = edges_above(level) as u64;
                let price = highest_price(level, segments, kappa, above)?;
                highest = highest.max(price / ratio * (1.0 + MARGIN));
            }
            let segments = self.segments.clone();
            let proof = Self {
                segments,
                kappa,
                highest,
            };
            Some(proof.bound(own, curve))
        };
        let (mut low, mut high) = (0.0, most);
        let mut best = bound(high)?;
        for _ in 0..KAPPA_HALVINGS {
            let kappa = 0.5 * (low + high);
            if let Some(found) = bound(kappa) {
                (high, best) = (kappa, best.min(found));
            } else {
                low = kappa;
            }
        }
        Some(best)
    }

    /// λ for another number of guesses: A = (m/c') y is common to both, so that y is in proportion
    /// to c'.
    fn rescaling(&self, own: &Counts, level: &Counts) -> Rescaling {
        let ratio = level.guesses() as f64 / own.guesses() as f64;
        // Slopes increase: a start that is too early only adds to Ψ.
        let starts = self.segments.iter();
        let segments = segments_of(starts.map(|s| (s.slope, s.from * ratio * (1.0 - MARGIN))));
        Rescaling { ratio, segments }
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

/// D(λ), rounded up: δ falls with ε, so it is taken at an ε that is no larger than ln λ.
fn excess(curve: &dyn TradeOff, slope: f64) -> f64 {
    let epsilon = slope.ln();
    curve.delta(epsilon - 4.0 * f64::EPSILON * (1.0 + epsilon.abs()))
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

/// Segments from increasing slopes and where they start; of several with one start, the last.
fn segments_of(starts: impl Iterator<Item = (f64, f64)>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for (slope, from) in starts {
        if segments.last().is_some_and(|last| last.slope == slope) {
            continue;
        }
        if segments.last().is_some_and(|last| last.from >= from) {
            segments.pop();
        }
        let area = segments.last().map_or(0.0, |last| {
            (last.area + last.slope * (from - last.from)) * (1.0 + MARGIN)
        });
        segments.push(Segment { from, slope, area });
    }
    segments
}

/// The largest of y_{c'−1}, …, y_0 that satisfy the inequalities, each as small as may be; none if
/// they cannot be satisfied with this κ.
fn highest_price(counts: &Counts, segments: &[Segment], kappa: f64, above: u64) -> Option<f64> {
    let (guesses, correct) = (counts.guesses(), counts.correct());
    let wrong = counts.others();
    let whole = guesses as f64;
    let mut area = Area { segments, at: 0 };
    let (start, mut y) = far_above(counts, &mut area, kappa, above);
    let mut highest = y;
    for j in (correct..start).rev() {
        let gained = (1.0 - kappa) * whole + (guesses - j) as f64 / wrong * area.up_to(y);
        y = gained / j as f64 * (1.0 + MARGIN);
        highest = highest.max(y);
    }
    let charged = kappa * whole * (1.0 - MARGIN);
    for j in (1..correct).rev() {
        let gained = (guesses - j) as f64 / wrong * area.up_to(y) * (1.0 + MARGIN);
        if gained <= charged {
            return Some(highest);
        }
        let next = (gained - charged) / j as f64 * (1.0 + MARGIN);
        // Below c prices fall, or κ is too small.
        if next >= y {
            return None;
        }
        y = next;
    }
    (area.up_to(y) <= kappa * wrong).then_some(highest)
}

/// A j ≥ c and an upper bound on y_j, y_{j+1}, …, from where to go down.
///
/// A constant Y with j Y ≥ (1 − κ) c' + (c'−j) Ψ(Y)/(k−1) satisfies all inequalities of j and above.
fn far_above(counts: &Counts, area: &mut Area<'_>, kappa: f64, above: u64) -> (u64, f64) {
    let (guesses, correct) = (counts.guesses(), counts.correct());
    let (whole, wrong) = (guesses as f64, counts.others());
    let all = (guesses, (1.0 - kappa) * (1.0 + MARGIN));
    let walked = above + SHORT;
    if guesses - correct <= walked {
        return all;
    }
    let j = correct + walked;
    let mut step = |y: f64| {
        let gained = (1.0 - kappa) * whole + (guesses - j) as f64 / wrong * area.up_to(y);
        gained / j as f64 * (1.0 + MARGIN)
    };
    let mut y = 1.0;
    for round in 0..ROUNDS {
        let next = step(y);
        if !next.is_finite() {
            return all;
        }
        let above = next * (1.0 + 1e-9);
        if round > 4 && step(above) <= above {
            return (j, above);
        }
        y = next;
    }
    all
}
