"""Columns of tables as bundles store them: arrays, and what each of them holds as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.tables import Column, Writing, exact_number, objects
from leakbound._base.types import AnyArray, JsonObject, JsonValue
from leakbound.errors import FormatError

_MISSING_SUFFIX = "missing"
_CATEGORICAL = "categorical"
_COLUMN_PARTS = {"name", "kind"}
# Types of the arrays of a column, by its kind; exact numbers are stored as their digits.
_DTYPE_KINDS = {
    "number": "f",
    "exact": "U",
    "date": "M",
    "zoned": "M",
    "flag": "U",
    "text": "U",
    "empty": "U",
}


def _array_names_of_column(table_name: str, number: int) -> tuple[str, str]:
    """Return the names of the arrays of a column: its values, and where they are missing."""
    values_name = f"{table_name}.{number}"
    return values_name, f"{values_name}.{_MISSING_SUFFIX}"


def stored_table(
    table_name: str, columns: Mapping[str, Column], stored_arrays: dict[str, AnyArray]
) -> Iterator[JsonValue]:
    """Put the columns of a table among the arrays, and say what each of them holds."""
    for number, (column_name, column) in enumerate(columns.items()):
        values = column.values
        kind: str = column.kind
        if column.is_exact:
            kind = "exact"
            digits = [repr(exact_number(value)) for value in values.tolist()]
            values = np.array(digits, dtype=np.str_)
        elif kind == "number":
            values = values.astype(column.precision)
        values_name, missing_name = _array_names_of_column(table_name, number)
        stored_arrays[values_name] = values
        stored_arrays[missing_name] = column.missing
        column_part: JsonObject = {"name": column_name, "kind": kind}
        if column.categorical:
            column_part[_CATEGORICAL] = True
        yield column_part


def stored_writing(columns: Mapping[str, Column]) -> JsonObject:
    """Return how text is written, which is the same in all tables."""
    writing = Writing()
    for column in columns.values():
        if column.kind == "text":
            writing = column.writing
            break
    return {
        "decimal": writing.decimal,
        "thousands": writing.thousands,
        "missing": list(writing.missing),
    }


def read_table(
    table_name: str,
    column_parts: object,
    *,
    unread_arrays: dict[str, AnyArray],
    writing: Writing,
) -> dict[str, Column]:
    """Return the columns of a table, and take their arrays from those that are unread."""
    if not isinstance(column_parts, list):
        raise FormatError(f"{table_name} must be a list of columns")
    columns = {}
    for number, column_part in enumerate(column_parts):
        if not _is_column_part(column_part):
            raise FormatError(
                f"column {number} of {table_name} is {shown(column_part)}: no name and kind of one"
            )
        values_name, missing_name = _array_names_of_column(table_name, number)
        if values_name not in unread_arrays or missing_name not in unread_arrays:
            raise FormatError(f"column {number} of {table_name} has no arrays")
        kind = column_part["kind"]
        column = _read_stored_column(
            kind,
            unread_arrays.pop(values_name),
            is_missing=unread_arrays.pop(missing_name),
            writing=writing,
            array_name=f"{values_name} ({kind})",
        )
        columns[column_part["name"]] = replace(column, categorical=_CATEGORICAL in column_part)
    return columns


def _is_column_part(column_part: object) -> bool:
    """Return whether JSON names a column and its kind; categories are said, others are not."""
    if not isinstance(column_part, dict) or column_part.keys() - {_CATEGORICAL} != _COLUMN_PARTS:
        return False
    if column_part.get(_CATEGORICAL, True) is not True:
        return False
    if not isinstance(column_part["name"], str) or not isinstance(column_part["kind"], str):
        return False
    return column_part["kind"] in _DTYPE_KINDS


def _fits_stored_column(kind: str, stored_values: AnyArray, is_missing: AnyArray) -> bool:
    """Return whether arrays can be the values of a column, and where they are missing."""
    if stored_values.ndim != 1 or stored_values.dtype.kind != _DTYPE_KINDS[kind]:
        return False
    if is_missing.shape != stored_values.shape or is_missing.dtype != np.bool_:
        return False
    if stored_values.dtype.kind == "f":
        return bool(np.isfinite(stored_values).all())
    if stored_values.dtype.kind == "M":
        is_known_nat = np.isnat(stored_values) & ~is_missing
        return not is_known_nat.any()
    return True


def _read_stored_column(
    kind: Any, stored_values: AnyArray, *, is_missing: AnyArray, writing: Writing, array_name: str
) -> Column:
    """Return a column as it was read, if its arrays can be those of one."""
    if not _fits_stored_column(kind, stored_values, is_missing):
        raise FormatError(
            f"{array_name} holds {stored_values.dtype} of shape {stored_values.shape}, not a column"
        )
    if kind == "exact":
        numbers = [_exact_number_of_digits(digits) for digits in stored_values.tolist()]
        return Column(objects(numbers), is_missing, "number")
    if kind == "number":
        double = np.dtype(np.float64)
        precision = min(stored_values.dtype, double, key=lambda dtype: dtype.itemsize)
        return Column(stored_values.astype(double), is_missing, "number", precision)
    if kind == "text":
        return Column(stored_values, is_missing, "text", writing=writing, table=array_name)
    if stored_values.dtype.kind == "M":
        stored_values = stored_values.astype("datetime64[us]")
    return Column(stored_values, is_missing, kind)


def _exact_number_of_digits(digits: str) -> int | float:
    """Return the number that its digits stand for."""
    try:
        return int(digits)
    except ValueError:
        pass
    try:
        return float(digits)
    except ValueError:
        raise FormatError(f"{shown(digits)} is not a number") from None


def read_writing(content: Mapping[str, Any], *, named: bool = True) -> Writing:
    """Return how text is written; `named` is as `Writing` has it, and follows from the audit."""
    decimal = content.get("decimal")
    thousands = content.get("thousands")
    missing = content.get("missing")
    texts: list[Any] = [decimal, thousands, missing]
    if isinstance(missing, list):
        texts = [decimal, thousands, *missing]
    are_texts = all(isinstance(text, str) for text in texts)
    if not are_texts or isinstance(missing, str):
        raise FormatError(f"writing is {shown(content)}, not a decimal, thousands and missing")
    _, _, *missing_marks = texts
    return Writing(
        decimal=str(decimal),
        thousands=str(thousands),
        missing=tuple(missing_marks),
        named=named,
    )
