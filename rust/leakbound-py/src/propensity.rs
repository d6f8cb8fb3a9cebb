//! Propensity models: fit, calibration, resamples and refits.

use leakbound_core::Interrupt;
use leakbound_propensity::{LogisticFit, PropensityError, Training, calibrate, log_odds};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::convert::entries;
use crate::enter::enter;
use crate::errors::propensity_to_python;

type Table<'py, T = f64> = Bound<'py, PyArray2<T>>;

/// The rows a propensity model learns from.
#[pyclass(frozen)]
pub(crate) struct PropensityRows(Training);

/// A fitted propensity model.
#[pyclass(frozen)]
pub(crate) struct LogisticModel {
    fit: LogisticFit,
    #[pyo3(get)]
    slope: f64,
    #[pyo3(get)]
    intercept: f64,
}

#[pymethods]
impl PropensityRows {
    #[new]
    #[pyo3(signature = (features, member, *, folds, l2))]
    fn new(
        py: Python<'_>,
        features: PyReadonlyArray2<'_, f64>,
        member: PyReadonlyArray1<'_, bool>,
        folds: Option<PyReadonlyArray1<'_, u8>>,
        l2: f64,
    ) -> PyResult<Self> {
        let columns = features.as_array().ncols();
        let (features, member) = (table(&features), entries(&member));
        let folds = folds.as_ref().map(entries);
        let training = run(py, |_| {
            Training::new(&features, columns, &member, folds.as_deref(), l2)
        })?;
        Ok(Self(training))
    }

    /// Fits all rows, each as often as `counts` says, or once.
    #[pyo3(signature = (counts=None))]
    fn fit(
        &self,
        py: Python<'_>,
        counts: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<LogisticModel> {
        let counts = counts.as_ref().map(entries);
        let fit = run(py, |_| LogisticFit::new(&self.0, counts.as_deref()))?;
        let calibration = fit.calibration();
        Ok(LogisticModel {
            fit,
            slope: calibration.slope,
            intercept: calibration.intercept,
        })
    }

    /// Intercept and slopes of a fit of these rows, calibrated.
    fn coefficients<'py>(
        &self,
        py: Python<'py>,
        model: &LogisticModel,
    ) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, model.fit.coefficients(&self.0))
    }

    /// How often each row occurs in `count` resamples: a row of counts for each.
    #[pyo3(signature = (*, seed, first, count))]
    fn resamples<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        first: u64,
        count: usize,
    ) -> PyResult<Table<'py, u32>> {
        let width = self.0.count();
        let counts = run(py, |interrupt| {
            let mut counts = Vec::with_capacity(count * width);
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
    ) -> PyResult<Table<'py>> {
        let coefficients = run(py, |interrupt| {
            let stop = || interrupt.check().is_err();
            model.fit.bootstrap(&self.0, seed, first, count, &stop)
        })?;
        reshaped(py, coefficients, count, self.0.width())
    }
}

/// Log-odds of rows of features: a row for each row of coefficients.
#[pyfunction]
pub(crate) fn linear_log_odds<'py>(
    py: Python<'py>,
    coefficients: PyReadonlyArray2<'_, f64>,
    features: PyReadonlyArray2<'_, f64>,
) -> PyResult<Table<'py>> {
    let (rows, columns) = features.as_array().dim();
    let count = coefficients.as_array().nrows();
    let (coefficients, features) = (table(&coefficients), table(&features));
    let values = run(py, |interrupt| {
        let stop = || interrupt.check().is_err();
        log_odds(&coefficients, &features, columns, &stop)
    })?;
    reshaped(py, values, count, rows)
}

/// Slope and intercept of Platt's calibration of log-odds.
#[pyfunction]
pub(crate) fn platt_calibration(
    py: Python<'_>,
    scores: PyReadonlyArray1<'_, f64>,
    member: PyReadonlyArray1<'_, bool>,
    counts: PyReadonlyArray1<'_, u32>,
) -> PyResult<(f64, f64)> {
    let (scores, member, counts) = (entries(&scores), entries(&member), entries(&counts));
    let calibration = run(py, |_| {
        let classes: Vec<f64> = member.iter().map(|&m| f64::from(u8::from(m))).collect();
        let weights: Vec<f64> = counts.iter().map(|&n| f64::from(n)).collect();
        calibrate(&scores, &classes, &weights)
    })?;
    Ok((calibration.slope, calibration.intercept))
}

/// Runs `work` through the doorway, and converts what may go wrong.
fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> Result<T, PropensityError> + Send,
) -> PyResult<T> {
    enter(py, |interrupt| Ok(work(interrupt)))?.map_err(|error| propensity_to_python(py, &error))
}

fn check(interrupt: &Interrupt) -> Result<(), PropensityError> {
    interrupt.check().map_err(|_| PropensityError::Interrupted)
}

fn table<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> std::borrow::Cow<'a, [f64]> {
    match array.as_slice() {
        Ok(slice) => slice.into(),
        Err(_) => array.as_array().iter().copied().collect(),
    }
}

fn reshaped<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> PyResult<Table<'_, T>> {
    PyArray1::from_vec(py, values).reshape([rows, columns])
}
