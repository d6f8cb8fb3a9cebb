//! Log-odds of rows under many sets of coefficients.

use leakbound_math::memory::filled;
use leakbound_simd::{GROUP, Level, REPLICATES, linear_scores};
use rayon::prelude::*;

use crate::error::PropensityError;
use crate::panel::Panel;
use crate::training::{check_finite, check_length};

/// Rows whose log-odds are computed before they are put in their places.
const CHUNK: usize = 16 * GROUP;

/// Log-odds a + x·b of every row of `features` under every row (a, b) of `coefficients`: one row of
/// log-odds for each row of coefficients.
///
/// The numbers depend neither on the threads nor on the other rows.
///
/// # Errors
/// A feature that is not finite, or lengths that are not whole rows of `columns` features;
/// [`PropensityError::Interrupted`] once `stop` says so.
pub fn log_odds(
    coefficients: &[f64],
    features: &[f64],
    columns: usize,
    stop: &(impl Fn() -> bool + Sync),
) -> Result<Vec<f64>, PropensityError> {
    let width = columns + 1;
    let rows = features.len().checked_div(columns).unwrap_or(0);
    check_length("features", features.len(), rows * columns)?;
    let replicates = coefficients.len() / width;
    check_length("coefficients", coefficients.len(), replicates * width)?;
    check_finite(features, columns)?;
    let mut panel = Panel::zeros(rows.next_multiple_of(GROUP), width)?;
    for row in 0..rows {
        let entries = &features[row * columns..(row + 1) * columns];
        panel.set_row(row, entries.iter().copied());
    }
    let mut values = filled(replicates.saturating_mul(rows), 0.0)?;
    if rows > 0 {
        (values.par_chunks_mut(REPLICATES * rows))
            .zip(coefficients.par_chunks(REPLICATES * width))
            .try_for_each(|(values, coefficients)| {
                if stop() {
                    return Err(PropensityError::Interrupted);
                }
                block(&panel, coefficients, rows, values);
                Ok(())
            })?;
    }
    Ok(values)
}

/// The log-odds of up to sixteen sets of coefficients.
fn block(panel: &Panel, coefficients: &[f64], rows: usize, values: &mut [f64]) {
    let width = panel.width();
    let mut lanes = vec![[0.0; REPLICATES]; panel.padded()];
    for (k, line) in coefficients.chunks_exact(width).enumerate() {
        for (lanes, &coefficient) in lanes.iter_mut().zip(line) {
            lanes[k] = coefficient;
        }
    }
    let mut scores = [[0.0; REPLICATES]; CHUNK];
    for start in (0..panel.rows()).step_by(CHUNK) {
        let end = panel.rows().min(start + CHUNK);
        let scores = &mut scores[..end - start];
        linear_scores(
            Level::best(),
            panel.entries(start..end),
            panel.padded(),
            &lanes,
            scores,
        );
        for (k, line) in values.chunks_exact_mut(rows).enumerate() {
            for (value, scores) in line[start..].iter_mut().zip(scores.iter()) {
                *value = scores[k];
            }
        }
    }
}
