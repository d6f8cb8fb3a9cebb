//! Arrays in and out.

use std::borrow::Cow;

use leakbound_core::Cut;
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// The entries of an array: borrowed where they lie side by side, copied where they do not.
pub(crate) fn entries<'a, T: Element + Copy>(array: &'a PyReadonlyArray1<'_, T>) -> Cow<'a, [T]> {
    match array.as_slice() {
        Ok(slice) => Cow::Borrowed(slice),
        Err(_) => Cow::Owned(array.as_array().to_vec()),
    }
}

/// Two arrays: the guesses and the right guesses of each cut.
pub(crate) type CutArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Cuts as arrays.
pub(crate) fn cut_arrays<'py>(py: Python<'py>, cuts: &[Cut]) -> CutArrays<'py> {
    let column = |value: fn(&Cut) -> u32| {
        PyArray1::from_iter(py, cuts.iter().map(|cut| i64::from(value(cut))))
    };
    (column(|cut| cut.guesses), column(|cut| cut.correct))
}
