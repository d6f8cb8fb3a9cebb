//! Rankings of independent trials, and their worst law.

use leakbound_core::rankings::{self, Reached};
use leakbound_math::hull::lower_hull;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::convert::{Vector, reshaped};
use crate::enter::{enter, enter_for};

type Column<'py> = Bound<'py, PyArray1<f64>>;

/// Corners of the largest convex function below points.
#[pyfunction]
pub(crate) fn convex_hull<'py>(
    py: Python<'py>,
    x: Vector<'_, f64>,
    y: Vector<'_, f64>,
) -> PyResult<(Column<'py>, Column<'py>)> {
    let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let corners = enter_for(py, points.len(), |_| Ok(lower_hull(points)))?;
    let column = |part: fn(&(f64, f64)) -> f64| PyArray1::from_iter(py, corners.iter().map(part));
    Ok((column(|corner| corner.0), column(|corner| corner.1)))
}

/// How many members the share with the largest likelihood ratios holds.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct PooledLaw(rankings::PooledLaw);

#[pymethods]
impl PooledLaw {
    #[new]
    fn new(py: Python<'_>, level: Vector<'_, f64>, missed: Vector<'_, f64>) -> PyResult<Self> {
        let (level, missed) = (&*level, &*missed);
        let law = enter_for(py, level.len(), |_| rankings::PooledLaw::new(level, missed))?;
        Ok(Self(law))
    }

    #[getter]
    fn share<'py>(&self, py: Python<'py>) -> Column<'py> {
        PyArray1::from_slice(py, self.0.share())
    }

    #[getter]
    fn mass<'py>(&self, py: Python<'py>) -> Column<'py> {
        PyArray1::from_slice(py, self.0.mass())
    }
}

/// A ranking of trials between fixed ranks.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct Cells(rankings::Cells);

#[pymethods]
impl Cells {
    #[new]
    fn new(py: Python<'_>, trials: u64) -> PyResult<Self> {
        enter_for(py, 1, |_| rankings::Cells::new(trials)).map(Self)
    }

    #[getter]
    fn ends(&self) -> Vec<u64> {
        self.0.ends().to_vec()
    }

    #[getter]
    fn edges(&self) -> Vec<u64> {
        self.0.edges().to_vec()
    }

    /// Whether all members are above all others, as far as cells tell.
    fn perfect(&self, members: Vector<'_, u64>) -> bool {
        self.0.perfect(&members)
    }

    /// The statistic whose reference is a law.
    fn reference(&self, py: Python<'_>, law: &PooledLaw) -> PyResult<Reference> {
        let (cells, law) = (self.0.clone(), &law.0);
        let reference = enter_for(py, 1, |_| Ok(rankings::Reference::new(cells, law)))?;
        Ok(Reference(reference))
    }

    /// Members in the cells of rankings drawn from a law, a row for each ranking.
    fn draw<'py>(
        &self,
        py: Python<'py>,
        law: &PooledLaw,
        number: u64,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let (cells, law) = (&self.0, &law.0);
        let rows = enter(py, |run| rankings::draw(cells, law, number, seed, run))?;
        reshaped(py, rows, number as usize, cells.sizes().len())
    }

    /// How many rankings drawn from a law reach as far as a statistic, its threshold beside it, or
    /// are perfect: `most` + 1 if more than `most` do.
    #[pyo3(signature = (law, reached, *, number, most, seed))]
    fn reaching(
        &self,
        py: Python<'_>,
        law: &PooledLaw,
        reached: Vec<(Py<Reference>, f64)>,
        number: u64,
        most: u64,
        seed: u64,
    ) -> PyResult<u64> {
        let (cells, law) = (&self.0, &law.0);
        let reached: Vec<Reached<'_>> = reached
            .iter()
            .map(|(reference, threshold)| Reached {
                reference: &reference.get().0,
                threshold: *threshold,
            })
            .collect();
        enter(py, |run| {
            rankings::reaching(cells, law, &reached, number, most, seed, run)
        })
    }
}

/// The statistic of a reference.
#[pyclass(frozen, module = "leakbound._core")]
pub(crate) struct Reference(rankings::Reference);

#[pymethods]
impl Reference {
    /// Logarithms of the ratios: of the shift, and of excesses at the top, at the bottom and at both.
    fn ratios<'py>(&self, py: Python<'py>, members: Vector<'_, u64>) -> PyResult<Column<'py>> {
        let members = &*members;
        let ratios = enter_for(py, members.len(), |_| self.0.ratios(members))?;
        Ok(PyArray1::from_vec(py, ratios))
    }
}
