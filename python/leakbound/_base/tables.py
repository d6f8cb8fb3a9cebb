"""One reader of tables: the same columns, whatever holds them.

Data frames of any library (by narwhals), mappings of columns, arrays and the text of files become
columns of numbers, moments, booleans or text. What text stands for is settled by `text.settled`.
"""

import datetime as dt
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from numbers import Complex, Integral, Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE, shown
from leakbound._base.reading import are_records, readable
from leakbound._base.types import AnyArray, BoolArray, Data, InWords, Named, Strings, TextArray
from leakbound.errors import InputError

if TYPE_CHECKING:
    from leakbound._base.types import ArrayInput


@runtime_checkable
class _Frame(Protocol):
    """A data frame, eager or lazy."""

    @property
    def columns(self) -> Data: ...


if TYPE_CHECKING:
    TableInput: TypeAlias = Mapping[str, ArrayInput] | ArrayInput | _Frame
else:
    TableInput = InWords("table")
"""A data frame of any library, a mapping from names to columns, or a two-dimensional array."""
ColumnKind: TypeAlias = Literal["number", "date", "zoned", "flag", "text", "word", "empty"]
"""What a column holds; of "text" it is not settled yet."""

DOUBLE = np.dtype(np.float64)
_NESTED_TYPES = (list, tuple, set, frozenset, Mapping)
_ARROW_METHODS = ("__arrow_c_array__", "__arrow_c_stream__")  # batches and readers of them
_LISTED_NAMES = 5  # names that a message lists
NAMES: dict[ColumnKind, str] = {
    "number": "numbers",
    "date": "dates",
    "zoned": "dates with a time zone",
    "flag": "booleans",
    "text": "words",
    "word": "words",
    "empty": "nothing",
}


@dataclass(frozen=True)
class Writing:
    """How values are written: the signs in numbers, and what stands for a missing value.

    `missing` are further marks of missing values, besides those that `text` knows: words of any
    column, and numbers as text. `named` says whether the caller has options that name such marks
    and columns of codes: a message is about these, or else about the table itself.
    """

    decimal: str = "."
    thousands: str = ""
    missing: Strings = ()
    named: bool = True


_PLAIN_WRITING = Writing()


@dataclass(frozen=True, eq=False)
class Column:
    """One column of one table: numbers, datetime64[us] (of UTC if they had a time zone) or str.

    Numbers are doubles or, where doubles would merge integers, objects: integers and floats of
    Python. Values that `missing` marks mean nothing. `precision` is that of numbers as they were
    given, `writing` that of text, `table` the table for messages. `marks` counts the words that
    were read as missing, and `categorical` says that the values were declared to be categories.
    """

    values: AnyArray
    missing: BoolArray
    kind: ColumnKind
    precision: np.dtype[np.generic] = DOUBLE
    writing: Writing = _PLAIN_WRITING
    table: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    categorical: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether numbers are objects, some of which no double holds apart from others."""
        return self.kind == "number" and self.values.dtype == object

    def as_words(self) -> TextArray:
        """Return the values as text; whole numbers have no decimals, whatever their type was."""
        words = self.values
        if self.kind == "number":
            distinct_numbers, number_of_row = np.unique(self.values, return_inverse=True)
            words_of_numbers = list(map(_in_one_spelling, distinct_numbers.tolist()))
            words = np.array(words_of_numbers, dtype=np.str_)[number_of_row]
        return np.where(self.missing, "", words.astype(np.str_))

    def as_codes(self) -> "Column":
        """Return the same values as words."""
        return replace(self, values=self.as_words(), kind="word", precision=DOUBLE)

    def as_exact(self) -> NDArray[np.object_]:
        """Return numbers as objects, whole ones as integers."""
        return objects(exact_number(value) for value in self.values.tolist())

    @cached_property
    def content(self) -> NDArray[np.uint8]:
        """Return 9 bytes for each value, the same for equal ones; those of words are a digest."""
        bits_of_values = self._bits_of_values()
        known_or_zero = np.where(self.missing, np.uint64(0), bits_of_values)
        bytes_of_values = known_or_zero.astype("<u8").view(np.uint8).reshape(-1, 8)
        return np.column_stack([bytes_of_values, self.missing])

    def _bits_of_values(self) -> NDArray[np.uint64]:
        """Return 64 bits for each value: those of doubles and dates, and digests of words."""
        values = self.values
        if self.is_exact:
            values = self.as_words()
        if values.dtype.kind != "U":
            if self.kind == "number":
                values = values + 0.0  # -0.0 becomes 0.0
            return values.view(np.uint64)
        distinct_words, word_of_row = np.unique(values, return_inverse=True)
        digests_of_words = bytearray()
        for word in distinct_words.tolist():
            encoded_word = word.encode("utf-8", "surrogatepass")
            digests_of_words += blake2b(encoded_word, digest_size=8).digest()
        bits_of_words = np.frombuffer(digests_of_words, dtype=np.uint64)
        return bits_of_words[word_of_row]


# --- tables of any form ---------------------------------------------------------------------------


def read_columns(
    table: TableInput, name: str, writing: Writing = _PLAIN_WRITING
) -> dict[str, Column]:
    """Read a table of any form; InputError says which value of which column cannot be used."""
    columns_by_name = dict[str, Column]()
    for label, stored_column in _stored_columns(table, name).items():
        columns_by_name[label] = _read_column(stored_column, label, table=name, writing=writing)
    lengths_of_columns = {column.missing.size for column in columns_by_name.values()}
    if not columns_by_name or 0 in lengths_of_columns:
        raise InputError(f"{name} must be a table with at least one row and one column")
    if len(lengths_of_columns) > 1:
        listed_lengths = ", ".join(
            f"{label!r} has {column.missing.size:,} values"
            for label, column in columns_by_name.items()
        )
        raise InputError(f"the columns of {name} differ in length: {listed_lengths}")
    return columns_by_name


def named(names: Iterable[str]) -> str:
    """Return some names as a message lists them."""
    quoted_column_names = list(map(repr, names))
    first_column_names = ", ".join(quoted_column_names[:_LISTED_NAMES])
    if len(quoted_column_names) > _LISTED_NAMES:
        return f"{first_column_names} and {len(quoted_column_names) - _LISTED_NAMES} more"
    return first_column_names


def kinds_of(columns: Mapping[str, ColumnKind]) -> str:
    """Say what the columns of a table were read as."""
    names_of_kind = defaultdict[str, list[str]](list)
    for column_name, kind in columns.items():
        if kind != "empty":
            names_of_kind[NAMES[kind]].append(column_name)
    return "; ".join(f"as {kind}: {named(names)}" for kind, names in names_of_kind.items())


def _stored_columns(table: Data, table_name: str) -> Named:
    """Return the columns of a table of any form by name, as they are stored."""
    if isinstance(table, str | os.PathLike):
        raise InputError(
            f"{table_name} must be a table, got a path: read the file first (pandas.read_csv)"
        )
    if isinstance(table, Mapping):
        _check_column_names([*table], table_name)
        return dict(zip(map(str, table), table.values(), strict=True))
    if are_records(table):
        names_in_records = dict.fromkeys(chain.from_iterable(table))
        columns_of_records = {
            name: [record.get(name) for record in table] for name in names_in_records
        }
        return _stored_columns(columns_of_records, table_name)
    if hasattr(table, "toarray"):  # sparse
        table = table.toarray()
    if not isinstance(table, np.ndarray | list | tuple):
        columns_of_frame = _columns_of_frame(table, table_name)
        if columns_of_frame is not None:
            return columns_of_frame
    try:
        two_dimensional_array = readable(table)
        if not _is_masked_array(two_dimensional_array):
            two_dimensional_array = np.asarray(two_dimensional_array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{table_name} cannot be read as a table: {error}") from error
    if two_dimensional_array.dtype.names:
        return {
            field_name: two_dimensional_array[field_name]
            for field_name in two_dimensional_array.dtype.names
        }
    if two_dimensional_array.ndim != 2:
        raise InputError(
            f"{table_name} must be a data frame, a mapping from names to columns, or an array with "
            f"a row for each record, got shape {two_dimensional_array.shape}"
        )
    return {str(number): column for number, column in enumerate(two_dimensional_array.T)}


def _columns_of_frame(table: Data, table_name: str) -> Named | None:
    """Return the columns of a data frame, or a series as the only one; None for other objects."""
    if hasattr(type(table), "iloc") and np.ndim(table) == 2:  # pandas, where names may repeat
        _check_column_names(list(table.columns), table_name)
    if type(table).__module__.startswith("datasets."):
        table = table.with_format("arrow")[:]
    import narwhals as nw

    try:
        narwhals_frame: Data = nw.from_native(table, pass_through=True, allow_series=True)
        has_arrow_methods = any(hasattr(table, method) for method in _ARROW_METHODS)
        if narwhals_frame is table and has_arrow_methods:
            import pyarrow as pa

            narwhals_frame = nw.from_native(pa.table(table))
        if isinstance(narwhals_frame, nw.LazyFrame):
            narwhals_frame = narwhals_frame.collect()
    except Exception as error:  # of any library, where a query fails or names occur twice
        raise InputError(f"{table_name} cannot be read as a table: {error}") from error
    if isinstance(narwhals_frame, nw.Series):
        return {str(narwhals_frame.name or 0): narwhals_frame}
    if not isinstance(narwhals_frame, nw.DataFrame):
        return None
    return dict(zip(map(str, narwhals_frame.columns), narwhals_frame.iter_columns(), strict=True))


def _check_column_names(labels: Sequence[object], table_name: str) -> None:
    """Check that no two columns have one name."""
    columns_with_name = Counter(map(str, labels))
    repeated_names = columns_with_name - Counter([*columns_with_name])
    if repeated_names:
        raise InputError(
            f"{table_name} has several columns named {named(sorted(repeated_names))}: keep one of "
            "each"
        )


def _is_masked_array(values: object) -> bool:
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


# --- columns of any form --------------------------------------------------------------------------


def _read_column(stored_column: Data, label: str, table: str, writing: Writing) -> Column:
    """Read a column of a table: a series of any library, an array or a list."""
    if isinstance(stored_column, Column):
        return stored_column
    column_name = f"column {label!r} of {table}"
    stored_values, missing, has_time_zone = _values_and_missing(stored_column, column_name)
    if stored_values.ndim != 1:
        raise InputError(f"{column_name} must be one-dimensional, got shape {stored_values.shape}")
    column = _column_of_array(stored_values, missing, column_name)
    if writing.missing:
        is_missing_mark = _is_missing_mark(column, writing)
        column = replace(column, missing=column.missing | is_missing_mark)
    if column.missing.all():
        return Column(
            values=np.full(stored_values.size, "", dtype=np.str_),
            missing=column.missing,
            kind="empty",
        )
    type_name = str(getattr(stored_column, "dtype", "")).lower()
    column = replace(column, categorical=type_name.startswith(("categor", "enum")))
    if column.kind in {"text", "flag"}:
        column = replace(column, values=np.where(column.missing, "", column.values))
    if has_time_zone:
        return replace(column, kind="zoned")
    if column.kind == "text":
        return replace(column, writing=writing, table=table)
    return column


def _is_missing_mark(column: Column, writing: Writing) -> BoolArray:
    """Return which values are marks of missing values that were named, as words or numbers."""
    distinct_values, value_of_row = np.unique(column.values, return_inverse=True)
    missing_words = {word.strip().lower() for word in writing.missing}
    missing_dates = {_value_in(word, dt.datetime.fromisoformat) for word in missing_words} - {None}

    def number_in(word: str) -> object:
        return _value_in(word.replace(writing.decimal, "."), float)

    missing_numbers = set(map(number_in, missing_words)) - {None}

    def is_missing_mark(value: Data) -> bool:
        if column.kind == "number":
            return value in missing_numbers
        if column.kind in {"text", "flag"}:
            return value.lower() in missing_words or number_in(value) in missing_numbers
        return value in missing_dates

    marks_of_values = [is_missing_mark(value) for value in distinct_values.tolist()]
    return np.array(marks_of_values, dtype=np.bool_)[value_of_row]


def _value_in(word: str, reader: Callable[[str], object]) -> object:
    """Return the number or the date that a word stands for; None for other words."""
    try:
        return reader(word)
    except ValueError:
        return None


def _values_and_missing(stored_column: Data, column_name: str) -> tuple[AnyArray, BoolArray, bool]:
    """Return the values of a column, those that are marked as missing, and if they have a zone."""
    if _is_masked_array(stored_column):
        return stored_column.data, np.ma.getmaskarray(stored_column).copy(), False
    if isinstance(stored_column, np.ndarray):
        return stored_column, np.zeros(stored_column.shape, dtype=np.bool_), False
    narwhals_series = _narwhals_series(stored_column)
    if narwhals_series is not None:
        return _values_of_series(narwhals_series, column_name)
    is_single = isinstance(stored_column, str | bytes | Mapping)
    if is_single or not hasattr(stored_column, "__iter__"):
        raise InputError(
            f"{column_name} must be a list or an array of values, got {shown(stored_column)}"
        )
    try:
        if not hasattr(stored_column, "__array__"):
            stored_column = objects(stored_column)
        array_of_values = np.asarray(readable(stored_column))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{column_name} cannot be read as a list of values: {error}") from error
    return array_of_values, np.zeros(array_of_values.shape, dtype=np.bool_), False


def _narwhals_series(stored_column: Data) -> Data:
    """Return a column of a data frame as narwhals has it; None for other objects."""
    if isinstance(stored_column, list | tuple | range):
        return None
    import narwhals as nw

    if isinstance(stored_column, nw.Series):
        return stored_column
    is_of_arrow = type(stored_column).__module__.startswith("pyarrow.")
    if is_of_arrow and not hasattr(stored_column, "num_chunks"):
        import pyarrow as pa

        stored_column = pa.chunked_array([stored_column])
    series: Data = nw.from_native(stored_column, pass_through=True, series_only=True)
    if isinstance(series, nw.Series):
        return series
    return None


def _values_of_series(series: Data, column_name: str) -> tuple[AnyArray, BoolArray, bool]:
    """Return the same of a series, with integers as they are: NumPy makes doubles of some."""
    series_type = series.dtype
    is_missing = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    if series_type.is_nested():
        raise InputError(
            f"{column_name} holds {series_type}: give each of its parts a column, or leave it out "
            "of all tables"
        )
    type_name = str(series_type)
    has_128_bits = "128" in type_name
    if has_128_bits or series_type.is_decimal() or type_name in {"Categorical", "Enum"}:
        return objects(series.to_list()), is_missing, False
    fillings: dict[str, object] = {"Boolean": False, "String": ""}
    if series_type.is_integer():
        fillings[type_name] = 0
    if type_name in fillings and is_missing.any():
        series = series.fill_null(fillings[type_name])
    if type_name == "String":
        return np.array(series.to_list(), dtype=np.str_), is_missing, False
    has_time_zone = getattr(series_type, "time_zone", None) is not None
    return np.asarray(series.to_numpy()), is_missing, has_time_zone


def objects(values: Iterable[object]) -> NDArray[np.object_]:
    """Return values as a vector of objects, whatever they hold."""
    listed_values = [*values]
    return np.fromiter(listed_values, dtype=object, count=len(listed_values))


def _column_of_array(values: AnyArray, missing: BoolArray, column_name: str) -> Column:
    """Read an array, of objects or of one type."""
    type_code = values.dtype.kind
    if type_code == "O":
        return _column_of_objects(values, missing, column_name)
    if type_code == "M":
        return Column(
            values=values.astype("datetime64[us]"),
            missing=missing | np.isnat(values),
            kind="date",
        )
    if type_code == "m":
        seconds = values / np.timedelta64(1, "s")
        return _column_of_floats(seconds, missing | np.isnat(values), column_name)
    if type_code == "b":
        return Column(values=values.astype(np.str_), missing=missing, kind="flag")
    if type_code in "ST":
        return _column_of_objects(values.astype(object), missing, column_name)
    if type_code == "U":
        return _column_of_text(values, missing)
    if type_code in "iu":
        smallest_integer = int(values.min(initial=0))
        largest_integer = int(values.max(initial=0))
        number_type: type = np.float64
        if max(-smallest_integer, largest_integer) >= WHOLE:
            number_type = object
        return Column(values=values.astype(number_type), missing=missing, kind="number")
    if type_code == "f":
        return _column_of_floats(values, missing, column_name, precision=values.dtype)
    raise InputError(
        f"{column_name} holds {values.dtype}, which is neither numbers, dates nor words: convert "
        "it, or leave the column out of all tables"
    )


def _column_of_text(words: TextArray, missing: BoolArray) -> Column:
    """Read text without the blanks around it; empty text is missing."""
    stripped_words = np.char.strip(words)
    missing_or_empty = missing | (stripped_words == "")
    return Column(values=stripped_words, missing=missing_or_empty, kind="text")


def _column_of_floats(
    values: AnyArray, missing: BoolArray, column_name: str, precision: np.dtype[np.generic] = DOUBLE
) -> Column:
    """Read floats; NaN is missing."""
    with np.errstate(over="ignore"):
        double_values = values.astype(np.float64)
    missing = missing | np.isnan(double_values)
    infinite_rows = np.flatnonzero(np.isinf(double_values) & ~missing)
    if infinite_rows.size:
        raise InputError(
            f"{column_name} is infinite in {infinite_rows.size:,} rows, the first being row "
            f"{infinite_rows[0]}: leave these rows out of all tables, or mark the values as missing"
        )
    if precision.itemsize > DOUBLE.itemsize:
        precision = DOUBLE
    return Column(
        values=np.where(missing, 0.0, double_values),
        missing=missing,
        kind="number",
        precision=precision,
    )


def _column_of_objects(values: AnyArray, missing: BoolArray, column_name: str) -> Column:
    """Read Python objects: all numbers, all dates, or else words."""
    missing = missing | np.fromiter(map(_is_missing_object, values), dtype=np.bool_)
    known_objects = values[~missing]
    first_value_of_type = {type(value): value for value in known_objects[::-1]}
    for value in first_value_of_type.values():
        _check_object_of_column(value, column_name)
    types_of_values = set(first_value_of_type)
    if _all_types_are(types_of_values, bool | np.bool_):
        words_of_objects = np.where(missing, "", values)
        return Column(values=words_of_objects.astype(np.str_), missing=missing, kind="flag")
    if _all_types_are(types_of_values, dt.timedelta | np.timedelta64):
        durations_or_nat = np.full(values.size, np.timedelta64("NaT", "us"))
        durations_or_nat[~missing] = known_objects.astype("timedelta64[us]")
        return _column_of_array(durations_or_nat, missing, column_name)
    if _all_types_are(types_of_values, Real | np.number | Decimal):
        return _column_of_reals(values, missing, types_of_values, column_name)
    if _all_types_are(types_of_values, dt.date | np.datetime64):
        return _column_of_dates(values, missing, column_name)
    words_of_objects = np.full(values.size, "", dtype=object)
    words_of_objects[~missing] = list(map(_in_one_spelling, known_objects))
    return _column_of_text(words_of_objects.astype(np.str_), missing)


def _all_types_are(types: set[type], allowed: Any) -> bool:
    """Return whether there are types, and all are among those allowed."""
    return bool(types) and all(issubclass(one_type, allowed) for one_type in types)


def _check_object_of_column(value: object, column_name: str) -> None:
    """Check that an object is such as a table holds."""
    value_type = type(value)
    is_array = hasattr(value, "__array__") and not isinstance(value, np.generic)
    is_nested = is_array or isinstance(value, (*_NESTED_TYPES, np.void))
    is_complex = isinstance(value, Complex) and not isinstance(value, Real)
    # An address in memory is no value.
    own_methods = {value_type.__str__, value_type.__repr__} - {
        object.__str__,
        object.__repr__,
    }
    if is_nested or is_complex or not own_methods:
        raise InputError(
            f"{column_name} holds {value_type.__name__} values such as {shown(value)}, which are "
            "neither numbers, dates nor words: give each of their parts a column, or leave the "
            "column out of all tables"
        )


def _column_of_reals(
    values: AnyArray, missing: BoolArray, types: set[type], column_name: str
) -> Column:
    """Read numbers of any types: whole ones beyond 2^53 as they are."""
    number_or_zero = np.where(missing, 0, values)
    double_values = np.array(list(map(_double_or_infinity, number_or_zero)), dtype=np.float64)
    numpy_float_types = [
        np.dtype(one_type) for one_type in types if issubclass(one_type, np.floating)
    ]
    column = _column_of_floats(
        np.where(missing, np.nan, double_values),
        missing,
        column_name,
        precision=min(numpy_float_types, key=attrgetter("itemsize"), default=DOUBLE),
    )
    whole_types = (Integral, Decimal, np.longdouble)
    may_be_inexact = any(issubclass(one_type, whole_types) for one_type in types)
    largest_number = np.abs(column.values).max(initial=0)
    if not may_be_inexact or largest_number < WHOLE:
        return column
    number_or_zero = np.where(column.missing, 0, values)
    return replace(column, values=objects(map(exact_number, number_or_zero)))


def _column_of_dates(values: AnyArray, missing: BoolArray, column_name: str) -> Column:
    """Read dates, all of them with a time zone or none: those that have one as UTC."""
    known_dates = values[~missing].tolist()
    dates_or_nat = np.full(values.size, np.datetime64("NaT", "us"))
    dates_or_nat[~missing] = dates_in_utc(
        known_dates,
        f"{column_name} holds dates with a time zone and dates without: give all one, or none",
    )
    kind: ColumnKind = "date"
    if getattr(known_dates[0], "tzinfo", None) is not None:
        kind = "zoned"
    return Column(values=dates_or_nat, missing=missing, kind=kind)


def dates_in_utc(dates: Sequence[Data], refusal: str) -> NDArray[np.datetime64]:
    """Return dates as an array, in UTC if all have a time zone; refuse those of which some have."""
    have_time_zone = {getattr(date, "tzinfo", None) is not None for date in dates}
    if len(have_time_zone) > 1:
        raise InputError(refusal)
    if True in have_time_zone:
        dates = [date.astimezone(dt.UTC).replace(tzinfo=None) for date in dates]
    return np.array(dates, dtype="datetime64[us]")


def _double_or_infinity(value: Data) -> float:
    """Return a number as a double; infinity for what is beyond all doubles."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def exact_number(value: Data) -> int | float:
    """Return a number as an integer if it is whole, else as a float."""
    if isinstance(value, Integral) or value == np.floor(value):
        return int(value)
    return float(value)


def _in_one_spelling(value: object) -> str:
    """Return a value as text, the same for equal numbers of any type."""
    if isinstance(value, float | np.floating):
        double_value = float(value)
        if double_value.is_integer():
            return f"{value + 0.0:.0f}"
        return repr(double_value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)


def _is_missing_object(value: object) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if not isinstance(value, float | np.floating | np.datetime64 | np.timedelta64):
        return False
    return bool(np.isnan(value))
