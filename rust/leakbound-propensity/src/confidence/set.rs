//! The confidence set of a logistic model: cross-fitted universal inference.

use leakbound_math::logistic::expit;
use leakbound_math::memory::spare;
use leakbound_simd::GROUP;

use super::halves::{Fit, Halves, loss};
use crate::cholesky::{Cholesky, dot};
use crate::error::PropensityError;
use crate::newton::{NEWTON_VECTORS, Problem};
use crate::panel::Panel;
use crate::training::{check_finite, check_length, moments};

/// Labels needed for each coefficient.
const ROWS_PER_COEFFICIENT: usize = 5;
/// The log-likelihood that decides is lowered by this share of its size: sums of n terms err by at
/// most n·2⁻⁵³ of the sum of their sizes, for ten million rows by 1.1e-9.
const ROUNDING: f64 = 2e-9;
/// A point of the boundary has settled when its deviance is too large by at most this share.
const ON_BOUNDARY: f64 = 1e-9;
/// Newton's steps to the boundary along a ray; convex functions take a handful.
const EDGE_STEPS: usize = 100;
/// Rows whose 1 + e^−|η|, at most 2 each, are multiplied before one logarithm is taken.
const LOGGED: usize = 512;

/// Rows of features and labels, all independent given the features.
///
/// The first `reference` rows are D', the others are audited. Labels follow
/// P(Sᵢ = 1 | xᵢ) = σ(oᵢ + θ₀ + xᵢ·θ), in D' with an intercept of their own if asked for.
#[derive(Debug, Clone, Copy)]
pub struct Labelled<'a> {
    /// Features, row by row.
    pub features: &'a [f64],
    /// How many features a row has.
    pub columns: usize,
    /// The labels.
    pub member: &'a [bool],
    /// The known part oᵢ of each log-odds; zero where empty.
    pub offsets: &'a [f64],
    /// How many rows are not audited; these come first.
    pub reference: usize,
    /// Whether they have an intercept of their own, which is then the last coefficient, as the
    /// difference to that of the audited rows.
    pub own_intercept: bool,
}

/// The set C = {θ : ℓ(θ) ≥ c} of coefficients, ℓ the log-likelihood of all labels.
///
/// Rows are halved by coins, and each half h is predicted part by part: part b by a ridge fit to
/// the other half and the parts of h before b. The likelihood ratio of these predictions to θ* is,
/// given the other half, a product of ratios with mean 1 given all before, so an e-value; that of
/// the other half likewise. Their geometric mean is at most their arithmetic mean, and its mean over
/// four draws of the coins has expectation 1 at most, so that with Markov's inequality
///
/// ```text
/// c = 2 ln mean e^½(ℓ₀ + ℓ₁) − 2 ln(1/p),   P(θ* ∉ C) ≤ p
/// ```
///
/// for every number of rows and of coefficients, if the labels are independent given the features
/// and the logistic model is right (L. Wasserman, A. Ramdas and S. Balakrishnan, "Universal
/// inference", 2020, section 4; parts and draws make C smaller than one fit for each half would).
/// C is convex, since ℓ is concave. It holds a little more than that: c is rounded down.
#[derive(Debug, Clone)]
pub struct ConfidenceSet {
    /// Rows L⁻¹zᵢ, z standardised and H = L·Lᵀ minus the Hessian of ℓ at its maximum: with
    /// w = Lᵀ(θ − θ̂), log-odds are those at θ̂ plus the product with w, and C is nearly a ball.
    pub(super) panel: Panel,
    /// Log-odds at θ̂, known parts included.
    pub(super) scores: Vec<f64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
    factor: Cholesky,
    /// θ̂ for standardised features.
    estimate: Vec<f64>,
    frame: Frame,
    /// −ℓ(θ̂), and the most that −ℓ is in C.
    least: f64,
    most: f64,
    count: usize,
    reference: usize,
}

/// How coefficients of standardised features translate into those of the features as given.
#[derive(Debug, Clone)]
struct Frame {
    centre: Vec<f64>,
    scale: Vec<f64>,
}

/// A point of the boundary.
pub(super) struct Edge {
    /// w.
    pub(super) place: Vec<f64>,
    /// By how much the log-odds of all rows differ from those at θ̂.
    change: Vec<f64>,
}

impl ConfidenceSet {
    /// The set that θ* is outside of with probability `level` at most. Which rows belong to which
    /// half depends on `seed` and the number of rows alone.
    ///
    /// # Errors
    /// Lengths that differ or numbers out of range; fewer than five rows for each coefficient,
    /// classes that features separate, dependent columns or an empty set; an interrupt.
    pub fn new(
        rows: Labelled<'_>,
        level: f64,
        seed: u64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Self, PropensityError> {
        check(rows, level)?;
        let count = rows.member.len();
        let (panel, frame) = standardised(rows)?;
        let width = panel.width();
        if count < ROWS_PER_COEFFICIENT * width {
            return Err(PropensityError::TooFewRows {
                rows: count,
                coefficients: width,
            });
        }
        let padded = panel.rows();
        // Targets, weights, offsets and coins of each row, and a fit at a time on each thread.
        let at_once = NEWTON_VECTORS * rayon::current_num_threads().min(Halves::AT_ONCE);
        spare::<f64>(padded.saturating_mul(5 + at_once))?;
        let mut targets: Vec<f64> = rows
            .member
            .iter()
            .map(|&m| f64::from(u8::from(m)))
            .collect();
        let mut weights = vec![1.0; count];
        let mut offsets = rows.offsets.to_vec();
        targets.resize(padded, 0.0);
        weights.resize(padded, 0.0);
        if !offsets.is_empty() {
            offsets.resize(padded, 0.0);
        }
        let problem = Problem {
            panel: &panel,
            offsets: &offsets,
            targets: &targets,
            weights: &weights,
            penalty: &vec![0.0; width],
        };
        let mut estimate = vec![0.0; width];
        let refused = |error| problem.refusal(error);
        problem.minimise(&mut estimate, None).map_err(refused)?;
        let scores = problem.scores(&estimate);
        let hessian = problem.hessian(0..padded, &scores);
        let factor = problem.factor(hessian.clone(), &scores).map_err(refused)?;
        let halves = Halves::draw(seed, count, padded);
        let fit = Fit {
            estimate: &estimate,
            hessian: &hessian,
        };
        let predicted = halves.predicted(&problem, fit, stop)?;
        let least = loss(&scores, &targets, &weights);
        let most = (predicted + 2.0 * (1.0 / level).ln()) * (1.0 + ROUNDING);
        if most < least * (1.0 - ROUNDING) {
            return Err(PropensityError::EmptySet);
        }
        let whitened = whitened(&panel, &factor)?;
        Ok(Self {
            panel: whitened,
            scores,
            targets,
            weights,
            factor,
            estimate,
            frame,
            least,
            most: most.max(least),
            count,
            reference: rows.reference,
        })
    }

    /// Makes sure of room for so many vectors of as many rows on each thread that searches.
    pub(super) fn spare(&self, vectors: usize, rows: usize) -> Result<(), PropensityError> {
        let rows = vectors.saturating_mul(rows.saturating_add(self.panel.rows()));
        spare::<f64>(rows.saturating_mul(rayon::current_num_threads()))?;
        Ok(())
    }

    /// Number of coefficients: intercept, slopes, and the difference of intercepts if there is one.
    pub fn width(&self) -> usize {
        self.estimate.len()
    }

    /// Number of rows that are audited.
    pub fn audited(&self) -> usize {
        self.count - self.reference
    }

    /// θ̂, the coefficients of the features as given at which ℓ is largest.
    pub fn estimate(&self) -> Vec<f64> {
        self.frame.given(&self.estimate)
    }

    /// R² = 2 (ℓ(θ̂) − c): the squared radius of C in the metric of the Hessian, nearly.
    pub fn squared_radius(&self) -> f64 {
        2.0 * (self.most - self.least)
    }

    /// 2 (ℓ(θ̂) − ℓ(θ)) for coefficients of the features as given.
    pub fn deviance(&self, coefficients: &[f64]) -> Result<f64, PropensityError> {
        let scores = self.all_scores(&self.place(coefficients)?);
        Ok(2.0 * (loss(&scores, &self.targets, &self.weights) - self.least))
    }

    /// Whether the set holds some coefficients of the features as given.
    pub fn contains(&self, coefficients: &[f64]) -> Result<bool, PropensityError> {
        Ok(self.holds(&self.place(coefficients)?))
    }

    /// The coefficients at which the ray from θ̂ in a direction leaves the set.
    pub fn leaves(&self, direction: &[f64]) -> Result<Vec<f64>, PropensityError> {
        let shifted: Vec<f64> = self
            .estimate()
            .iter()
            .zip(direction)
            .map(|(e, d)| e + d)
            .collect();
        check_length("direction", direction.len(), self.width())?;
        Ok(self.coefficients(&self.edge(&self.place(&shifted)?)?.place))
    }

    /// Log-odds of the audited rows at a place w.
    pub(super) fn log_odds(&self, place: &[f64]) -> Vec<f64> {
        self.all_scores(place)[self.reference..self.count].to_vec()
    }

    /// Coefficients of the features as given at a place w.
    pub(super) fn coefficients(&self, place: &[f64]) -> Vec<f64> {
        let mut step = place.to_vec();
        self.factor.solve_upper(&mut step);
        let beta: Vec<f64> = self.estimate.iter().zip(step).map(|(b, s)| b + s).collect();
        self.frame.given(&beta)
    }

    /// The point where the ray from θ̂ through w leaves the set, outside by rounding at most.
    pub(super) fn edge(&self, place: &[f64]) -> Result<Edge, PropensityError> {
        let mut change = self.panel.times(0..self.panel.rows(), place);
        let size = dot(place, place).sqrt();
        let radius = self.squared_radius();
        if !(size > 0.0 && size.is_finite()) {
            return Err(PropensityError::NotConverged);
        }
        // The deviance is convex along the ray, so Newton's steps come from outside but the first.
        let mut reach = radius.sqrt() / size;
        for _ in 0..EDGE_STEPS {
            let (loss, slope) = self.along(&change, reach);
            let excess = 2.0 * (loss - self.least) - radius;
            let step = excess / (2.0 * slope);
            if excess.abs() <= ON_BOUNDARY * radius.max(f64::MIN_POSITIVE) || radius == 0.0 {
                for change in &mut change {
                    *change *= reach;
                }
                let place = place.iter().map(|w| w * reach).collect();
                return Ok(Edge { place, change });
            }
            reach = if slope > 0.0 {
                (reach - step).max(reach / 8.0)
            } else {
                2.0 * reach
            };
        }
        Err(PropensityError::NotConverged)
    }

    /// The gradient of ℓ at a point of the boundary, which points inwards.
    pub(super) fn inward(&self, edge: &Edge) -> Vec<f64> {
        let scores = self.scores.iter().zip(&edge.change);
        let labels = self.targets.iter().zip(&self.weights);
        let residuals: Vec<f64> = scores
            .zip(labels)
            .map(|((score, change), (target, weight))| weight * (target - expit(score + change)))
            .collect();
        let mut inward = vec![0.0; self.panel.padded()];
        self.panel.add_weighted(&residuals, &mut inward);
        inward.truncate(self.width());
        inward
    }

    /// Whether the set holds a place.
    pub(super) fn holds(&self, place: &[f64]) -> bool {
        let change = self.panel.times(0..self.panel.rows(), place);
        self.along(&change, 1.0).0 <= self.most
    }

    /// −ℓ where log-odds are those at θ̂ plus `reach` times a change, and its slope in `reach`.
    fn along(&self, change: &[f64], reach: f64) -> (f64, f64) {
        let (mut loss, mut slope) = (0.0, 0.0);
        let count = self.count;
        let scores = self.scores[..count].chunks(LOGGED);
        let changes = change[..count].chunks(LOGGED);
        let targets = self.targets[..count].chunks(LOGGED);
        for ((scores, changes), targets) in scores.zip(changes).zip(targets) {
            let mut product = 1.0;
            for ((score, change), target) in scores.iter().zip(changes).zip(targets) {
                let score = score + reach * change;
                // One exponential for the loss and its slope.
                let small = (-score.abs()).exp();
                let chance = if score >= 0.0 { 1.0 } else { small } / (1.0 + small);
                product *= 1.0 + small;
                loss += score.max(0.0) - target * score;
                slope += (chance - target) * change;
            }
            loss += product.ln();
        }
        (loss, slope)
    }

    /// The place w of coefficients of the features as given.
    pub(super) fn place(&self, coefficients: &[f64]) -> Result<Vec<f64>, PropensityError> {
        check_length("coefficients", coefficients.len(), self.width())?;
        let beta = self.frame.standardised(coefficients);
        let step: Vec<f64> = beta
            .iter()
            .zip(&self.estimate)
            .map(|(b, e)| b - e)
            .collect();
        Ok(self.factor.times_transposed(&step))
    }

    fn all_scores(&self, place: &[f64]) -> Vec<f64> {
        let mut scores = self.panel.times(0..self.panel.rows(), place);
        for (score, base) in scores.iter_mut().zip(&self.scores) {
            *score += base;
        }
        scores
    }

    /// ‖xᵢ‖ of each row in the metric of C.
    pub(super) fn sizes(&self) -> Vec<f64> {
        let mut row = vec![0.0; self.width()];
        (0..self.count)
            .map(|index| {
                self.panel.copy_row(index, &mut row);
                dot(&row, &row).sqrt()
            })
            .collect()
    }

    /// Whether the row of the panel is a member.
    pub(super) fn is_member(&self, slot: usize) -> bool {
        self.targets[slot] == 1.0
    }

    /// The panel row of an audited row.
    pub(super) fn slot(&self, row: usize) -> usize {
        self.reference + row
    }
}

impl Frame {
    /// Coefficients of the features as given, from those of standardised ones.
    fn given(&self, beta: &[f64]) -> Vec<f64> {
        let mut given = beta.to_vec();
        for (j, (centre, scale)) in self.centre.iter().zip(&self.scale).enumerate() {
            given[j + 1] /= scale;
            given[0] -= given[j + 1] * centre;
        }
        given
    }

    fn standardised(&self, given: &[f64]) -> Vec<f64> {
        let mut beta = given.to_vec();
        for (j, (centre, scale)) in self.centre.iter().zip(&self.scale).enumerate() {
            beta[0] += beta[j + 1] * centre;
            beta[j + 1] *= scale;
        }
        beta
    }
}

fn check(rows: Labelled<'_>, level: f64) -> Result<(), PropensityError> {
    let count = rows.member.len();
    check_length("features", rows.features.len(), count * rows.columns)?;
    check_finite(rows.features, rows.columns.max(1))?;
    if !rows.offsets.is_empty() {
        check_length("offsets", rows.offsets.len(), count)?;
        check_finite(rows.offsets, 1)?;
    }
    if rows.reference > count {
        check_length("rows", count, rows.reference)?;
    }
    if level > 0.0 && level < 1.0 {
        Ok(())
    } else {
        Err(PropensityError::Level { value: level })
    }
}

/// Rows (1, standardised features), followed by 1 in D' where that has an intercept of its own.
fn standardised(rows: Labelled<'_>) -> Result<(Panel, Frame), PropensityError> {
    let (count, columns) = (rows.member.len(), rows.columns);
    let (centre, scale) = moments(rows.features, columns, count);
    let own = rows.own_intercept && rows.reference > 0;
    let width = columns + 1 + usize::from(own);
    let mut panel = Panel::zeros(count.next_multiple_of(GROUP), width)?;
    for row in 0..count {
        let entries = rows.features[row * columns..(row + 1) * columns].iter();
        let entries = entries.zip(centre.iter().zip(&scale));
        panel.set_row(row, entries.map(|(x, (c, s))| (x - c) / s));
        if own && row < rows.reference {
            panel.set(row, columns + 1, 1.0);
        }
    }
    Ok((panel, Frame { centre, scale }))
}

/// Rows L⁻¹z.
fn whitened(panel: &Panel, factor: &Cholesky) -> Result<Panel, PropensityError> {
    let mut whitened = Panel::zeros(panel.rows(), panel.width())?;
    let mut row = vec![0.0; panel.width()];
    for index in 0..panel.rows() {
        panel.copy_row(index, &mut row);
        factor.solve_lower(&mut row);
        for (column, &value) in row.iter().enumerate() {
            whitened.set(index, column, value);
        }
    }
    Ok(whitened)
}
