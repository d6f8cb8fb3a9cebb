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


def _array_names(table: str, number: int) -> tuple[str, str]:
    """Return the names of the arrays of a column: its values, and where they are missing."""
    values_name = f"{table}.{number}"
    return values_name, f"{values_name}.{_MISSING_SUFFIX}"


def stored_table(
    table: str, columns: Mapping[str, Column], arrays: dict[str, AnyArray]
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
        values_name, missing_name = _array_names(table, number)
        arrays[values_name] = values
        arrays[missing_name] = column.missing
        part: JsonObject = {"name": column_name, "kind": kind}
        if column.categorical:
            part[_CATEGORICAL] = True
        yield part


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
    table: str,
    parts: object,
    *,
    arrays: Mapping[str, AnyArray],
    writing: Writing,
    used_arrays: set[str],
) -> dict[str, Column]:
    """Return the columns of a table, and add the names of their arrays to `used_arrays`."""
    if not isinstance(parts, list):
        raise FormatError(f"{table} must be a list of columns")
    columns = {}
    for number, part in enumerate(parts):
        if not _is_column_part(part):
            raise FormatError(
                f"column {number} of {table} is {shown(part)}: no name and kind of one"
            )
        values_name, missing_name = _array_names(table, number)
        if values_name not in arrays or missing_name not in arrays:
            raise FormatError(f"column {number} of {table} has no arrays")
        used_arrays.update({values_name, missing_name})
        kind = part["kind"]
        column = _read_column(
            kind,
            arrays[values_name],
            missing=arrays[missing_name],
            writing=writing,
            name=f"{values_name} ({kind})",
        )
        columns[part["name"]] = replace(column, categorical=_CATEGORICAL in part)
    return columns


def _is_column_part(part: object) -> bool:
    """Return whether JSON names a column and its kind; categories are said, others are not."""
    if not isinstance(part, dict) or part.keys() - {_CATEGORICAL} != _COLUMN_PARTS:
        return False
    if part.get(_CATEGORICAL, True) is not True:
        return False
    if not isinstance(part["name"], str) or not isinstance(part["kind"], str):
        return False
    return part["kind"] in _DTYPE_KINDS


def _fits_column(kind: str, values: AnyArray, missing: AnyArray) -> bool:
    """Return whether arrays can be the values of a column, and where they are missing."""
    if values.ndim != 1 or values.dtype.kind != _DTYPE_KINDS[kind]:
        return False
    if missing.shape != values.shape or missing.dtype != np.bool_:
        return False
    if values.dtype.kind == "f":
        return bool(np.isfinite(values).all())
    if values.dtype.kind == "M":
        is_known_nat = np.isnat(values) & ~missing
        return not is_known_nat.any()
    return True


def _read_column(
    kind: Any, values: AnyArray, *, missing: AnyArray, writing: Writing, name: str
) -> Column:
    """Return a column as it was read, if its arrays can be those of one."""
    if not _fits_column(kind, values, missing):
        raise FormatError(f"{name} holds {values.dtype} of shape {values.shape}, not a column")
    if kind == "exact":
        numbers = [_exact_number_of(digits) for digits in values.tolist()]
        return Column(objects(numbers), missing, "number")
    if kind == "number":
        double = np.dtype(np.float64)
        precision = min(values.dtype, double, key=lambda dtype: dtype.itemsize)
        return Column(values.astype(double), missing, "number", precision)
    if kind == "text":
        return Column(values, missing, "text", writing=writing, table=name)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")
    return Column(values, missing, kind)


def _exact_number_of(digits: str) -> int | float:
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
