//! Guesses made without labels about which a confidence set has little to say.

use leakbound_math::logistic::expit;
use leakbound_math::memory::spare;
use leakbound_simd::GROUP;

use crate::cholesky::{Cholesky, dot};
use crate::error::PropensityError;
use crate::panel::Panel;
use crate::training::{check_finite, check_length, moments};

/// Widths of the smoothed step, in standard deviations of the residuals.
const WIDTHS: [f64; 6] = [0.5, 0.25, 0.12, 0.06, 0.03, 0.03];
/// Steps at each width, all by one Hessian.
const STEPS: usize = 3;
/// Vectors of all rows that are held at once.
const VECTORS: usize = 16;
/// Share of the mean diagonal entry that is added to the Hessian's diagonal.
const RIDGE: f64 = 1e-3;

/// What guesses are balanced against.
#[derive(Debug, Clone, Copy)]
pub struct Balance<'a> {
    /// Features of the examples, row by row.
    pub features: &'a [f64],
    /// How many features a row has.
    pub columns: usize,
    /// Vᵢ: how much the log-odds of example i matter to a guess either way.
    pub weights: &'a [f64],
    /// Uᵢ: how much more they matter to a guess "member"; none where empty.
    pub odd: &'a [f64],
    /// How many guesses example i counts for: the chance that it is kept. One each where empty.
    pub counts: &'a [f64],
    /// Guesses to be made.
    pub guesses: f64,
    /// Labels that the confidence set rests on, for each example.
    pub labels: f64,
    /// Whether only members are guessed.
    pub one_sided: bool,
}

/// Scores less a linear function of the features, such that guesses T about the largest, by size,
/// have Σ (VᵢTᵢ + Uᵢ|Tᵢ|) xᵢ near zero; of one-sided guesses, with xᵢ less its weighted mean.
///
/// To first order, what a confidence set of radius R takes off the correct guesses expected is
/// R‖Σ (VᵢTᵢ + Uᵢ|Tᵢ|) xᵢ‖ in the metric of its Hessian. No label enters, so a test whose guesses
/// are ranked by the result stays what it was.
///
/// The coefficients solve the balance with the steps 1{e > τ} smoothed, by Newton's method at
/// smaller and smaller widths; of all iterates that one is returned whose guesses show most, less
/// what the set may take back: ½ Σ VᵢTᵢsᵢ / mean|s| − √(3k + 20) ‖g‖, s the scores less a weighted
/// least-squares fit.
///
/// # Errors
/// Lengths that differ, numbers that are not finite, or an interrupt. Columns that depend on one
/// another do no harm.
pub fn balanced(
    scores: &[f64],
    balance: Balance<'_>,
    stop: &impl Fn() -> bool,
) -> Result<Vec<f64>, PropensityError> {
    let count = scores.len();
    check_length("features", balance.features.len(), count * balance.columns)?;
    check_finite(balance.features, balance.columns.max(1))?;
    check_finite(scores, 1)?;
    for (name, values) in [
        ("weights", balance.weights),
        ("odd", balance.odd),
        ("counts", balance.counts),
    ] {
        if name == "weights" || !values.is_empty() {
            check_length(name, values.len(), count)?;
            check_finite(values, 1)?;
        }
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    spare::<f64>(count.saturating_mul(VECTORS))?;
    Rows::new(balance)?.solve(scores, stop)
}

struct Rows<'a> {
    balance: Balance<'a>,
    panel: Panel,
    weights: Vec<f64>,
    odd: Vec<f64>,
    /// Of the Hessian that labels would have.
    metric: Option<Cholesky>,
    radius: f64,
}

impl<'a> Rows<'a> {
    fn new(balance: Balance<'a>) -> Result<Self, PropensityError> {
        let count = balance.weights.len();
        let columns = balance.columns;
        let (mut centre, scale) = moments(balance.features, columns, count);
        if balance.one_sided {
            let total = balance.weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            centre.fill(0.0);
            for (row, weight) in balance.weights.iter().enumerate() {
                let features = &balance.features[row * columns..(row + 1) * columns];
                for (c, x) in centre.iter_mut().zip(features) {
                    *c += weight * x / total;
                }
            }
        }
        let first = usize::from(!balance.one_sided);
        let padded = count.next_multiple_of(GROUP);
        let mut panel = Panel::zeros(padded, columns + first)?;
        for row in 0..count {
            if first == 1 {
                panel.set(row, 0, 1.0);
            }
            for j in 0..columns {
                let x = (balance.features[row * columns + j] - centre[j]) / scale[j];
                panel.set(row, j + first, x);
            }
        }
        let pad = |values: &[f64]| {
            let mut padded_values = values.to_vec();
            padded_values.resize(padded, 0.0);
            padded_values
        };
        let (weights, odd) = (pad(balance.weights), pad(balance.odd));
        let width = panel.width();
        let gram = panel.gram(0..padded, &weights);
        let metric = ridged(gram, width, 1e-9, balance.labels.max(f64::MIN_POSITIVE));
        let radius = (3.0 * width as f64 + 20.0).sqrt();
        Ok(Self {
            balance,
            panel,
            weights,
            odd,
            metric,
            radius,
        })
    }

    fn solve(&self, scores: &[f64], stop: &impl Fn() -> bool) -> Result<Vec<f64>, PropensityError> {
        let Some(metric) = &self.metric else {
            return Ok(scores.to_vec());
        };
        let count = scores.len();
        let mut padded = scores.to_vec();
        padded.resize(self.panel.rows(), 0.0);
        // Weighted least squares.
        let weighted: Vec<f64> = padded
            .iter()
            .zip(&self.weights)
            .map(|(s, v)| s * v)
            .collect();
        let mut beta = self.sum(&weighted);
        metric.solve(&mut beta);
        for b in &mut beta {
            *b *= self.balance.labels;
        }
        let plain = self.residuals(&padded, &beta);
        let mut residuals = plain.clone();
        let mut best = (self.worth(&residuals, &plain, metric), residuals.clone());
        for width in WIDTHS {
            if stop() {
                return Err(PropensityError::Interrupted);
            }
            let spread = deviation(&residuals[..count]);
            let width = width * spread;
            if width.is_nan() || width <= 0.0 {
                break;
            }
            let mut factor = None;
            for _ in 0..STEPS {
                let cut = self.cut(&residuals);
                let (slopes, curvature) = self.smoothed(&residuals, cut, width);
                if factor.is_none() {
                    let hessian = self.panel.gram(0..self.panel.rows(), &curvature);
                    factor = ridged(hessian, self.panel.width(), RIDGE, 1.0);
                }
                let Some(factor) = &factor else { break };
                let mut step = self.sum(&slopes);
                factor.solve(&mut step);
                let change = self.panel.times(0..self.panel.rows(), &step);
                let largest = change.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                let share = (1.5 * spread / largest.max(1e-12)).min(1.0);
                for (b, s) in beta.iter_mut().zip(&step) {
                    *b += share * s;
                }
                residuals = self.residuals(&padded, &beta);
                let worth = self.worth(&residuals, &plain, metric);
                if worth > best.0 {
                    best = (worth, residuals.clone());
                }
            }
        }
        best.1.truncate(count);
        Ok(best.1)
    }

    fn sum(&self, weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.panel.padded()];
        self.panel.add_weighted(weights, &mut sum);
        sum.truncate(self.panel.width());
        sum
    }

    fn residuals(&self, scores: &[f64], beta: &[f64]) -> Vec<f64> {
        let fitted = self.panel.times(0..self.panel.rows(), beta);
        scores.iter().zip(fitted).map(|(s, f)| s - f).collect()
    }

    /// What ranks an example: |e|, or e where only members are guessed.
    fn rank(&self, residual: f64) -> f64 {
        if self.balance.one_sided {
            residual
        } else {
            residual.abs()
        }
    }

    /// τ: examples that rank above it count for as many guesses as are to be made.
    fn cut(&self, residuals: &[f64]) -> f64 {
        let count = self.balance.weights.len();
        let mut ranked: Vec<(f64, f64)> = (0..count)
            .map(|row| {
                let guesses = self.balance.counts.get(row).copied().unwrap_or(1.0);
                (self.rank(residuals[row]), guesses)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut total = 0.0;
        for &(rank, guesses) in &ranked {
            total += guesses;
            if total > self.balance.guesses {
                return rank;
            }
        }
        if self.balance.one_sided {
            f64::NEG_INFINITY
        } else {
            0.0
        }
    }

    /// The smoothed VᵢTᵢ + Uᵢ|Tᵢ|, and the slope of VᵢTᵢ in eᵢ.
    fn smoothed(&self, residuals: &[f64], cut: f64, width: f64) -> (Vec<f64>, Vec<f64>) {
        let rows = residuals.iter().zip(self.weights.iter().zip(&self.odd));
        rows.map(|(e, (v, u))| {
            let up = expit((e - cut) / width);
            let down = if self.balance.one_sided {
                0.0
            } else {
                expit((-e - cut) / width)
            };
            let slope = (up * (1.0 - up) + down * (1.0 - down)) / width;
            (v * (up - down) + u * (up + down).min(1.0), v * slope)
        })
        .unzip()
    }

    fn worth(&self, residuals: &[f64], plain: &[f64], metric: &Cholesky) -> f64 {
        let cut = self.cut(residuals);
        let count = self.balance.weights.len();
        let mut slopes = vec![0.0; self.panel.rows()];
        let (mut shown, mut size) = (0.0, 0.0);
        for row in 0..count {
            let e = residuals[row];
            size += plain[row].abs();
            if self.rank(e) > cut {
                let sign = if self.balance.one_sided {
                    1.0
                } else {
                    e.signum()
                };
                slopes[row] = self.weights[row] * sign + self.odd[row];
                shown += self.weights[row] * sign * plain[row];
            }
        }
        let mut balance = self.sum(&slopes);
        metric.solve_lower(&mut balance);
        let taken = self.radius * dot(&balance, &balance).sqrt();
        0.5 * shown * count as f64 / size.max(f64::MIN_POSITIVE) - taken
    }
}

/// A factor of a Gram matrix times `scale`, with a share of its mean diagonal entry on the diagonal.
fn ridged(mut gram: Vec<f64>, width: usize, share: f64, scale: f64) -> Option<Cholesky> {
    let mean = (0..width).map(|j| gram[j * width + j]).sum::<f64>() / width.max(1) as f64;
    for j in 0..width {
        gram[j * width + j] += share * mean;
    }
    for entry in &mut gram {
        *entry *= scale;
    }
    Cholesky::new(gram, width)
}

fn deviation(values: &[f64]) -> f64 {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / number).sqrt()
}
