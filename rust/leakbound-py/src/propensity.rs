//! Propensity models: fit, calibration, resamples and refits.

use leakbound_core::Interrupt;
use leakbound_math::memory::room;
use leakbound_propensity::{LogisticFit, PropensityError, Training, log_odds};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::convert::{Flags, Table, Vector, reshaped};
use crate::enter::{at_once, enter};
use crate::errors::propensity_to_python;

type Rows<'py, T = f64> = Bound<'py, PyArray2<T>>;

/// The rows a propensity model learns from.
#[pyclass(frozen)]
pub(crate) struct PropensityRows(Training);

/// A fitted propensity model.
#[pyclass(frozen)]
pub(crate) struct LogisticModel(LogisticFit);

#[pymethods]
impl PropensityRows {
    #[new]
    #[pyo3(signature = (features, member, *, folds, l2))]
    fn new(
        py: Python<'_>,
        features: Table<'_, f64>,
        member: Flags<'_>,
        folds: Option<Vector<'_, u8>>,
        l2: f64,
    ) -> PyResult<Self> {
        let (columns, member) = (features.columns(), member.read()?);
        let features = features.entries();
        let folds = folds.as_deref();
        let training = run(py, |_| Training::new(features, columns, &member, folds, l2))?;
        Ok(Self(training))
    }

    /// Fits all rows.
    fn fit(&self, py: Python<'_>) -> PyResult<LogisticModel> {
        run(py, |_| LogisticFit::new(&self.0, None)).map(LogisticModel)
    }

    /// Intercept and slopes of a fit of these rows, calibrated.
    fn coefficients<'py>(
        &self,
        py: Python<'py>,
        model: &LogisticModel,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let coefficients = at_once(py, || model.0.coefficients(&self.0))?;
        Ok(PyArray1::from_vec(py, coefficients))
    }

    /// How often each row occurs in `count` resamples: a row of counts for each.
    #[pyo3(signature = (*, seed, first, count))]
    fn resamples<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        first: u64,
        count: usize,
    ) -> PyResult<Rows<'py, u32>> {
        let width = self.0.count();
        let counts = run(py, |interrupt| {
            let mut counts = room(count * width)?;
            for replicate in first..first + count as u64 {
                check(interrupt)?;
                counts.extend(self.0.resample(seed, replicate)?);
            }
            Ok(counts)
        })?;
        reshaped(py, counts, count, width)
    }

    /// Intercept and slopes of the refits of `count` resamples: a row for each.
    #[pyo3(signature = (model, *, seed, first, count))]
    fn bootstrap<'py>(
        &self,
        py: Python<'py>,
        model: &LogisticModel,
        seed: u64,
        first: u64,
        count: usize,
    ) -> PyResult<Rows<'py>> {
        let coefficients = run(py, |interrupt| {
            let stop = || interrupt.check().is_err();
            model.0.bootstrap(&self.0, seed, first, count, &stop)
        })?;
        reshaped(py, coefficients, count, self.0.width())
    }
}

/// Log-odds of rows of features: a row for each row of coefficients.
#[pyfunction]
pub(crate) fn linear_log_odds<'py>(
    py: Python<'py>,
    coefficients: Table<'_, f64>,
    features: Table<'_, f64>,
) -> PyResult<Rows<'py>> {
    let (rows, columns, count) = (features.rows(), features.columns(), coefficients.rows());
    let (coefficients, features) = (coefficients.entries(), features.entries());
    let values = run(py, |interrupt| {
        let stop = || interrupt.check().is_err();
        log_odds(coefficients, features, columns, &stop)
    })?;
    reshaped(py, values, count, rows)
}

/// Runs `work` through the doorway, and converts what may go wrong.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> Result<T, PropensityError> + Send,
) -> PyResult<T> {
    enter(py, |interrupt| Ok(work(interrupt)))?.map_err(|error| propensity_to_python(py, &error))
}

fn check(interrupt: &Interrupt) -> Result<(), PropensityError> {
    interrupt.check().map_err(|_| PropensityError::Interrupted)
}
