//! f-DP: trade-off functions, and tests of the number of correct guesses.

use leakbound_math::memory::room;
use std::sync::Arc;

use leakbound_core::fdp::tradeoff::{Approx, Gaussian, Laplace, Profile, Tabulated};
use leakbound_core::fdp::{Counts, TradeOff, certificate, recursion};
use leakbound_core::{AuditError, Interrupt};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::Vector;
use crate::enter::enter;

type Column<'py> = Bound<'py, PyArray1<f64>>;

/// A trade-off function of any family.
#[pyclass(frozen, name = "TradeOff", module = "leakbound._core")]
pub(crate) struct Curve(pub(crate) Arc<dyn TradeOff>);

impl Curve {
    fn new<T: TradeOff + 'static>(
        py: Python<'_>,
        make: impl FnOnce() -> Result<T, AuditError> + Send,
    ) -> PyResult<Self> {
        Ok(Self(Arc::new(enter(py, |_| make())?)))
    }

    fn map<'py>(
        &self,
        py: Python<'py>,
        values: &Vector<'_, f64>,
        function: impl Fn(&dyn TradeOff, f64) -> f64 + Send + Sync,
    ) -> PyResult<Column<'py>> {
        let values: &[f64] = values;
        let mapped = enter(py, |interrupt| {
            let mut mapped = room(values.len())?;
            for (index, &value) in values.iter().enumerate() {
                if index % 4096 == 0 {
                    interrupt.check()?;
                }
                mapped.push(function(self.0.as_ref(), value));
            }
            Ok(mapped)
        })?;
        Ok(PyArray1::from_vec(py, mapped))
    }
}

#[pymethods]
impl Curve {
    #[staticmethod]
    fn gaussian(py: Python<'_>, mu: f64, delta: f64) -> PyResult<Self> {
        Self::new(py, || Gaussian::new(mu, delta))
    }

    #[staticmethod]
    fn laplace(py: Python<'_>, epsilon: f64) -> PyResult<Self> {
        Self::new(py, || Laplace::new(epsilon))
    }

    #[staticmethod]
    fn approx(py: Python<'_>, epsilon: f64, delta: f64) -> PyResult<Self> {
        Self::new(py, || Approx::new(epsilon, delta))
    }

    #[staticmethod]
    fn tabulated(py: Python<'_>, alpha: Vector<'_, f64>, f: Vector<'_, f64>) -> PyResult<Self> {
        let (alpha, f) = (&*alpha, &*f);
        Self::new(py, || Tabulated::new(alpha, f))
    }

    #[staticmethod]
    fn profile(py: Python<'_>, epsilon: Vector<'_, f64>, delta: Vector<'_, f64>) -> PyResult<Self> {
        let (epsilon, delta) = (&*epsilon, &*delta);
        Self::new(py, || Profile::new(epsilon, delta))
    }

    fn f<'py>(&self, py: Python<'py>, alpha: Vector<'_, f64>) -> PyResult<Column<'py>> {
        self.map(py, &alpha, |curve, alpha| curve.f(alpha))
    }

    fn inverse<'py>(&self, py: Python<'py>, x: Vector<'_, f64>) -> PyResult<Column<'py>> {
        self.map(py, &x, |curve, x| curve.inverse(x))
    }

    fn delta<'py>(&self, py: Python<'py>, epsilon: Vector<'_, f64>) -> PyResult<Column<'py>> {
        self.map(py, &epsilon, |curve, epsilon| curve.delta(epsilon))
    }

    fn epsilon<'py>(&self, py: Python<'py>, delta: Vector<'_, f64>) -> PyResult<Column<'py>> {
        self.map(py, &delta, |curve, delta| curve.epsilon(delta))
    }
}

/// What an audit observed, as a call gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CountOptions {
    correct: u64,
    guesses: u64,
    m: f64,
    k: u32,
    one_sided: bool,
}

impl CountOptions {
    pub(crate) fn counts(&self) -> Result<Counts, AuditError> {
        Counts::new(self.m, self.guesses, self.correct, self.k, self.one_sided)
    }
}

/// Whether `test` asks for the certificate beside the recursion.
fn is_tight(test: &str) -> PyResult<bool> {
    match test {
        "tight" => Ok(true),
        "recursion" => Ok(false),
        other => Err(PyValueError::new_err(format!("unknown test {other:?}"))),
    }
}

#[pyfunction]
pub(crate) fn fdp_rejects(
    py: Python<'_>,
    counts: CountOptions,
    curve: &Curve,
    tau: f64,
    test: &str,
) -> PyResult<bool> {
    let tight = is_tight(test)?;
    let curve = curve.0.as_ref();
    enter(py, |interrupt| {
        let counts = counts.counts()?;
        if tight {
            return certificate::rejects(&counts, curve, tau, interrupt);
        }
        Ok(recursion::decide(&counts, curve, tau, interrupt)?.rejected())
    })
}

#[pyfunction]
pub(crate) fn fdp_p_value(
    py: Python<'_>,
    counts: CountOptions,
    curve: &Curve,
    test: &str,
) -> PyResult<f64> {
    let tight = is_tight(test)?;
    let curve = curve.0.as_ref();
    enter(py, |interrupt| {
        let counts = counts.counts()?;
        if tight {
            certificate::p_value(&counts, curve, interrupt)
        } else {
            recursion::p_value(&counts, curve, interrupt)
        }
    })
}

#[pyfunction]
pub(crate) fn fdp_critical_mu(
    py: Python<'_>,
    counts: CountOptions,
    delta: f64,
    tau: f64,
    test: &str,
) -> PyResult<Option<f64>> {
    critical(py, &counts, tau, test, |mu| Gaussian::new(mu, delta))
}

#[pyfunction]
pub(crate) fn fdp_critical_laplace(
    py: Python<'_>,
    counts: CountOptions,
    tau: f64,
    test: &str,
) -> PyResult<Option<f64>> {
    critical(py, &counts, tau, test, Laplace::new)
}

fn critical<T: TradeOff>(
    py: Python<'_>,
    counts: &CountOptions,
    tau: f64,
    test: &str,
    family: impl Fn(f64) -> Result<T, AuditError> + Send,
) -> PyResult<Option<f64>> {
    let tight = is_tight(test)?;
    enter(py, |interrupt: &Interrupt| {
        let counts = counts.counts()?;
        if tight {
            certificate::critical(&counts, family, tau, interrupt)
        } else {
            recursion::critical(&counts, family, tau, interrupt)
        }
    })
}
