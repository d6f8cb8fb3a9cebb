"""Columns of tables as bundles store them: arrays, and what each of them holds as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.tables import Column, Writing, exact_number, objects
from leakbound._base.types import AnyArray, JsonObject, JsonValue
from leakbound.errors import FormatError

_MISSING = "missing"
_CATEGORICAL = "categorical"
_NAMED = {"name", "kind"}
# Types of the arrays of a column, by its kind; exact numbers are stored as their digits.
_STORED = {
    "number": "f",
    "exact": "U",
    "date": "M",
    "zoned": "M",
    "flag": "U",
    "text": "U",
    "empty": "U",
}


def stored_table(
    table: str, columns: Mapping[str, Column], arrays: dict[str, AnyArray]
) -> Iterator[JsonValue]:
    """Put the columns of a table among the arrays, and say what each of them holds."""
    for place, (label, column) in enumerate(columns.items()):
        values = column.values
        kind: str = column.kind
        if column.is_exact:
            kind = "exact"
            values = np.array([repr(exact_number(one)) for one in values.tolist()], dtype=np.str_)
        elif kind == "number":
            values = values.astype(column.precision)
        arrays[f"{table}.{place}"] = values
        arrays[f"{table}.{place}.{_MISSING}"] = column.missing
        part: JsonObject = {"name": label, "kind": kind}
        if column.categorical:
            part[_CATEGORICAL] = True
        yield part


def stored_writing(columns: Mapping[str, Column]) -> JsonObject:
    """Return how text is written, which is the same in all tables."""
    texts = [one.writing for one in columns.values() if one.kind == "text"]
    writing = next(iter(texts), Writing())
    return {
        "decimal": writing.decimal,
        "thousands": writing.thousands,
        "missing": list(writing.missing),
    }


def read_table(
    table: str,
    parts: object,
    arrays: Mapping[str, AnyArray],
    writing: Writing,
    used: set[str],
) -> dict[str, Column]:
    """Return the columns of a table."""
    if not isinstance(parts, list):
        raise FormatError(f"{table} must be a list of columns")
    columns = {}
    for place, part in enumerate(parts):
        if not _is_part(part):
            raise FormatError(
                f"column {place} of {table} is {shown(part)}: no name and kind of one"
            )
        names = (f"{table}.{place}", f"{table}.{place}.{_MISSING}")
        if not {*names} <= arrays.keys():
            raise FormatError(f"column {place} of {table} has no arrays")
        used |= {*names}
        values, missing = (arrays[name] for name in names)
        column = _read_column(
            part["kind"], values, missing, writing, f"{names[0]} ({part['kind']})"
        )
        columns[part["name"]] = replace(column, categorical=_CATEGORICAL in part)
    return columns


def _is_part(part: object) -> bool:
    """Return whether JSON names a column and its kind; categories are said, others are not."""
    if not isinstance(part, dict) or part.keys() - {_CATEGORICAL} != _NAMED:
        return False
    told = part.get(_CATEGORICAL, True) is True
    named = isinstance(part["name"], str)
    return told and named and isinstance(part["kind"], str) and part["kind"] in _STORED


def _read_column(
    kind: Any, values: AnyArray, missing: AnyArray, writing: Writing, name: str
) -> Column:
    """Return a column as it was read, if its arrays can be those of one."""
    fits = (
        values.ndim == 1
        and values.dtype.kind == _STORED[kind]
        and missing.shape == values.shape
        and missing.dtype == np.bool_
    )
    if fits and values.dtype.kind == "f":
        fits = bool(np.isfinite(values).all())
    if fits and values.dtype.kind == "M":
        fits = not bool((np.isnat(values) & ~missing).any())
    if not fits:
        raise FormatError(f"{name} holds {values.dtype} of shape {values.shape}, not a column")
    if kind == "exact":
        return Column(objects(map(_exact, values.tolist())), missing, "number")
    if kind == "number":
        precision = min(values.dtype, np.dtype(np.float64), key=lambda one: one.itemsize)
        return Column(values.astype(np.float64), missing, "number", precision)
    if kind == "text":
        return Column(values, missing, "text", writing=writing, table=name)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")
    return Column(values, missing, kind)


def _exact(digits: str) -> int | float:
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
    texts = [decimal, thousands, missing]
    if isinstance(missing, list):
        texts = [decimal, thousands, *missing]
    if not all(isinstance(one, str) for one in texts) or isinstance(missing, str):
        raise FormatError(f"writing is {shown(content)}, not a decimal, thousands and missing")
    return Writing(
        decimal=str(decimal),
        thousands=str(thousands),
        missing=tuple(map(str, texts[2:])),
        named=named,
    )
