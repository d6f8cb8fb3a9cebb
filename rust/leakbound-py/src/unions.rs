//! Cuts that are each tested by itself, at an equal share of the level.

use leakbound_core::{
    ApproxLimit, AuditError, CutStatistic, EqualLevel, Hoeffding, best_cut, pointwise_curve,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::approx::TailOptions;
use crate::audits::{CurveArrays, GridOption, LowerBound, Path, curve_arrays};
use crate::enter::{enter, enter_for};

/// What each cut is tested by: limits of this name, or the tail bound of an (ε, δ) claim.
#[derive(FromPyObject)]
pub(crate) enum TestOption {
    Name(String),
    Tail(TailOptions),
}

/// The limits at a level.
type Limits = Result<Box<dyn CutStatistic>, AuditError>;

impl TestOption {
    fn resolve(self) -> PyResult<Box<dyn FnOnce(f64) -> Limits + Send>> {
        Ok(match self {
            Self::Tail(options) => {
                let form = options.form()?;
                Box::new(move |level| Ok(Box::new(ApproxLimit::new(options.tail(form)?, level)?)))
            }
            Self::Name(name) => match name.as_str() {
                "exact" => Box::new(|level| Ok(Box::new(EqualLevel::new(level)?))),
                "hoeffding" => Box::new(|level| Ok(Box::new(Hoeffding::new(level)?))),
                other => return Err(PyValueError::new_err(format!("unknown tail {other:?}"))),
            },
        })
    }
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, grid, ratio, tail))]
pub(crate) fn union_bound(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    grid: GridOption,
    ratio: f64,
    tail: TestOption,
) -> PyResult<LowerBound> {
    let (grid, limits) = (grid.resolve(ratio)?, tail.resolve()?);
    enter_for(py, path.0.guesses() as usize, |interrupt| {
        let limits = limits(beta / grid.size(path.0.guesses())? as f64)?;
        best_cut(&path.0.cuts(&grid, 1)?, &*limits, interrupt)
    })
    .map(LowerBound::from)
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, grid, ratio, tail, points))]
pub(crate) fn union_curve<'py>(
    py: Python<'py>,
    path: &Path,
    beta: f64,
    grid: GridOption,
    ratio: f64,
    tail: TestOption,
    points: usize,
) -> PyResult<CurveArrays<'py>> {
    let (grid, limits) = (grid.resolve(ratio)?, tail.resolve()?);
    let curve = enter(py, |interrupt| {
        let limits = limits(beta / grid.size(path.0.guesses())? as f64)?;
        pointwise_curve(&path.0, &*limits, &grid, points, interrupt)
    })?;
    curve_arrays(py, &curve)
}
