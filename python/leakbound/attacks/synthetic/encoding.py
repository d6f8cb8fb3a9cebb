"""Columns of tables, read so that no value reveals its table, as coordinates and digests.

Numbers and dates are in units of a spread, beyond which they grow as logarithms do; words count 0
or 1, and of many words each has a random vector.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE
from leakbound._base.messages import Message
from leakbound._base.numerics import log_choose
from leakbound._base.streams import Purpose
from leakbound._base.tables import DOUBLE, NAMES, Column, ColumnKind, named
from leakbound._base.text import marked, settled, suspicion, taken_as_words
from leakbound._base.types import AnyArray, BoolArray, FloatArray, GenericArray, IntArray
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


MOST_ONE_HOT = 8  # words of a column with a coordinate each; of more, each has a random vector
RANDOM_DIMENSIONS = 8  # coordinates of this vector
LARGEST_NUMBER = 1e150  # numbers beyond are scaled: their sums would be infinite
NORMAL_IQR = 1.349  # interquartile range of a standard normal distribution
MISSING = -1  # stands for a missing value among codes of values


class Coordinates(NamedTuple):
    """Rows of tables put together, as coordinates.

    `sources` has the column that each dimension comes from, `notes` why others are left out.
    `codes` has a number for each value of each column that is kept, the same for equal ones, larger
    for larger ones, and -1 for missing ones; `ordered` names columns of numbers and dates.
    """

    rows: FloatArray
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    codes: IntArray
    ordered: frozenset[str]


class _ColumnAsCoordinates(NamedTuple):
    """A column as coordinates, with a code for each value, or why it is ignored."""

    coordinates: FloatArray
    value_codes: IntArray
    why_ignored: str = ""


class _RowsWithValues(NamedTuple):
    """Rows where a column has a value: of audited records, and of synthetic ones if there are."""

    audited: IntArray
    synthetic: IntArray | None


def coordinates(
    tables: Sequence[TableColumns], codes: Collection[str], seed: int, *, synthetic: bool
) -> Coordinates:
    """Encode columns of tables, the first of which has the audited records.

    Which columns vary is said by these records alone. If `synthetic`, the second table is the
    synthetic one: numbers are in units of their spread there, if they vary there, and columns of
    many words need a word that is also there.
    """
    audited_row_count = row_count_of_table(tables[0])
    synthetic_row_count = None
    if synthetic:
        synthetic_row_count = row_count_of_table(tables[1])
    coordinates_of_columns: list[FloatArray] = []
    codes_of_columns: list[IntArray] = []
    column_of_dimensions: list[str] = []
    column_notes: list[str] = []
    missing_marks: dict[str, Mapping[str, int]] = {}
    ordered_columns: set[str] = set()
    for column_number, column_name in enumerate(tables[0]):
        column_of_tables = _column_of_each_table(tables, column_name, codes)
        joined_column = joined(column_of_tables)
        column_notes += _notes_of_reading(
            joined_column, column_of_tables[0], column_name, coded=column_name in codes
        )
        if joined_column.marks:
            missing_marks[column_name] = joined_column.marks
        word_rng = Purpose.SYNTHETIC_WORDS.rng(seed, column_number)
        encoded_column = _encoded_column(
            joined_column,
            audited_row_count=audited_row_count,
            synthetic_row_count=synthetic_row_count,
            word_rng=word_rng,
        )
        if encoded_column.why_ignored:
            column_notes.append(f"column {column_name!r} {encoded_column.why_ignored}: ignored")
            continue
        coordinates_of_columns.append(encoded_column.coordinates)
        codes_of_columns.append(encoded_column.value_codes)
        column_of_dimensions += [column_name] * encoded_column.coordinates.shape[1]
        if _has_distances(joined_column):
            ordered_columns.add(column_name)
    if missing_marks:
        has_named_columns = all(column.writing.named for column in tables[0].values())
        column_notes.append(marked(missing_marks, named=has_named_columns))
    if not coordinates_of_columns:
        message = "all audited records are equal in every column: {notes}"
        raise InputError(Message(message, notes=Message.joined(column_notes)))
    return Coordinates(
        rows=np.ascontiguousarray(np.concatenate(coordinates_of_columns, axis=1)),
        sources=tuple(column_of_dimensions),
        notes=tuple(column_notes),
        codes=np.column_stack(codes_of_columns),
        ordered=frozenset(ordered_columns),
    )


def _has_distances(column: Column) -> bool:
    """Return whether values of a column have distances: numbers and dates that a double holds."""
    return column.kind in {"number", "date", "zoned"} and not column.is_exact


def digests(
    tables: Sequence[TableColumns],
    codes: Collection[str],
    names: Collection[str] | None = None,
) -> NDArray[np.void]:
    """Return digests of rows of tables put together, the same for rows equal in some columns.

    Without `names`, in all columns that vary among the records of the first table.
    """
    audited_row_count = row_count_of_table(tables[0])
    content_of_columns = list[NDArray[np.uint8]]()
    for column_name in tables[0]:
        column_of_tables = _column_of_each_table(tables, column_name, codes)
        if names is None:
            is_compared = not _why_nothing_varies(column_of_tables[0], audited_row_count)
        else:
            is_compared = column_name in names
        if not is_compared:
            continue
        column_kinds = {(column.kind, column.is_exact) for column in column_of_tables}
        if len(column_kinds) > 1:
            column_of_tables = [joined(column_of_tables)]
        content_of_columns.append(np.concatenate([column.content for column in column_of_tables]))
    row_digests = bytearray()
    for row_content in np.column_stack(content_of_columns):
        row_digests += blake2b(row_content.tobytes(), digest_size=16).digest()
    return np.frombuffer(bytes(row_digests), dtype="V16")


def _column_of_each_table(
    tables: Sequence[TableColumns], column_name: str, codes: Collection[str]
) -> list[Column]:
    """Return a column of each table; text is what it is among the audited records, or words."""
    audited_column, *other_columns = (table[column_name] for table in tables)
    are_codes = column_name in codes
    column_of_tables = settled([audited_column], column_name, codes=are_codes)
    audited_kind = column_of_tables[0].kind
    for other_column in other_columns:
        column_of_tables += settled([other_column], column_name, kind=audited_kind, codes=are_codes)
    if are_codes:
        return [column.as_codes() for column in column_of_tables]
    return column_of_tables


def _notes_of_reading(
    joined_column: Column, audited_column: Column, column_name: str, *, coded: bool
) -> list[str]:
    """Return what a reader should know of how a column was read."""
    notes = []
    if joined_column.kind == "word" and audited_column.kind not in {"word", "empty"}:
        notes.append(f"column {column_name!r} is of another kind in other tables: taken as words")
    if coded:
        return notes
    suspected_meaning = suspicion(audited_column, column_name)
    if suspected_meaning:
        treatment = taken_as_words(audited_column, column_name)
        notes.append(
            Message(
                "column {name!r} {meant}: {done}",
                name=column_name,
                meant=suspected_meaning,
                done=treatment,
            )
        )
    return notes


def _encoded_column(
    joined_column: Column,
    audited_row_count: int,
    synthetic_row_count: int | None,
    word_rng: np.random.Generator,
) -> _ColumnAsCoordinates:
    """Return the coordinates of a column, or why it is ignored.

    Audited records are in its first rows; synthetic ones, if there are any, in those that follow.
    """
    why_ignored = _why_nothing_varies(joined_column, audited_row_count)
    if why_ignored:
        return _ignored_column(why_ignored)
    rows_with_values = _rows_with_values(joined_column, audited_row_count, synthetic_row_count)
    _, value_codes = np.unique(joined_column.values, return_inverse=True)
    value_codes = value_codes.astype(np.int64)
    if joined_column.kind in {"word", "flag"}:
        if not _shares_words_with_synthetic(value_codes, rows_with_values):
            return _ignored_column("has no word in common with the synthetic table")
        column_coordinates = _vectors_of_words(value_codes, joined_column.missing, word_rng)
    else:
        column_coordinates = _arsinh_scaled_numbers(joined_column, rows_with_values)[:, None]
    if joined_column.is_exact:
        # Integers this large are ids or moments: what copies one copies all of its digits.
        _, word_codes = np.unique(joined_column.as_codes().values, return_inverse=True)
        if _shares_words_with_synthetic(word_codes, rows_with_values):
            vectors_of_codes = _vectors_of_words(word_codes, joined_column.missing, word_rng)
            column_coordinates = np.column_stack([column_coordinates, vectors_of_codes])
    if joined_column.missing.any():
        column_coordinates = np.column_stack([column_coordinates, joined_column.missing])
    known_value_codes = np.where(joined_column.missing, MISSING, value_codes)
    return _ColumnAsCoordinates(column_coordinates, known_value_codes)


def _ignored_column(why_ignored: str) -> _ColumnAsCoordinates:
    """Return no coordinates of a column, and why."""
    return _ColumnAsCoordinates(np.empty((0, 0)), np.empty(0, np.int64), why_ignored)


def _rows_with_values(
    joined_column: Column, audited_row_count: int, synthetic_row_count: int | None
) -> _RowsWithValues:
    """Return the audited rows where a column has a value, and the synthetic ones."""
    audited_rows = np.flatnonzero(~joined_column.missing[:audited_row_count])
    if synthetic_row_count is None:
        return _RowsWithValues(audited_rows, synthetic=None)
    synthetic_missing = joined_column.missing[audited_row_count:][:synthetic_row_count]
    synthetic_rows = audited_row_count + np.flatnonzero(~synthetic_missing)
    return _RowsWithValues(audited_rows, synthetic_rows)


def _why_nothing_varies(joined_column: Column, audited_row_count: int) -> str:
    """Return why a column says nothing: only what varies among audited records tells them apart."""
    is_missing_in_audited = joined_column.missing[:audited_row_count]
    distinct_audited_values = np.unique(
        joined_column.values[:audited_row_count][~is_missing_in_audited]
    )
    if not distinct_audited_values.size:
        return "is missing in all records"
    if distinct_audited_values.size == 1 and not is_missing_in_audited.any():
        return "is the same in all records"
    return ""


def _arsinh_scaled_numbers(joined_column: Column, rows_with_values: _RowsWithValues) -> FloatArray:
    """Return numbers or dates in units of their spread; far ones grow as logarithms do."""
    column_numbers = joined_column.values
    if joined_column.kind in {"date", "zoned"}:
        days_since_epoch = (column_numbers - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        column_numbers = np.where(joined_column.missing, 0.0, days_since_epoch)
    if joined_column.is_exact:
        # Differences from one of them are small where they are near each other.
        smallest_known_number = np.min(column_numbers[~joined_column.missing])
        column_numbers = np.where(joined_column.missing, 0, column_numbers - smallest_known_number)
    largest_magnitude = np.abs(column_numbers).max()
    if largest_magnitude > LARGEST_NUMBER:
        column_numbers = column_numbers / largest_magnitude
    column_numbers = column_numbers.astype(np.float64)
    reference_numbers = column_numbers[rows_with_values.audited]
    if rows_with_values.synthetic is not None:
        known_synthetic_numbers = column_numbers[rows_with_values.synthetic]
        if known_synthetic_numbers.size and np.ptp(known_synthetic_numbers) > 0:
            reference_numbers = known_synthetic_numbers
    reference_median, reference_spread = _median_and_robust_spread(reference_numbers)
    scaled_numbers = np.arcsinh((column_numbers - reference_median) / reference_spread)
    return np.asarray(np.where(joined_column.missing, 0.0, scaled_numbers))


def _median_and_robust_spread(numbers: FloatArray) -> tuple[float, float]:
    """Return the median of numbers and their robust spread, 1 if they are all equal."""
    sorted_numbers = np.sort(numbers)
    lower_quartile, median, upper_quartile = np.quantile(sorted_numbers, [0.25, 0.5, 0.75])
    # The interquartile range of a normal distribution is 1.349 standard deviations.
    robust_spread = (upper_quartile - lower_quartile) / NORMAL_IQR
    return float(median), float(robust_spread or sorted_numbers.std() or 1.0)


def _shares_words_with_synthetic(
    word_codes: NDArray[np.integer], rows_with_values: _RowsWithValues
) -> bool:
    """Return whether a word of the audited records is also in the synthetic table.

    Only columns of many words need one: few words have a coordinate each.
    """
    if rows_with_values.synthetic is None:
        return True
    if word_codes.max() < MOST_ONE_HOT:
        return True
    audited_word_codes = word_codes[rows_with_values.audited]
    synthetic_word_codes = word_codes[rows_with_values.synthetic]
    return bool(np.isin(audited_word_codes, synthetic_word_codes).any())


def _vectors_of_words(
    word_codes: NDArray[np.integer], is_missing: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Return a coordinate for each word or, if there are many, a random vector for each.

    Words are numbered from 0.
    """
    word_count = int(word_codes.max()) + 1
    if word_count == 2:
        vector_of_word = np.array([[0.0], [1.0]])
    elif word_count <= MOST_ONE_HOT:
        vector_of_word = np.eye(word_count) / np.sqrt(2)
    else:
        random_signs = rng.choice([-1.0, 1.0], (word_count, RANDOM_DIMENSIONS))
        vector_of_word = random_signs / np.sqrt(2 * RANDOM_DIMENSIONS)
    return np.where(is_missing[:, None], 0.0, vector_of_word[word_codes])
