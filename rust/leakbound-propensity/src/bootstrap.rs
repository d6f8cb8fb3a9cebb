//! Refits of many resamples, sixteen at a time.
//!
//! All replicates of a block move together: one pass over the rows computes their gradients, and one
//! factor of the Hessian, that of the fit of all rows, turns these into steps (a *chord* in place of
//! Newton's tangents). The Hessian of a resample differs from it by a share of about √(d/m), by
//! which every step shrinks the error. A replicate stops by its own steps and its numbers never meet
//! another's, so that it has the same bits in any block. One whose steps do not shrink is fitted by
//! Newton's method instead.

use leakbound_math::memory::filled;
use std::ops::Range;

use leakbound_simd::{Level, LineSums, REPLICATES, line_sums, linear_scores, logistic_gradient};
use rayon::prelude::*;

use crate::cholesky::Cholesky;
use crate::error::PropensityError;
use crate::fit::{Calibration, LogisticFit};
use crate::training::Training;

/// One number for each replicate of a block.
type Lanes = [f64; REPLICATES];

/// Steps after which a replicate is left to Newton's method: a chord that shrinks errors by less
/// than a factor two a step is no gain.
const STEPS: usize = 30;
/// A replicate has converged when no standardised coefficient is further from its limit. After a
/// step s, if steps shrink to a share r ≤ ½ of the one before, what is left is s·r/(1 − r) ≤ 2·s·r.
const TOLERANCE: f64 = 1e-7;
/// The same for the steps of Newton's method in two unknowns, relative to the unknowns.
const LINE_TOLERANCE: f64 = 1e-9;

impl LogisticFit {
    /// Intercept and slopes, calibrated, of the refits of resamples number `first`, `first` + 1, …:
    /// `count` rows of as many coefficients as [`Training::width`].
    ///
    /// Log-odds are within 1e-6 of those of [`LogisticFit::new`] on the same resamples, unless the
    /// features are extreme. The numbers do not depend on the threads, nor on how replicates are
    /// divided between calls.
    pub fn bootstrap(
        &self,
        training: &Training,
        seed: u64,
        first: u64,
        count: usize,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<f64>, PropensityError> {
        let blocks = (0..count)
            .into_par_iter()
            .step_by(REPLICATES)
            .map(|offset| {
                let used = REPLICATES.min(count - offset);
                let numbers = first + offset as u64..first + (offset + used) as u64;
                Block::new(self, training, seed, numbers)?.refits(stop)
            });
        Ok(blocks.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// The resamples of a block.
struct Block<'a> {
    base: &'a LogisticFit,
    training: &'a Training,
    level: Level,
    /// The weight of each row in each resample.
    weights: Vec<[f32; REPLICATES]>,
    /// How often each row as given occurs in each resample.
    counts: Vec<Vec<u32>>,
}

/// Coefficients of a block's replicates, and which of them have converged.
struct Chord {
    coefficients: Vec<Lanes>,
    converged: [bool; REPLICATES],
    /// The largest change of a coefficient in the last step.
    size: Lanes,
    /// The largest share of its size that a step had of the one before.
    ratio: Lanes,
}

impl Chord {
    fn new(coefficients: Vec<Lanes>) -> Self {
        Self {
            coefficients,
            converged: [false; REPLICATES],
            size: [f64::INFINITY; REPLICATES],
            ratio: [0.0; REPLICATES],
        }
    }

    /// Copies the lanes of replicates that have not converged.
    fn replace(&self, to: &mut [Lanes], from: &[Lanes]) {
        for (to, from) in to.iter_mut().zip(from) {
            for ((to, from), converged) in to.iter_mut().zip(from).zip(self.converged) {
                if !converged {
                    *to = *from;
                }
            }
        }
    }

    /// Takes a step wherever a replicate has not converged, and notes where one now has.
    fn advance(&mut self, step: &[Lanes]) {
        let mut largest = [0.0_f64; REPLICATES];
        for (beta, step) in self.coefficients.iter_mut().zip(step) {
            for k in 0..REPLICATES {
                if !self.converged[k] {
                    beta[k] -= step[k];
                    // `max` would lose a NaN, which stays here.
                    if step[k].is_nan() || step[k].abs() > largest[k] {
                        largest[k] = step[k].abs();
                    }
                }
            }
        }
        for (k, largest) in largest.into_iter().enumerate() {
            if self.converged[k] {
                continue;
            }
            self.ratio[k] = self.ratio[k].max(largest / self.size[k]);
            // The first step has none to be compared with.
            let left = if self.size[k].is_finite() {
                2.0 * self.ratio[k]
            } else {
                1.0
            };
            self.converged[k] = self.ratio[k] <= 0.5 && left * largest <= TOLERANCE;
            self.size[k] = largest;
        }
    }
}

impl<'a> Block<'a> {
    fn new(
        base: &'a LogisticFit,
        training: &'a Training,
        seed: u64,
        numbers: Range<u64>,
    ) -> Result<Self, PropensityError> {
        let mut weights = filled(training.panel.rows(), [0.0; REPLICATES])?;
        let mut counts = Vec::with_capacity(REPLICATES);
        for (lane, number) in numbers.enumerate() {
            let resample = training.resample(seed, number)?;
            for (weights, count) in weights.iter_mut().zip(training.weights(&resample)) {
                weights[lane] = count as f32;
            }
            counts.push(resample);
        }
        Ok(Self {
            base,
            training,
            level: Level::best(),
            weights,
            counts,
        })
    }

    /// The calibrated coefficients of every replicate.
    fn refits(&self, stop: &impl Fn() -> bool) -> Result<Vec<f64>, PropensityError> {
        let rows = 0..self.training.panel.rows();
        let ranges = if self.training.folds.is_empty() {
            vec![rows.clone()]
        } else {
            self.training.folds.clone()
        };
        let mut full = Chord::new(self.lanes(&self.base.full));
        let parts = self.descend(&mut full, &ranges, &self.base.curvature, stop)?;
        let (lines, calibrated) = if self.training.folds.is_empty() {
            (vec![Calibration::NONE; REPLICATES], [true; REPLICATES])
        } else {
            let (scores, converged) = self.held_out(&full, &parts, stop)?;
            let (lines, calibrated) = self.calibrate(&scores);
            let both = std::array::from_fn(|k| converged[k] && calibrated[k]);
            (lines, both)
        };
        let mut refits = Vec::with_capacity(self.counts.len() * self.training.width());
        for (k, counts) in self.counts.iter().enumerate() {
            if full.converged[k] && calibrated[k] {
                let beta: Vec<f64> = self.column(&full.coefficients, k);
                refits.extend(lines[k].apply(self.training.unscaled(&beta)));
            } else {
                let exact = LogisticFit::new(self.training, Some(counts))?;
                refits.extend(exact.coefficients(self.training));
            }
        }
        Ok(refits)
    }

    /// Log-odds of every row under the fits outside of its fold, and which of these converged.
    ///
    /// At the optimum of all rows the gradient of those outside of a fold is minus that of the rows
    /// inside, `parts`: the first step is free.
    fn held_out(
        &self,
        full: &Chord,
        parts: &[Vec<Lanes>],
        stop: &impl Fn() -> bool,
    ) -> Result<(Vec<Lanes>, [bool; REPLICATES]), PropensityError> {
        let panel = &self.training.panel;
        let mut scores = filled(panel.rows(), [0.0; REPLICATES])?;
        let mut converged = full.converged;
        let folds = self.training.folds.iter();
        let curvatures = self.base.fold_curvatures.iter();
        for ((fold, part), curvature) in folds.zip(parts).zip(curvatures) {
            let mut chord = Chord::new(part.clone());
            // Those left to Newton's method are not waited for.
            chord.converged = full.converged.map(|converged| !converged);
            curvature.solve_lanes(&mut chord.coefficients[..panel.width()]);
            for (start, full) in chord.coefficients.iter_mut().zip(&full.coefficients) {
                for (x, y) in start.iter_mut().zip(full) {
                    *x += y;
                }
            }
            let outside = [0..fold.start, fold.end..panel.rows()];
            self.descend(&mut chord, &outside, curvature, stop)?;
            for (all, one) in converged.iter_mut().zip(chord.converged) {
                *all &= one;
            }
            linear_scores(
                self.level,
                panel.entries(fold.clone()),
                panel.padded(),
                &chord.coefficients,
                &mut scores[fold.clone()],
            );
        }
        Ok((scores, converged))
    }

    /// Moves every replicate that has not converged to the optimum over some ranges of rows, and
    /// returns the gradient of each range where its last step began.
    fn descend(
        &self,
        chord: &mut Chord,
        ranges: &[Range<usize>],
        curvature: &Cholesky,
        stop: &impl Fn() -> bool,
    ) -> Result<Vec<Vec<Lanes>>, PropensityError> {
        let panel = &self.training.panel;
        let mut parts = vec![vec![[0.0; REPLICATES]; panel.padded()]; ranges.len()];
        for _ in 0..STEPS {
            if stop() {
                return Err(PropensityError::Interrupted);
            }
            let mut step = vec![[0.0; REPLICATES]; panel.width()];
            let penalised = step.iter_mut().zip(&chord.coefficients);
            for ((step, beta), penalty) in penalised.zip(&self.training.penalty) {
                *step = beta.map(|b| b * penalty);
            }
            for (range, kept) in ranges.iter().zip(&mut parts) {
                let part = self.gradient(&chord.coefficients, range);
                for (sum, term) in step.iter_mut().zip(&part) {
                    for (x, y) in sum.iter_mut().zip(term) {
                        *x += y;
                    }
                }
                chord.replace(kept, &part);
            }
            curvature.solve_lanes(&mut step);
            chord.advance(&step);
            if chord.converged[..self.counts.len()]
                .iter()
                .all(|&done| done)
            {
                break;
            }
        }
        Ok(parts)
    }

    /// The gradient of the rows of a range, without the penalty.
    fn gradient(&self, coefficients: &[Lanes], rows: &Range<usize>) -> Vec<Lanes> {
        let panel = &self.training.panel;
        let mut gradient = vec![[0.0; REPLICATES]; panel.padded()];
        logistic_gradient(
            self.level,
            panel.entries(rows.clone()),
            panel.padded(),
            coefficients,
            &self.training.targets[rows.clone()],
            &self.weights[rows.clone()],
            &mut gradient,
        );
        gradient
    }

    /// Platt's calibration of each replicate, and which of them converged.
    fn calibrate(&self, scores: &[Lanes]) -> (Vec<Calibration>, [bool; REPLICATES]) {
        let ends = self.target_ends();
        let base = self.base.calibration;
        let mut line = [[base.slope; REPLICATES], [base.intercept; REPLICATES]];
        let mut converged = [false; REPLICATES];
        let mut sums = LineSums::default();
        for _ in 0..STEPS {
            let targets = &self.training.targets;
            line_sums(
                self.level,
                scores,
                targets,
                &self.weights,
                &line,
                &ends,
                &mut sums,
            );
            for k in 0..REPLICATES {
                if converged[k] {
                    continue;
                }
                let ([g0, g1], [h0, h1, h2]) = (sums.gradient, sums.hessian);
                let determinant = h0[k] * h2[k] - h1[k] * h1[k];
                let slope = (h2[k] * g0[k] - h1[k] * g1[k]) / determinant;
                let intercept = (h0[k] * g1[k] - h1[k] * g0[k]) / determinant;
                line[0][k] -= slope;
                line[1][k] -= intercept;
                let within = |step: f64, value: f64| {
                    value.is_finite() && step.abs() <= LINE_TOLERANCE * value.abs().max(1.0)
                };
                converged[k] = within(slope, line[0][k]) && within(intercept, line[1][k]);
            }
            if converged[..self.counts.len()].iter().all(|&done| done) {
                break;
            }
        }
        let lines = (line[0].iter().zip(line[1]))
            .map(|(&slope, intercept)| Calibration { slope, intercept })
            .collect();
        (lines, converged)
    }

    /// The targets of non-members and of members in each replicate.
    fn target_ends(&self) -> [Lanes; 2] {
        let mut totals = [[0.0; REPLICATES]; 2];
        for (row, &target) in self.weights.iter().zip(&self.training.targets) {
            let total = &mut totals[usize::from(target == 1.0)];
            for (sum, &weight) in total.iter_mut().zip(row) {
                *sum += f64::from(weight);
            }
        }
        let [others, members] = totals;
        [
            others.map(|n| 1.0 / (n + 2.0)),
            members.map(|n| (n + 1.0) / (n + 2.0)),
        ]
    }

    /// The same coefficients for every replicate, padded.
    fn lanes(&self, beta: &[f64]) -> Vec<Lanes> {
        let mut lanes: Vec<Lanes> = beta.iter().map(|&b| [b; REPLICATES]).collect();
        lanes.resize(self.training.panel.padded(), [0.0; REPLICATES]);
        lanes
    }

    /// The coefficients of one replicate.
    fn column(&self, lanes: &[Lanes], k: usize) -> Vec<f64> {
        let width = self.training.width();
        lanes[..width].iter().map(|lanes| lanes[k]).collect()
    }
}
