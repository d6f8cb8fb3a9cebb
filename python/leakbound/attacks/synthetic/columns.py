"""Columns of several tables, read so that no value reveals the table that it came from."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from leakbound._base.checks import WHOLE
from leakbound._base.odds import log_choose
from leakbound._base.tables import DOUBLE, NAMES, Column, ColumnKind, named
from leakbound._base.text import settled
from leakbound._base.types import AnyArray, GenericArray
from leakbound.errors import InputError

_COARSE = (np.dtype(np.float16), np.dtype(np.float32))
# What is where a column has no value.
_MOMENT = np.datetime64(0, "us")
_BLANKS: Mapping[ColumnKind, object] = {
    "number": np.float64(0),
    "date": _MOMENT,
    "zoned": _MOMENT,
}
_BY_CHANCE = 1e-6  # what a random split does less often is a difference in how tables are written


def same_columns(tables: Mapping[str, Mapping[str, Column]]) -> tuple[str, ...]:
    """Check that tables have the same columns, in any order, and return those of the first."""
    (first, columns), *others = tables.items()
    for name, other in others:
        _check_none(name, missing=columns.keys() - other.keys())
        _check_none(first, missing=other.keys() - columns.keys())
    return tuple(columns)


def _check_none(table: str, *, missing: Collection[str]) -> None:
    """Refuse a table that lacks columns of another."""
    if not missing:
        return
    verb = "has"
    if table.endswith("s"):
        verb = "have"
    raise InputError(f"{table} {verb} no column {named(sorted(missing))}: columns must match")


def pooled(members: Column, nonmembers: Column, name: str, *, codes: bool = False) -> Column:
    """Put a column of the audited records together, so that values do not reveal their table."""
    members, nonmembers = settled([members, nonmembers], name, codes=codes)
    kinds = {members.kind, nonmembers.kind} - {"empty"}
    if len(kinds) > 1:
        raise InputError(
            f"column {name!r} holds {NAMES[members.kind]} for members and "
            f"{NAMES[nonmembers.kind]} for non-members: how a value is written must not "
            "reveal membership; read both tables in the same way"
        )
    column = joined([members, nonmembers])
    if column.kind != "number":
        return column
    # Both sides get the precision of the coarser one.
    coarse = min(members.precision, nonmembers.precision, key=lambda one: one.itemsize)
    if coarse != DOUBLE:
        return _rounded(column, coarse)
    written = _once(members, nonmembers) or _doubled(members, nonmembers)
    if written is None:
        return column
    return _rounded(column, written)


def _rounded(column: Column, coarse: np.dtype[np.generic]) -> Column:
    """Return numbers in a coarser precision, where it has them."""
    with np.errstate(over="ignore"):
        rounded = column.values.astype(coarse).astype(np.float64)
    doubles = column.values.astype(np.float64)
    values = np.where(np.isfinite(rounded), rounded, doubles)
    return replace(column, values=values, precision=coarse)


def _once(members: Column, nonmembers: Column) -> np.dtype[np.generic] | None:
    """Return the precision that all numbers of one of the tables were once held in."""
    if not members.kind == nonmembers.kind == "number":
        return None
    sides = [one.values[~one.missing] for one in (members, nonmembers)]
    numbers = sides[0].size + sides[1].size
    for coarse in (*_COARSE, DOUBLE):
        with np.errstate(over="ignore"):
            finer = [_not_in(one, coarse) for one in sides]
        odd = max(finer)
        if odd == 0 or min(finer) > 0:
            continue
        # Numbers that all fit a coarser type on one side only came from there: all that do not
        # fit are on the other side, of all ways to place them.
        other = sides[int(np.argmax(finer))]
        log_chance = log_choose(other.size, odd) - log_choose(numbers, odd)
        if 2 * math.exp(log_chance) < _BY_CHANCE:
            return coarse
    return None


def _not_in(numbers: GenericArray, coarse: np.dtype[np.generic]) -> int:
    """Return how many numbers a type does not hold."""
    held: GenericArray = numbers.astype(coarse)
    if numbers.dtype == object:  # compared exactly, as Python does
        return int((held.astype(np.float64).astype(object) != numbers).sum())
    return int((held != numbers).sum())


def _doubled(members: Column, nonmembers: Column) -> np.dtype[np.generic] | None:
    """Return double precision where one side has integers that the other may have rounded."""
    if members.is_exact == nonmembers.is_exact:
        return None
    plain = members
    if members.is_exact:
        plain = nonmembers
    if plain.kind != "number":
        return None
    largest = np.abs(plain.values).max(initial=0)
    if largest < WHOLE:
        return None
    return DOUBLE


def joined(columns: list[Column]) -> Column:
    """Put one column of several tables under each other, as the kind that all have in common."""
    if len(columns) == 1:
        return columns[0]
    kinds = {column.kind for column in columns} - {"empty"}
    # dates with a time zone are those of UTC
    if kinds == {"date", "zoned"}:
        kinds = {"date"}
    missing = np.concatenate([column.missing for column in columns])
    marks = Counter[str]()
    for column in columns:
        marks.update(column.marks)
    # words are the kind that any two others share
    if len(kinds) > 1:
        words = np.concatenate([column.as_words() for column in columns])
        return Column(words, missing, "word", marks=marks)
    kind: ColumnKind = "empty"
    if kinds:
        kind = kinds.pop()
    exact = any(column.is_exact for column in columns)
    parts = [_values_of(column, kind, exact=exact) for column in columns]
    return Column(np.concatenate(parts), missing, kind, marks=marks)


def _values_of(column: Column, kind: ColumnKind, *, exact: bool) -> AnyArray:
    """Return values as a column of some kind has them; an empty column has blanks."""
    blank = _BLANKS.get(kind, np.str_(""))
    if exact:
        blank = 0
    values: AnyArray = column.values
    if column.kind == "empty":
        values = np.full(column.missing.size, blank)
    elif exact:
        values = column.as_exact()
    if exact:
        return values.astype(object)
    return values
