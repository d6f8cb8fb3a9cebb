//! (ε, δ)-DP at one number of guesses.

use leakbound_core::{ApproxForm, ApproxLimit, ApproxTail, AuditError, Cut, CutStatistic};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
    pub(crate) fn form(&self) -> PyResult<ApproxForm> {
        match self.bound.as_str() {
            "exact" => Ok(ApproxForm::Exact),
            "steinke" => Ok(ApproxForm::Steinke),
            "panoramia" => Ok(ApproxForm::Panoramia),
            "coupling" => Ok(ApproxForm::Coupling),
            "zero_run" => Ok(ApproxForm::ZeroRun),
            other => Err(PyValueError::new_err(format!("unknown bound {other:?}"))),
        }
    }

    pub(crate) fn tail(&self, form: ApproxForm) -> Result<ApproxTail, AuditError> {
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
        let limit = statistic.limit(Cut { guesses, correct }, interrupt)?;
        Ok(limit.map_or(0.0, |p| tail.epsilon(p).max(0.0)))
    })
}
