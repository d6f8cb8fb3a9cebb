//! Halves of the rows, each predicted from the other: the e-value behind a confidence set.

use leakbound_math::logistic::softplus;
use leakbound_math::stream::{Purpose, Stream};
use rayon::prelude::*;

use crate::cholesky::Cholesky;
use crate::error::PropensityError;
use crate::newton::Problem;

/// Parts in which each half is predicted, each from the other half and the parts before it.
const PARTS: u64 = 4;
/// Draws of the halves, over which the e-value is averaged: one draw alone would make the size of C
/// a matter of luck.
const DRAWS: u64 = 4;
/// Penalty of the slopes of standardised features in the fits that predict.
const RIDGE: f64 = 1.0;
/// Their penalty of intercepts, which keeps them finite where a half has one class.
const RIDGE_INTERCEPT: f64 = 1e-6;

/// The fit of all rows, near which those of some rows are.
#[derive(Clone, Copy)]
pub(super) struct Fit<'a> {
    pub(super) estimate: &'a [f64],
    pub(super) hessian: &'a [f64],
}

/// The half and the part of each row, in each of several draws of the coins.
pub(super) struct Halves {
    /// Sixteen bits for each draw; none for padding.
    coins: Vec<Option<u64>>,
}

impl Halves {
    /// Halves of all draws, which are fitted side by side.
    pub(super) const AT_ONCE: usize = 2 * DRAWS as usize;

    pub(super) fn draw(seed: u64, count: usize, padded: usize) -> Self {
        let mut stream = Stream::new(Purpose::Halves, seed, 0);
        let mut coins: Vec<Option<u64>> = (0..count).map(|_| Some(stream.next())).collect();
        coins.resize(padded, None);
        Self { coins }
    }

    /// −2 ln of the mean, over draws, of e^½(ℓ₀ + ℓ₁), the likelihoods of predicted halves.
    pub(super) fn predicted(
        &self,
        problem: &Problem<'_>,
        fit: Fit<'_>,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<f64, PropensityError> {
        let losses = (0..2 * DRAWS)
            .into_par_iter()
            .map(|index| self.half(problem, fit, index / 2, index % 2, stop))
            .collect::<Result<Vec<f64>, _>>()?;
        let losses: Vec<f64> = losses
            .chunks_exact(2)
            .map(|pair| pair[0] + pair[1])
            .collect();
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        let sum: f64 = losses.iter().map(|loss| (0.5 * (least - loss)).exp()).sum();
        Ok(least - 2.0 * (sum / DRAWS as f64).ln())
    }

    /// −ℓ of a half, each part predicted from the other half and the parts before.
    fn half(
        &self,
        problem: &Problem<'_>,
        fit: Fit<'_>,
        draw: u64,
        half: u64,
        stop: &impl Fn() -> bool,
    ) -> Result<f64, PropensityError> {
        let width = problem.panel.width();
        let mut penalty = vec![RIDGE; width];
        penalty[0] = RIDGE_INTERCEPT;
        let mut total = 0.0;
        let chosen = |keep: &dyn Fn(u64, u64) -> bool| -> Vec<f64> {
            let kept = |coins: u64| {
                let coins = coins >> (16 * draw);
                keep(coins & 1, (coins >> 1) % PARTS)
            };
            (self.coins.iter())
                .map(|coins| f64::from(u8::from(coins.is_some_and(kept))))
                .collect()
        };
        for part in 0..PARTS {
            if stop() {
                return Err(PropensityError::Interrupted);
            }
            let weights = chosen(&|in_half, in_part| in_half != half || in_part < part);
            let ridge = Problem {
                weights: &weights,
                penalty: &penalty,
                ..*problem
            };
            // The fit is the one optimum of these rows, wherever its search begins.
            let mut beta = fit.estimate.to_vec();
            let share = weights.iter().sum::<f64>() / problem.weights.iter().sum::<f64>();
            let mut near: Vec<f64> = fit.hessian.iter().map(|h| h * share).collect();
            for (j, penalty) in penalty.iter().enumerate() {
                near[j * width + j] += penalty;
            }
            ridge.minimise(&mut beta, Cholesky::new(near, width).as_ref())?;
            let scored = chosen(&|in_half, in_part| in_half == half && in_part == part);
            total += loss(&ridge.scores(&beta), problem.targets, &scored);
        }
        Ok(total)
    }
}

/// −ℓ.
pub(super) fn loss(scores: &[f64], targets: &[f64], weights: &[f64]) -> f64 {
    (scores.iter().zip(targets.iter().zip(weights)))
        .map(|(&score, (target, weight))| weight * (softplus(score) - target * score))
        .sum()
}
