"""Classes, strata and groups: one column of labels, from whatever holds it."""

from collections import defaultdict
from itertools import count

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import check_length, shown, vector
from leakbound._base.reading import array_of, columns_of, refuse_masked
from leakbound._base.types import AnyArray, ArrayInput, Data, GenericArray, IntArray
from leakbound.errors import InputError, InputTypeError

# Codes of the dtypes of labels: booleans, numbers, text, objects and dates.
_LABEL_KINDS = "biufSUTOM"
# Codes of the dtypes of whatever may be known of an example: also complex numbers and durations.
_TARGET_KINDS = _LABEL_KINDS + "cm"
# Labels of an example at most: more are a picture or a text.
_MOST_COLUMNS = 1000
_CODES = "numpy.unique(labels, return_inverse=True)[1]"


def labels_of(values: Data, name: str) -> AnyArray:
    """Read one label for each example, none missing: a flat array, a column or a list of rows.

    Dates are text then, whatever their unit was.
    """
    labels = targets_of(values, name=name)
    if labels.ndim != 1:
        advice = ""
        if labels.ndim == 2:
            advice = "; of one-hot rows pass their argmax(1)"
        raise InputError(
            f"{name} must be one class for each example, got shape {labels.shape}: pass one "
            f"column{advice}"
        )
    if labels.dtype.kind not in _LABEL_KINDS:
        raise InputTypeError(
            f"{name} must hold classes, as numbers or text, got dtype {labels.dtype}: pass codes, "
            f"{_CODES}"
        )
    is_missing = missing_of(labels, name=name)
    if is_missing.any():
        first_row = int(is_missing.argmax())
        raise InputError(
            f"{name} is missing at index {first_row} ({int(is_missing.sum())} such rows): "
            "drop these examples, or give them a class of their own before training"
        )
    if labels.dtype.kind == "M":
        return np.datetime_as_string(labels, unit="ns")
    return labels


def targets_of(values: Data, name: str) -> AnyArray:
    """Read what is known of each example, of whatever type: flat, if it is one column."""
    refuse_masked(values, name=name)
    dense_values = values
    if hasattr(values, "tocsr"):
        dense_values = values.toarray()
    # The column of a frame has a type of its own, where the frame's rows have one for all.
    columns = columns_of(dense_values)
    if len(columns) == 1:
        dense_values = columns[0]
    targets = array_of(dense_values, name=name, exact=True)
    if targets.dtype.kind not in _TARGET_KINDS:
        raise InputTypeError(f"{name} must hold numbers or text, got dtype {targets.dtype}")
    if targets.ndim == 2 and targets.shape[1] == 1:
        return targets[:, 0]
    return targets


def positions_of(labels: AnyArray, classes: AnyArray) -> IntArray:
    """Return the position of each label among some classes, -1 for those that are not there.

    Integers are compared exactly, whatever their types; a number is no text.
    """
    position_of_class = {label: position for position, label in enumerate(classes.tolist())}

    distinct_labels = labels
    label_of_row: slice | IntArray = slice(None)
    if labels.dtype != object:
        distinct_labels, label_of_row = np.unique(labels, return_inverse=True)
    positions = [position_of_class.get(label, -1) for label in distinct_labels.tolist()]
    return np.array(positions, dtype=np.int64)[label_of_row]


def row_codes(table: AnyArray) -> IntArray | None:
    """Return which of the different rows each row is; None where rows are too wide for classes.

    A missing value is like any other: rows without a class are compared with each other.
    """
    rows = table.reshape(len(table), -1)
    number_of_columns = rows.shape[1]
    if number_of_columns == 1 and rows.dtype != object:
        _, code_of_each_row = np.unique(rows, return_inverse=True)
        return code_of_each_row.ravel().astype(np.int64)
    if number_of_columns > _MOST_COLUMNS:
        return None
    try:
        is_missing = missing_of(rows.ravel(), name="y").reshape(rows.shape)
        rows_or_none = rows.astype(object)
        rows_or_none[is_missing] = None
        listed_rows = list(map(tuple, rows_or_none.tolist()))
        code_of_distinct_row = defaultdict[object, int](count().__next__)
        codes_of_rows = [code_of_distinct_row[row] for row in listed_rows]
    except TypeError:  # of what cannot be compared, such as lists
        return None
    return np.array(codes_of_rows, dtype=np.int64)


def missing_of(labels: AnyArray, name: str) -> NDArray[np.bool_]:
    """Return which labels are None, NaN or what other packages have in their place."""
    if labels.dtype != object:
        return np.asarray(labels != labels)
    is_missing = np.zeros(labels.size, dtype=np.bool_)
    for row, label in enumerate(labels.tolist()):
        try:
            hash(label)
            is_missing[row] = label is None or bool(label != label)
        except (TypeError, ArithmeticError):  # what cannot be compared with itself: pandas' NA
            if isinstance(label, list | dict | set | np.ndarray | bytearray):
                raise InputTypeError(
                    f"{name} must hold one class for each example, got {shown(label)} at index "
                    f"{row}"
                ) from None
            is_missing[row] = True
    return is_missing


def by_first_row(
    codes: GenericArray,
) -> tuple[GenericArray, IntArray, IntArray]:
    """Return the names of strata or groups, their first rows, and which of them each row is in.

    They are in the order of these rows, so that names have no part in what a seed draws.
    """
    names, first_rows, code_of_row = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first_rows)
    place_in_order = np.argsort(order)
    return names[order], first_rows[order], place_in_order[code_of_row]


def check_codes(
    values: ArrayInput,
    examples: int,
    name: str,
    cure: str = "give each example one, unique if necessary",
) -> GenericArray:
    """Read strata or groups: numbers or text, one for each example, none missing."""
    codes = vector(values, name=name, kinds="biufSUO")
    check_length(codes, examples=examples, name=name)
    is_missing = missing_of(codes, name=name)
    if is_missing.any():
        first_row = int(is_missing.argmax())
        raise InputTypeError(f"{name} is missing at row {first_row}: {cure}")
    try:
        np.unique(codes)
    except TypeError:
        raise InputTypeError(
            f"{name} must be all numbers or all text, got a mixture that cannot be compared"
        ) from None
    return codes
