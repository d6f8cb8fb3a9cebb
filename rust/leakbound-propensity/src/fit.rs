//! The fit of all rows, its calibration, and refits of resamples.

use leakbound_math::logistic::logit;
use leakbound_math::memory::{filled, listed, spare};
use leakbound_simd::GROUP;
use rayon::prelude::*;

use crate::cholesky::{Cholesky, dot};
use crate::error::PropensityError;
use crate::newton::{NEWTON_VECTORS, Problem};
use crate::panel::Panel;
use crate::training::Training;

/// A logistic regression of membership on features, and its calibration.
#[derive(Debug, Clone)]
pub struct LogisticFit {
    /// Standardised coefficients of the fit of all rows.
    pub(crate) full: Vec<f64>,
    pub(crate) calibration: Calibration,
    /// Factors of the Hessian of all rows at `full`, and of those outside of each fold.
    pub(crate) curvature: Cholesky,
    pub(crate) fold_curvatures: Vec<Cholesky>,
}

/// Log-odds η become `slope`·η + `intercept`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Calibration {
    pub(crate) slope: f64,
    pub(crate) intercept: f64,
}

impl Calibration {
    /// The calibration that changes nothing.
    pub(crate) const NONE: Self = Self {
        slope: 1.0,
        intercept: 0.0,
    };

    /// Intercept and slopes after calibration.
    pub(crate) fn apply(self, mut coefficients: Vec<f64>) -> Vec<f64> {
        for coefficient in &mut coefficients {
            *coefficient *= self.slope;
        }
        coefficients[0] += self.intercept;
        coefficients
    }
}

impl LogisticFit {
    /// Fits `training`, each row counted as often as `counts` says: a penalised logistic regression
    /// of all rows, and if there are folds, Platt's calibration of its log-odds.
    ///
    /// The regression minimises Σᵢ nᵢ ln(1 + e^{−sᵢ(a + xᵢ·b)}) + ½ l2 ‖b‖², s = ±1. The calibration
    /// minimises the same loss over slope and intercept of log-odds that were each predicted by a
    /// fit outside of the row's fold, with targets (N₊ + 1)/(N₊ + 2) for members and 1/(N₋ + 2) for
    /// non-members (J. Platt, "Probabilistic outputs for support vector machines", 1999). Folds
    /// follow rows, so all copies of a row are held out together. Coefficients of standardised
    /// features are within 1e-9 of the optimum.
    ///
    /// # Errors
    /// Counts of another length, a class missing, or a fit that is not finite, not unique or does
    /// not settle.
    pub fn new(training: &Training, counts: Option<&[u32]>) -> Result<Self, PropensityError> {
        let ones = filled(training.count(), 1)?;
        let counts = counts.unwrap_or(&ones);
        training.check_counts(counts)?;
        let weights = training.weights(counts).map(f64::from);
        let weights: Vec<f64> = listed(training.panel.rows(), weights)?;
        let at_once = 1 + training.folds.len().min(rayon::current_num_threads());
        spare::<f64>(at_once.saturating_mul(NEWTON_VECTORS * training.panel.rows()))?;
        let problem = problem(training, &weights);
        let mut full = vec![0.0; training.width()];
        problem.minimise(&mut full, None)?;
        let scores = training.panel.times(0..training.panel.rows(), &full);
        let (curvature, fold_curvatures) = curvatures(training, &problem, &scores)?;
        let folds = (training.folds.par_iter().zip(&fold_curvatures))
            .map(|(range, curvature)| {
                let mut outside = weights.clone();
                outside[range.clone()].fill(0.0);
                let mut beta = full.clone();
                self::problem(training, &outside).minimise(&mut beta, Some(curvature))?;
                Ok(beta)
            })
            .collect::<Result<Vec<_>, PropensityError>>()?;
        let calibration = if folds.is_empty() {
            Calibration::NONE
        } else {
            calibrate(&held_out(training, &folds), &training.targets, &weights)?
        };
        Ok(Self {
            full,
            calibration,
            curvature,
            fold_curvatures,
        })
    }

    /// Intercept and slopes, calibrated.
    pub fn coefficients(&self, training: &Training) -> Vec<f64> {
        self.calibration.apply(training.unscaled(&self.full))
    }
}

fn problem<'a>(training: &'a Training, weights: &'a [f64]) -> Problem<'a> {
    Problem {
        panel: &training.panel,
        offsets: &[],
        targets: &training.targets,
        weights,
        penalty: &training.penalty,
    }
}

/// Factors of the Hessian of all rows, and of those outside of each fold.
fn curvatures(
    training: &Training,
    problem: &Problem<'_>,
    scores: &[f64],
) -> Result<(Cholesky, Vec<Cholesky>), PropensityError> {
    if training.folds.is_empty() {
        let hessian = problem.hessian(0..training.panel.rows(), scores);
        return Ok((problem.factor(hessian, scores)?, Vec::new()));
    }
    let parts: Vec<Vec<f64>> = (training.folds.iter())
        .map(|range| problem.hessian(range.clone(), scores))
        .collect();
    let mut total = vec![0.0; parts[0].len()];
    for part in &parts {
        for (sum, term) in total.iter_mut().zip(part) {
            *sum += term;
        }
    }
    let outside = (parts.iter())
        .map(|part| {
            let rest = total.iter().zip(part).map(|(sum, term)| sum - term);
            problem.factor(rest.collect(), scores)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((problem.factor(total, scores)?, outside))
}

/// The log-odds of each row under the fit outside of its fold.
fn held_out(training: &Training, folds: &[Vec<f64>]) -> Vec<f64> {
    (training.folds.iter().zip(folds))
        .flat_map(|(range, beta)| training.panel.times(range.clone(), beta))
        .collect()
}

/// Platt's calibration of log-odds against classes (1 and 0), with weights.
fn calibrate(
    scores: &[f64],
    classes: &[f64],
    weights: &[f64],
) -> Result<Calibration, PropensityError> {
    let members = dot(classes, weights);
    let others = weights.iter().sum::<f64>() - members;
    let (high, low) = ((members + 1.0) / (members + 2.0), 1.0 / (others + 2.0));
    let smooth = |&class: &f64| if class == 1.0 { high } else { low };
    let mut targets: Vec<f64> = listed(classes.len(), classes.iter().map(smooth))?;
    let total = members + others;
    let mean = dot(scores, weights) / total;
    let spread = (scores.iter().zip(weights))
        .map(|(score, weight)| weight * (score - mean).powi(2))
        .sum::<f64>();
    let spread = (spread / total).sqrt();
    // Log-odds that do not differ cannot be rescaled, only shifted.
    if spread <= 1e-12 * mean.abs().max(1.0) {
        let share = dot(&targets, weights) / total;
        return Ok(Calibration {
            slope: 1.0,
            intercept: logit(share) - mean,
        });
    }
    let rows = scores.len().next_multiple_of(GROUP);
    let mut panel = Panel::zeros(rows, 2)?;
    for (row, score) in scores.iter().enumerate() {
        panel.set(row, 0, 1.0);
        panel.set(row, 1, (score - mean) / spread);
    }
    let mut weights = weights.to_vec();
    weights.resize(rows, 0.0);
    targets.resize(rows, 0.0);
    let mut line = [0.0, 0.0];
    Problem {
        panel: &panel,
        offsets: &[],
        targets: &targets,
        weights: &weights,
        penalty: &[0.0, 0.0],
    }
    .minimise(&mut line, None)?;
    let slope = line[1] / spread;
    Ok(Calibration {
        slope,
        intercept: line[0] - slope * mean,
    })
}
