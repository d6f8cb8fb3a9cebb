"""What attacks are given: one number for each example, or for each model and example."""

import numpy as np

from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound._base.validation import check_ids, check_length, check_scores, numbers, vector
from leakbound.errors import LengthMismatchError, OptionError, ShapeError

__all__ = ["as_scores", "finite_table", "outside", "table"]


def as_scores(values: FloatArray, ids: ArrayInput | None, attack: str) -> Scores:
    """Return values with their ids and the name of the attack.

    Parameters
    ----------
    values : ndarray of float64, shape (m,)
        The scores.
    ids : array-like of shape (m,) or None
        A different number or string for each; None for 0, 1, …, m - 1.
    attack : str
        Its name.

    Returns
    -------
    Scores
        Copies of both.

    Raises
    ------
    NaNScoresError
        If a score is NaN.
    LengthMismatchError, DuplicateIdsError, ArrayTypeError, ShapeError
        If ids are not what they should be.
    """
    scores = check_scores(values, attack)
    labels = np.arange(values.size) if ids is None else vector(ids, "ids", kinds="biufSUOT")
    check_length(labels, values.size, "ids")
    check_ids(labels, np.zeros(values.size, dtype=np.bool_))
    return Scores(scores, labels, attack)


def table(values: ArrayInput, name: str, columns: int | None = None) -> FloatArray:
    """Read a table with one row for each model and one column for each example.

    Parameters
    ----------
    values : array-like, shape (models, examples)
        Numbers; one row may be given without its table.
    name : str
        What to call them in messages.
    columns : int, optional
        The number of examples there must be.

    Returns
    -------
    ndarray of float64, shape (models, examples)
        The numbers.

    Raises
    ------
    ArrayTypeError, OptionError
        If they are not real numbers, or one is NaN.
    ShapeError, LengthMismatchError
        If they are no such table.
    """
    array = np.atleast_2d(numbers(values, name).astype(np.float64, copy=False))
    if array.ndim != 2 or not array.size:
        message = f"{name} must have a row for each model and a column for each example, got shape "
        raise ShapeError(message + str(array.shape))
    if columns is not None and array.shape[1] != columns:
        message = (
            f"{name} has {array.shape[1]} columns and there are {columns} examples; both must "
            "describe the same examples in the same order, one row for each model"
        )
        raise LengthMismatchError(message)
    return array


def finite_table(values: ArrayInput, name: str, columns: int | None = None) -> FloatArray:
    """Read a table as `table` does, and check that all of it is finite.

    Parameters
    ----------
    values : array-like, shape (models, examples)
        Numbers.
    name : str
        What to call them in messages.
    columns : int, optional
        The number of examples there must be.

    Returns
    -------
    ndarray of float64, shape (models, examples)
        The numbers.

    Raises
    ------
    OptionError
        If one is infinite, and as for `table`.
    """
    array = table(values, name, columns)
    infinite = np.argwhere(np.isinf(array))
    if infinite.size:
        message = (
            f"{name} must be finite, got {array[tuple(infinite[0])]} in row {infinite[0][0]}, "
            f"column {infinite[0][1]}; compute it from logits, where it does not overflow"
        )
        raise OptionError(message)
    return array


def outside(trained_on: ArrayInput | None, shape: tuple[int, int]) -> BoolArray:
    """Read which models were not trained on which examples.

    Parameters
    ----------
    trained_on : array-like of bool, shape (models, examples), or None
        Which were; None if none was on any.
    shape : tuple of int
        Models and examples.

    Returns
    -------
    ndarray of bool, shape (models, examples)
        Which were not.

    Raises
    ------
    LengthMismatchError
        If the shape is another.
    OptionError
        If an entry is neither 0 nor 1, or every model was trained on some example.
    """
    if trained_on is None:
        return np.ones(shape, dtype=np.bool_)
    known = np.atleast_2d(numbers(trained_on, "trained_on", least=0, most=1, whole=True))
    if known.shape != shape:
        message = (
            f"trained_on has shape {known.shape} and the references {shape}; both must have a row "
            "for each model and a column for each example"
        )
        raise LengthMismatchError(message)
    without: BoolArray = known == 0
    covered = np.flatnonzero(~without.any(0))
    if covered.size:
        message = (
            f"every reference was trained on {covered.size} of the examples, the first in column "
            f"{covered[0]}, so that nothing says how it looks to others; train each reference on "
            "a random half"
        )
        raise OptionError(message)
    return without
