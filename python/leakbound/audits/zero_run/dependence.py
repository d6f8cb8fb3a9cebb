"""Columns of features that a logistic model does not need, and those that decide membership."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray, Strings

# Steps between doubles that sums of columns may be off by. Columns that nearly depend on others
# stay: membership may depend on what is left of those.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
# Share of a column's length, its mean taken off, that is little to be left by others.
_LITTLE = 1e-5
# An eigenvalue of the correlations above which no column has so little left.
_CLEAR = 1e-9
# Coefficients of columns of length 1 that a message names.
_TAKEN = 1e-4
# Columns that a message names.
_LISTED = 3


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns that a model needs, why it needs no others, and which nearly depend on others."""

    needed: IntArray
    left_out: Strings
    nearly: Strings


def columns_needed(table: FloatArray, names: Strings) -> Columns:
    """Return the columns that a model needs.

    Without a column that is constant, equal to one before it, or a linear combination of those
    before it, the model is the same.
    """
    varied = table.max(axis=0) > table.min(axis=0)
    if varied.all():
        centred, lengths = _centred(table)
        if _is_independent(centred / lengths):
            return Columns(np.arange(lengths.size), (), ())
    return _without_needless(table, names, varied)


def _without_needless(table: FloatArray, names: Strings, varied: BoolArray) -> Columns:
    """Leave out columns that do not vary, or depend on others, and say why."""
    why = dict.fromkeys(np.flatnonzero(~varied).tolist(), "the same in all rows")
    first = dict[bytes, int]()
    for column in np.flatnonzero(varied).tolist():
        values = table[:, column] + 0.0  # -0.0 and 0.0 are equal and differ in bytes
        equal = first.setdefault(blake2b(values.tobytes()).digest(), column)
        if equal != column:
            why[column] = f"equal to {names[equal]!r}"
    different = np.array(sorted(first.values()), dtype=np.int64)
    exact, nearly = _combinations(table, different, names)
    why |= exact
    kept = [column for column in different.tolist() if column not in why]
    left_out = tuple(f"{names[column]!r} ({why[column]})" for column in sorted(why))
    return Columns(np.array(kept, dtype=np.int64), left_out, nearly)


def _combinations(
    table: FloatArray, columns: IntArray, names: Strings
) -> tuple[dict[int, str], Strings]:
    """Return which columns are combinations of those before them, of which ones, and nearly so."""
    if not columns.size:
        return {}, ()
    centred, lengths = _centred(table[:, columns])
    units = centred / lengths
    # By how much sums of columns of length 1 are off
    rounding = float(_ROUNDING * np.sqrt(len(table)) / lengths.min())
    if _is_independent(units):
        return {}, ()
    return _found(units, rounding, [repr(names[column]) for column in columns], columns)


def _is_independent(units: FloatArray) -> bool:
    """Return whether none of some columns of length 1 is nearly a combination of others."""
    return bool(np.linalg.eigvalsh(units.T @ units)[0] > _CLEAR)


def _found(
    units: FloatArray, rounding: float, names: Sequence[str], columns: IntArray
) -> tuple[dict[int, str], Strings]:
    """Return combinations among columns of length 1, where there may be some."""
    # Gram and Schmidt's basis, twice for each column: once leaves rounding errors.
    basis = np.empty((len(units), 0))
    inside = list[int]()
    found = dict[int, str]()
    nearly = list[str]()
    for place in range(columns.size):
        rest = units[:, place]
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        length = float(np.sqrt(rest @ rest))
        parts = ""
        if length <= _LITTLE:
            taken = _explaining(units, inside, place)
            parts = f"a combination of {_listed([names[one] for one in taken])}"
        if length <= rounding:
            found[int(columns[place])] = parts
            continue
        basis = np.column_stack([basis, rest / length])
        inside.append(place)
        if parts:
            nearly.append(f"{names[place]} (nearly {parts})")
    return found, tuple(nearly)


def _centred(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return columns without their means, and their lengths, in units of their largest values.

    The intercept is one more column of the model.
    """
    scaled = table / np.abs(table).max(axis=0)
    centred = scaled - scaled.mean(axis=0)
    return centred, np.sqrt((centred**2).sum(axis=0))


def _explaining(units: FloatArray, inside: list[int], place: int) -> list[int]:
    """Return the columns whose combination a column is."""
    coefficients = np.linalg.lstsq(units[:, inside], units[:, place], rcond=None)[0]
    return [inside[one] for one in np.flatnonzero(np.abs(coefficients) > _TAKEN)]


def separating(table: FloatArray, names: Strings, member: BoolArray) -> str:
    """Say which columns decide membership by themselves; empty if none does."""
    return "; ".join(list(_separating(table, names, member))[:_LISTED])


def _separating(table: FloatArray, names: Strings, member: BoolArray) -> Iterator[str]:
    for name, column in zip(names, table.T, strict=True):
        inside = column[member]
        outside = column[~member]
        if inside.min() > outside.max() or outside.min() > inside.max():
            yield f"column {name!r} alone tells every member from every non-member"
            continue
        values, which = np.unique(column, return_inverse=True)
        if values.size != 2:
            continue
        for value in range(2):
            rows = member[which == value]
            if rows.all() or not rows.any():
                group = "non-members"
                if rows.all():
                    group = "members"
                of_value = f"rows with {values[value]:g} in column {name!r}"
                yield f"all {rows.size:,} {of_value} are {group}"


def _listed(parts: list[str]) -> str:
    if len(parts) > _LISTED:
        return f"{', '.join(parts[:_LISTED])} and {len(parts) - _LISTED} more"
    return " and ".join(parts)
