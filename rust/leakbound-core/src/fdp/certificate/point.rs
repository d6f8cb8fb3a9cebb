//! Points of the search for slopes: logarithms at knots, what they cost, and how that changes.

use super::shooting::{Rung, cost};
use crate::fdp::tradeoff::function::TradeOff;

/// Segments of constant slope.
pub(super) const SEGMENTS: usize = 32;

/// A point of the search.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) logs: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    /// ln of the cost.
    pub(super) height: f64,
    pub(super) force: f64,
    pub(super) highest: f64,
}

/// The cost at a point, if something is proved, and the forces of levels, 0 where one has none.
pub(super) fn point(
    rungs: &mut [Rung],
    from: &[f64],
    logs: Vec<f64>,
    curve: &dyn TradeOff,
) -> (Option<Point>, Vec<f64>) {
    let mut found = match cost(rungs, from, &logs, curve) {
        Ok(found) => found,
        Err(forces) => return (None, forces),
    };
    // The last slope is a wall.
    found.gradient[from.len() - 1] = 0.0;
    let sound = found.value > 0.0
        && found.value.is_finite()
        && found.gradient.iter().all(|x| x.is_finite());
    let point = sound.then_some(Point {
        logs,
        gradient: found.gradient,
        height: found.value.ln(),
        force: found.force,
        highest: found.highest,
    });
    (point, found.forces)
}

/// The lower one of two points, or the one there is.
pub(super) fn lower(a: Option<Point>, b: Option<Point>) -> Option<Point> {
    let points = [a, b].into_iter().flatten();
    points.min_by(|a, b| a.height.total_cmp(&b.height))
}

/// Knots whose roots are evenly spaced, from the first to the last, and 0.
pub(super) fn knots(first: f64, last: f64) -> Vec<f64> {
    let (low, high) = (first.sqrt(), last.sqrt());
    let step = (high - low) / (SEGMENTS - 2) as f64;
    let inner = (0..SEGMENTS - 1).map(|i| (low + step * i as f64).powi(2));
    std::iter::once(0.0).chain(inner).collect()
}

/// ln λ at the knots of `next`, nowhere above slopes that increase from knot to knot of `from`.
pub(super) fn carried(from: &[f64], logs: &[f64], next: &[f64]) -> Vec<f64> {
    let read = |price: f64| logs[from.partition_point(|&knot| knot <= price).max(1) - 1];
    next.iter().map(|&knot| read(knot)).collect()
}
