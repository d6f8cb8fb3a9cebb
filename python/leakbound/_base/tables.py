"""One reader of tables: the same columns, whatever holds them.

Data frames of any library (by narwhals), mappings of columns, arrays and the text of files become
columns of numbers, moments, booleans or text. What text stands for is settled by `text.settled`.
"""

import datetime as dt
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE, shown
from leakbound._base.reading import readable
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
_CATEGORICAL = ("categor", "enum")  # how types of categories are called
_NESTED = (list, tuple, set, frozenset, Mapping)
_OF_ARROW = ("__arrow_c_array__", "__arrow_c_stream__")  # batches and readers of them
_LISTED = 5  # names that a message lists
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


_PLAIN = Writing()


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
    writing: Writing = _PLAIN
    table: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    categorical: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether numbers are objects, some of which no double holds apart from others."""
        return self.kind == "number" and self.values.dtype == object

    def as_words(self) -> TextArray:
        """Return the values as text; whole numbers have no decimals, whatever their type was."""
        if self.kind != "number":
            words = self.values.astype(np.str_)
        else:
            distinct, which = np.unique(self.values, return_inverse=True)
            words = np.array([_written(x) for x in distinct.tolist()], dtype=np.str_)[which]
        return np.where(self.missing, "", words)

    def as_codes(self) -> "Column":
        """Return the same values as words."""
        return replace(self, values=self.as_words(), kind="word", precision=DOUBLE)

    def as_exact(self) -> NDArray[np.object_]:
        """Return numbers as objects, whole ones as integers."""
        return objects(exact_number(value) for value in self.values.tolist())

    @cached_property
    def content(self) -> NDArray[np.uint8]:
        """Return 9 bytes for each value, the same for equal ones; those of words are a digest."""
        values = self.values
        if self.is_exact:
            values = self.as_words()
        if values.dtype.kind == "U":
            distinct, which = np.unique(values, return_inverse=True)
            words = (word.encode("utf-8", "surrogatepass") for word in distinct.tolist())
            digests = b"".join(blake2b(word, digest_size=8).digest() for word in words)
            values = np.frombuffer(digests, dtype=np.uint64)[which]
        elif self.kind == "number":
            values = values + 0.0  # -0.0 becomes 0.0
        bits = np.where(self.missing, np.uint64(0), values.view(np.uint64)).astype("<u8")
        return np.column_stack([bits.view(np.uint8).reshape(-1, 8), self.missing])


# --- tables of any form ---------------------------------------------------------------------------


def read_columns(table: TableInput, name: str, writing: Writing = _PLAIN) -> dict[str, Column]:
    """Read a table of any form; InputError says which value of which column cannot be used."""
    columns = {
        label: _column(raw, label, name, writing) for label, raw in _named(table, name).items()
    }
    lengths = {label: column.missing.size for label, column in columns.items()}
    if not columns or 0 in lengths.values():
        raise InputError(f"{name} must be a table with at least one row and one column")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{label!r} has {size:,} values" for label, size in lengths.items())
        raise InputError(f"the columns of {name} differ in length: {listed}")
    return columns


def named(names: Iterable[str]) -> str:
    """Return some names as a message lists them."""
    some = list(map(repr, names))
    listed = ", ".join(some[:_LISTED])
    if len(some) > _LISTED:
        return f"{listed} and {len(some) - _LISTED} more"
    return listed


def kinds_of(columns: Mapping[str, ColumnKind]) -> str:
    """Say what the columns of a table were read as."""
    names = dict[str, list[str]]()
    for name, kind in columns.items():
        if kind != "empty":
            names.setdefault(NAMES[kind], []).append(name)
    return "; ".join(f"as {kind}: {named(some)}" for kind, some in names.items())


def _named(table: Data, name: str) -> Named:
    """Return the columns of a table of any form by name, as they are stored."""
    if isinstance(table, str | os.PathLike):
        raise InputError(
            f"{name} must be a table, got a path: read the file first (pandas.read_csv)"
        )
    if isinstance(table, Mapping):
        _check_names([*table], name)
        return {str(label): values for label, values in table.items()}
    if isinstance(table, list | tuple) and table and all(isinstance(x, Mapping) for x in table):
        labels = dict.fromkeys(label for record in table for label in record)
        return _named({label: [one.get(label) for one in table] for label in labels}, name)
    if hasattr(table, "toarray"):  # sparse
        table = table.toarray()
    if not isinstance(table, np.ndarray | list | tuple):
        frame = _frame(table, name)
        if frame is not None:
            return frame
    try:
        array = readable(table)
        if not _is_masked(array):
            array = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as a table: {error}") from error
    if array.dtype.names:
        return {label: array[label] for label in array.dtype.names}
    if array.ndim != 2:
        raise InputError(
            f"{name} must be a data frame, a mapping from names to columns, or an array with a row "
            f"for each record, got shape {array.shape}"
        )
    return {str(place): array[:, place] for place in range(array.shape[1])}


def _frame(table: Data, name: str) -> Named | None:
    """Return the columns of a data frame, or a series as the only one; None for other objects."""
    if hasattr(type(table), "iloc") and np.ndim(table) == 2:  # pandas, where names may repeat
        _check_names(list(table.columns), name)
    if type(table).__module__.startswith("datasets."):
        table = table.with_format("arrow")[:]
    import narwhals as nw

    try:
        frame: Data = nw.from_native(table, pass_through=True, allow_series=True)
        if frame is table and any(hasattr(table, one) for one in _OF_ARROW):
            import pyarrow as pa

            frame = nw.from_native(pa.table(table))
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
    except Exception as error:  # of any library, where a query fails or names occur twice
        raise InputError(f"{name} cannot be read as a table: {error}") from error
    if isinstance(frame, nw.Series):
        return {str(frame.name or 0): frame}
    if not isinstance(frame, nw.DataFrame):
        return None
    return dict(zip(map(str, frame.columns), frame.iter_columns(), strict=True))


def _check_names(labels: Sequence[object], name: str) -> None:
    """Check that no two columns have one name."""
    counts = Counter(map(str, labels))
    twice = [word for word, count in counts.items() if count > 1]
    if twice:
        raise InputError(
            f"{name} has several columns named {named(sorted(twice))}: keep one of each"
        )


def _is_masked(values: object) -> bool:
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


# --- columns of any form --------------------------------------------------------------------------


def _column(raw: Data, label: str, table: str, writing: Writing) -> Column:
    """Read a column of a table: a series of any library, an array or a list."""
    if isinstance(raw, Column):
        return raw
    name = f"column {label!r} of {table}"
    values, missing, zoned = _stored(raw, name)
    if values.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {values.shape}")
    if values.dtype.kind == "O":
        column = _of_objects(values, missing, name)
    else:
        column = _of_array(values, missing, name)
    if writing.missing:
        column = replace(column, missing=column.missing | _named_missing(column, writing))
    if column.missing.all():
        return Column(np.full(values.size, "", dtype=np.str_), column.missing, "empty")
    if column.kind in {"text", "flag"}:
        column = replace(column, values=np.where(column.missing, "", column.values))
    column = replace(column, categorical=_is_categorical(raw))
    if zoned:
        return replace(column, kind="zoned")
    if column.kind == "text":
        return replace(column, writing=writing, table=table)
    return column


def _named_missing(column: Column, writing: Writing) -> BoolArray:
    """Return which values are marks of missing values that were named, as words or numbers."""
    distinct, which = np.unique(column.values, return_inverse=True)
    words = {word.strip().lower() for word in writing.missing}
    numbers = {_number_in(word, writing.decimal) for word in words} - {None}
    moments = {_moment_in(word) for word in words} - {None}

    def is_named(value: Data) -> bool:
        if column.kind in {"text", "flag"}:
            return value.lower() in words or _number_in(value, writing.decimal) in numbers
        if column.kind == "number":
            return value in numbers
        return value in moments

    named = np.array([is_named(value) for value in distinct.tolist()], dtype=np.bool_)
    return named[which]


def _number_in(word: str, decimal: str) -> float | None:
    """Return the number that a word stands for, if it is one."""
    try:
        return float(word.replace(decimal, "."))
    except ValueError:
        return None


def _moment_in(word: str) -> dt.datetime | None:
    """Return the date that a word stands for, if it is one."""
    try:
        return dt.datetime.fromisoformat(word)
    except ValueError:
        return None


def _stored(raw: Data, name: str) -> tuple[AnyArray, BoolArray, bool]:
    """Return the values of a column, those that are marked as missing, and if they have a zone."""
    if _is_masked(raw):
        return raw.data, np.ma.getmaskarray(raw).copy(), False
    if isinstance(raw, np.ndarray):
        return raw, np.zeros(raw.shape, dtype=np.bool_), False
    series = _series(raw)
    if series is not None:
        return _of_series(series, name)
    if isinstance(raw, str | bytes | Mapping) or not hasattr(raw, "__iter__"):
        raise InputError(f"{name} must be a list or an array of values, got {shown(raw)}")
    try:
        if not hasattr(raw, "__array__"):
            raw = objects(raw)
        values = np.asarray(readable(raw))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as a list of values: {error}") from error
    return values, np.zeros(values.shape, dtype=np.bool_), False


def _series(raw: Data) -> Data:
    """Return a column of a data frame as narwhals has it; None for other objects."""
    if isinstance(raw, list | tuple | range):
        return None
    import narwhals as nw

    if isinstance(raw, nw.Series):
        return raw
    if type(raw).__module__.startswith("pyarrow.") and not hasattr(raw, "num_chunks"):
        import pyarrow as pa

        raw = pa.chunked_array([raw])
    series: Data = nw.from_native(raw, pass_through=True, series_only=True)
    if isinstance(series, nw.Series):
        return series
    return None


def _is_categorical(raw: Data) -> bool:
    """Return whether a column of a frame is declared to hold categories."""
    return str(getattr(raw, "dtype", "")).lower().startswith(_CATEGORICAL)


def _of_series(series: Data, name: str) -> tuple[AnyArray, BoolArray, bool]:
    """Return the same of a series, with integers as they are: NumPy makes doubles of some."""
    kind = series.dtype
    missing = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    if kind.is_nested():
        raise InputError(
            f"{name} holds {kind}: give each of its parts a column, or leave it out of all tables"
        )
    named = str(kind)
    blanks: dict[str, object] = {"Boolean": False, "String": ""}
    if kind.is_integer() and "128" not in named:
        blanks[named] = 0
    if named in blanks and missing.any():
        series = series.fill_null(blanks[named])
    if "128" in named or kind.is_decimal() or named in {"Categorical", "Enum"}:
        return objects(series.to_list()), missing, False
    if named == "String":
        return np.array(series.to_list(), dtype=np.str_), missing, False
    zoned = getattr(kind, "time_zone", None) is not None
    return np.asarray(series.to_numpy()), missing, zoned


def objects(values: Iterable[object]) -> NDArray[np.object_]:
    """Return values as a vector of objects, whatever they hold."""
    held = [*values]
    return np.fromiter(held, dtype=object, count=len(held))


def _of_array(values: AnyArray, missing: BoolArray, name: str) -> Column:
    """Read an array of one type."""
    kind = values.dtype.kind
    if kind == "M":
        return Column(values.astype("datetime64[us]"), missing | np.isnat(values), "date")
    if kind == "m":
        return _of_numbers(values / np.timedelta64(1, "s"), missing | np.isnat(values), name)
    if kind == "b":
        return Column(values.astype(np.str_), missing, "flag")
    if kind in "ST":
        return _of_objects(values.astype(object), missing, name)
    if kind == "U":
        return _of_text(values, missing)
    if kind in "iu":
        least = int(values.min(initial=0))
        most = int(values.max(initial=0))
        if max(-least, most) >= WHOLE:
            return Column(values.astype(object), missing, "number")
        return Column(values.astype(np.float64), missing, "number")
    if kind == "f":
        return _of_numbers(values, missing, name, _coarsest([values.dtype]))
    raise InputError(
        f"{name} holds {values.dtype}, which is neither numbers, dates nor words: convert it, or "
        "leave the column out of all tables"
    )


def _of_text(words: TextArray, missing: BoolArray) -> Column:
    """Read text without the blanks around it; empty text is missing."""
    stripped = np.char.strip(words)
    return Column(stripped, missing | (stripped == ""), "text")


def _of_numbers(
    values: AnyArray, missing: BoolArray, name: str, precision: np.dtype[np.generic] = DOUBLE
) -> Column:
    """Read floats; NaN is missing."""
    with np.errstate(over="ignore"):
        doubles = values.astype(np.float64)
    missing = missing | np.isnan(doubles)
    infinite = np.flatnonzero(np.isinf(doubles) & ~missing)
    if infinite.size:
        raise InputError(
            f"{name} is infinite in {infinite.size:,} rows, the first being row {infinite[0]}: "
            "leave these rows out of all tables, or mark the values as missing"
        )
    finer = min(precision, DOUBLE, key=lambda one: one.itemsize)
    return Column(np.where(missing, 0.0, doubles), missing, "number", finer)


def _of_objects(values: AnyArray, missing: BoolArray, name: str) -> Column:
    """Read Python objects: all numbers, all dates, or else words."""
    marked = np.fromiter((_is_missing(value) for value in values), np.bool_, values.size)
    missing = missing | marked
    there = values[~missing]
    types = {type(value) for value in there}
    _check_types(types, there, name)
    if types and all(issubclass(one, bool | np.bool_) for one in types):
        filled = np.where(missing, "", values)
        return Column(filled.astype(np.str_), missing, "flag")
    if types and all(issubclass(one, dt.timedelta | np.timedelta64) for one in types):
        moments = np.full(values.size, np.timedelta64("NaT", "us"))
        moments[~missing] = there.astype("timedelta64[us]")
        return _of_array(moments, missing, name)
    if types and all(issubclass(one, Real | np.number | Decimal) for one in types):
        return _of_reals(values, missing, types, name)
    if types and all(issubclass(one, dt.date | np.datetime64) for one in types):
        return _of_dates(values, missing, name)
    words = np.full(values.size, "", dtype=object)
    words[~missing] = list(map(_written, there))
    return _of_text(words.astype(np.str_), missing)


def _check_types(types: set[type], values: AnyArray, name: str) -> None:
    """Check that objects are such as a table holds."""
    for one in types:
        nested = issubclass(one, _NESTED) or (
            hasattr(one, "__array__") and not issubclass(one, np.generic)
        )
        unreal = issubclass(one, Complex) and not issubclass(one, Real)
        # An address in memory is no value.
        nameless = {one.__str__, one.__repr__} <= {object.__str__, object.__repr__}
        if nested or unreal or nameless or issubclass(one, np.void):
            value = next(value for value in values if type(value) is one)
            raise InputError(
                f"{name} holds {one.__name__} values such as {shown(value)}, which are neither "
                "numbers, dates nor words: give each of their parts a column, or leave the column "
                "out of all tables"
            )


def _of_reals(values: AnyArray, missing: BoolArray, types: set[type], name: str) -> Column:
    """Read numbers of any types: whole ones beyond 2^53 as they are."""
    doubles = np.array([_double(x) for x in np.where(missing, 0, values)], dtype=np.float64)
    precision = _coarsest(one for one in types if hasattr(one, "dtype"))
    column = _of_numbers(np.where(missing, np.nan, doubles), missing, name, precision)
    whole = any(issubclass(one, Integral | Decimal | np.longdouble) for one in types)
    if not whole or not np.abs(column.values).max(initial=0) >= WHOLE:
        return column
    exact = objects(exact_number(value) for value in np.where(column.missing, 0, values))
    return replace(column, values=exact)


def _of_dates(values: AnyArray, missing: BoolArray, name: str) -> Column:
    """Read dates, all of them with a time zone or none: those that have one as UTC."""
    there = values[~missing].tolist()
    zoned = {getattr(value, "tzinfo", None) is not None for value in there}
    if len(zoned) > 1:
        raise InputError(
            f"{name} holds dates with a time zone and dates without: give all one, or none"
        )
    kind: ColumnKind = "date"
    if True in zoned:
        kind = "zoned"
        there = [value.astimezone(dt.UTC).replace(tzinfo=None) for value in there]
    filled = np.full(values.size, np.datetime64("NaT", "us"))
    filled[~missing] = np.array(there, dtype="datetime64[us]")
    return Column(filled, missing, kind)


def _coarsest(types: Iterable[Any]) -> np.dtype[np.generic]:
    """Return the least precise of some types of numbers; whole numbers are exact."""
    floats = [np.dtype(one) for one in types if np.issubdtype(one, np.floating)]
    return min(floats, key=lambda one: one.itemsize, default=DOUBLE)


def _double(value: Data) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def exact_number(value: Data) -> int | float:
    """Return a number as an integer if it is whole, else as a float."""
    if isinstance(value, Integral):
        return int(value)
    whole = np.floor(value) if not isinstance(value, Decimal) else value.to_integral_value()
    if value == whole:
        return int(value)
    return float(value)


def _written(value: object) -> str:
    """Return a value as text, the same for equal numbers of any type."""
    if isinstance(value, float | np.floating):
        if float(value).is_integer():
            return f"{value + 0.0:.0f}"
        return repr(float(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
