"""Columns of tables as people keep them: numbers, dates and words, some of them missing."""

import datetime as dt
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import ArrayInput, BoolArray
from leakbound.errors import FeaturesError, LengthMismatchError, ShapeError

__all__ = [
    "ColumnKind",
    "RawColumn",
    "TableInput",
    "joined",
    "pooled",
    "read_columns",
    "same_columns",
]

TableInput: TypeAlias = Mapping[str, ArrayInput] | ArrayInput
"""A data frame, a mapping from names to columns, or a two-dimensional array."""
ColumnKind: TypeAlias = Literal["number", "date", "flag", "word", "empty"]

_LISTED = 5
"""Names that a message lists."""
_KINDS: dict[ColumnKind, str] = {
    "number": "numbers",
    "date": "dates",
    "flag": "booleans",
    "word": "words",
    "empty": "nothing",
}


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column of one table.

    `values` are float64, datetime64[us] or str; those that `missing` marks mean nothing. `single`
    says that numbers have the precision of float32, or less.
    """

    values: NDArray[Any]
    missing: BoolArray
    kind: ColumnKind
    single: bool = False

    def as_words(self) -> NDArray[np.str_]:
        """Return the values as text; whole numbers have no decimals, whatever their type was."""
        if self.kind != "number":
            return self.values.astype(np.str_)
        distinct, which = np.unique(self.values, return_inverse=True)
        text = [f"{x:.0f}" if float(x).is_integer() else repr(float(x)) for x in distinct]
        return np.array(text, dtype=np.str_)[which]


def read_columns(table: TableInput, name: str) -> dict[str, RawColumn]:
    """Read a table of any form; FeaturesError says which value of which column cannot be used."""
    columns = {
        label: _column(np.asarray(raw), f"column {label!r} of {name}")
        for label, raw in _named(table, name).items()
    }
    lengths = {label: column.values.size for label, column in columns.items()}
    if not columns or 0 in lengths.values():
        message = f"{name} must be a table with at least one row and one column"
        raise ShapeError(message)
    if len(set(lengths.values())) > 1:
        longest, shortest = (
            max(lengths, key=lengths.__getitem__),
            min(lengths, key=lengths.__getitem__),
        )
        message = (
            f"the columns of {name} differ in length: {longest!r} has {lengths[longest]:,} values "
            f"and {shortest!r} {lengths[shortest]:,}"
        )
        raise LengthMismatchError(message)
    return columns


def same_columns(tables: Mapping[str, Mapping[str, RawColumn]]) -> tuple[str, ...]:
    """Check that tables have the same columns, in any order, and return those of the first."""
    (first, columns), *others = tables.items()
    for name, other in others:
        lacking, extra = columns.keys() - other.keys(), other.keys() - columns.keys()
        if lacking or extra:
            parts = [
                f"{table} has no column {_listed(missing)}"
                for table, missing in ((name, lacking), (first, extra))
                if missing
            ]
            message = (
                f"{first} and {name} differ in columns: {'; '.join(parts)}; give tables of the "
                "same columns, named alike"
            )
            raise FeaturesError(message)
    return tuple(columns)


def pooled(members: RawColumn, nonmembers: RawColumn, name: str) -> RawColumn:
    """Put a column of the audited records together, such that values do not tell their table.

    Raises
    ------
    FeaturesError
        If the two tables hold the column as different kinds of values: the same value would be
        written in two ways, and the way would tell who is a member.
    """
    kinds = {members.kind, nonmembers.kind} - {"empty"}
    if len(kinds) > 1:
        message = (
            f"column {name!r} holds {_KINDS[members.kind]} for members and "
            f"{_KINDS[nonmembers.kind]} for non-members: the way in which a value is written must "
            "not tell who is a member; read both tables alike"
        )
        raise FeaturesError(message)
    single = members.single or nonmembers.single
    column = joined([members, nonmembers])
    if single and column.kind == "number":
        values = column.values.astype(np.float32).astype(np.float64)
        return RawColumn(values, column.missing, "number", single=True)
    return column


def joined(columns: list[RawColumn]) -> RawColumn:
    """Put the same column of several tables under each other, as the kind that all have in common.

    Where kinds differ, all are words.
    """
    kinds = {column.kind for column in columns} - {"empty"}
    missing = np.concatenate([column.missing for column in columns])
    if len(kinds) > 1:
        words = np.concatenate([column.as_words() for column in columns])
        return RawColumn(words, missing, "word")
    kind: ColumnKind = kinds.pop() if kinds else "empty"
    blank = {"number": np.float64(0), "date": np.datetime64(0, "us")}.get(kind, np.str_(""))
    parts = [
        np.full(column.missing.size, blank) if column.kind == "empty" else column.values
        for column in columns
    ]
    return RawColumn(np.concatenate(parts), missing, kind)


def _named(table: Any, name: str) -> dict[str, Any]:
    """Return the columns of a data frame, a mapping, a record array or a plain array, by name."""
    labels = getattr(table, "column_names", None)  # Arrow
    if labels is not None:
        return {str(label): table[label].to_numpy(zero_copy_only=False) for label in labels}
    labels = getattr(table, "columns", None)  # pandas, polars
    if labels is not None:
        listed = [str(label) for label in labels]
        twice = {label for label in listed if listed.count(label) > 1}
        if twice:
            message = f"{name} has several columns named {_listed(twice)}: keep one of each"
            raise FeaturesError(message)
        return {str(label): table[label].to_numpy() for label in labels}
    if isinstance(table, Mapping):
        return {str(label): values for label, values in table.items()}
    if isinstance(table, str | os.PathLike):
        message = (
            f"{name} must be a table, got a path: read the file first, as pandas.read_csv does"
        )
        raise FeaturesError(message)
    array = np.asarray(table)
    if array.dtype.names:
        return {label: array[label] for label in array.dtype.names}
    if array.ndim != 2:
        message = (
            f"{name} must be a table: a data frame, a mapping from names to columns, or an array "
            f"with a row for each record, got shape {array.shape}"
        )
        raise ShapeError(message)
    return {str(place): column for place, column in enumerate(array.T)}


def _column(values: NDArray[Any], name: str) -> RawColumn:
    if values.ndim != 1:
        message = f"{name} must be one-dimensional, got shape {values.shape}"
        raise ShapeError(message)
    kind = values.dtype.kind
    if kind == "O":
        return _of_objects(values, name)
    if kind == "M":
        missing = np.isnat(values)
        return _settled(values.astype("datetime64[us]"), missing, "date")
    if kind in "UT":
        words = values.astype(np.str_)
        return _settled(words, words == "", "word")
    if kind == "b":
        words = np.where(values, "true", "false")
        return _settled(words, np.zeros(values.size, np.bool_), "flag")
    if kind in "iuf":
        return _of_numbers(values.astype(np.float64), name, single=_is_single(values.dtype))
    message = f"{name} holds {values.dtype}, which is neither numbers, dates nor words"
    raise FeaturesError(message)


def _is_single(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize <= np.dtype(np.float32).itemsize


def _of_numbers(values: NDArray[np.float64], name: str, *, single: bool = False) -> RawColumn:
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        message = (
            f"{name} is infinite in {infinite.size:,} rows, the first being row {infinite[0]}; "
            "leave the value missing, or give a number"
        )
        raise FeaturesError(message)
    missing = np.isnan(values)
    column = _settled(np.where(missing, 0.0, values), missing, "number")
    return replace(column, single=single)


def _of_objects(values: NDArray[Any], name: str) -> RawColumn:
    """Read Python objects: all numbers, all dates, or else words."""
    missing = np.fromiter((_is_missing(value) for value in values), np.bool_, values.size)
    types = {type(value) for value in values[~missing]}
    if all(issubclass(one, bool | np.bool_) for one in types):
        true = np.where(missing, False, values).astype(np.bool_)  # noqa: FBT003 (a value)
        words = np.where(true, "true", "false")
        return _settled(words, missing, "flag")
    if all(issubclass(one, numbers.Real | np.number) for one in types):
        filled = np.where(missing, np.nan, values).astype(np.float64)
        return _of_numbers(filled, name)
    if all(issubclass(one, dt.date | np.datetime64) for one in types):
        filled = np.where(missing, np.datetime64("NaT"), values)
        return _settled(filled.astype("datetime64[us]"), missing, "date")
    words = np.array([str(value) for value in np.where(missing, "", values)], dtype=np.str_)
    return _settled(words, missing | (words == ""), "word")


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _settled(values: NDArray[Any], missing: BoolArray, kind: ColumnKind) -> RawColumn:
    return RawColumn(values, missing, "empty" if missing.all() else kind)


def _listed(names: set[str]) -> str:
    some = sorted(names)[:_LISTED]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, some)) + more
