"""Columns of several tables, read so that no value reveals the table that it came from."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from leakbound._base.checks import WHOLE
from leakbound._base.tables import DOUBLE, NAMES, Column, ColumnKind, named
from leakbound._base.text import settled
from leakbound._base.types import AnyArray, GenericArray
from leakbound.errors import InputError

_COARSE = (np.dtype(np.float16), np.dtype(np.float32))
_BY_CHANCE = 1e-6  # what a random split does less often is a difference in how tables are written


def same_columns(tables: Mapping[str, Mapping[str, Column]]) -> tuple[str, ...]:
    """Check that tables have the same columns, in any order, and return those of the first."""
    (first, columns), *others = tables.items()
    for name, other in others:
        lacking, extra = columns.keys() - other.keys(), other.keys() - columns.keys()
        for table, missing in ((name, lacking), (first, extra)):
            if missing:
                verb = "have" if table.endswith("s") else "has"
                raise InputError(
                    f"{table} {verb} no column {named(sorted(missing))}: columns must match"
                )
    return tuple(columns)


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
    return column if written is None else _rounded(column, written)


def _rounded(column: Column, coarse: np.dtype[np.generic]) -> Column:
    """Return numbers in a coarser precision, where it has them."""
    with np.errstate(over="ignore"):
        rounded = column.values.astype(coarse).astype(np.float64)
    doubles = column.values.astype(np.float64)
    values = np.where(np.isfinite(rounded), rounded, doubles)
    return replace(column, values=values, precision=coarse)


def _once(members: Column, nonmembers: Column) -> np.dtype[np.generic] | None:
    """Return the precision that all numbers of one of the tables were once held in."""
    sides = [one.values[~one.missing] for one in (members, nonmembers) if one.kind == "number"]
    # Numbers that all fit a coarser type on one side only came from there.
    for coarse in (*_COARSE, DOUBLE) if len(sides) == 2 else ():
        with np.errstate(over="ignore"):
            finer = [_not_in(one, coarse) for one in sides]
        if min(finer) == 0 < max(finer):
            size = sides[int(np.argmax(finer))].size
            odd = max(finer)
            # All numbers that do not fit are on this side, of all ways to place them.
            log_chance = _chosen(size, odd) - _chosen(sum(map(len, sides)), odd)
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
    exact, plain = sorted((members, nonmembers), key=lambda one: one.is_exact, reverse=True)
    if not exact.is_exact or plain.is_exact or plain.kind != "number":
        return None
    return DOUBLE if np.abs(plain.values).max(initial=0) >= WHOLE else None


def _chosen(size: int, count: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)


def joined(columns: list[Column]) -> Column:
    """Put one column of several tables under each other, as the kind that all have in common."""
    if len(columns) == 1:
        return columns[0]
    kinds = {column.kind for column in columns} - {"empty"}
    # dates with a time zone are those of UTC
    if kinds == {"date", "zoned"}:
        kinds = {"date"}
    missing = np.concatenate([column.missing for column in columns])
    marks = dict(sum((Counter(column.marks) for column in columns), Counter[str]()))
    # words are the kind that any two others share
    if len(kinds) > 1:
        words = np.concatenate([column.as_words() for column in columns])
        return Column(words, missing, "word", marks=marks)
    kind: ColumnKind = kinds.pop() if kinds else "empty"
    exact = any(column.is_exact for column in columns)
    moment = np.datetime64(0, "us")
    blank = {"number": np.float64(0), "date": moment, "zoned": moment}.get(kind, np.str_(""))
    parts: list[AnyArray] = []
    for column in columns:
        if column.kind == "empty":
            parts.append(np.full(column.missing.size, 0 if exact else blank))
        else:
            parts.append(column.as_exact() if exact else column.values)
    values = np.concatenate([part.astype(object) for part in parts] if exact else parts)
    return Column(values, missing, kind, marks=marks)
