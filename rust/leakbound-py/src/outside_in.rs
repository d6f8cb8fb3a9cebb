//! The number of guesses chosen from the outside in, and joint bounds.

use leakbound_core::fdp::certificate::JointCertificate;
use leakbound_core::fdp::recursion;
use leakbound_core::{Allowance, AuditError, Form, JointTail, OutsideIn, Pilot, Roles};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::audits::Path;
use crate::convert::Vector;
use crate::enter::{enter, enter_for};
use crate::fdp::{CountOptions, Curve};

/// Levels, and the rule that stops at one of them.
#[pyclass(frozen, name = "OutsideIn", module = "leakbound._core")]
pub(crate) struct Plan(OutsideIn);

#[pymethods]
impl Plan {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (examples, level, *, k, roles, form, delta, share, levels))]
    fn new(
        py: Python<'_>,
        examples: u32,
        level: f64,
        k: u32,
        roles: &str,
        form: &str,
        delta: f64,
        share: f64,
        levels: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let form = match form {
            "pure" => Form::Pure,
            "approximate" => Form::Approximate { delta, share },
            "family" => Form::Family,
            "trials" => Form::Trials(enter(py, |_| Allowance::new(examples, delta, level))?),
            other => return Err(PyValueError::new_err(format!("unknown form {other:?}"))),
        };
        let roles = match roles {
            "both" => Roles::Both,
            "member" => Roles::Members,
            "either" => Roles::Either,
            other => return Err(PyValueError::new_err(format!("unknown roles {other:?}"))),
        };
        let levels = levels.as_deref();
        enter(py, |run| {
            OutsideIn::new(examples, level, k, roles, form, levels, run)
        })
        .map(Self)
    }

    #[getter]
    fn levels(&self) -> Vec<u32> {
        self.0.levels().to_vec()
    }

    #[getter]
    fn shares(&self) -> Vec<f64> {
        self.0.shares().to_vec()
    }

    fn worth(&self, index: usize, correct: f64) -> PyResult<f64> {
        let missing = || PyIndexError::new_err(format!("there is no level {index}"));
        self.0.worth(index, correct).ok_or_else(missing)
    }

    fn choose(&self, py: Python<'_>, path: &Path) -> PyResult<usize> {
        enter_for(py, path.0.guesses() as usize, |_| self.0.choose(&path.0))
    }

    fn choose_ends(&self, py: Python<'_>, top: &Path, bottom: &Path) -> PyResult<(usize, u32)> {
        enter_for(py, top.0.guesses() as usize, |_| {
            self.0.choose_ends(&top.0, &bottom.0)
        })
    }
}

/// Blocks of ranks, of which a quarter of the labels is seen.
#[pyclass(frozen, name = "Pilot", module = "leakbound._core")]
pub(crate) struct Sample(Pilot);

#[pymethods]
impl Sample {
    #[new]
    fn new(py: Python<'_>, ends: Vec<PyRef<'_, Path>>) -> PyResult<Self> {
        let ends: Vec<_> = ends.iter().map(|end| end.0.clone()).collect();
        let guesses = ends.iter().map(|end| end.guesses() as usize).sum();
        enter_for(py, guesses, |_| Ok(Self(Pilot::new(ends))))
    }

    #[staticmethod]
    fn weighted(py: Python<'_>, path: &Path, weights: Vector<'_, f64>) -> PyResult<Self> {
        let weights = &*weights;
        let path = path.0.clone();
        enter_for(py, weights.len(), |_| Pilot::weighted(path, weights)).map(Self)
    }

    #[staticmethod]
    fn seen_of(guesses: u32) -> Vec<(u32, u32)> {
        Pilot::seen_of(guesses)
    }

    #[getter]
    fn numbers(&self) -> Vec<u32> {
        self.0.numbers()
    }

    fn accuracy(&self, guesses: Vec<u32>, caution: f64) -> Vec<f64> {
        let each = guesses.into_iter();
        each.map(|number| self.0.accuracy(number, caution))
            .collect()
    }

    fn tested(&self, guesses: u32) -> Vec<(usize, u32, u32)> {
        self.0.tested(guesses)
    }

    fn correct(&self, guesses: u32) -> u32 {
        self.0.correct(guesses)
    }
}

/// Levels for each number of trials that may fail.
#[pyclass(frozen, name = "Allowance", module = "leakbound._core")]
pub(crate) struct Allowed(Allowance);

#[pymethods]
impl Allowed {
    #[new]
    fn new(py: Python<'_>, trials: u32, delta: f64, level: f64) -> PyResult<Self> {
        enter(py, |_| Allowance::new(trials, delta, level)).map(Self)
    }

    #[getter]
    fn kappas(&self) -> Vec<(u64, f64)> {
        self.0.kappas().to_vec()
    }

    fn limit(&self, py: Python<'_>, guesses: u64, correct: u64) -> PyResult<f64> {
        let limit = enter(py, |_| self.0.limit(guesses, correct))?;
        Ok(limit.unwrap_or(f64::NEG_INFINITY))
    }
}

/// A proof for several numbers of guesses together.
#[pyclass(frozen, name = "JointCertificate", module = "leakbound._core")]
pub(crate) struct Joint(JointCertificate);

#[pymethods]
impl Joint {
    #[new]
    fn new(py: Python<'_>, levels: Vec<CountOptions>, curve: &Curve) -> PyResult<Self> {
        let curve = curve.0.as_ref();
        enter(py, |interrupt| {
            let counts = levels.iter().map(CountOptions::counts);
            let counts = counts.collect::<Result<Vec<_>, AuditError>>()?;
            JointCertificate::new(&counts, curve, interrupt)
        })
        .map(Self)
    }

    fn made_at(&self, py: Python<'_>, curve: &Curve) -> PyResult<Self> {
        let curve = curve.0.as_ref();
        enter(py, |interrupt| self.0.made_at(curve, interrupt)).map(Self)
    }

    fn bound_for(&self, py: Python<'_>, curve: &Curve) -> PyResult<f64> {
        let curve = curve.0.as_ref();
        enter(py, |_| Ok(self.0.bound_for(curve)))
    }
}

#[pyfunction]
pub(crate) fn fdp_least_rejected(
    py: Python<'_>,
    levels: Vec<CountOptions>,
    curve: &Curve,
    tau: Vec<f64>,
) -> PyResult<Vec<u64>> {
    let curve = curve.0.as_ref();
    enter(py, |interrupt| {
        let least = levels.iter().zip(tau).map(|(counts, tau)| {
            recursion::least_rejected(&counts.counts()?, curve, tau, interrupt)
        });
        least.collect()
    })
}

#[pyfunction]
pub(crate) fn approx_joint_epsilon(
    py: Python<'_>,
    counts: CountOptions,
    delta: f64,
    level: f64,
    share: f64,
) -> PyResult<f64> {
    enter(py, |_| {
        let limit = JointTail::new(delta, level, share)?.limit(&counts.counts()?);
        Ok(limit.unwrap_or(f64::NEG_INFINITY))
    })
}

/// The largest limit of several counts, at each of some shares of the level for failures.
#[pyfunction]
pub(crate) fn approx_joint_largest(
    py: Python<'_>,
    counts: Vec<CountOptions>,
    delta: f64,
    level: f64,
    shares: Vec<f64>,
) -> PyResult<Vec<f64>> {
    enter(py, |_| {
        let counts: Vec<_> = counts
            .iter()
            .map(CountOptions::counts)
            .collect::<Result<_, _>>()?;
        shares
            .iter()
            .map(|share| {
                let limit = JointTail::new(delta, level, *share)?.largest_limit(&counts);
                Ok(limit.unwrap_or(f64::NEG_INFINITY))
            })
            .collect()
    })
}
