//! Logistic regressions of one set of rows under many weightings, sixteen at a time.
//!
//! The rows lie in a *panel*: groups of [`GROUP`] rows, in each group column by column, the entries
//! of the group's rows side by side. Rows and columns are padded with zeros to whole groups. Every
//! weighting (a *replicate*) has a lane of its own, and no sum crosses lanes: a replicate's result
//! does not depend on its neighbours, nor on the number of lanes of the machine.

use crate::dispatch::dispatch;
use crate::exponential::{INVERSE_FACTORIALS, LN_2_HIGH, LN_2_LOW};
use crate::vector::Vector;

/// Replicates handled together.
pub const REPLICATES: usize = 16;
/// Rows, and columns, of a group.
pub const GROUP: usize = 6;

/// Groups of rows whose residuals are kept near before they are summed.
const TILE: usize = 4;

type Lanes = [f64; REPLICATES];
type Group = [f64; GROUP];

dispatch! {
    /// Adds Σᵢ wᵢ (σ(zᵢ·b) − yᵢ) zᵢ of each replicate to `gradient`.
    ///
    /// `panel` holds the rows zᵢ in `width` columns, a whole number of groups; `coefficients` and
    /// `gradient` hold `width` entries of sixteen replicates each, `targets` the yᵢ and `weights`
    /// the wᵢ of sixteen replicates each. Log-odds are limited to ±700.
    ///
    /// # Panics
    /// If the slices do not fit together.
    pub fn logistic_gradient(
        panel: &[f64],
        width: usize,
        coefficients: &[Lanes],
        targets: &[f64],
        weights: &[[f32; REPLICATES]],
        gradient: &mut [Lanes],
    ) = gradient_kernel;
}

dispatch! {
    /// Writes the log-odds zᵢ·b of each replicate to `scores`, one row of sixteen for each row.
    ///
    /// # Panics
    /// If the slices do not fit together.
    pub fn linear_scores(
        panel: &[f64],
        width: usize,
        coefficients: &[Lanes],
        scores: &mut [Lanes],
    ) = scores_kernel;
}

/// Sums over rows that a step of Newton's method for a line A·η + B needs, of each replicate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineSums {
    /// Σ w (p − t) η and Σ w (p − t).
    pub gradient: [Lanes; 2],
    /// Σ w p q η², Σ w p q η and Σ w p q.
    pub hessian: [Lanes; 3],
}

dispatch! {
    /// Sums over rows for p = σ(A·η + B), q = 1 − p, with A, B in `line`, and targets t that are
    /// `ends[1]` where yᵢ = 1 and `ends[0]` where yᵢ = 0.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn line_sums(
        scores: &[Lanes],
        targets: &[f64],
        weights: &[[f32; REPLICATES]],
        line: &[Lanes; 2],
        ends: &[Lanes; 2],
        sums: &mut LineSums,
    ) = line_kernel;
}

#[inline(always)]
fn gradient_kernel<V: Vector>(
    panel: &[f64],
    width: usize,
    coefficients: &[Lanes],
    targets: &[f64],
    weights: &[[f32; REPLICATES]],
    gradient: &mut [Lanes],
) {
    check(panel, width, coefficients, targets.len());
    assert!(weights.len() == targets.len() && gradient.len() == width);
    let mut residuals = [[0.0; REPLICATES]; TILE * GROUP];
    let mut start = 0;
    while start < targets.len() {
        let end = targets.len().min(start + TILE * GROUP);
        let (targets, weights) = (&targets[start..end], &weights[start..end]);
        let tile = &panel[start * width..end * width];
        let residuals = &mut residuals[..end - start];
        scores_kernel::<V>(tile, width, coefficients, residuals);
        let mut row = 0;
        while row < targets.len() {
            residual::<V>(&mut residuals[row], targets[row], &weights[row]);
            row += 1;
        }
        let mut column = 0;
        while column < width {
            let out = &mut gradient[column..column + GROUP];
            let mut at = 0;
            while at < REPLICATES {
                add_products::<V>(tile, width, column, residuals, out, at);
                at += 2 * V::LANES;
            }
            column += GROUP;
        }
        start = end;
    }
}

/// Replaces log-odds by w (σ(log-odds) − y).
#[inline(always)]
fn residual<V: Vector>(scores: &mut Lanes, target: f64, weights: &[f32; REPLICATES]) {
    let mut at = 0;
    while at < REPLICATES {
        let p = sigmoid(V::load(&scores[at..]));
        let weighted = p.sub(V::splat(target)).mul(V::load_f32(&weights[at..]));
        weighted.store(&mut scores[at..]);
        at += V::LANES;
    }
}

/// Adds, for the six columns from `column` and two vectors from replicate `at`, the products of
/// the rows of a tile with their residuals.
#[inline(always)]
fn add_products<V: Vector>(
    tile: &[f64],
    width: usize,
    column: usize,
    residuals: &[Lanes],
    out: &mut [Lanes],
    at: usize,
) {
    let mut sums = [[V::zero(); 2]; GROUP];
    for c in 0..GROUP {
        sums[c] = [V::load(&out[c][at..]), V::load(&out[c][at + V::LANES..])];
    }
    let (columns, _) = tile.as_chunks::<GROUP>();
    let mut row = 0;
    while row < residuals.len() {
        let columns = &columns[row / GROUP * width + column..][..GROUP];
        let left = V::load(&residuals[row][at..]);
        let right = V::load(&residuals[row][at + V::LANES..]);
        for c in 0..GROUP {
            let z = V::splat(columns[c][row % GROUP]);
            sums[c][0] = z.mul_add(left, sums[c][0]);
            sums[c][1] = z.mul_add(right, sums[c][1]);
        }
        row += 1;
    }
    for c in 0..GROUP {
        sums[c][0].store(&mut out[c][at..]);
        sums[c][1].store(&mut out[c][at + V::LANES..]);
    }
}

#[inline(always)]
fn scores_kernel<V: Vector>(
    panel: &[f64],
    width: usize,
    coefficients: &[Lanes],
    scores: &mut [Lanes],
) {
    check(panel, width, coefficients, scores.len());
    let (columns, _) = panel.as_chunks::<GROUP>();
    let mut row = 0;
    while row < scores.len() {
        let columns = &columns[row / GROUP * width..];
        let scores = &mut scores[row..row + GROUP];
        let mut at = 0;
        while at < REPLICATES {
            group_scores::<V>(columns, coefficients, scores, at);
            at += 2 * V::LANES;
        }
        row += GROUP;
    }
}

/// The log-odds of six rows under two vectors of replicates.
#[inline(always)]
fn group_scores<V: Vector>(
    columns: &[Group],
    coefficients: &[Lanes],
    scores: &mut [Lanes],
    at: usize,
) {
    let mut sums = [[V::zero(); 2]; GROUP];
    let columns = &columns[..coefficients.len()];
    let mut j = 0;
    while j < coefficients.len() {
        let left = V::load(&coefficients[j][at..]);
        let right = V::load(&coefficients[j][at + V::LANES..]);
        for r in 0..GROUP {
            let z = V::splat(columns[j][r]);
            sums[r][0] = z.mul_add(left, sums[r][0]);
            sums[r][1] = z.mul_add(right, sums[r][1]);
        }
        j += 1;
    }
    for r in 0..GROUP {
        sums[r][0].store(&mut scores[r][at..]);
        sums[r][1].store(&mut scores[r][at + V::LANES..]);
    }
}

#[inline(always)]
fn line_kernel<V: Vector>(
    scores: &[Lanes],
    targets: &[f64],
    weights: &[[f32; REPLICATES]],
    line: &[Lanes; 2],
    ends: &[Lanes; 2],
    sums: &mut LineSums,
) {
    assert!(scores.len() == targets.len() && scores.len() == weights.len());
    let mut at = 0;
    while at < REPLICATES {
        let (slope, intercept) = (V::load(&line[0][at..]), V::load(&line[1][at..]));
        let low = V::load(&ends[0][at..]);
        let range = V::load(&ends[1][at..]).sub(low);
        let (mut g0, mut g1) = (V::zero(), V::zero());
        let (mut h0, mut h1, mut h2) = (V::zero(), V::zero(), V::zero());
        for (row, (&y, weight)) in scores.iter().zip(targets.iter().zip(weights)) {
            let (score, weight) = (V::load(&row[at..]), V::load_f32(&weight[at..]));
            let p = sigmoid(score.mul_add(slope, intercept));
            let target = V::splat(y).mul_add(range, low);
            let residual = p.sub(target).mul(weight);
            let curvature = p.neg_mul_add(p, p).mul(weight);
            let scaled = curvature.mul(score);
            g0 = residual.mul_add(score, g0);
            g1 = residual.add(g1);
            h0 = scaled.mul_add(score, h0);
            h1 = scaled.add(h1);
            h2 = curvature.add(h2);
        }
        g0.store(&mut sums.gradient[0][at..]);
        g1.store(&mut sums.gradient[1][at..]);
        h0.store(&mut sums.hessian[0][at..]);
        h1.store(&mut sums.hessian[1][at..]);
        h2.store(&mut sums.hessian[2][at..]);
        at += V::LANES;
    }
}

/// Limit of log-odds, below the ±709 at which e^x leaves the doubles.
const LIMIT: f64 = 700.0;

/// σ(x) = 1/(1 + e^−x) to 1e-15 of itself, for x limited to ±700.
#[inline(always)]
fn sigmoid<V: Vector>(x: V) -> V {
    let (lowest, minus) = (V::splat(-LIMIT), V::zero().sub(x));
    let minus = V::zero().sub(V::zero().sub(minus).max(lowest)).max(lowest);
    // −x = k ln 2 + r
    let shifted = minus.mul_add(V::splat(std::f64::consts::LOG2_E), V::splat(V::ROUNDER));
    let k = shifted.sub(V::splat(V::ROUNDER));
    let r = k.neg_mul_add(V::splat(LN_2_HIGH), minus);
    let r = k.neg_mul_add(V::splat(LN_2_LOW), r);
    // to r¹²/12!: the next term is below 2·10⁻¹⁶
    let mut series = V::zero();
    for &coefficient in &INVERSE_FACTORIALS[4..] {
        series = series.mul_add(r, V::splat(coefficient));
    }
    let e = series.mul(shifted.power_of_rounded());
    V::one().div(V::one().add(e))
}

fn check(panel: &[f64], width: usize, coefficients: &[Lanes], rows: usize) {
    assert!(width.is_multiple_of(GROUP) && rows.is_multiple_of(GROUP));
    assert!(coefficients.len() == width && panel.len() == rows * width);
}
