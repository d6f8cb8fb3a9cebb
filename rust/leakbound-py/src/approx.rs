//! (ε, δ)-DP at one number of guesses, and over the cuts of a path.

use leakbound_core::{
    ApproxForm, ApproxLimit, ApproxTail, AuditError, Cut, best_cut, pointwise_curve,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::audits::{CurveArrays, GridOption, LowerBound, Path, curve_arrays};
use crate::enter::enter;

/// The upper bound on P(W ≥ v) that a call asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TailOptions {
    bound: String,
    m: f64,
    delta: f64,
    k: u32,
    one_sided: bool,
}

impl TailOptions {
    fn form(&self) -> PyResult<ApproxForm> {
        match self.bound.as_str() {
            "exact" => Ok(ApproxForm::Exact),
            "steinke" => Ok(ApproxForm::Steinke),
            "panoramia" => Ok(ApproxForm::Panoramia),
            "coupling" => Ok(ApproxForm::Coupling),
            "zero_run" => Ok(ApproxForm::ZeroRun),
            other => Err(PyValueError::new_err(format!("unknown bound {other:?}"))),
        }
    }

    fn tail(&self, form: ApproxForm) -> Result<ApproxTail, AuditError> {
        ApproxTail::new(form, self.m, self.delta, self.k, self.one_sided)
    }
}

#[pyfunction]
pub(crate) fn approx_p_value(
    py: Python<'_>,
    correct: u32,
    guesses: u32,
    epsilon: f64,
    options: TailOptions,
) -> PyResult<f64> {
    let form = options.form()?;
    enter(py, |_| {
        let tail = options.tail(form)?;
        Ok(tail.upper_tail(Cut { guesses, correct }, tail.success_probability(epsilon)?))
    })
}

#[pyfunction]
pub(crate) fn approx_epsilon(
    py: Python<'_>,
    correct: u32,
    guesses: u32,
    beta: f64,
    options: TailOptions,
) -> PyResult<f64> {
    let form = options.form()?;
    enter(py, |interrupt| {
        let tail = options.tail(form)?;
        let statistic = ApproxLimit::new(tail, beta)?;
        let limit = statistic.limit_until(Cut { guesses, correct }, interrupt)?;
        Ok(limit.map_or(0.0, |p| tail.epsilon(p).max(0.0)))
    })
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, grid, ratio, options))]
pub(crate) fn approx_union_bound(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    grid: GridOption,
    ratio: f64,
    options: TailOptions,
) -> PyResult<LowerBound> {
    let (form, grid) = (options.form()?, grid.resolve(ratio)?);
    enter(py, |interrupt| {
        let level = beta / grid.size(path.0.guesses())? as f64;
        let statistic = ApproxLimit::new(options.tail(form)?, level)?;
        best_cut(&path.0.cuts(&grid, 1)?, &statistic, interrupt)
    })
    .map(LowerBound)
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, grid, ratio, options, points))]
pub(crate) fn approx_union_curve<'py>(
    py: Python<'py>,
    path: &Path,
    beta: f64,
    grid: GridOption,
    ratio: f64,
    options: TailOptions,
    points: usize,
) -> PyResult<CurveArrays<'py>> {
    let (form, grid) = (options.form()?, grid.resolve(ratio)?);
    let curve = enter(py, |interrupt| {
        let level = beta / grid.size(path.0.guesses())? as f64;
        let statistic = ApproxLimit::new(options.tail(form)?, level)?;
        pointwise_curve(&path.0, &statistic, &grid, points, interrupt)
    })?;
    Ok(curve_arrays(py, &curve))
}
