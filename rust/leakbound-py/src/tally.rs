//! Scores counted by key, and hashes of ids.

use leakbound_core::{Interrupt, Score, hashed};
use leakbound_math::memory::listed;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::convert::{Flags, Vector, column};
use crate::enter::{at_once, enter};
use crate::errors::to_python;

/// Rows that are counted in a few milliseconds.
const AT_ONCE: usize = 1 << 20;

/// Scores in one of the precisions that are read in place.
#[derive(FromPyObject)]
pub(crate) enum Scores<'py> {
    Double(Vector<'py, f64>),
    Single(Vector<'py, f32>),
}

type Column<'py> = Bound<'py, PyArray1<i64>>;

/// Counts of keys, to which rows are added.
#[pyclass(module = "leakbound._core")]
pub(crate) struct KeyCounts(leakbound_core::KeyCounts);

#[pymethods]
impl KeyCounts {
    #[new]
    fn new(bits: u32) -> Self {
        Self(leakbound_core::KeyCounts::new(bits))
    }

    /// Count rows; the first row that is NaN, if there is one.
    fn add(
        &mut self,
        py: Python<'_>,
        scores: Scores<'_>,
        member: Flags<'_>,
    ) -> PyResult<Option<usize>> {
        match &scores {
            Scores::Double(scores) => self.added::<f64>(py, scores, member.bytes()),
            Scores::Single(scores) => self.added::<f32>(py, scores, member.bytes()),
        }
    }

    /// Keys that increase, examples of each, and members among them.
    fn counts<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Column<'py>, Column<'py>, Column<'py>)> {
        let counts = enter(py, |_| {
            let counts = self.0.counts()?;
            Ok(listed(counts.len(), counts.iter().copied())?)
        })?;
        Ok((
            column(py, counts.iter().map(|count| i64::from(count.0)))?,
            column(py, counts.iter().map(|count| count.1.cast_signed()))?,
            column(py, counts.iter().map(|count| count.2.cast_signed()))?,
        ))
    }
}

impl KeyCounts {
    /// Count rows, few of them in place: where they are, they are in the cache.
    fn added<S: Score + Sync>(
        &mut self,
        py: Python<'_>,
        scores: &[S],
        member: &[u8],
    ) -> PyResult<Option<usize>> {
        let counts = &mut self.0;
        if scores.len() > AT_ONCE {
            return enter(py, |interrupt| counts.add(scores, member, interrupt));
        }
        let go_on = Interrupt::default();
        at_once(py, || counts.add(scores, member, &go_on))?.map_err(|error| to_python(py, &error))
    }
}

/// Ids that are whole numbers, or text.
#[derive(FromPyObject)]
pub(crate) enum Ids<'py> {
    Numbers(Vector<'py, i64>),
    Texts(Vec<PyBackedStr>),
}

/// The first 8 bytes of the MD5 digest of `prefix` and each id, as words.
#[pyfunction]
pub(crate) fn hashed_ids<'py>(
    py: Python<'py>,
    prefix: &str,
    ids: Ids<'_>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let words = match &ids {
        Ids::Numbers(numbers) => {
            let numbers: &[i64] = numbers;
            enter(py, |interrupt| hashed(prefix, numbers, interrupt))?
        }
        Ids::Texts(texts) => {
            let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
            enter(py, |interrupt| hashed(prefix, &texts, interrupt))?
        }
    };
    Ok(PyArray1::from_vec(py, words))
}
