//! Rankings, paths and the bounds over their cuts.

use leakbound_core::{
    AuditError, CurvePoint, Cut, CutBound, Grid, KlDivergence, MeanMixture, Order, Scan, Ties,
    scan_curve, scan_offsets,
};
use leakbound_math::memory::room;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{CutArrays, Flags, Vector, column, cut_arrays};
use crate::enter::{at_once, enter, enter_for};
use crate::errors::{out_of_memory, to_python};

/// Membership in order of score, highest first.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct Ranking(pub(crate) leakbound_core::Ranking);

#[pymethods]
impl Ranking {
    #[new]
    fn new(py: Python<'_>, scores: Vector<'_, f64>, member: Flags<'_>) -> PyResult<Self> {
        let (scores, member) = (&*scores, member.read()?);
        enter_for(py, scores.len(), |interrupt| {
            leakbound_core::Ranking::new(scores, &member, interrupt)
        })
        .map(Self)
    }

    #[staticmethod]
    #[pyo3(signature = (member, block_end=None))]
    fn in_order(py: Python<'_>, member: Flags<'_>, block_end: Option<Flags<'_>>) -> PyResult<Self> {
        let member = member.read()?;
        let block_end = block_end.map(|ends| ends.read()).transpose()?;
        enter_for(py, member.len(), |_| {
            leakbound_core::Ranking::in_order(&member, block_end.as_deref())
        })
        .map(Self)
    }

    #[staticmethod]
    fn of_rows(
        py: Python<'_>,
        scores: Vector<'_, f64>,
        members: Vector<'_, u32>,
        others: Vector<'_, u32>,
    ) -> PyResult<Self> {
        let (scores, members, others) = (&*scores, &*members, &*others);
        enter_for(py, scores.len(), |interrupt| {
            leakbound_core::Ranking::of_rows(scores, members, others, interrupt)
        })
        .map(Self)
    }

    #[staticmethod]
    #[pyo3(signature = (examples, members, *, seed))]
    fn of_blocks(
        py: Python<'_>,
        examples: Vector<'_, i64>,
        members: Vector<'_, i64>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let (examples, members) = (&*examples, &*members);
        let ties = seed.map_or(Ties::Together, Ties::Shuffled);
        enter(py, |_| {
            leakbound_core::Ranking::of_blocks(examples, members, ties)
        })
        .map(Self)
    }

    #[getter]
    fn examples(&self) -> usize {
        self.0.examples()
    }

    #[getter]
    fn members(&self) -> usize {
        self.0.members()
    }

    #[getter]
    fn blocks(&self) -> usize {
        self.0.blocks()
    }

    #[getter]
    fn tied(&self, py: Python<'_>) -> PyResult<usize> {
        at_once(py, || self.0.tied())
    }

    #[getter]
    fn auc(&self, py: Python<'_>) -> PyResult<f64> {
        at_once(py, || self.0.auc())
    }

    fn path(&self, py: Python<'_>, order: &str) -> PyResult<Path> {
        let order = match order {
            "member" => Order::Member,
            "member_half" => Order::MemberHalf,
            "nonmember_half" => Order::NonMemberHalf,
            "interleaved" | "ends" => Order::Interleaved,
            other => return Err(PyValueError::new_err(format!("unknown order {other:?}"))),
        };
        enter_for(py, self.0.examples(), |_| self.0.path(order)).map(Path)
    }

    fn roc<'py>(&self, py: Python<'py>, points: usize) -> PyResult<CutArrays<'py>> {
        let cuts = enter_for(py, 0, |_| self.0.roc(points))?;
        cut_arrays(py, &cuts)
    }
}

/// Correct and incorrect guesses in visiting order.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct Path(pub(crate) leakbound_core::Path);

#[pymethods]
impl Path {
    #[staticmethod]
    fn from_successes(py: Python<'_>, successes: Flags<'_>) -> PyResult<Self> {
        let successes = successes.read()?;
        at_once(py, || leakbound_core::Path::from_successes(&successes)).map(Self)
    }

    #[staticmethod]
    fn correct_first(py: Python<'_>, guesses: u32, correct: u32) -> PyResult<Self> {
        enter(py, |_| {
            leakbound_core::Path::correct_first(guesses, correct)
        })
        .map(Self)
    }

    #[getter]
    fn guesses(&self) -> u32 {
        self.0.guesses()
    }

    #[getter]
    fn correct(&self) -> u32 {
        self.0.correct()
    }

    fn count(&self, py: Python<'_>, guesses: u32) -> PyResult<(u32, u32)> {
        let cut = at_once(py, || self.0.cut_at_or_after(guesses))?
            .map_err(|error| to_python(py, &error))?;
        Ok((cut.guesses, cut.correct))
    }

    fn prefix(&self, py: Python<'_>, guesses: u32) -> PyResult<Self> {
        at_once(py, || self.0.prefix(guesses)).map(Self)
    }

    fn sample<'py>(&self, py: Python<'py>, points: usize) -> PyResult<CutArrays<'py>> {
        let cuts = enter_for(py, 0, |_| self.0.sample(points))?;
        cut_arrays(py, &cuts)
    }
}

/// A lower bound on the probability of a correct guess, and the cut that gave it.
#[pyclass(frozen, get_all, name = "Bound", module = "leakbound._core")]
pub(crate) struct LowerBound {
    p: f64,
    logit: f64,
    cut: u32,
    successes: u32,
    statistic: f64,
}

impl From<CutBound> for LowerBound {
    fn from(bound: CutBound) -> Self {
        Self {
            p: bound.probability.p(),
            logit: bound.probability.logit(),
            cut: bound.cut.map_or(0, |cut| cut.guesses),
            successes: bound.cut.map_or(0, |cut| cut.correct),
            statistic: bound.statistic.p(),
        }
    }
}

/// A lower bound on ε where every guess has odds of its own, and the cut that gave it.
#[pyclass(frozen, get_all, module = "leakbound._core")]
pub(crate) struct OffsetBound {
    epsilon: f64,
    cut: u32,
    successes: u32,
    statistic: f64,
}

impl From<leakbound_core::OffsetBound> for OffsetBound {
    fn from(bound: leakbound_core::OffsetBound) -> Self {
        Self {
            epsilon: bound.epsilon,
            cut: bound.cut.map_or(0, |cut| cut.guesses),
            successes: bound.cut.map_or(0, |cut| cut.correct),
            statistic: bound.statistic,
        }
    }
}

/// A grid by name, or a list of numbers of guesses.
#[derive(FromPyObject)]
pub(crate) enum GridOption {
    Name(String),
    Listed(Vec<u32>),
}

impl GridOption {
    pub(crate) fn resolve(self, ratio: f64) -> PyResult<Grid> {
        match self {
            Self::Listed(positions) => Ok(Grid::Listed(positions)),
            Self::Name(name) => match name.as_str() {
                "all" => Ok(Grid::All),
                "auto" => Ok(Grid::Auto),
                "geometric" => Ok(Grid::Geometric { ratio }),
                other => Err(PyValueError::new_err(format!("unknown grid {other:?}"))),
            },
        }
    }
}

/// The ratio of grids that have none of their own.
const NO_RATIO: f64 = f64::NAN;

#[pyfunction]
#[pyo3(signature = (path, *, beta, kappa, min_guesses, grid, failures = 0.0, least = f64::NEG_INFINITY))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn kl_scan(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
    grid: GridOption,
    failures: f64,
    least: f64,
) -> PyResult<LowerBound> {
    let grid = grid.resolve(NO_RATIO)?;
    enter(py, |interrupt| {
        let scan = Scan {
            statistic: kl_statistic(beta, kappa)?,
            beta,
            grid,
            min_guesses,
            failures,
        };
        scan.bound_above(&path.0, least, interrupt)
    })
    .map(LowerBound::from)
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, kappa, min_guesses, grid, points, failures = 0.0))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn kl_curve<'py>(
    py: Python<'py>,
    path: &Path,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
    grid: GridOption,
    points: usize,
    failures: f64,
) -> PyResult<CurveArrays<'py>> {
    let grid = grid.resolve(NO_RATIO)?;
    let curve = enter(py, |interrupt| {
        let scan = Scan {
            statistic: kl_statistic(beta, kappa)?,
            beta,
            grid,
            min_guesses,
            failures,
        };
        scan_curve(&scan, &path.0, points, interrupt)
    })?;
    curve_arrays(py, &curve)
}

#[pyfunction]
#[pyo3(signature = (path, offsets, *, beta, kappa, min_guesses, floor = f64::NEG_INFINITY))]
pub(crate) fn kl_scan_offsets(
    py: Python<'_>,
    path: &Path,
    offsets: Vector<'_, f64>,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
    floor: f64,
) -> PyResult<OffsetBound> {
    let offsets = &*offsets;
    enter(py, |interrupt| {
        let statistic = kl_statistic(beta, kappa)?;
        scan_offsets(
            &path.0,
            offsets,
            &statistic,
            beta,
            min_guesses,
            floor,
            interrupt,
        )
    })
    .map(OffsetBound::from)
}

pub(crate) fn kl_statistic(beta: f64, kappa: Option<f64>) -> Result<KlDivergence, AuditError> {
    kappa.map_or_else(|| KlDivergence::for_level(beta), KlDivergence::new)
}

/// The best moment of several sequences of guesses, by the mean of their mixtures: its index, and
/// the logit of the bound there; `guesses` and `correct` hold a count for each sequence, one
/// moment after the other.
#[pyfunction]
#[pyo3(signature = (guesses, correct, *, sequences, beta))]
pub(crate) fn ville_bound_of_moments(
    py: Python<'_>,
    guesses: Vector<'_, i64>,
    correct: Vector<'_, i64>,
    sequences: usize,
    beta: f64,
) -> PyResult<Option<(usize, f64)>> {
    let (guesses, correct) = (&*guesses, &*correct);
    let mut cuts = room(guesses.len()).map_err(|lacking| out_of_memory(&lacking))?;
    for (&guesses, &correct) in guesses.iter().zip(correct) {
        cuts.push(Cut {
            guesses: u32::try_from(guesses)?,
            correct: u32::try_from(correct)?,
        });
    }
    let best = enter(py, |interrupt| {
        MeanMixture::new(sequences, beta)?.best(&cuts, interrupt)
    })?;
    Ok(best.map(|(index, limit)| (index, limit.logit())))
}

/// The guesses, the correct guesses and the logit of the bound at each cut.
pub(crate) type CurveArrays<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
);

pub(crate) fn curve_arrays<'py>(
    py: Python<'py>,
    curve: &[CurvePoint],
) -> PyResult<CurveArrays<'py>> {
    let guesses = column(py, curve.iter().map(|point| i64::from(point.cut.guesses)))?;
    let correct = column(py, curve.iter().map(|point| i64::from(point.cut.correct)))?;
    let logits = column(py, curve.iter().map(|point| point.logit))?;
    Ok((guesses, correct, logits))
}
