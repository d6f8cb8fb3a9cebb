//! Replicates of Zero-Run audits.

use leakbound_core::{
    Guessing, MatchedCounts, Observed, Replicated, matched_counts as counts_of, scan_offset_rows,
};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::audits::{Path, kl_statistic};
use crate::convert::{Flags, Vector};
use crate::enter::enter;

type Counts<'py> = Bound<'py, PyArray1<i64>>;

/// Examples kept, guesses made and correct guesses, for each row of log-odds and each row of
/// uniforms.
#[pyfunction]
#[pyo3(signature = (scores, member, log_odds, uniforms, *, guesses, one_sided, residual))]
#[allow(clippy::too_many_arguments)] // columns of one table, and how it is read
pub(crate) fn matched_counts<'py>(
    py: Python<'py>,
    scores: Vector<'_, f64>,
    member: Flags<'_>,
    log_odds: Vector<'_, f64>,
    uniforms: Vector<'_, f64>,
    guesses: u32,
    one_sided: bool,
    residual: bool,
) -> PyResult<(Counts<'py>, Counts<'py>, Counts<'py>)> {
    let (scores, member) = (&*scores, member.read()?);
    let (log_odds, uniforms) = (&*log_odds, &*uniforms);
    let guessing = Guessing {
        guesses,
        one_sided,
        residual,
    };
    let counts = enter(py, |interrupt| {
        let observed = Observed {
            scores,
            member: &member,
        };
        counts_of(observed, log_odds, uniforms, guessing, interrupt)
    })?;
    let column = |value: fn(&MatchedCounts) -> u32| {
        PyArray1::from_iter(py, counts.iter().map(|row| i64::from(value(row))))
    };
    Ok((
        column(|row| row.kept),
        column(|row| row.guesses),
        column(|row| row.correct),
    ))
}

/// The ε of `kl_scan_offsets` for each row of offsets and its floor.
#[pyfunction]
#[pyo3(signature = (path, offsets, *, beta, kappa, min_guesses, floors))]
pub(crate) fn kl_scan_offset_rows<'py>(
    py: Python<'py>,
    path: &Path,
    offsets: Vector<'_, f64>,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
    floors: Vector<'_, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (offsets, floors) = (&*offsets, &*floors);
    let epsilons = enter(py, |interrupt| {
        let statistic = kl_statistic(beta, kappa)?;
        scan_offset_rows(
            &path.0,
            offsets,
            &statistic,
            beta,
            min_guesses,
            floors,
            interrupt,
        )
    })?;
    Ok(PyArray1::from_vec(py, epsilons))
}

/// The `rank`-th smallest over rows of the largest ε of `kl_scan_offsets`, or 0: of all guesses, and
/// if `halves` of every other one, from the first and from the second.
#[pyfunction]
#[pyo3(signature = (right, offsets, *, halves, beta, kappa, min_guesses, rank))]
#[allow(clippy::too_many_arguments)] // a scan, of rows, and which of them
pub(crate) fn kl_scan_offset_rows_lowest(
    py: Python<'_>,
    right: Flags<'_>,
    offsets: Vector<'_, f64>,
    halves: bool,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
    rank: usize,
) -> PyResult<f64> {
    let right = right.read()?;
    let offsets = &*offsets;
    enter(py, |interrupt| {
        let statistic = kl_statistic(beta, kappa)?;
        Replicated::new(&right, halves, statistic, beta, min_guesses)?
            .lowest(offsets, rank, interrupt)
    })
}
