//! Rankings, paths and the bounds over their cuts.

use leakbound_core::{
    AuditError, CurvePoint, Cut, CutBound, CutStatistic, EqualLevel, Grid, Hoeffding, Interrupt,
    KlDivergence, MeanMixture, Order, Ties, VilleMixture, best_cut, pointwise_curve, scan,
    scan_curve, scan_offsets, scan_with_failures,
};
use leakbound_math::Probability;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{CutArrays, Flags, Vector, cut_arrays};
use crate::enter::{at_once, enter};
use crate::errors::{math_to_python, to_python};

/// Membership in order of score, highest first.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct Ranking(pub(crate) leakbound_core::Ranking);

#[pymethods]
impl Ranking {
    #[new]
    fn new(py: Python<'_>, scores: Vector<'_, f64>, member: Flags<'_>) -> PyResult<Self> {
        let (scores, member) = (&*scores, member.read());
        enter(py, |interrupt| {
            leakbound_core::Ranking::new_until(scores, &member, interrupt)
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
            "interleaved" => Order::Interleaved,
            other => return Err(PyValueError::new_err(format!("unknown order {other:?}"))),
        };
        enter(py, |_| self.0.path(order)).map(Path)
    }

    fn roc<'py>(&self, py: Python<'py>, points: usize) -> PyResult<CutArrays<'py>> {
        let cuts = at_once(py, || self.0.roc(points))?;
        Ok(cut_arrays(py, &cuts))
    }
}

/// Correct and incorrect guesses in visiting order.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct Path(pub(crate) leakbound_core::Path);

#[pymethods]
impl Path {
    #[staticmethod]
    fn from_successes(py: Python<'_>, successes: Flags<'_>) -> PyResult<Self> {
        let successes = successes.read();
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
        let cuts = at_once(py, || self.0.sample(points))?;
        Ok(cut_arrays(py, &cuts))
    }
}

/// Examples and members of a random part of counted examples, block by block.
#[pyfunction]
#[pyo3(signature = (examples, members, *, size, seed))]
pub(crate) fn draw_part<'py>(
    py: Python<'py>,
    examples: Vector<'_, i64>,
    members: Vector<'_, i64>,
    size: u32,
    seed: u64,
) -> PyResult<CutArrays<'py>> {
    let (examples, members) = (&*examples, &*members);
    let (examples, members) = enter(py, |_| {
        leakbound_core::draw_part(examples, members, size, seed)
    })?;
    Ok((
        PyArray1::from_vec(py, examples),
        PyArray1::from_vec(py, members),
    ))
}

/// A lower bound on the probability of a correct guess, and the cut that gave it.
#[pyclass(frozen, name = "Bound", module = "leakbound._core")]
pub(crate) struct LowerBound(pub(crate) CutBound);

#[pymethods]
impl LowerBound {
    #[getter]
    fn p(&self) -> f64 {
        self.0.probability.p()
    }

    #[getter]
    fn logit(&self) -> f64 {
        self.0.probability.logit()
    }

    #[getter]
    fn cut(&self) -> u32 {
        self.0.cut.map_or(0, |cut| cut.guesses)
    }

    #[getter]
    fn successes(&self) -> u32 {
        self.0.cut.map_or(0, |cut| cut.correct)
    }

    #[getter]
    fn statistic(&self) -> f64 {
        self.0.statistic.p()
    }
}

/// A lower bound on ε where every guess has odds of its own, and the cut that gave it.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct OffsetBound(leakbound_core::OffsetBound);

#[pymethods]
impl OffsetBound {
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon
    }

    #[getter]
    fn cut(&self) -> u32 {
        self.0.cut.map_or(0, |cut| cut.guesses)
    }

    #[getter]
    fn successes(&self) -> u32 {
        self.0.cut.map_or(0, |cut| cut.correct)
    }

    #[getter]
    fn statistic(&self) -> f64 {
        self.0.statistic
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
#[pyo3(signature = (path, *, beta, kappa, min_guesses, grid, failures = 0.0))]
pub(crate) fn kl_scan(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
    grid: GridOption,
    failures: f64,
) -> PyResult<LowerBound> {
    let grid = grid.resolve(NO_RATIO)?;
    enter(py, |interrupt| {
        scan_with_failures(
            &path.0,
            &kl_statistic(beta, kappa)?,
            beta,
            &grid,
            min_guesses,
            failures,
            interrupt,
        )
    })
    .map(LowerBound)
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
        let statistic = kl_statistic(beta, kappa)?;
        scan_curve(
            &path.0,
            &statistic,
            beta,
            &grid,
            min_guesses,
            failures,
            points,
            interrupt,
        )
    })?;
    Ok(curve_arrays(py, &curve))
}

#[pyfunction]
#[pyo3(signature = (path, offsets, *, beta, kappa, min_guesses))]
pub(crate) fn kl_scan_offsets(
    py: Python<'_>,
    path: &Path,
    offsets: Vector<'_, f64>,
    beta: f64,
    kappa: Option<f64>,
    min_guesses: u32,
) -> PyResult<OffsetBound> {
    let offsets = &*offsets;
    enter(py, |interrupt| {
        let statistic = kl_statistic(beta, kappa)?;
        scan_offsets(&path.0, offsets, &statistic, beta, min_guesses, interrupt)
    })
    .map(OffsetBound)
}

pub(crate) fn kl_statistic(beta: f64, kappa: Option<f64>) -> Result<KlDivergence, AuditError> {
    kappa.map_or_else(|| KlDivergence::for_level(beta), KlDivergence::new)
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, alpha0, min_guesses, grid))]
pub(crate) fn equal_level_scan(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    alpha0: f64,
    min_guesses: u32,
    grid: GridOption,
) -> PyResult<LowerBound> {
    let grid = grid.resolve(NO_RATIO)?;
    enter(py, |interrupt| {
        scan(
            &path.0,
            &EqualLevel::new(alpha0)?,
            beta,
            &grid,
            min_guesses,
            interrupt,
        )
    })
    .map(LowerBound)
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, alpha0, min_guesses, grid, points))]
pub(crate) fn equal_level_curve<'py>(
    py: Python<'py>,
    path: &Path,
    beta: f64,
    alpha0: f64,
    min_guesses: u32,
    grid: GridOption,
    points: usize,
) -> PyResult<CurveArrays<'py>> {
    let grid = grid.resolve(NO_RATIO)?;
    let curve = enter(py, |interrupt| {
        let statistic = EqualLevel::new(alpha0)?;
        scan_curve(
            &path.0,
            &statistic,
            beta,
            &grid,
            min_guesses,
            0.0,
            points,
            interrupt,
        )
    })?;
    Ok(curve_arrays(py, &curve))
}

/// What to do with the cuts of a path, given a pointwise statistic.
trait OverCuts {
    type Output;
    fn run(
        self,
        path: &leakbound_core::Path,
        statistic: &impl CutStatistic,
        grid: &Grid,
        interrupt: &Interrupt,
    ) -> Result<Self::Output, AuditError>;
}

struct Best;

impl OverCuts for Best {
    type Output = CutBound;
    fn run(
        self,
        path: &leakbound_core::Path,
        statistic: &impl CutStatistic,
        grid: &Grid,
        interrupt: &Interrupt,
    ) -> Result<CutBound, AuditError> {
        best_cut(&path.cuts(grid, 1)?, statistic, interrupt)
    }
}

struct Sampled {
    points: usize,
}

impl OverCuts for Sampled {
    type Output = Vec<CurvePoint>;
    fn run(
        self,
        path: &leakbound_core::Path,
        statistic: &impl CutStatistic,
        grid: &Grid,
        interrupt: &Interrupt,
    ) -> Result<Vec<CurvePoint>, AuditError> {
        pointwise_curve(path, statistic, grid, self.points, interrupt)
    }
}

fn over_union<T: OverCuts<Output: Send> + Send>(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    grid: &Grid,
    tail: &str,
    task: T,
) -> PyResult<T::Output> {
    let is_exact = match tail {
        "exact" => true,
        "hoeffding" => false,
        other => return Err(PyValueError::new_err(format!("unknown tail {other:?}"))),
    };
    enter(py, |interrupt| {
        let level = beta / grid.size(path.0.guesses())? as f64;
        if is_exact {
            task.run(&path.0, &EqualLevel::new(level)?, grid, interrupt)
        } else {
            task.run(&path.0, &Hoeffding::new(level)?, grid, interrupt)
        }
    })
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, grid, ratio, tail))]
pub(crate) fn union_bound(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    grid: GridOption,
    ratio: f64,
    tail: &str,
) -> PyResult<LowerBound> {
    over_union(py, path, beta, &grid.resolve(ratio)?, tail, Best).map(LowerBound)
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, grid, ratio, tail, points))]
pub(crate) fn union_curve<'py>(
    py: Python<'py>,
    path: &Path,
    beta: f64,
    grid: GridOption,
    ratio: f64,
    tail: &str,
    points: usize,
) -> PyResult<CurveArrays<'py>> {
    let curve = over_union(
        py,
        path,
        beta,
        &grid.resolve(ratio)?,
        tail,
        Sampled { points },
    )?;
    Ok(curve_arrays(py, &curve))
}

fn at_every_cut<T: OverCuts<Output: Send> + Send>(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    statistic: &str,
    task: T,
) -> PyResult<T::Output> {
    let is_mixture = match statistic {
        "ville" => true,
        "clopper-pearson" => false,
        other => {
            return Err(PyValueError::new_err(format!(
                "unknown statistic {other:?}"
            )));
        }
    };
    enter(py, |interrupt| {
        if is_mixture {
            task.run(&path.0, &VilleMixture::new(beta)?, &Grid::All, interrupt)
        } else {
            task.run(&path.0, &EqualLevel::new(beta)?, &Grid::All, interrupt)
        }
    })
}

#[pyfunction]
#[pyo3(signature = (path, *, beta, statistic))]
pub(crate) fn pointwise_bound(
    py: Python<'_>,
    path: &Path,
    beta: f64,
    statistic: &str,
) -> PyResult<LowerBound> {
    at_every_cut(py, path, beta, statistic, Best).map(LowerBound)
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
    let cuts = guesses
        .iter()
        .zip(correct.iter())
        .map(|(&guesses, &correct)| {
            Ok(Cut {
                guesses: u32::try_from(guesses)?,
                correct: u32::try_from(correct)?,
            })
        })
        .collect::<Result<Vec<_>, std::num::TryFromIntError>>()?;
    let best = enter(py, |interrupt| {
        MeanMixture::new(sequences, beta)?.best(&cuts, interrupt)
    })?;
    Ok(best.map(|(index, limit)| (index, limit.logit())))
}

#[pyfunction(name = "pointwise_curve")]
#[pyo3(signature = (path, *, beta, statistic, points))]
pub(crate) fn curve_at_level<'py>(
    py: Python<'py>,
    path: &Path,
    beta: f64,
    statistic: &str,
    points: usize,
) -> PyResult<CurveArrays<'py>> {
    let curve = at_every_cut(py, path, beta, statistic, Sampled { points })?;
    Ok(curve_arrays(py, &curve))
}

/// The guesses, the correct guesses and the logit of the bound at each cut.
pub(crate) type CurveArrays<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
);

pub(crate) fn curve_arrays<'py>(py: Python<'py>, curve: &[CurvePoint]) -> CurveArrays<'py> {
    let cuts: Vec<_> = curve.iter().map(|point| point.cut).collect();
    let (guesses, correct) = cut_arrays(py, &cuts);
    (
        guesses,
        correct,
        PyArray1::from_iter(py, curve.iter().map(|point| point.logit)),
    )
}

#[pyfunction]
pub(crate) fn crossing_probability(
    py: Python<'_>,
    boundary: Vector<'_, u32>,
    p: Vector<'_, f64>,
) -> PyResult<f64> {
    let boundary = &*boundary;
    let p = p
        .iter()
        .map(|&p| Probability::new(p))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| math_to_python(py, &error))?;
    enter(py, |interrupt| {
        leakbound_core::crossing_probability(boundary, &p, interrupt)
    })
}
