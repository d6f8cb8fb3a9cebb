"""Members in data frames: as numbers for generators and attacks, as frames for models."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.types import AnyArray, BoolArray, Data, FloatArray
from leakbound.errors import InputError, InputTypeError

_DAY = np.timedelta64(1, "D")
_SECOND = np.timedelta64(1, "s")
_MICROSECOND = np.timedelta64(1, "us")
_EPOCH = np.datetime64(0, "us")


@dataclass(frozen=True, eq=False)
class _EncodedColumn:
    """One column of a frame: numbers, dates as numbers of a unit, or codes of distinct values.

    `distinct_values` is a series of the values that codes stand for, a missing one among them; None
    for numbers and dates. `has_missing_indicator` says whether a second column of numbers marks
    missing values, which are the `median` in the first.
    """

    name: str
    original: Data
    distinct_values: Data = None
    unit: np.timedelta64 | None = None
    has_missing_indicator: bool = False
    median: float = 0.0

    @classmethod
    def of(cls, series: Data) -> Self:
        """Settle how a column is written as numbers."""
        dtype = series.dtype
        if dtype.is_nested():
            raise InputError(
                f"column {series.name!r} of members holds {dtype}: give each of its parts a column"
            )
        is_temporal = str(dtype).startswith(("Datetime", "Date"))
        is_numeric = dtype.is_numeric() and not dtype.is_decimal()
        if not is_numeric and not is_temporal:
            return cls.of_codes(series)

        is_missing = _is_missing(series)
        unit = None
        if is_temporal:
            known_dates = _dates_in_utc(series)[~is_missing]
            unit = _largest_common_unit(known_dates)
        column = cls(series.name, series, unit=unit)
        if not is_missing.any():
            return column
        known_numbers = column.numbers(series)[~is_missing]
        if not known_numbers.size:
            return cls.of_codes(series)
        increasing = np.sort(known_numbers)
        upper_median = float(increasing[increasing.size // 2])
        return dataclasses.replace(column, has_missing_indicator=True, median=upper_median)

    @classmethod
    def of_codes(cls, series: Data) -> Self:
        """Write a column as codes of its distinct values."""
        return cls(series.name, series, distinct_values=_distinct_values(series))

    @property
    def is_codes(self) -> bool:
        """Whether its numbers are codes of distinct values."""
        return self.distinct_values is not None

    @property
    def width(self) -> int:
        """Columns of numbers."""
        if self.has_missing_indicator:
            return 2
        return 1

    def numbers(self, series: Data) -> FloatArray:
        """Return numbers or dates as numbers; anything where they are missing."""
        if self.unit is None:
            return np.asarray(series.to_numpy(), dtype=np.float64)
        time_since_epoch = _dates_in_utc(series) - _EPOCH
        units_since_epoch: FloatArray = time_since_epoch / self.unit
        return units_since_epoch

    def encoded(self, series: Data) -> list[FloatArray]:
        """Return a column as columns of numbers."""
        if self.is_codes:
            return [self._codes(series)]
        if not self.has_missing_indicator:
            return [self.numbers(series)]
        is_missing = _is_missing(series)
        filled_numbers = np.where(is_missing, self.median, self.numbers(series))
        return [filled_numbers, is_missing.astype(np.float64)]

    def _codes(self, series: Data) -> FloatArray:
        """Return for each row the place of its value among the distinct ones."""
        code_of_key = dict[object, int]()
        for code, value in enumerate(self.distinct_values.to_list()):
            code_of_key[_comparison_key(value)] = code
        codes = [code_of_key[_comparison_key(value)] for value in series.to_list()]
        return np.array(codes, dtype=np.float64)

    def decoded(self, columns: AnyArray) -> Data:
        """Return columns of numbers as a column of the type that it was."""
        numbers = np.asarray(columns[0], dtype=np.float64)
        if self.is_codes:
            return self._values_of_codes(numbers)
        is_missing = np.zeros(numbers.size, dtype=np.bool_)
        if self.has_missing_indicator:
            is_missing = columns[1] > 0.5
        return _series_like(self, numbers, is_missing)

    def _values_of_codes(self, numbers: FloatArray) -> Data:
        """Return the distinct values that numbers are codes of; InputError for other numbers."""
        codes = numbers.astype(np.int64)
        is_whole = codes == numbers
        is_in_range = (codes >= 0) & (codes < len(self.distinct_values))
        is_code = is_whole & is_in_range
        if not is_code.all():
            first_other = float(numbers[~is_code][0])
            raise InputError(
                f"the generator made {shown(first_other)} in column {self.name!r}, "
                f"where codes of words are 0 to {len(self.distinct_values) - 1}: take a generator "
                "that draws values of members, such as SequentialCART"
            )
        return self.distinct_values[codes.tolist()]


@dataclass(frozen=True, eq=False)
class Frames:
    """How members in frames become numbers, and numbers frames of the same type.

    `preprocessing` turns a frame into what models are given, if that is something else.
    """

    columns: tuple[_EncodedColumn, ...]
    preprocessing: Callable[[Data], Data] | None

    @classmethod
    def of(
        cls, tables: Sequence[Data], preprocessing: Callable[[Data], Data] | None
    ) -> Self | None:
        """Settle it by all rows of members and real non-members; None if members are no frame."""
        frame_of_members, *frames_of_others = [_as_frame(table) for table in tables]
        if frame_of_members is None:
            return None
        all_rows = frame_of_members
        for frame in frames_of_others:
            if frame is None or frame.columns != frame_of_members.columns:
                names = ", ".join(map(repr, frame_of_members.columns))
                raise InputError(f"nonmembers must be a frame with the columns of members: {names}")
            all_rows = _stacked([all_rows, frame])
        columns = [_EncodedColumn.of(series) for series in all_rows.iter_columns()]
        return cls(tuple(columns), preprocessing)

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers, none missing."""
        for column in self.columns:
            if column.is_codes or column.unit is not None or column.has_missing_indicator:
                return False
        return True

    @property
    def categorical(self) -> tuple[int, ...]:
        """Which columns of numbers are codes, or indicators of missing values."""
        categorical_places = []
        place = 0
        for column in self.columns:
            if column.is_codes:
                categorical_places.append(place)
            if column.has_missing_indicator:
                categorical_places.append(place + 1)
            place += column.width
        return tuple(categorical_places)

    def encoded(self, table: Data) -> FloatArray:
        """Return a frame as numbers, a row for each example."""
        frame = _as_frame(table)
        assert frame is not None
        columns_of_numbers = list[FloatArray]()
        for column in self.columns:
            columns_of_numbers += column.encoded(frame[column.name])
        return np.column_stack(columns_of_numbers)

    def decoded(self, rows: AnyArray) -> Data:
        """Return rows of numbers as a frame."""
        import narwhals as nw

        native_columns = dict[str, Data]()
        place = 0
        for column in self.columns:
            next_place = place + column.width
            values = column.decoded(rows[:, place:next_place].T)
            native_columns[column.name] = nw.to_native(nw.maybe_reset_index(values))
            place = next_place
        backend = self.columns[0].original.implementation
        return nw.to_native(nw.from_dict(native_columns, backend=backend))

    def written(self, rows: AnyArray) -> FloatArray:
        """Return rows as those of members are: what a generator made where values are missing."""
        return self.encoded(self.decoded(rows))

    def inputs(self, rows: AnyArray) -> Data:
        """Return what models are given."""
        table = self.decoded(rows)
        if self.preprocessing is None:
            return table
        return self.preprocessing(table)

    def with_categorical_columns(self, generator: Data) -> Data:
        """Return a generator of tables that knows which columns are codes."""
        own_categorical = getattr(generator, "categorical", None)
        if own_categorical is None or not dataclasses.is_dataclass(generator):
            return generator
        if own_categorical:
            raise InputTypeError(
                "columns of words are known to be categories: leave categorical out, and make "
                "other columns of categories .astype('category')"
            )
        configured: Data = generator
        return dataclasses.replace(configured, categorical=self.categorical)

    def __repr__(self) -> str:
        """Name what numbers stand for, for checkpoints."""
        descriptions = []
        for column in self.columns:
            values = column.is_codes and column.distinct_values.to_list()
            descriptions.append(f"{column.name}:{column.original.dtype}:{values}")
        digest = hashlib.sha256(repr(descriptions).encode())
        return f"Frames({digest.hexdigest()})"


def classes_of(labels: Sequence[Data]) -> AnyArray | None:
    """Return the classes of labels that are words, in ascending order; None for whole numbers."""
    from leakbound._base.labels import targets_of

    arrays = [targets_of(values, "labels") for values in labels if values is not None]
    if not arrays or all(array.dtype.kind in "biuf" for array in arrays):
        return None
    all_labels = list[object]()
    for array in arrays:
        all_labels += array.ravel().tolist()
    types = {type(label).__name__ for label in all_labels}
    if types != {"str"}:
        got = ", ".join(sorted(types))
        raise InputTypeError(f"labels must be whole numbers or words, all of them: got {got}")
    return np.unique(np.array(all_labels))


def _as_frame(table: Data) -> Data:
    """Return a frame of any library as narwhals has it; None for other data."""
    if not hasattr(type(table), "columns"):
        return None
    import narwhals as nw

    frame: Data = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return nw.maybe_reset_index(frame)
    return None


def _stacked(frames: Sequence[Data]) -> Data:
    import narwhals as nw

    return nw.maybe_reset_index(nw.concat(frames, how="vertical"))


def _is_missing(series: Data) -> BoolArray:
    """Return which values are null or not a number."""
    is_missing: BoolArray = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    if series.dtype.is_float():
        numbers = np.asarray(series.to_numpy(), dtype=np.float64)
        is_missing = is_missing | np.isnan(numbers)
    return is_missing


def _distinct_values(series: Data) -> Data:
    """Return a series of the distinct values, in an order that rows have no part in."""
    first_row_of_key = dict[object, int]()
    for row, value in enumerate(series.to_list()):
        first_row_of_key.setdefault(_comparison_key(value), row)
    keys = sorted(first_row_of_key, key=lambda key: (str(type(key)), str(key)))
    rows = [first_row_of_key[key] for key in keys]
    return series[rows]


def _comparison_key(value: object) -> object:
    """Return what equal values have in common, all missing ones among them."""
    is_nan = value != value
    if value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return value


def _dates_in_utc(series: Data) -> AnyArray:
    """Return dates, of UTC where they have a time zone."""
    import narwhals as nw

    without_time_zone = series
    if getattr(series.dtype, "time_zone", None) is not None:
        in_utc = series.dt.convert_time_zone("UTC")
        without_time_zone = in_utc.dt.replace_time_zone(None)
    microseconds = without_time_zone.cast(nw.Datetime("us"))
    dates: AnyArray = np.asarray(microseconds.to_numpy()).astype("datetime64[us]")
    return dates


def _largest_common_unit(dates: AnyArray) -> np.timedelta64:
    """Return the largest unit that all dates are multiples of."""
    time_since_epoch = dates - _EPOCH
    for unit in (_DAY, _SECOND):
        remainders = (time_since_epoch % unit).astype(np.int64)
        if not remainders.any():
            return unit
    return _MICROSECOND


def _series_like(column: _EncodedColumn, numbers: FloatArray, is_missing: BoolArray) -> Data:
    """Return numbers as a series of the type of a column."""
    import narwhals as nw

    dtype = column.original.dtype
    backend = column.original.implementation
    if column.unit is not None:
        dates = _EPOCH + np.round(numbers).astype(np.int64) * column.unit
        values = _with_gaps(dates.astype("datetime64[us]"), is_missing)
        series = nw.new_series(column.name, values, nw.Datetime("us"), backend=backend)
        time_zone = getattr(dtype, "time_zone", None)
        if time_zone is not None:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(time_zone)
        series = series.cast(dtype)
    elif dtype.is_integer():
        whole_numbers = np.round(numbers).astype(np.int64)
        values = _with_gaps(whole_numbers, is_missing)
        # Whole numbers with gaps have no type in some libraries: they are cast below.
        made_as = dtype
        if is_missing.any():
            made_as = nw.Float64
        series = nw.new_series(column.name, values, made_as, backend=backend)
    else:
        values = _with_gaps(numbers, is_missing)
        series = nw.new_series(column.name, values, nw.Float64, backend=backend)
    native = nw.to_native(series)
    if hasattr(native, "iloc"):  # pandas has types that narwhals does not tell apart
        native = native.astype(nw.to_native(column.original).dtype)
        return nw.from_native(native, series_only=True)
    return series.cast(dtype)


def _with_gaps(values: AnyArray, is_missing: BoolArray) -> list[object]:
    """Return values as a list, with None where they are missing."""
    listed: list[object] = values.tolist()
    for row in np.flatnonzero(is_missing).tolist():
        listed[row] = None
    return listed
