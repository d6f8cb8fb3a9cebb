"""Columns of tables as people keep them: numbers, dates and words, some of them missing."""

import datetime as dt
import math
import numbers
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import ArrayInput, BoolArray
from leakbound.errors import InputError

# A data frame, a mapping from names to columns, or a two-dimensional array.
TableInput: TypeAlias = Mapping[str, ArrayInput] | ArrayInput
ColumnKind: TypeAlias = Literal["number", "date", "zoned", "flag", "word", "empty"]

_LISTED = 5  # names that a message lists
_DOUBLE = np.dtype(np.float64)
_COARSE = (np.dtype(np.float16), np.dtype(np.float32))
_BY_CHANCE = 1e-6  # what a random split does less often is a difference in how tables are written
_KINDS: dict[ColumnKind, str] = {
    "number": "numbers",
    "date": "dates",
    "zoned": "dates with a time zone",
    "flag": "booleans",
    "word": "words",
    "empty": "nothing",
}


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column of one table: float64, datetime64[us] (of UTC if they had a time zone) or str.

    Values that `missing` marks mean nothing. `precision` is that of numbers as they were given.
    """

    values: NDArray[Any]
    missing: BoolArray
    kind: ColumnKind
    precision: np.dtype[Any] = _DOUBLE

    def as_words(self) -> NDArray[np.str_]:
        """Return the values as text; whole numbers have no decimals, whatever their type was."""
        if self.kind != "number":
            return self.values.astype(np.str_)
        distinct, which = np.unique(self.values, return_inverse=True)
        return np.array([_written(x) for x in distinct.tolist()], dtype=np.str_)[which]

    def content(self) -> NDArray[np.uint8]:
        """Return 9 bytes for each value, the same for equal ones; those of words are a digest."""
        values = self.values
        if values.dtype.kind == "U":
            distinct, which = np.unique(values, return_inverse=True)
            words = (word.encode("utf-8", "surrogatepass") for word in distinct.tolist())
            digests = b"".join(blake2b(word, digest_size=8).digest() for word in words)
            values = np.frombuffer(digests, dtype=np.uint64)[which]
        elif self.kind == "number":
            values = values + 0.0  # -0.0 becomes 0.0
        bits = np.where(self.missing, np.uint64(0), values.view(np.uint64)).astype("<u8")
        return np.column_stack([bits.view(np.uint8).reshape(-1, 8), self.missing])


def read_columns(table: TableInput, name: str) -> dict[str, RawColumn]:
    """Read a table of any form; InputError says which value of which column cannot be used."""
    columns = {
        label: _column(np.asarray(raw), f"column {label!r} of {name}")
        for label, raw in _named(table, name).items()
    }
    lengths = {label: column.values.size for label, column in columns.items()}
    if not columns or 0 in lengths.values():
        raise InputError(f"{name} must be a table with at least one row and one column")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{label!r} has {size:,} values" for label, size in lengths.items())
        raise InputError(f"the columns of {name} differ in length: {listed}")
    return columns


def same_columns(tables: Mapping[str, Mapping[str, RawColumn]]) -> tuple[str, ...]:
    """Check that tables have the same columns, in any order, and return those of the first."""
    (first, columns), *others = tables.items()
    for name, other in others:
        lacking, extra = columns.keys() - other.keys(), other.keys() - columns.keys()
        for table, missing in ((name, lacking), (first, extra)):
            if missing:
                verb = "have" if table.endswith("s") else "has"
                raise InputError(f"{table} {verb} no column {_listed(missing)}: columns must match")
    return tuple(columns)


def pooled(members: RawColumn, nonmembers: RawColumn, name: str) -> RawColumn:
    """Put a column of the audited records together, so that values do not reveal their table."""
    kinds = {members.kind, nonmembers.kind} - {"empty"}
    if len(kinds) > 1:
        raise InputError(
            f"column {name!r} holds {_KINDS[members.kind]} for members and "
            f"{_KINDS[nonmembers.kind]} for non-members: how a value is written must not "
            "reveal membership; read both tables in the same way"
        )
    column = joined([members, nonmembers])
    # Both sides get the precision of the coarser one.
    coarse = min(members.precision, nonmembers.precision, key=lambda one: one.itemsize)
    if coarse == _DOUBLE and column.kind == "number":
        coarse = _once(members, nonmembers)
    if coarse != _DOUBLE and column.kind == "number":
        with np.errstate(over="ignore"):
            rounded = column.values.astype(coarse).astype(np.float64)
        values = np.where(np.isfinite(rounded), rounded, column.values)
        return RawColumn(values, column.missing, "number", coarse)
    return column


def _once(members: RawColumn, nonmembers: RawColumn) -> np.dtype[Any]:
    """Return the precision that all numbers of one of the tables were once held in."""
    sides = [one.values[~one.missing] for one in (members, nonmembers) if one.kind == "number"]
    # Numbers that all fit a coarser type on one side only came from there.
    for coarse in _COARSE if len(sides) == 2 else ():
        with np.errstate(over="ignore"):
            finer = [int((one.astype(coarse) != one).sum()) for one in sides]
        if min(finer) == 0 < max(finer):
            size, odd = sides[int(np.argmax(finer))].size, max(finer)
            if 2 * math.exp(_chosen(size, odd) - _chosen(sum(map(len, sides)), odd)) < _BY_CHANCE:
                return coarse
    return _DOUBLE


def _chosen(size: int, count: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)


def joined(columns: list[RawColumn]) -> RawColumn:
    """Put one column of several tables under each other, as the kind that all have in common."""
    kinds = {column.kind for column in columns} - {"empty"}
    # dates with a time zone are those of UTC
    if kinds == {"date", "zoned"}:
        kinds = {"date"}
    missing = np.concatenate([column.missing for column in columns])
    # words are the kind that any two others share
    if len(kinds) > 1:
        words = np.concatenate([column.as_words() for column in columns])
        return RawColumn(words, missing, "word")
    kind: ColumnKind = kinds.pop() if kinds else "empty"
    moment = np.datetime64(0, "us")
    blank = {"number": np.float64(0), "date": moment, "zoned": moment}.get(kind, np.str_(""))
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
            raise InputError(f"{name} has several columns named {_listed(twice)}: keep one of each")
        return {str(label): table[label].to_numpy() for label in labels}
    if isinstance(table, Mapping):
        return {str(label): values for label, values in table.items()}
    if isinstance(table, str | os.PathLike):
        raise InputError(
            f"{name} must be a table, got a path: read the file first (pandas.read_csv)"
        )
    array = np.asarray(table)
    if array.dtype.names:
        return {label: array[label] for label in array.dtype.names}
    if array.ndim != 2:
        raise InputError(
            f"{name} must be a data frame, a mapping from names to columns, or an array with a row "
            f"for each record, got shape {array.shape}"
        )
    return {str(place): column for place, column in enumerate(array.T)}


def _column(values: NDArray[Any], name: str) -> RawColumn:
    if values.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {values.shape}")
    kind = values.dtype.kind
    if kind == "O":
        return _of_objects(values, name)
    if kind == "M":
        missing = np.isnat(values)
        return _settled(values.astype("datetime64[us]"), missing, "date")
    if kind in "bUT":
        words = values.astype(np.str_)
        return _settled(words, words == "", "flag" if kind == "b" else "word")
    if kind in "iuf":
        return _of_numbers(values.astype(np.float64), name, _coarsest([values.dtype]))
    raise InputError(f"{name} holds {values.dtype}, which is neither numbers, dates nor words")


def _coarsest(types: Iterable[Any]) -> np.dtype[Any]:
    """Return the least precise of some types of numbers; whole numbers are exact."""
    floats = [np.dtype(one) for one in types if np.issubdtype(one, np.floating)]
    return min(floats, key=lambda one: one.itemsize, default=_DOUBLE)


def _of_numbers(values: NDArray[np.float64], name: str, precision: np.dtype[Any]) -> RawColumn:
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise InputError(
            f"{name} is infinite in {infinite.size:,} rows, the first being row {infinite[0]}"
        )
    missing = np.isnan(values)
    column = _settled(np.where(missing, 0.0, values), missing, "number")
    return replace(column, precision=min(precision, _DOUBLE, key=lambda one: one.itemsize))


def _of_objects(values: NDArray[Any], name: str) -> RawColumn:
    """Read Python objects: all numbers, all dates, or else words."""
    missing = np.fromiter((_is_missing(value) for value in values), np.bool_, values.size)
    types = {type(value) for value in values[~missing]}
    if all(issubclass(one, bool | np.bool_) for one in types):
        true = np.where(missing, False, values).astype(np.bool_)  # noqa: FBT003 (a value)
        return _settled(true.astype(np.str_), missing, "flag")
    if all(issubclass(one, numbers.Real | np.number) for one in types):
        filled = np.where(missing, np.nan, values).astype(np.float64)
        return _of_numbers(filled, name, _coarsest(one for one in types if hasattr(one, "dtype")))
    if all(issubclass(one, dt.date | np.datetime64) for one in types):
        return _of_dates(values, missing, name)
    words = np.array([_written(value) for value in np.where(missing, "", values)], dtype=np.str_)
    return _settled(words, missing | (words == ""), "word")


def _of_dates(values: NDArray[Any], missing: BoolArray, name: str) -> RawColumn:
    """Read dates, all of them with a time zone or none: those that have one as UTC."""
    there = values[~missing].tolist()
    zoned = {getattr(value, "tzinfo", None) is not None for value in there}
    if len(zoned) > 1:
        raise InputError(
            f"{name} holds dates with a time zone and dates without: give all one, or none"
        )
    filled = np.full(values.size, np.datetime64("NaT", "us"))
    if True in zoned:
        there = [value.astimezone(dt.UTC).replace(tzinfo=None) for value in there]
    filled[~missing] = np.array(there, dtype="datetime64[us]")
    return _settled(filled, missing, "zoned" if True in zoned else "date")


def _written(value: object) -> str:
    """Return a value as text, the same for equal numbers of any type."""
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if float(value).is_integer() else repr(float(value))
    return str(value)


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
