"""Columns of several tables, read so that no value reveals the table that it came from."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from leakbound._base.checks import WHOLE
from leakbound._base.odds import log_choose
from leakbound._base.tables import DOUBLE, NAMES, Column, ColumnKind, named
from leakbound._base.text import settled
from leakbound._base.types import AnyArray, GenericArray
from leakbound.errors import InputError

_COARSE_PRECISIONS = (np.dtype(np.float16), np.dtype(np.float32))
TableColumns: TypeAlias = Mapping[str, Column]
"""The columns of a table, by name."""

# What is where a column has no value.
_BLANK_MOMENT = np.datetime64(0, "us")
_BLANKS: Mapping[ColumnKind, object] = {
    "number": np.float64(0),
    "date": _BLANK_MOMENT,
    "zoned": _BLANK_MOMENT,
}
# What a random split does less often is a difference in how tables are written.
_LEAST_P_VALUE = 1e-6


def row_count_of_table(table: TableColumns) -> int:
    """Return how many rows a table has."""
    first_column = next(iter(table.values()))
    return first_column.missing.size


def same_columns(tables: Mapping[str, TableColumns]) -> tuple[str, ...]:
    """Check that tables have the same columns, in any order, and return those of the first."""
    (first_table, first_columns), *other_tables = tables.items()
    for table_name, columns_of_table in other_tables:
        _check_no_missing_columns(
            table_name, missing_names=first_columns.keys() - columns_of_table.keys()
        )
        _check_no_missing_columns(
            first_table, missing_names=columns_of_table.keys() - first_columns.keys()
        )
    return tuple(first_columns)


def _check_no_missing_columns(table_name: str, *, missing_names: Collection[str]) -> None:
    """Refuse a table that lacks columns of another."""
    if not missing_names:
        return
    verb = "has"
    if table_name.endswith("s"):
        verb = "have"
    listed_names = named(sorted(missing_names))
    raise InputError(f"{table_name} {verb} no column {listed_names}: columns must match")


def pooled(
    member_column: Column, nonmember_column: Column, name: str, *, codes: bool = False
) -> Column:
    """Put a column of the audited records together, so that values do not reveal their table."""
    member_column, nonmember_column = settled([member_column, nonmember_column], name, codes=codes)
    kinds = {member_column.kind, nonmember_column.kind} - {"empty"}
    if len(kinds) > 1:
        raise InputError(
            f"column {name!r} holds {NAMES[member_column.kind]} for members and "
            f"{NAMES[nonmember_column.kind]} for non-members: how a value is written must not "
            "reveal membership; read both tables in the same way"
        )
    pooled_column = joined([member_column, nonmember_column])
    if pooled_column.kind != "number":
        return pooled_column
    # Both sides get the precision of the coarser one.
    coarser_precision = min(
        member_column.precision,
        nonmember_column.precision,
        key=lambda precision: precision.itemsize,
    )
    if coarser_precision != DOUBLE:
        return _rounded_numbers_of(pooled_column, coarser_precision)
    former_precision = _former_precision_of_numbers(member_column, nonmember_column)
    if former_precision is None:
        former_precision = _double_beside_exact_integers(member_column, nonmember_column)
    if former_precision is None:
        return pooled_column
    return _rounded_numbers_of(pooled_column, former_precision)


def _rounded_numbers_of(number_column: Column, precision: np.dtype[np.generic]) -> Column:
    """Return numbers in a coarser precision, where it has them."""
    with np.errstate(over="ignore"):
        rounded_numbers = number_column.values.astype(precision).astype(np.float64)
    doubles = number_column.values.astype(np.float64)
    finite_numbers = np.where(np.isfinite(rounded_numbers), rounded_numbers, doubles)
    return replace(number_column, values=finite_numbers, precision=precision)


def _former_precision_of_numbers(
    members: Column, nonmembers: Column
) -> np.dtype[np.generic] | None:
    """Return the precision that all numbers of one of the tables were once held in."""
    if not members.kind == nonmembers.kind == "number":
        return None
    numbers_by_table = [
        column_of_table.values[~column_of_table.missing]
        for column_of_table in (members, nonmembers)
    ]
    total_number_count = sum(numbers_of_table.size for numbers_of_table in numbers_by_table)
    for precision in (*_COARSE_PRECISIONS, DOUBLE):
        with np.errstate(over="ignore"):
            finer_counts = [
                _count_of_finer_numbers(numbers_of_table, precision)
                for numbers_of_table in numbers_by_table
            ]
        total_finer_count = max(finer_counts)
        if total_finer_count == 0 or min(finer_counts) > 0:
            continue
        # Numbers that all fit a coarser type on one side only came from there: all that do not
        # fit are on the other side, of all ways to place them (hypergeometric, for either side).
        numbers_with_finer = numbers_by_table[int(np.argmax(finer_counts))]
        log_placements_here = log_choose(numbers_with_finer.size, total_finer_count)
        log_placements = log_choose(total_number_count, total_finer_count)
        if 2 * math.exp(log_placements_here - log_placements) < _LEAST_P_VALUE:
            return precision
    return None


def _count_of_finer_numbers(numbers_of_table: GenericArray, precision: np.dtype[np.generic]) -> int:
    """Return how many numbers a type does not hold."""
    rounded_numbers: GenericArray = numbers_of_table.astype(precision)
    if numbers_of_table.dtype == object:  # compared exactly, as Python does
        rounded_numbers = rounded_numbers.astype(np.float64).astype(object)
    return int((rounded_numbers != numbers_of_table).sum())


def _double_beside_exact_integers(
    members: Column, nonmembers: Column
) -> np.dtype[np.generic] | None:
    """Return double precision where one side has integers that the other may have rounded."""
    if members.is_exact == nonmembers.is_exact:
        return None
    inexact_column = members
    if members.is_exact:
        inexact_column = nonmembers
    if inexact_column.kind != "number":
        return None
    largest_magnitude = np.abs(inexact_column.values).max(initial=0)
    if largest_magnitude < WHOLE:
        return None
    return DOUBLE


def joined(columns_of_tables: list[Column]) -> Column:
    """Put one column of several tables under each other, as the kind that all have in common."""
    if len(columns_of_tables) == 1:
        return columns_of_tables[0]
    distinct_kinds = {column_of_table.kind for column_of_table in columns_of_tables} - {"empty"}
    # Dates with a time zone are those of UTC.
    if distinct_kinds == {"date", "zoned"}:
        distinct_kinds = {"date"}
    is_missing = np.concatenate([column_of_table.missing for column_of_table in columns_of_tables])
    marks_of_missing = Counter[str]()
    for column_of_table in columns_of_tables:
        marks_of_missing.update(column_of_table.marks)
    # Words are the kind that any two others share.
    if len(distinct_kinds) > 1:
        joined_words = np.concatenate(
            [column_of_table.as_words() for column_of_table in columns_of_tables]
        )
        return Column(joined_words, is_missing, kind="word", marks=marks_of_missing)
    common_kind: ColumnKind = "empty"
    if distinct_kinds:
        common_kind = distinct_kinds.pop()
    any_column_exact = any(column_of_table.is_exact for column_of_table in columns_of_tables)
    values_of_tables = [
        _values_of_kind(common_kind, column_of_table, exact=any_column_exact)
        for column_of_table in columns_of_tables
    ]
    joined_values = np.concatenate(values_of_tables)
    return Column(joined_values, is_missing, common_kind, marks=marks_of_missing)


def _values_of_kind(kind: ColumnKind, column: Column, *, exact: bool) -> AnyArray:
    """Return values as a column of some kind has them; an empty column has blanks."""
    blank_value = _BLANKS.get(kind, np.str_(""))
    if exact:
        blank_value = 0
    column_values: AnyArray = column.values
    if column.kind == "empty":
        column_values = np.full(column.missing.size, blank_value)
    elif exact:
        column_values = column.as_exact()
    if exact:
        return column_values.astype(object)
    return column_values
