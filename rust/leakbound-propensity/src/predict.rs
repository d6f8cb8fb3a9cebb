//! Log-odds of rows under many sets of coefficients.

use rayon::prelude::*;

use crate::PropensityError;
use crate::cholesky::dot;
use crate::training::check_finite;

/// Log-odds a + x·b of every row of `features` under every row (a, b) of `coefficients`: one row of
/// log-odds for each row of coefficients.
///
/// # Errors
/// A feature that is not finite, or lengths that are not whole rows of `columns` features.
pub fn log_odds(
    coefficients: &[f64],
    features: &[f64],
    columns: usize,
) -> Result<Vec<f64>, PropensityError> {
    check_finite(features, columns)?;
    let rows: Vec<Vec<f64>> = (coefficients.par_chunks_exact(columns + 1))
        .map(|line| {
            (features.chunks_exact(columns))
                .map(|row| line[0] + dot(&line[1..], row))
                .collect()
        })
        .collect();
    Ok(rows.concat())
}
