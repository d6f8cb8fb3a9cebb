"""Classes of examples: one column of labels, from whatever holds it."""

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import shown
from leakbound._base.reading import array_of, columns_of, refuse_masked
from leakbound._base.types import AnyArray, Data, IntArray
from leakbound.errors import InputError, InputTypeError

# Codes of the dtypes of labels: booleans, numbers, text, objects and dates.
_LABELS = "biufSUTOM"
# Codes of the dtypes of whatever may be known of an example: also complex numbers and durations.
_READ = _LABELS + "cm"
# Labels of an example at most: more are a picture or a text.
_WIDEST = 1000
_CODES = "numpy.unique(labels, return_inverse=True)[1]"


def labels_of(values: Data, name: str) -> AnyArray:
    """Read one label for each example, none missing: a flat array, a column or a list of rows.

    Dates are text then, whatever their unit was.
    """
    array = targets_of(values, name=name)
    if array.ndim != 1:
        hint = ""
        if array.ndim == 2:
            hint = "; of one-hot rows pass their argmax(1)"
        raise InputError(
            f"{name} must be one class for each example, got shape {array.shape}: pass one "
            f"column{hint}"
        )
    if array.dtype.kind not in _LABELS:
        raise InputTypeError(
            f"{name} must hold classes, as numbers or text, got dtype {array.dtype}: pass codes, "
            f"{_CODES}"
        )
    missing = missing_of(array, name=name)
    if missing.any():
        raise InputError(
            f"{name} is missing at index {int(missing.argmax())} ({int(missing.sum())} such rows): "
            "drop these examples, or give them a class of their own before training"
        )
    if array.dtype.kind == "M":
        return np.datetime_as_string(array, unit="ns")
    return array


def targets_of(values: Data, name: str) -> AnyArray:
    """Read what is known of each example, of whatever type: flat, if it is one column."""
    refuse_masked(values, name=name)
    dense = values
    if hasattr(values, "tocsr"):
        dense = values.toarray()
    # The column of a frame has a type of its own, where the frame's rows have one for all.
    columns = columns_of(dense)
    column = dense
    if len(columns) == 1:
        column = columns[0]
    array = array_of(column, name=name, exact=True)
    if array.dtype.kind not in _READ:
        raise InputTypeError(f"{name} must hold numbers or text, got dtype {array.dtype}")
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    return array


def positions_of(labels: AnyArray, classes: AnyArray) -> IntArray:
    """Return the position of each label among some classes, -1 for those that are not there.

    Integers are compared exactly, whatever their types; a number is no text.
    """
    places = {one: place for place, one in enumerate(classes.tolist())}
    if labels.dtype == object:
        return np.array([places.get(one, -1) for one in labels.tolist()], dtype=np.int64)
    names, code = np.unique(labels, return_inverse=True)
    found = np.array([places.get(one, -1) for one in names.tolist()], dtype=np.int64)
    return found[code]


def row_codes(table: AnyArray) -> IntArray | None:
    """Return which of the different rows each row is; None where rows are too wide for classes.

    A missing value is like any other: rows without a class are compared with each other.
    """
    rows = table.reshape(len(table), -1)
    if rows.shape[1] == 1 and rows.dtype != object:
        code: IntArray = np.unique(rows[:, 0], return_inverse=True)[1].astype(np.int64)
        return code
    if rows.shape[1] > _WIDEST:
        return None
    numbers: dict[object, int] = {}
    try:
        known = rows.astype(object)
        known[missing_of(rows.ravel(), name="y").reshape(rows.shape)] = None
        listed = [numbers.setdefault(tuple(row), len(numbers)) for row in known.tolist()]
    except TypeError:  # of what cannot be compared, such as lists
        return None
    return np.array(listed, dtype=np.int64)


def missing_of(array: AnyArray, name: str) -> NDArray[np.bool_]:
    """Return which labels are None, NaN or what other packages have in their place."""
    if array.dtype != object:
        return np.asarray(array != array)
    missing = np.zeros(array.size, dtype=np.bool_)
    for row, one in enumerate(array.tolist()):
        try:
            hash(one)
            missing[row] = one is None or bool(one != one)
        except (TypeError, ArithmeticError):  # what cannot be compared with itself: pandas' NA
            if isinstance(one, list | dict | set | np.ndarray | bytearray):
                raise InputTypeError(
                    f"{name} must hold one class for each example, got {shown(one)} at index {row}"
                ) from None
            missing[row] = True
    return missing
