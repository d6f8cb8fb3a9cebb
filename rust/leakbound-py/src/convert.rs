//! Arrays in and out.

use std::ops::Deref;

use leakbound_core::Cut;
use leakbound_math::memory::listed;
use numpy::{
    Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray, PyReadonlyArray1,
    PyReadonlyArray2, PyUntypedArrayMethods, dtype, ndarray::Dimension,
};
use pyo3::prelude::*;

use crate::errors::out_of_memory;

/// A vector of numbers: borrowed where it is aligned and lies side by side, else a copy by NumPy.
pub(crate) struct Vector<'py, T: Element>(PyReadonlyArray1<'py, T>);

/// A table of numbers, row after row, as a [`Vector`] holds a row.
pub(crate) struct Table<'py, T: Element>(PyReadonlyArray2<'py, T>);

/// A vector of booleans, read as bytes.
///
/// NumPy takes every byte but 0 for true, such as the 255 of a mask of an image. A `bool` of Rust
/// with that byte is undefined behaviour, so that no array of booleans is ever borrowed as one.
pub(crate) struct Flags<'py>(Vector<'py, u8>);

impl<'a, 'py, T: Element + 'static> FromPyObject<'a, 'py> for Vector<'py, T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        readable(object).map(Self)
    }
}

impl<'a, 'py, T: Element + 'static> FromPyObject<'a, 'py> for Table<'py, T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        readable(object).map(Self)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Flags<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array = object.cast::<PyArray1<bool>>()?;
        let bytes = array.call_method1("view", (dtype::<u8>(object.py()),))?;
        bytes.extract().map(Self)
    }
}

/// The array itself, or a copy by NumPy where Rust could not read it in place.
fn readable<'py, T: Element + 'static, D: Dimension + 'static>(
    object: Borrowed<'_, 'py, PyAny>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    let array: PyReadonlyArray<'py, T, D> = object.extract()?;
    if array.as_slice().is_ok() {
        return Ok(array);
    }
    object.call_method1("copy", ("C",))?.extract()
}

impl<T: Element> Deref for Vector<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // Never empty-handed: `readable` saw to it.
        self.0.as_slice().unwrap_or_default()
    }
}

impl<T: Element> Table<'_, T> {
    /// The entries, row after row.
    pub(crate) fn entries(&self) -> &[T] {
        self.0.as_slice().unwrap_or_default()
    }

    pub(crate) fn rows(&self) -> usize {
        self.0.shape()[0]
    }

    pub(crate) fn columns(&self) -> usize {
        self.0.shape()[1]
    }
}

impl Flags<'_> {
    /// A byte for each, 0 where it is false.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// True wherever the byte is not 0.
    pub(crate) fn read(&self) -> PyResult<Vec<bool>> {
        let flags = self.0.iter().map(|&byte| byte != 0);
        listed(self.0.len(), flags).map_err(|lacking| out_of_memory(&lacking))
    }
}

/// A table of results.
pub(crate) fn reshaped<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    PyArray1::from_vec(py, values).reshape([rows, columns])
}

/// Two arrays: the guesses and the correct guesses of each cut.
pub(crate) type CutArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Numbers as an array.
pub(crate) fn column<T: Element>(
    py: Python<'_>,
    values: impl ExactSizeIterator<Item = T>,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    let list = listed(values.len(), values).map_err(|lacking| out_of_memory(&lacking))?;
    Ok(PyArray1::from_vec(py, list))
}

/// Cuts as arrays.
pub(crate) fn cut_arrays<'py>(py: Python<'py>, cuts: &[Cut]) -> PyResult<CutArrays<'py>> {
    let guesses = column(py, cuts.iter().map(|cut| i64::from(cut.guesses)))?;
    let correct = column(py, cuts.iter().map(|cut| i64::from(cut.correct)))?;
    Ok((guesses, correct))
}
