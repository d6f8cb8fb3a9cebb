//! Newton's method for a weighted, penalised logistic regression.

use std::ops::Range;

use leakbound_math::logistic::{expit_both, softplus};

use crate::cholesky::{Cholesky, dot};
use crate::error::PropensityError;
use crate::panel::Panel;

/// Vectors of all rows that a fit holds at once: weights, scores, residuals, their changes, curvature.
pub(crate) const NEWTON_VECTORS: usize = 5;
/// Steps after which a fit is given up. A step that changes some log-odds by more than ½ lowers the
/// loss by a fixed share of what a quadratic model promises, and others converge at least by a
/// factor four each, so that fits with finite answers take 10 to 60 of them.
const STEPS: usize = 300;
/// A fit has converged when a step changes no standardised coefficient by more.
const TOLERANCE: f64 = 1e-10;
/// Largest change of a log-odds at which a full step needs no check: the curvature then changes by
/// less than a factor e^½, and full steps converge (F. Bach, "Self-concordant analysis for logistic
/// regression", 2010).
const SMALL: f64 = 0.5;
/// The curvature is used again as long as each step is at most this share of the one before it.
const SHRINKING: f64 = 0.25;

/// Σᵢ wᵢ (softplus(ηᵢ) − yᵢ ηᵢ) + ½ Σⱼ λⱼ βⱼ², to be minimised over β, where η = Zβ + offsets.
pub(crate) struct Problem<'a> {
    /// Z, with the rows of padding weighted 0.
    pub(crate) panel: &'a Panel,
    /// Known parts of the scores, one for each row; none where empty.
    pub(crate) offsets: &'a [f64],
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
        let mut scores = self.scores(beta);
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
            if share == 1.0 && size <= TOLERANCE {
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

    /// η under some coefficients.
    pub(crate) fn scores(&self, beta: &[f64]) -> Vec<f64> {
        let mut scores = self.panel.times(0..self.panel.rows(), beta);
        for (score, offset) in scores.iter_mut().zip(self.offsets) {
            *score += offset;
        }
        scores
    }

    /// The factor of data curvature plus penalty.
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
        let weighted = scores[rows.clone()].iter().zip(&self.weights[rows.clone()]);
        let curvature: Vec<f64> = weighted
            .map(|(&score, weight)| {
                let (chance, other) = expit_both(score);
                weight * chance * other
            })
            .collect();
        self.panel.gram(rows, &curvature)
    }

    fn gradient(&self, beta: &[f64], scores: &[f64]) -> Vec<f64> {
        let residuals: Vec<f64> = (scores.iter().zip(self.targets.iter().zip(self.weights)))
            // σ(η) − y without cancellation where the fit is nearly perfect.
            .map(|(&score, (target, weight))| {
                let (chance, other) = expit_both(score);
                weight * ((1.0 - target) * chance - target * other)
            })
            .collect();
        let mut gradient: Vec<f64> = beta.iter().zip(self.penalty).map(|(b, l)| b * l).collect();
        self.panel.add_weighted(&residuals, &mut gradient);
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

    /// Whether all targets are 0 or 1, and Zβ tells these classes apart without an error.
    fn separates(&self, scores: &[f64]) -> bool {
        let offsets = self.offsets.iter().chain(std::iter::repeat(&0.0));
        let rows = scores.iter().zip(offsets);
        (rows.zip(self.targets.iter().zip(self.weights))).all(
            |((score, offset), (&target, &weight))| {
                let score = score - offset;
                weight == 0.0 || (target == 1.0 && score > 0.0) || (target == 0.0 && score < 0.0)
            },
        )
    }

    /// What keeps a fit without penalty from being finite and unique, in the words of a set.
    ///
    /// The curvature also vanishes where a plane separates some rows and others lie on it, as where a
    /// feature that only members have is one of many: columns are dependent if their products are.
    pub(crate) fn refusal(&self, error: PropensityError) -> PropensityError {
        match error {
            PropensityError::Separable | PropensityError::NotConverged => {
                PropensityError::Separated
            }
            PropensityError::Unidentified => {
                let products = self.panel.gram(0..self.panel.rows(), self.weights);
                match Cholesky::new(products, self.panel.width()) {
                    Some(_) => PropensityError::Separated,
                    None => PropensityError::DependentColumns,
                }
            }
            other => other,
        }
    }
}
