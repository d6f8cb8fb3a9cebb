"""Columns of features that a logistic model does not need, and those that decide membership."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray, Strings

# Steps between doubles that sums of columns may be off by. Columns that nearly depend on others
# stay: membership may depend on what is left of those.
_ROUNDING_STEPS = 64 * float(np.finfo(np.float64).eps)
# Residual length of a column of length 1 below which it nearly depends on others.
_NEARLY_DEPENDENT = 1e-5
# An eigenvalue of the correlations above which no column has so small a residual.
_CLEARLY_INDEPENDENT = 1e-9
# Coefficients of columns of length 1 that a message names.
_NAMED_COEFFICIENT = 1e-4
# Columns that a message names.
_MOST_LISTED = 3


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
    varies = table.max(axis=0) > table.min(axis=0)
    if varies.all():
        centred, lengths = _centred_columns(table)
        if _linearly_independent(centred / lengths):
            every_column = np.arange(lengths.size)
            return Columns(needed=every_column, left_out=(), nearly=())
    return _without_redundant_columns(table, names, varies)


def _without_redundant_columns(table: FloatArray, names: Strings, varies: BoolArray) -> Columns:
    """Leave out columns that do not vary, or depend on others, and say why."""
    constant_columns = np.flatnonzero(~varies).tolist()
    reasons = dict.fromkeys(constant_columns, "the same in all rows")
    first_with_digest = dict[bytes, int]()
    for column in np.flatnonzero(varies).tolist():
        values = table[:, column] + 0.0  # -0.0 and 0.0 are equal and differ in bytes
        digest = blake2b(values.tobytes()).digest()
        earlier_column = first_with_digest.setdefault(digest, column)
        if earlier_column != column:
            reasons[column] = f"equal to {names[earlier_column]!r}"
    distinct_columns = np.array(sorted(first_with_digest.values()), dtype=np.int64)
    combinations, nearly_dependent = _linear_combinations(table, distinct_columns, names)
    reasons |= combinations
    needed = [column for column in distinct_columns.tolist() if column not in reasons]
    left_out = tuple(f"{names[column]!r} ({reasons[column]})" for column in sorted(reasons))
    return Columns(
        needed=np.array(needed, dtype=np.int64),
        left_out=left_out,
        nearly=nearly_dependent,
    )


def _linear_combinations(
    table: FloatArray, columns: IntArray, names: Strings
) -> tuple[dict[int, str], Strings]:
    """Return which columns are combinations of those before them, of which ones, and nearly so."""
    if not columns.size:
        return {}, ()
    centred, lengths = _centred_columns(table[:, columns])
    unit_columns = centred / lengths
    # By how much sums of columns of length 1 are off
    rounding_error = float(_ROUNDING_STEPS * np.sqrt(len(table)) / lengths.min())
    if _linearly_independent(unit_columns):
        return {}, ()
    quoted_names = [repr(names[column]) for column in columns]
    return _orthogonalised(unit_columns, rounding_error, quoted_names, columns)


def _linearly_independent(unit_columns: FloatArray) -> bool:
    """Return whether none of some columns of length 1 is nearly a combination of others."""
    correlations = unit_columns.T @ unit_columns
    smallest_eigenvalue = np.linalg.eigvalsh(correlations)[0]
    return bool(smallest_eigenvalue > _CLEARLY_INDEPENDENT)


def _orthogonalised(
    unit_columns: FloatArray,
    rounding_error: float,
    quoted_names: Sequence[str],
    columns: IntArray,
) -> tuple[dict[int, str], Strings]:
    """Return combinations among columns of length 1, where there may be some."""
    # Gram and Schmidt's basis, twice for each column: once leaves rounding errors.
    basis = np.empty((len(unit_columns), 0))
    independent_places = list[int]()
    combinations = dict[int, str]()
    nearly_dependent = list[str]()
    for place in range(columns.size):
        residual = unit_columns[:, place]
        for _ in range(2):
            projection = basis @ (basis.T @ residual)
            residual = residual - projection
        residual_length = float(np.sqrt(residual @ residual))
        explanation = ""
        if residual_length <= _NEARLY_DEPENDENT:
            explaining = _explaining_places(unit_columns, independent_places, place)
            explaining_names = [quoted_names[other] for other in explaining]
            explanation = f"a combination of {_listed(explaining_names)}"
        if residual_length <= rounding_error:
            combinations[int(columns[place])] = explanation
            continue
        basis = np.column_stack([basis, residual / residual_length])
        independent_places.append(place)
        if explanation:
            nearly_dependent.append(f"{quoted_names[place]} (nearly {explanation})")
    return combinations, tuple(nearly_dependent)


def _centred_columns(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return columns without their means, and their lengths, in units of their largest values.

    The intercept is one more column of the model.
    """
    scaled = table / np.abs(table).max(axis=0)
    centred = scaled - scaled.mean(axis=0)
    squared_lengths = (centred**2).sum(axis=0)
    return centred, np.sqrt(squared_lengths)


def _explaining_places(
    unit_columns: FloatArray, independent_places: list[int], place: int
) -> list[int]:
    """Return the columns whose combination a column is, by least squares."""
    coefficients = np.linalg.lstsq(
        unit_columns[:, independent_places], unit_columns[:, place], rcond=None
    )[0]
    explaining = np.flatnonzero(np.abs(coefficients) > _NAMED_COEFFICIENT)
    return [independent_places[number] for number in explaining]


def separating(table: FloatArray, names: Strings, member: BoolArray) -> str:
    """Say which columns decide membership by themselves; empty if none does."""
    separating_columns = list(_separating_columns(table, names, member))
    return "; ".join(separating_columns[:_MOST_LISTED])


def _separating_columns(table: FloatArray, names: Strings, member: BoolArray) -> Iterator[str]:
    for name, column in zip(names, table.T, strict=True):
        of_members = column[member]
        of_nonmembers = column[~member]
        members_above = of_members.min() > of_nonmembers.max()
        if members_above or of_nonmembers.min() > of_members.max():
            yield f"column {name!r} alone tells every member from every non-member"
            continue
        distinct_values, value_indices = np.unique(column, return_inverse=True)
        if distinct_values.size == 2:
            yield from _one_sided_values(name, distinct_values, member, value_indices)


def _one_sided_values(
    name: str, distinct_values: FloatArray, member: BoolArray, value_indices: IntArray
) -> Iterator[str]:
    """Say which values of a column only members have, or only non-members."""
    for index, value in enumerate(distinct_values):
        member_with_value = member[value_indices == index]
        group = ""
        if member_with_value.all():
            group = "members"
        elif not member_with_value.any():
            group = "non-members"
        if group:
            rows_with_value = f"rows with {value:g} in column {name!r}"
            yield f"all {member_with_value.size:,} {rows_with_value} are {group}"


def _listed(names: list[str]) -> str:
    if len(names) > _MOST_LISTED:
        first_names = ", ".join(names[:_MOST_LISTED])
        return f"{first_names} and {len(names) - _MOST_LISTED} more"
    return " and ".join(names)
