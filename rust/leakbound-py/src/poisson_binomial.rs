//! Poisson-binomial tails, their inverse, probabilities and bounds.

use leakbound_core::{AuditError, Interrupt};
use leakbound_math::MathError;
use leakbound_math::poisson_binomial::{RUN, Tail, Terms, Weighted, replicate_epsilons};
use numpy::PyArray1;
use pyo3::prelude::*;
use rayon::current_thread_index;
use rayon::prelude::*;

use crate::convert::Vector;
use crate::enter::{enter, enter_for};

type Column<'py> = Bound<'py, PyArray1<f64>>;
/// Values, logarithms and relative errors.
type Tails<'py> = (Column<'py>, Column<'py>, Column<'py>);

fn columns(py: Python<'_>, tails: Vec<Tail>) -> Tails<'_> {
    let column = |part: fn(&Tail) -> f64| PyArray1::from_iter(py, tails.iter().map(part));
    (
        column(|tail| tail.value),
        column(|tail| tail.log),
        column(|tail| tail.relative_error),
    )
}

/// The terms that `values` are the probabilities or the offsets of.
fn terms(values: &[f64], counts: Option<&[u64]>, offsets: bool) -> Result<Terms, MathError> {
    if offsets {
        Terms::from_grouped_offsets(values, counts)
    } else {
        Terms::from_grouped_probabilities(values, counts)
    }
}

/// Calls `one` at every index in order of index, with a look for interrupts: on all threads of the
/// pool, and in place outside it.
fn each<T: Send>(
    interrupt: &Interrupt,
    length: usize,
    one: impl Fn(usize) -> Result<T, MathError> + Sync,
) -> Result<Vec<T>, AuditError> {
    let checked = |index| {
        interrupt.check()?;
        Ok(one(index)?)
    };
    if current_thread_index().is_none() {
        return (0..length).map(checked).collect();
    }
    (0..length).into_par_iter().map(checked).collect()
}

/// One tail for each v and ε, which have one length.
#[pyfunction]
#[pyo3(signature = (values, v, epsilon, *, counts, offsets))]
pub(crate) fn poisson_binomial_tail<'py>(
    py: Python<'py>,
    values: Vector<'_, f64>,
    v: Vector<'_, i64>,
    epsilon: Vector<'_, f64>,
    counts: Option<Vector<'_, u64>>,
    offsets: bool,
) -> PyResult<Tails<'py>> {
    let (values, v, epsilon) = (&*values, &*v, &*epsilon);
    let counts = counts.as_deref();
    let summands = values.len().saturating_mul(v.len());
    let tails = enter_for(py, summands, |interrupt| {
        let terms = terms(values, counts, offsets)?;
        each(interrupt, v.len(), |i| Ok(terms.tail(v[i], epsilon[i])))
    })?;
    Ok(columns(py, tails))
}

/// The largest ε for each v.
#[pyfunction]
#[pyo3(signature = (offsets, v, *, beta, counts))]
pub(crate) fn poisson_binomial_epsilon<'py>(
    py: Python<'py>,
    offsets: Vector<'_, f64>,
    v: Vector<'_, i64>,
    beta: f64,
    counts: Option<Vector<'_, u64>>,
) -> PyResult<Column<'py>> {
    let (offsets, v) = (&*offsets, &*v);
    let counts = counts.as_deref();
    if let &[v] = v {
        let epsilon = enter_for(py, offsets.len(), |_| {
            Ok(Terms::from_grouped_offsets(offsets, counts)?.epsilon(v, beta)?)
        })?;
        return Ok(PyArray1::from_slice(py, &[epsilon]));
    }
    let epsilons = enter(py, |interrupt| {
        let terms = Terms::from_grouped_offsets(offsets, counts)?;
        terms.epsilons(&[], beta)?; // β is checked, also where there is no v
        // Ctrl-C is answered between runs, which share their search.
        let runs: Result<Vec<Vec<f64>>, AuditError> = v
            .par_chunks(RUN)
            .map(|run| {
                interrupt.check()?;
                Ok(terms.epsilons(run, beta)?)
            })
            .collect();
        Ok(runs?.concat())
    })?;
    Ok(PyArray1::from_vec(py, epsilons))
}

/// The largest ε of each replicate: row k of `offsets` and of `counts` (each one row for all, or as
/// many rows as there are v) with `v[k]`.
#[pyfunction]
#[pyo3(signature = (offsets, v, *, beta, counts, terms))]
pub(crate) fn replicated_epsilon<'py>(
    py: Python<'py>,
    offsets: Vector<'_, f64>,
    v: Vector<'_, i64>,
    beta: f64,
    counts: Option<Vector<'_, u64>>,
    terms: usize,
) -> PyResult<Column<'py>> {
    let (offsets, v) = (&*offsets, &*v);
    let counts = counts.as_deref();
    let epsilons = enter(py, |interrupt| {
        let replicate = |k: usize| {
            let offsets = row(offsets, k, terms);
            let counts = counts.map(|counts| row(counts, k, terms));
            // Ctrl-C is answered between replicates: an empty one costs nothing.
            if interrupt.check().is_err() {
                return Ok((Terms::from_offsets(&[])?, 1));
            }
            Ok((Terms::from_grouped_offsets(offsets, counts)?, v[k]))
        };
        let epsilons = replicate_epsilons(v.len(), beta, replicate)?;
        interrupt.check()?;
        Ok(epsilons)
    })?;
    Ok(PyArray1::from_vec(py, epsilons))
}

/// Row `k` of a table of rows of `length`, or its only row.
fn row<T>(table: &[T], k: usize, length: usize) -> &[T] {
    if table.len() == length {
        table
    } else {
        &table[k * length..(k + 1) * length]
    }
}

/// As `poisson_binomial_epsilon` with whole weights.
#[pyfunction]
#[pyo3(signature = (offsets, v, *, beta, weights))]
pub(crate) fn weighted_epsilon<'py>(
    py: Python<'py>,
    offsets: Vector<'_, f64>,
    v: Vector<'_, i64>,
    beta: f64,
    weights: Vector<'_, u64>,
) -> PyResult<Column<'py>> {
    let (offsets, v, weights) = (&*offsets, &*v, &*weights);
    let epsilons = enter(py, |interrupt| {
        let sum = Weighted::from_offsets(offsets, weights)?;
        each(interrupt, v.len(), |i| sum.epsilon(v[i], beta))
    })?;
    Ok(PyArray1::from_vec(py, epsilons))
}
