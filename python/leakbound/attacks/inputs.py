"""What attacks are given: one number for each example, or for each model and example."""

import numpy as np

from leakbound._base.checks import check_ids, check_length, check_scores, numbers, vector
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound.errors import LengthMismatchError, OptionError, ShapeError


def as_scores(values: FloatArray, ids: ArrayInput | None, attack: str) -> Scores:
    """Return values with their ids and the name of the attack."""
    scores = check_scores(values, attack)
    labels = np.arange(values.size) if ids is None else vector(ids, "ids", kinds="biufSUOT")
    check_length(labels, values.size, "ids")
    check_ids(labels, np.zeros(values.size, dtype=np.bool_))
    return Scores(scores, labels, attack)


def table(values: ArrayInput, name: str, columns: int | None = None) -> FloatArray:
    """Read a table with one row for each model and one column for each example."""
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
    """Read a table as `table` does, and check that all of it is finite."""
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
    """Read which models were not trained on which examples."""
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
