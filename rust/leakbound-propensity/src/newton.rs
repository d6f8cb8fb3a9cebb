//! Newton's method for a weighted, penalised logistic regression.

use leakbound_math::logistic::{expit, softplus};

use crate::PropensityError;
use crate::cholesky::{Cholesky, dot};

/// Steps after which a fit is given up. A step that changes some log-odds by more than ½ lowers the
/// loss by a fixed share of what a quadratic model promises, and others converge quadratically, so
/// that fits with finite answers take 5 to 40 of them.
const STEPS: usize = 200;
/// A fit has settled when a step changes no standardised coefficient by more.
const SETTLED: f64 = 1e-9;
/// Largest change of a log-odds at which a full step needs no check: the curvature then changes by
/// less than a factor e^½, and full steps converge (F. Bach, "Self-concordant analysis for logistic
/// regression", 2010).
const SMALL: f64 = 0.5;

/// Σᵢ wᵢ (softplus(ηᵢ) − yᵢ ηᵢ) + ½ Σⱼ λⱼ βⱼ², to be minimised over β, where η = Zβ.
pub(crate) struct Problem<'a> {
    /// Z by rows.
    pub(crate) rows: &'a [f64],
    /// Length of a row.
    pub(crate) width: usize,
    /// yᵢ in [0, 1].
    pub(crate) targets: &'a [f64],
    /// wᵢ ≥ 0.
    pub(crate) weights: &'a [f64],
    /// λⱼ ≥ 0.
    pub(crate) penalty: &'a [f64],
}

impl Problem<'_> {
    /// Moves `beta` to the minimum.
    ///
    /// # Errors
    /// [`PropensityError::Separable`] or [`PropensityError::Unidentified`] where there is none or
    /// more than one, and [`PropensityError::NotConverged`] after 200 steps.
    pub(crate) fn minimise(&self, beta: &mut [f64]) -> Result<(), PropensityError> {
        let mut scores = self.scores(beta);
        for _ in 0..STEPS {
            let (mut step, hessian) = self.derivatives(beta, &scores);
            let slope = step.clone();
            let Some(factor) = Cholesky::new(hessian, self.width) else {
                return Err(self.no_minimum(&scores));
            };
            factor.solve(&mut step);
            let change = self.scores(&step);
            let share = self.step_length(beta, &scores, &step, &change, &slope);
            for (b, s) in beta.iter_mut().zip(&step) {
                *b -= share * s;
            }
            for (score, change) in scores.iter_mut().zip(&change) {
                *score -= share * change;
            }
            if share == 1.0 && step.iter().all(|s| s.abs() <= SETTLED) {
                return Ok(());
            }
            if self.penalty.iter().all(|&penalty| penalty == 0.0) && self.separates(&scores) {
                return Err(PropensityError::Separable);
            }
        }
        Err(PropensityError::NotConverged { iterations: STEPS })
    }

    /// Gradient and Hessian, the latter's lower triangle in a square.
    pub(crate) fn derivatives(&self, beta: &[f64], scores: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let width = self.width;
        let mut gradient: Vec<f64> = beta.iter().zip(self.penalty).map(|(b, l)| b * l).collect();
        let mut hessian = vec![0.0; width * width];
        for (j, &penalty) in self.penalty.iter().enumerate() {
            hessian[j * width + j] = penalty;
        }
        let rows = self.rows.chunks_exact(width).zip(scores);
        for ((row, &score), (&target, &weight)) in rows.zip(self.targets.iter().zip(self.weights)) {
            if weight == 0.0 {
                continue;
            }
            let (p, q) = (expit(score), expit(-score));
            let (residual, curvature) = (weight * (p - target), weight * p * q);
            for (i, &z) in row.iter().enumerate() {
                gradient[i] += residual * z;
                let scaled = curvature * z;
                for (h, &other) in hessian[i * width..=i * width + i].iter_mut().zip(row) {
                    *h += scaled * other;
                }
            }
        }
        (gradient, hessian)
    }

    /// Zβ.
    pub(crate) fn scores(&self, beta: &[f64]) -> Vec<f64> {
        let rows = self.rows.chunks_exact(self.width);
        rows.map(|row| dot(row, beta)).collect()
    }

    /// 1, or the first of ½, ¼, … that lowers the loss by a tenth of what its slope promises.
    fn step_length(
        &self,
        beta: &[f64],
        scores: &[f64],
        step: &[f64],
        change: &[f64],
        slope: &[f64],
    ) -> f64 {
        if change.iter().all(|change| change.abs() <= SMALL) {
            return 1.0;
        }
        let before = self.loss(beta, scores, step, change, 0.0);
        let promised = 0.1 * dot(slope, step);
        let mut share = 1.0;
        // 2⁻⁶⁰ of a step is below the rounding error of any step.
        while share > 1e-18
            && self.loss(beta, scores, step, change, share) > before - share * promised
        {
            share *= 0.5;
        }
        share
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

    /// Why the Hessian is singular.
    fn no_minimum(&self, scores: &[f64]) -> PropensityError {
        if self.separates(scores) {
            PropensityError::Separable
        } else {
            PropensityError::Unidentified
        }
    }
}
