//! Normal and binomial tails, entry by entry.

use leakbound_math::memory::room;
use leakbound_math::{Binomial, MathError, Probability, clopper_pearson as limits, normal};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::convert::Vector;
use crate::enter::enter_for;

type Column<'py> = Bound<'py, PyArray1<f64>>;

#[pyfunction]
pub(crate) fn normal_cdf<'py>(py: Python<'py>, x: Vector<'_, f64>) -> PyResult<Column<'py>> {
    let x = &*x;
    at_each(py, x.len(), |i| Ok(normal::cdf(x[i])))
}

#[pyfunction]
pub(crate) fn normal_quantile<'py>(py: Python<'py>, p: Vector<'_, f64>) -> PyResult<Column<'py>> {
    let p = &*p;
    at_each(py, p.len(), |i| {
        Ok(normal::quantile(Probability::new(p[i])?))
    })
}

#[pyfunction]
pub(crate) fn log_normal_cdf<'py>(py: Python<'py>, x: Vector<'_, f64>) -> PyResult<Column<'py>> {
    let x = &*x;
    at_each(py, x.len(), |i| Ok(normal::ln_cdf(x[i])))
}

/// Apply `function` at every index of arrays of one length.
fn at_each(
    py: Python<'_>,
    length: usize,
    function: impl Fn(usize) -> Result<f64, MathError> + Send + Sync,
) -> PyResult<Column<'_>> {
    let values = enter_for(py, length, |interrupt| {
        let mut values = room(length)?;
        for index in 0..length {
            if index % 4096 == 0 {
                interrupt.check()?;
            }
            values.push(function(index)?);
        }
        Ok(values)
    })?;
    Ok(PyArray1::from_vec(py, values))
}

/// The three columns have one length; the Python layer broadcasts them.
#[pyfunction]
#[pyo3(signature = (v, n, p, *, log))]
pub(crate) fn binomial_tail<'py>(
    py: Python<'py>,
    v: Vector<'_, u64>,
    n: Vector<'_, u64>,
    p: Vector<'_, f64>,
    log: bool,
) -> PyResult<Column<'py>> {
    let (v, n, p) = (&*v, &*n, &*p);
    at_each(py, v.len(), |i| {
        let law = Binomial::new(n[i], Probability::new(p[i])?);
        Ok(if log {
            law.ln_upper_tail(v[i])
        } else {
            law.upper_tail(v[i])
        })
    })
}

#[pyfunction]
#[pyo3(signature = (v, n, *, beta))]
pub(crate) fn clopper_pearson<'py>(
    py: Python<'py>,
    v: Vector<'_, u64>,
    n: Vector<'_, u64>,
    beta: Vector<'_, f64>,
) -> PyResult<Column<'py>> {
    let (v, n, beta) = (&*v, &*n, &*beta);
    at_each(py, v.len(), |i| {
        Ok(limits::lower_limit(v[i], n[i], beta[i])?.p())
    })
}
