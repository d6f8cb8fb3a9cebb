//! Normal and binomial tails, entry by entry.

use leakbound_math::{Binomial, MathError, Probability, clopper_pearson as limits, normal};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::entries;
use crate::enter::enter;

type Column<'py> = Bound<'py, PyArray1<f64>>;

fn map<'py>(
    py: Python<'py>,
    x: &PyReadonlyArray1<'_, f64>,
    function: fn(f64) -> f64,
) -> Column<'py> {
    let x = entries(x);
    let values: Vec<f64> = py.detach(|| x.iter().map(|&x| function(x)).collect());
    PyArray1::from_vec(py, values)
}

#[pyfunction]
pub(crate) fn normal_cdf<'py>(py: Python<'py>, x: PyReadonlyArray1<'_, f64>) -> Column<'py> {
    map(py, &x, normal::cdf)
}

#[pyfunction]
pub(crate) fn normal_quantile<'py>(
    py: Python<'py>,
    p: PyReadonlyArray1<'_, f64>,
) -> PyResult<Column<'py>> {
    let p = entries(&p);
    at_each(py, p.len(), |i| {
        Ok(normal::quantile(Probability::new(p[i])?))
    })
}

#[pyfunction]
pub(crate) fn log_normal_cdf<'py>(py: Python<'py>, x: PyReadonlyArray1<'_, f64>) -> Column<'py> {
    map(py, &x, normal::ln_cdf)
}

/// Apply `function` at every index of arrays of one length.
fn at_each(
    py: Python<'_>,
    length: usize,
    function: impl Fn(usize) -> Result<f64, MathError> + Send + Sync,
) -> PyResult<Column<'_>> {
    let values = enter(py, |interrupt| {
        let mut values = Vec::with_capacity(length);
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
    v: PyReadonlyArray1<'_, u64>,
    n: PyReadonlyArray1<'_, u64>,
    p: PyReadonlyArray1<'_, f64>,
    log: bool,
) -> PyResult<Column<'py>> {
    let (v, n, p) = (entries(&v), entries(&n), entries(&p));
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
    v: PyReadonlyArray1<'_, u64>,
    n: PyReadonlyArray1<'_, u64>,
    beta: PyReadonlyArray1<'_, f64>,
) -> PyResult<Column<'py>> {
    let (v, n, beta) = (entries(&v), entries(&n), entries(&beta));
    at_each(py, v.len(), |i| {
        Ok(limits::lower_limit(v[i], n[i], beta[i])?.p())
    })
}
