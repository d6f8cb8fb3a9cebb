//! The fit of all rows, its calibration, and refits of resamples.

use leakbound_math::logistic::logit;
use rayon::prelude::*;

use crate::newton::Problem;
use crate::{PropensityError, Training};

/// A logistic regression of membership on features, and its calibration.
#[derive(Debug, Clone)]
pub struct LogisticFit {
    /// Standardised coefficients of the fit of all rows.
    pub(crate) full: Vec<f64>,
    /// Those of the fits outside of each fold.
    pub(crate) folds: Vec<Vec<f64>>,
    pub(crate) calibration: Calibration,
}

/// Log-odds η become `slope`·η + `intercept`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// The slope.
    pub slope: f64,
    /// The intercept.
    pub intercept: f64,
}

impl Calibration {
    /// The calibration that changes nothing.
    pub const NONE: Self = Self {
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
        let mut weights = vec![1.0; training.count()];
        if let Some(counts) = counts {
            training.check_counts(counts)?;
            training.weigh(counts, &mut weights);
        }
        let full = minimum(training, &weights, vec![0.0; training.width()])?;
        let starts = vec![full.clone(); training.folds.len()];
        Self::complete(training, &weights, full, starts)
    }

    /// The fit of a resample, begun at this one.
    pub(crate) fn refit(
        &self,
        training: &Training,
        weights: &[f64],
    ) -> Result<Self, PropensityError> {
        let full = minimum(training, weights, self.full.clone())?;
        Self::complete(training, weights, full, self.folds.clone())
    }

    /// Adds the fits outside of the folds, begun at `starts`, and the calibration.
    fn complete(
        training: &Training,
        weights: &[f64],
        full: Vec<f64>,
        starts: Vec<Vec<f64>>,
    ) -> Result<Self, PropensityError> {
        let folds = (training.folds.par_iter().zip(starts))
            .map(|(range, start)| {
                let mut outside = weights.to_vec();
                outside[range.clone()].fill(0.0);
                minimum(training, &outside, start)
            })
            .collect::<Result<Vec<_>, PropensityError>>()?;
        let calibration = if folds.is_empty() {
            Calibration::NONE
        } else {
            calibrate(&held_out(training, &folds), &training.targets, weights)?
        };
        Ok(Self {
            full,
            folds,
            calibration,
        })
    }

    /// Intercept and slopes, before calibration.
    #[must_use]
    pub fn uncalibrated(&self, training: &Training) -> Vec<f64> {
        training.unscaled(&self.full)
    }

    /// Intercept and slopes, calibrated.
    #[must_use]
    pub fn coefficients(&self, training: &Training) -> Vec<f64> {
        self.calibration.apply(self.uncalibrated(training))
    }

    /// The calibration.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.calibration
    }
}

/// The coefficients of the best fit, sought from `start`.
fn minimum(
    training: &Training,
    weights: &[f64],
    mut start: Vec<f64>,
) -> Result<Vec<f64>, PropensityError> {
    Problem {
        rows: &training.rows,
        width: training.width(),
        targets: &training.targets,
        weights,
        penalty: &training.penalty,
    }
    .minimise(&mut start)?;
    Ok(start)
}

/// The log-odds of each row under the fit outside of its fold.
fn held_out(training: &Training, folds: &[Vec<f64>]) -> Vec<f64> {
    let width = training.width();
    let mut scores = Vec::with_capacity(training.count());
    for (range, beta) in training.folds.iter().zip(folds) {
        let rows = &training.rows[range.start * width..range.end * width];
        scores.extend(
            rows.chunks_exact(width)
                .map(|row| crate::cholesky::dot(row, beta)),
        );
    }
    scores
}

/// Platt's calibration of log-odds against classes (1 and 0), with weights.
///
/// # Errors
/// [`PropensityError::NotConverged`] if it does not settle.
pub fn calibrate(
    scores: &[f64],
    classes: &[f64],
    weights: &[f64],
) -> Result<Calibration, PropensityError> {
    let (members, others) = class_weights(classes, weights);
    let (high, low) = ((members + 1.0) / (members + 2.0), 1.0 / (others + 2.0));
    let targets: Vec<f64> = (classes.iter())
        .map(|&class| if class == 1.0 { high } else { low })
        .collect();
    let total = members + others;
    let mean = weighted_sum(scores, weights) / total;
    let spread = (scores.iter().zip(weights))
        .map(|(score, weight)| weight * (score - mean).powi(2))
        .sum::<f64>();
    let spread = (spread / total).sqrt();
    // Log-odds that do not differ cannot be rescaled, only shifted.
    if spread <= 1e-12 * mean.abs().max(1.0) {
        let share = weighted_sum(&targets, weights) / total;
        return Ok(Calibration {
            slope: 1.0,
            intercept: logit(share) - mean,
        });
    }
    let rows: Vec<f64> = (scores.iter())
        .flat_map(|score| [1.0, (score - mean) / spread])
        .collect();
    let mut line = [mean, spread];
    Problem {
        rows: &rows,
        width: 2,
        targets: &targets,
        weights,
        penalty: &[0.0, 0.0],
    }
    .minimise(&mut line)?;
    let slope = line[1] / spread;
    Ok(Calibration {
        slope,
        intercept: line[0] - slope * mean,
    })
}

/// Total weight of members and of non-members.
fn class_weights(classes: &[f64], weights: &[f64]) -> (f64, f64) {
    let members = weighted_sum(classes, weights);
    (members, weights.iter().sum::<f64>() - members)
}

fn weighted_sum(values: &[f64], weights: &[f64]) -> f64 {
    crate::cholesky::dot(values, weights)
}
