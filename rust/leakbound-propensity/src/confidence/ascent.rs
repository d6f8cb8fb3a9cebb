//! The largest value of a smooth function over a confidence set.

use leakbound_math::stream::{Purpose, Stream};
use rayon::prelude::*;

use super::set::ConfidenceSet;
use crate::cholesky::dot;
use crate::error::PropensityError;

/// Steps of one ascent.
const STEPS: usize = 60;
/// An ascent ends when a step adds less than this share of what it has added so far.
const LEAST_GAIN: f64 = 1e-5;
/// A step that does not ascend is shortened to a quarter, at most this often.
const MAX_BACKTRACKS: usize = 6;
/// Places on the way from θ̂ to the best boundary point that are looked at as well, and climbed from
/// if one is better.
const INTERIOR_SHARES: [f64; 3] = [0.4, 0.7, 0.9];

/// Boundary points in random directions that are compared before ascents begin, and the best of them,
/// from which ascents set out as well.
pub(super) const FEW: (u64, usize) = (16, 3);
/// The same where functions have many maxima.
pub(super) const MANY: (u64, usize) = (64, 24);

/// The gradient in w of a function somewhere, worked out where it is asked for.
pub(super) type Slope<'f> = Box<dyn FnOnce() -> Vec<f64> + 'f>;

/// A place of the set and the value of the function there.
#[derive(Debug, Clone)]
pub(super) struct Maximum {
    pub(super) value: f64,
    pub(super) place: Vec<f64>,
}

impl ConfidenceSet {
    /// The largest value found by ascents from `starts` (directions from θ̂), inside of the set, and
    /// at θ̂ itself. `function` returns its value and gradient in w. Once `enough` is reached, the
    /// search ends.
    ///
    /// On the boundary, where the gradient of ℓ is n and that of the function g, the step
    /// w + s(n + g‖n‖/‖g‖), scaled back to the boundary, has no fixed point but those where g and n
    /// are opposed, as at a maximum; s is shortened until the function grows.
    pub(super) fn maximise<'f>(
        &self,
        function: &(impl Fn(&[f64]) -> (f64, Slope<'f>) + Sync),
        starts: &[Vec<f64>],
        enough: f64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Maximum, PropensityError> {
        let centre = vec![0.0; self.width()];
        let mut best = Maximum {
            value: function(&centre).0,
            place: centre,
        };
        if best.value >= enough || self.squared_radius() == 0.0 {
            return Ok(best);
        }
        let ascents = self.ascents(function, starts, enough, stop)?;
        for found in ascents {
            if found.value > best.value {
                best = found;
            }
        }
        let inside = self.inside(function, &best, enough, stop)?;
        Ok(inside.unwrap_or(best))
    }

    /// What is better than `outer` on the way to it from θ̂, and where a climb from there ends.
    pub(super) fn inside<'f>(
        &self,
        function: &impl Fn(&[f64]) -> (f64, Slope<'f>),
        outer: &Maximum,
        enough: f64,
        stop: &impl Fn() -> bool,
    ) -> Result<Option<Maximum>, PropensityError> {
        let mut best = outer.clone();
        for share in INTERIOR_SHARES {
            let place: Vec<f64> = outer.place.iter().map(|w| w * share).collect();
            let value = function(&place).0;
            if value > best.value {
                best = Maximum { value, place };
            }
        }
        let at_estimate = outer.place.iter().all(|&w| w == 0.0);
        if best.place == outer.place && !at_estimate {
            return Ok(None);
        }
        self.climb(function, best, enough, stop).map(Some)
    }

    /// Directions from θ̂ to set out in: `own`, and those in which random boundary points are best.
    pub(super) fn directions<'f>(
        &self,
        function: &(impl Fn(&[f64]) -> (f64, Slope<'f>) + Sync),
        own: Vec<Vec<f64>>,
        (compared, chosen): (u64, usize),
    ) -> Vec<Vec<f64>> {
        if self.squared_radius() == 0.0 {
            return own;
        }
        let mut seen: Vec<(f64, Vec<f64>)> = (0..compared)
            .into_par_iter()
            .filter_map(|index| {
                // A ray whose end is not found is one place less to set out from.
                let place = self.edge(&self.random_direction(0, index)).ok()?.place;
                Some((function(&place).0, place))
            })
            .collect();
        seen.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best = seen.into_iter().take(chosen).map(|(_, place)| place);
        own.into_iter().chain(best).collect()
    }

    /// A direction, all equally likely; the same for the same numbers.
    pub(super) fn random_direction(&self, seed: u64, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(Purpose::Places, seed, index);
        let direction: Vec<f64> = (0..self.width()).map(|_| stream.normal()).collect();
        let size = norm(&direction);
        direction.into_iter().map(|x| x / size).collect()
    }

    /// An ascent inside of the set along gradients, from a place that is better than the boundary.
    fn climb<'f>(
        &self,
        function: &impl Fn(&[f64]) -> (f64, Slope<'f>),
        from: Maximum,
        enough: f64,
        stop: &impl Fn() -> bool,
    ) -> Result<Maximum, PropensityError> {
        let mut best = from;
        let mut gradient = function(&best.place).1();
        let radius = self.squared_radius().sqrt();
        let mut reach = 0.25 * radius;
        for _ in 0..STEPS {
            if stop() {
                return Err(PropensityError::Interrupted);
            }
            let uphill = norm(&gradient);
            if best.value >= enough
                || reach <= LEAST_GAIN * radius
                || uphill.is_nan()
                || uphill <= 0.0
            {
                break;
            }
            let mut place: Vec<f64> = best
                .place
                .iter()
                .zip(&gradient)
                .map(|(w, g)| w + reach / uphill * g)
                .collect();
            if !self.holds(&place) {
                place = self.edge(&place)?.place;
            }
            let (value, slope) = function(&place);
            if value > best.value {
                best = Maximum { value, place };
                gradient = slope();
                reach *= 1.5;
            } else {
                reach /= 4.0;
            }
        }
        Ok(best)
    }

    /// Where an ascent along the boundary from each of `starts` ends.
    pub(super) fn ascents<'f>(
        &self,
        function: &(impl Fn(&[f64]) -> (f64, Slope<'f>) + Sync),
        starts: &[Vec<f64>],
        enough: f64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<Maximum>, PropensityError> {
        if self.squared_radius() == 0.0 {
            return Ok(Vec::new());
        }
        let base = function(&vec![0.0; self.width()]).0;
        starts
            .par_iter()
            .filter(|start| dot(start, start) > 0.0)
            .map(|start| self.ascend(function, start, base, enough, stop))
            .collect()
    }

    fn ascend<'f>(
        &self,
        function: &impl Fn(&[f64]) -> (f64, Slope<'f>),
        start: &[f64],
        base: f64,
        enough: f64,
        stop: &impl Fn() -> bool,
    ) -> Result<Maximum, PropensityError> {
        let mut edge = self.edge(start)?;
        let mut inward = self.inward(&edge);
        let (mut value, slope) = function(&edge.place);
        let mut gradient = slope();
        let mut share = 1.0;
        for _ in 0..STEPS {
            if stop() {
                return Err(PropensityError::Interrupted);
            }
            let (uphill, steep) = (norm(&gradient), norm(&inward));
            if value >= enough || !(uphill > 0.0 && uphill.is_finite()) {
                break;
            }
            let scale = steep / uphill;
            let step: Vec<f64> = gradient
                .iter()
                .zip(&inward)
                .map(|(g, n)| g * scale + n)
                .collect();
            if norm(&step) <= LEAST_GAIN * steep {
                break;
            }
            let mut next = None;
            for _ in 0..MAX_BACKTRACKS {
                let place: Vec<f64> = edge
                    .place
                    .iter()
                    .zip(&step)
                    .map(|(w, s)| w + share * s)
                    .collect();
                let there = self.edge(&place)?;
                let (higher, slope) = function(&there.place);
                if higher > value {
                    next = Some((there, higher, slope));
                    break;
                }
                share /= 4.0;
            }
            let Some((there, higher, slope)) = next else {
                break;
            };
            let gain = higher - value;
            (edge, value, gradient) = (there, higher, slope());
            inward = self.inward(&edge);
            share = (2.0 * share).min(1.0);
            if gain <= LEAST_GAIN * (value - base).abs() {
                break;
            }
        }
        Ok(Maximum {
            value,
            place: edge.place,
        })
    }
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}
