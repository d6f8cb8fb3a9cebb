//! The law of a weighted sum of few terms, point by point: weights may be as unlike as they like.

use super::exact::UNIT;
use super::tail_value::Tail;
use crate::logistic::{log_expit, softplus};

/// Up to this many trials the sum takes at most 2¹⁶ values.
pub(super) const MOST_TRIALS: u64 = 16;

/// A value of the sum, and ln P of it.
type Point = (u64, f64);

/// P(S ≥ v) for S = Σ tᵢXᵢ, terms given as (tᵢ, logit pᵢ), in logarithms throughout.
pub(super) fn tail(terms: impl Iterator<Item = (u64, f64)>, v: u64) -> Tail {
    let mut points: Vec<Point> = vec![(0, 0.0)];
    // Every logarithm is off by a few units of the sizes of what was added to it.
    let mut size = 1.0;
    for (weight, logit) in terms {
        let (ln_p, ln_q) = (log_expit(logit), -softplus(logit));
        size += 4.0 + 2.0 * logit.abs();
        points = convolution(&points, weight, ln_p, ln_q);
    }
    let (below, above) = points.split_at(points.partition_point(|point| point.0 < v));
    let (lower, upper) = (log_sum(below), log_sum(above));
    let relative_error = 8.0 * UNIT * size;
    if lower < upper {
        Tail::from_log_complement(lower, relative_error)
    } else {
        Tail::from_log(upper.min(0.0), relative_error)
    }
}

/// The points with one more term: two sorted lists become one.
fn convolution(points: &[Point], weight: u64, ln_p: f64, ln_q: f64) -> Vec<Point> {
    let mut without = points.iter().map(|&(s, ln)| (s, ln + ln_q)).peekable();
    let mut with = points
        .iter()
        .map(|&(s, ln)| (s + weight, ln + ln_p))
        .peekable();
    let mut all: Vec<Point> = Vec::new();
    loop {
        let next = match (without.peek(), with.peek()) {
            (Some(a), Some(b)) if a.0 == b.0 => {
                let ln = log_sum(&[*a, *b]);
                let both = (a.0, ln);
                without.next();
                with.next();
                Some(both)
            }
            (Some(a), Some(b)) if a.0 > b.0 => with.next(),
            (None, _) => with.next(),
            _ => without.next(),
        };
        let Some(point) = next else {
            return all;
        };
        all.push(point);
    }
}

/// ln Σ P.
fn log_sum(points: &[Point]) -> f64 {
    let largest = (points.iter()).fold(f64::NEG_INFINITY, |most, point| most.max(point.1));
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    let sum: f64 = points.iter().map(|point| (point.1 - largest).exp()).sum();
    largest + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_terms_of_like_weights_have_the_binomial() {
        let tail = tail([(3, 0.0); 10].into_iter(), 24);
        assert!((tail.value - 56.0 / 1024.0).abs() < 1e-15);
    }

    #[test]
    fn unlike_weights_are_told_apart_far_below_the_smallest_double() {
        let terms = [(1, -800.0), (1 << 40, 0.0), (7, -900.0)];
        let tail = tail(terms.into_iter(), (1 << 40) + 8);
        let expected = -1700.0 - std::f64::consts::LN_2;
        assert!((tail.log - expected).abs() < 1e-10);
    }
}
