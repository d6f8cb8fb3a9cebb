//! The inequalities behind every bound, solved with outward rounding.
//!
//! Prices are measured in a unit u, for which (1) reads
//! (j/u) y_{j−1} − ((c'−j)/(u (k−1))) Ψ(y_j) ≥ 1{j ≥ c} − κ: c' for one number of guesses, and m
//! where several have slopes in common.

use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;

/// Relative margin of every sum that must not be too small: some thousand roundings' worth.
pub(super) const MARGIN: f64 = 1e-12;
/// Rounds of the search for the price far above c.
const ROUNDS: usize = 64;
/// So many edges above c are walked through without looking for a shorter way.
const SHORT: u64 = 512;

/// λ(y) = `slope` from y = `from` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    pub(super) from: f64,
    pub(super) slope: f64,
    /// At least Ψ(`from`) = ∫₀^from λ.
    pub(super) area: f64,
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

/// Segments from increasing slopes and where they start; of several with one start, the last.
pub(super) fn segments_of(starts: impl Iterator<Item = (f64, f64)>) -> Vec<Segment> {
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

/// ∫₀^Y D(λ(y)) dy with Y = `highest`, rounded up but for the sum.
pub(super) fn integral(segments: &[Segment], highest: f64, curve: &dyn TradeOff) -> f64 {
    let mut integral = 0.0;
    for (i, segment) in segments.iter().enumerate() {
        let end = segments.get(i + 1).map_or(f64::INFINITY, |next| next.from);
        let length = end.min(highest) - segment.from;
        if length > 0.0 {
            integral += length * excess(curve, segment.slope);
        }
    }
    integral
}

/// D(λ), rounded up: δ falls with ε, so it is taken at an ε that is no larger than ln λ.
fn excess(curve: &dyn TradeOff, slope: f64) -> f64 {
    let epsilon = slope.ln();
    curve.delta(epsilon - 4.0 * f64::EPSILON * (1.0 + epsilon.abs()))
}

/// The largest of y_{c'−1}, …, y_0 that satisfy the inequalities, each as small as may be; none if
/// they cannot be satisfied with this κ.
pub(super) fn highest_price(
    counts: &Counts,
    segments: &[Segment],
    unit: f64,
    kappa: f64,
    above: u64,
) -> Option<f64> {
    let (guesses, correct) = (counts.guesses(), counts.correct());
    let wrong = counts.others();
    let mut area = Area { segments, at: 0 };
    let (start, mut y) = far_above(counts, &mut area, unit, kappa, above);
    let mut highest = y;
    for j in (correct..start).rev() {
        let gained = (1.0 - kappa) * unit + (guesses - j) as f64 / wrong * area.up_to(y);
        y = gained / j as f64 * (1.0 + MARGIN);
        highest = highest.max(y);
    }
    let charged = kappa * unit * (1.0 - MARGIN);
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
    (guesses as f64 * area.up_to(y) * (1.0 + MARGIN) <= charged * wrong).then_some(highest)
}

/// A j ≥ c and an upper bound on y_j, y_{j+1}, …, from where to go down.
///
/// A constant Y with j Y ≥ (1 − κ) u + (c'−j) Ψ(Y)/(k−1) satisfies all inequalities of j and above.
fn far_above(
    counts: &Counts,
    area: &mut Area<'_>,
    unit: f64,
    kappa: f64,
    above: u64,
) -> (u64, f64) {
    let (guesses, correct) = (counts.guesses(), counts.correct());
    let wrong = counts.others();
    let all = (
        guesses,
        (1.0 - kappa) * unit / guesses as f64 * (1.0 + MARGIN),
    );
    let walked = above + SHORT;
    if guesses - correct <= walked {
        return all;
    }
    let j = correct + walked;
    let mut step = |y: f64| {
        let gained = (1.0 - kappa) * unit + (guesses - j) as f64 / wrong * area.up_to(y);
        gained / j as f64 * (1.0 + MARGIN)
    };
    let mut y = unit / guesses as f64;
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
