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


def columns_needed(feature_table: FloatArray, column_names: Strings) -> Columns:
    """Return the columns that a model needs.

    Without a column that is constant, equal to one before it, or a linear combination of those
    before it, the model is the same.
    """
    is_varying = feature_table.max(axis=0) > feature_table.min(axis=0)
    if is_varying.all():
        centred_columns, column_lengths = _centred_columns(feature_table)
        if _are_linearly_independent(centred_columns / column_lengths):
            every_column = np.arange(column_lengths.size)
            return Columns(needed=every_column, left_out=(), nearly=())
    return _without_redundant_columns(feature_table, column_names, is_varying)


def _without_redundant_columns(
    feature_table: FloatArray, column_names: Strings, is_varying: BoolArray
) -> Columns:
    """Leave out columns that do not vary, or depend on others, and say why."""
    constant_columns = np.flatnonzero(~is_varying).tolist()
    reasons_to_leave_out = dict.fromkeys(constant_columns, "the same in all rows")
    first_column_with_digest = dict[bytes, int]()
    for column in np.flatnonzero(is_varying).tolist():
        column_values = feature_table[:, column] + 0.0  # -0.0 and 0.0 are equal and differ in bytes
        digest_of_column = blake2b(column_values.tobytes()).digest()
        earlier_column = first_column_with_digest.setdefault(digest_of_column, column)
        if earlier_column != column:
            reasons_to_leave_out[column] = f"equal to {column_names[earlier_column]!r}"
    distinct_columns = np.array(sorted(first_column_with_digest.values()), dtype=np.int64)
    reasons_of_combinations, nearly_dependent_columns = _linear_combinations(
        feature_table, distinct_columns, column_names
    )
    reasons_to_leave_out |= reasons_of_combinations
    needed_columns = [
        column for column in distinct_columns.tolist() if column not in reasons_to_leave_out
    ]
    left_out = tuple(
        f"{column_names[column]!r} ({reasons_to_leave_out[column]})"
        for column in sorted(reasons_to_leave_out)
    )
    return Columns(
        needed=np.array(needed_columns, dtype=np.int64),
        left_out=left_out,
        nearly=nearly_dependent_columns,
    )


def _linear_combinations(
    feature_table: FloatArray, columns: IntArray, column_names: Strings
) -> tuple[dict[int, str], Strings]:
    """Return which columns are combinations of those before them, of which ones, and nearly so."""
    if not columns.size:
        return {}, ()
    centred_columns, column_lengths = _centred_columns(feature_table[:, columns])
    unit_columns = centred_columns / column_lengths
    # By how much sums of columns of length 1 are off
    largest_rounding_length = float(
        _ROUNDING_STEPS * np.sqrt(len(feature_table)) / column_lengths.min()
    )
    if _are_linearly_independent(unit_columns):
        return {}, ()
    quoted_column_names = [repr(column_names[column]) for column in columns]
    return _combinations_by_gram_schmidt(
        unit_columns, largest_rounding_length, quoted_column_names, columns
    )


def _are_linearly_independent(unit_columns: FloatArray) -> bool:
    """Return whether none of some columns of length 1 is nearly a combination of others."""
    correlations = unit_columns.T @ unit_columns
    smallest_eigenvalue = np.linalg.eigvalsh(correlations)[0]
    return bool(smallest_eigenvalue > _CLEARLY_INDEPENDENT)


def _combinations_by_gram_schmidt(
    unit_columns: FloatArray,
    largest_rounding_length: float,
    quoted_column_names: Sequence[str],
    columns: IntArray,
) -> tuple[dict[int, str], Strings]:
    """Return combinations among columns of length 1, where there may be some."""
    # Gram and Schmidt's basis, twice for each column: once leaves rounding errors.
    orthonormal_basis = np.empty((len(unit_columns), 0))
    independent_columns = list[int]()
    reasons_of_combinations = dict[int, str]()
    nearly_dependent_columns = list[str]()
    for column_place in range(columns.size):
        residual_column = unit_columns[:, column_place]
        for _ in range(2):
            projected_column = orthonormal_basis @ (orthonormal_basis.T @ residual_column)
            residual_column = residual_column - projected_column
        residual_length = float(np.sqrt(residual_column @ residual_column))
        explaining_combination = ""
        if residual_length <= _NEARLY_DEPENDENT:
            explaining_columns = _explaining_columns(
                unit_columns, independent_columns, column_place
            )
            explaining_names = [quoted_column_names[other] for other in explaining_columns]
            explaining_combination = f"a combination of {_first_columns_named(explaining_names)}"
        if residual_length <= largest_rounding_length:
            reasons_of_combinations[int(columns[column_place])] = explaining_combination
            continue
        orthonormal_basis = np.column_stack([orthonormal_basis, residual_column / residual_length])
        independent_columns.append(column_place)
        if explaining_combination:
            nearly_dependent_columns.append(
                f"{quoted_column_names[column_place]} (nearly {explaining_combination})"
            )
    return reasons_of_combinations, tuple(nearly_dependent_columns)


def _centred_columns(feature_table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return columns without their means, and their lengths, in units of their largest values.

    The intercept is one more column of the model.
    """
    scaled_columns = feature_table / np.abs(feature_table).max(axis=0)
    centred_columns = scaled_columns - scaled_columns.mean(axis=0)
    squared_lengths = (centred_columns**2).sum(axis=0)
    return centred_columns, np.sqrt(squared_lengths)


def _explaining_columns(
    unit_columns: FloatArray, independent_columns: list[int], column_place: int
) -> list[int]:
    """Return the columns whose combination a column is, by least squares."""
    coefficients = np.linalg.lstsq(
        unit_columns[:, independent_columns], unit_columns[:, column_place], rcond=None
    )[0]
    explaining_columns = np.flatnonzero(np.abs(coefficients) > _NAMED_COEFFICIENT)
    return [independent_columns[number] for number in explaining_columns]


def deciding_columns(feature_table: FloatArray, column_names: Strings, member: BoolArray) -> str:
    """Say which columns decide membership by themselves; empty if none does."""
    separating_columns = list(_separating_columns(feature_table, column_names, member))
    return "; ".join(separating_columns[:_MOST_LISTED])


def _separating_columns(
    feature_table: FloatArray, column_names: Strings, member: BoolArray
) -> Iterator[str]:
    for name, column in zip(column_names, feature_table.T, strict=True):
        member_values = column[member]
        nonmember_values = column[~member]
        members_above = member_values.min() > nonmember_values.max()
        if members_above or nonmember_values.min() > member_values.max():
            yield f"column {name!r} alone tells every member from every non-member"
            continue
        distinct_values, index_of_value = np.unique(column, return_inverse=True)
        if distinct_values.size == 2:
            yield from _values_of_one_group(name, distinct_values, member, index_of_value)


def _values_of_one_group(
    name: str, distinct_values: FloatArray, member: BoolArray, index_of_value: IntArray
) -> Iterator[str]:
    """Say which values of a column only members have, or only non-members."""
    for index, value in enumerate(distinct_values):
        are_members_with_value = member[index_of_value == index]
        group = ""
        if are_members_with_value.all():
            group = "members"
        elif not are_members_with_value.any():
            group = "non-members"
        if group:
            rows_with_value = f"rows with {value:g} in column {name!r}"
            yield f"all {are_members_with_value.size:,} {rows_with_value} are {group}"


def _first_columns_named(column_names: list[str]) -> str:
    if len(column_names) > _MOST_LISTED:
        first_names = ", ".join(column_names[:_MOST_LISTED])
        return f"{first_names} and {len(column_names) - _MOST_LISTED} more"
    return " and ".join(column_names)
