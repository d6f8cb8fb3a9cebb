//! Newton's method for a weighted, penalised logistic regression.

use std::ops::Range;

use leakbound_math::logistic::{expit, softplus};
use leakbound_simd::GROUP;
use rayon::prelude::*;

use crate::PropensityError;
use crate::cholesky::{Cholesky, dot};
use crate::panel::Panel;

/// Steps after which a fit is given up. A step that changes some log-odds by more than ½ lowers the
/// loss by a fixed share of what a quadratic model promises, and others converge at least by a
/// factor four each, so that fits with finite answers take 10 to 60 of them.
const STEPS: usize = 300;
/// A fit has settled when a step changes no standardised coefficient by more.
const SETTLED: f64 = 1e-10;
/// Largest change of a log-odds at which a full step needs no check: the curvature then changes by
/// less than a factor e^½, and full steps converge (F. Bach, "Self-concordant analysis for logistic
/// regression", 2010).
const SMALL: f64 = 0.5;
/// The curvature is used again as long as each step is at most this share of the one before it.
const SHRINKING: f64 = 0.25;
/// Rows of a unit of parallel work.
const CHUNK: usize = 256 * GROUP;

/// Σᵢ wᵢ (softplus(ηᵢ) − yᵢ ηᵢ) + ½ Σⱼ λⱼ βⱼ², to be minimised over β, where η = Zβ.
pub(crate) struct Problem<'a> {
    /// Z, with the rows of padding weighted 0.
    pub(crate) panel: &'a Panel,
    /// yᵢ in [0, 1].
    pub(crate) targets: &'a [f64],
    /// wᵢ ≥ 0.
    pub(crate) weights: &'a [f64],
    /// λⱼ ≥ 0.
    pub(crate) penalty: &'a [f64],
}

impl Problem<'_> {
    /// Moves `beta` to the minimum. `curvature` is a factor of the Hessian nearby, if there is one.
    ///
    /// # Errors
    /// [`PropensityError::Separable`] or [`PropensityError::Unidentified`] where there is none or
    /// more than one, and [`PropensityError::NotConverged`] after 300 steps.
    pub(crate) fn minimise(
        &self,
        beta: &mut [f64],
        curvature: Option<&Cholesky>,
    ) -> Result<(), PropensityError> {
        let rows = 0..self.panel.rows();
        let mut scores = self.panel.times(rows.clone(), beta);
        let mut factor = curvature.cloned();
        let mut before = f64::INFINITY;
        for _ in 0..STEPS {
            let slope = self.gradient(beta, &scores);
            let current = match factor.take() {
                Some(factor) => factor,
                None => self.factor(self.hessian(rows.clone(), &scores), &scores)?,
            };
            let mut step = slope.clone();
            current.solve(&mut step);
            if !step.iter().all(|s| s.is_finite()) {
                break;
            }
            let change = self.panel.times(rows.clone(), &step);
            let Some(share) = self.step_length(beta, &scores, &step, &change, &slope) else {
                break;
            };
            for (b, s) in beta.iter_mut().zip(&step) {
                *b -= share * s;
            }
            for (score, change) in scores.iter_mut().zip(&change) {
                *score -= share * change;
            }
            let size = step.iter().fold(0.0, |most: f64, s| most.max(s.abs()));
            if share == 1.0 && size <= SETTLED {
                return Ok(());
            }
            if self.penalty.iter().all(|&penalty| penalty == 0.0) && self.separates(&scores) {
                return Err(PropensityError::Separable);
            }
            if share == 1.0 && size <= SHRINKING * before {
                factor = Some(current);
            }
            before = size;
        }
        Err(PropensityError::NotConverged)
    }

    /// The factor of data curvature plus penalty.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn factor(
        &self,
        mut hessian: Vec<f64>,
        scores: &[f64],
    ) -> Result<Cholesky, PropensityError> {
        let width = self.panel.width();
        for (j, penalty) in self.penalty.iter().enumerate() {
            hessian[j * width + j] += penalty;
        }
        Cholesky::new(hessian, width).ok_or_else(|| {
            if self.separates(scores) {
                PropensityError::Separable
            } else {
                PropensityError::Unidentified
            }
        })
    }

    /// Σ w p q z zᵀ over some rows, from and to multiples of six: the lower triangle in a square.
    pub(crate) fn hessian(&self, rows: Range<usize>, scores: &[f64]) -> Vec<f64> {
        let width = self.panel.width();
        let chunks = rows.len().div_ceil(CHUNK);
        let parts: Vec<Vec<f64>> = (0..chunks)
            .into_par_iter()
            .map(|chunk| {
                let start = rows.start + chunk * CHUNK;
                let mut hessian = vec![0.0; width * width];
                let mut row = vec![0.0; width];
                let chunk = start..rows.end.min(start + CHUNK);
                let weighted = scores[chunk.clone()].iter().zip(&self.weights[chunk]);
                for (offset, (&score, weight)) in weighted.enumerate() {
                    let curvature = weight * expit(score) * expit(-score);
                    if curvature == 0.0 {
                        continue;
                    }
                    self.panel.copy_row(start + offset, &mut row);
                    for (j, line) in hessian.chunks_exact_mut(width).enumerate() {
                        let scaled = curvature * row[j];
                        for (h, other) in line[..=j].iter_mut().zip(&row) {
                            *h += scaled * other;
                        }
                    }
                }
                hessian
            })
            .collect();
        sums(parts, width * width)
    }

    fn gradient(&self, beta: &[f64], scores: &[f64]) -> Vec<f64> {
        let residuals: Vec<f64> = (scores.iter().zip(self.targets.iter().zip(self.weights)))
            // σ(η) − y without cancellation where the fit is nearly perfect.
            .map(|(&score, (target, weight))| {
                weight * ((1.0 - target) * expit(score) - target * expit(-score))
            })
            .collect();
        let mut gradient: Vec<f64> = beta.iter().zip(self.penalty).map(|(b, l)| b * l).collect();
        let entries = self.panel.entries(0..self.panel.rows());
        let groups = entries.chunks_exact(GROUP * self.panel.padded());
        for (group, residuals) in groups.zip(residuals.chunks_exact(GROUP)) {
            for (sum, column) in gradient.iter_mut().zip(group.chunks_exact(GROUP)) {
                *sum += dot(column, residuals);
            }
        }
        gradient
    }

    /// 1, or the first of ½, ¼, … that lowers the loss by a tenth of what its slope promises.
    fn step_length(
        &self,
        beta: &[f64],
        scores: &[f64],
        step: &[f64],
        change: &[f64],
        slope: &[f64],
    ) -> Option<f64> {
        if change.iter().all(|change| change.abs() <= SMALL) {
            return Some(1.0);
        }
        let before = self.loss(beta, scores, step, change, 0.0);
        let promised = 0.1 * dot(slope, step);
        // 2⁻⁶⁰ of a step is below its rounding error.
        (0..60)
            .map(|halvings| 0.5_f64.powi(halvings))
            .find(|&share| {
                self.loss(beta, scores, step, change, share) <= before - share * promised
            })
    }

    fn loss(&self, beta: &[f64], scores: &[f64], step: &[f64], change: &[f64], share: f64) -> f64 {
        let data: f64 = (scores.iter().zip(change))
            .zip(self.targets.iter().zip(self.weights))
            .map(|((score, change), (target, weight))| {
                let score = score - share * change;
                weight * (softplus(score) - target * score)
            })
            .sum();
        let penalty: f64 = (beta.iter().zip(step))
            .zip(self.penalty)
            .map(|((b, s), l)| l * (b - share * s).powi(2))
            .sum();
        data + 0.5 * penalty
    }

    /// Whether all targets are 0 or 1, and the scores tell these classes apart without an error.
    fn separates(&self, scores: &[f64]) -> bool {
        (scores.iter().zip(self.targets.iter().zip(self.weights))).all(
            |(&score, (&target, &weight))| {
                weight == 0.0 || (target == 1.0 && score > 0.0) || (target == 0.0 && score < 0.0)
            },
        )
    }
}

/// The sum of vectors, in their order.
fn sums(parts: Vec<Vec<f64>>, length: usize) -> Vec<f64> {
    let mut total = vec![0.0; length];
    for part in parts {
        for (sum, term) in total.iter_mut().zip(&part) {
            *sum += term;
        }
    }
    total
}
