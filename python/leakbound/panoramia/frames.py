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
class _FrameColumn:
    """One column of a frame: numbers, dates as numbers of a unit, or codes of distinct values.

    `distinct_values` is a series of the values that codes stand for, a missing one among them; None
    for numbers and dates. `has_missing_indicator` says whether a second column of numbers marks
    missing values, which are the `median` in the first.
    """

    name: str
    original_series: Data
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
            return cls.of_words(series)

        is_missing = _is_missing_in_series(series)
        unit = None
        if is_temporal:
            dates = _series_as_utc_dates(series)
            unit = _largest_unit_of_dates(dates[~is_missing])
        column = cls(series.name, series, unit=unit)
        if not is_missing.any():
            return column
        known_numbers = column.series_as_numbers(series)[~is_missing]
        if not known_numbers.size:
            return cls.of_words(series)
        increasing_numbers = np.sort(known_numbers)
        upper_median = float(increasing_numbers[increasing_numbers.size // 2])
        return dataclasses.replace(column, has_missing_indicator=True, median=upper_median)

    @classmethod
    def of_words(cls, series: Data) -> Self:
        """Write a column as codes of its distinct values."""
        return cls(series.name, series, distinct_values=_distinct_values_of_series(series))

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

    def series_as_numbers(self, series: Data) -> FloatArray:
        """Return numbers or dates as numbers; anything where they are missing."""
        if self.unit is None:
            return np.asarray(series.to_numpy(), dtype=np.float64)
        time_since_epoch = _series_as_utc_dates(series) - _EPOCH
        units_since_epoch: FloatArray = time_since_epoch / self.unit
        return units_since_epoch

    def encoded_series(self, series: Data) -> list[FloatArray]:
        """Return a column of a frame as columns of numbers."""
        if self.is_codes:
            return [self._series_as_codes(series)]
        numbers = self.series_as_numbers(series)
        if not self.has_missing_indicator:
            return [numbers]
        is_missing = _is_missing_in_series(series)
        filled_numbers = np.where(is_missing, self.median, numbers)
        return [filled_numbers, is_missing.astype(np.float64)]

    def _series_as_codes(self, series: Data) -> FloatArray:
        """Return for each row the place of its value among the distinct ones."""
        distinct_values = self.distinct_values.to_list()
        code_of_word = {_word_of(value): code for code, value in enumerate(distinct_values)}
        codes = [code_of_word[_word_of(value)] for value in series.to_list()]
        return np.array(codes, dtype=np.float64)

    def decoded_series(self, columns_of_numbers: AnyArray) -> Data:
        """Return columns of numbers as a column of the type that the frame has."""
        numbers_of_column = np.asarray(columns_of_numbers[0], dtype=np.float64)
        if self.is_codes:
            return self._series_of_codes(numbers_of_column)
        is_missing_value = np.zeros(numbers_of_column.size, dtype=np.bool_)
        if self.has_missing_indicator:
            is_missing_value = columns_of_numbers[1] > 0.5
        return _series_of_numbers(self, numbers_of_column, is_missing_value)

    def _series_of_codes(self, numbers: FloatArray) -> Data:
        """Return the distinct values that numbers are codes of; InputError for other numbers."""
        largest_code = len(self.distinct_values) - 1
        codes = np.clip(numbers, 0, largest_code).astype(np.int64)
        is_other_number = codes != numbers
        if is_other_number.any():
            first_other = float(numbers[is_other_number][0])
            raise InputError(
                f"the generator made {shown(first_other)} in column {self.name!r}, "
                f"where codes of words are 0 to {largest_code}: take a generator "
                "that draws values of members, such as SequentialCART"
            )
        return self.distinct_values[codes.tolist()]


@dataclass(frozen=True, eq=False)
class Frames:
    """How members in frames become numbers, and numbers frames of the same type.

    `preprocessing` turns a frame into what models are given, if that is something else.
    """

    columns: tuple[_FrameColumn, ...]
    preprocessing: Callable[[Data], Data] | None

    @classmethod
    def of(
        cls, tables: Sequence[Data], preprocessing: Callable[[Data], Data] | None
    ) -> Self | None:
        """Settle it by all rows of members and real non-members; None if members are no frame."""
        frame_of_members, *frames_of_nonmembers = [_as_frame(table) for table in tables]
        if frame_of_members is None:
            return None
        all_examples = frame_of_members
        for frame in frames_of_nonmembers:
            if frame is None or frame.columns != frame_of_members.columns:
                column_names = ", ".join(map(repr, frame_of_members.columns))
                raise InputError(
                    f"nonmembers must be a frame with the columns of members: {column_names}"
                )
            all_examples = _stacked_frames([all_examples, frame])
        columns = [_FrameColumn.of(series) for series in all_examples.iter_columns()]
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
        is_categorical = list[bool]()
        for column in self.columns:
            is_categorical.append(column.is_codes)
            if column.has_missing_indicator:
                is_categorical.append(True)
        return tuple(np.flatnonzero(is_categorical).tolist())

    def encoded(self, table: Data) -> FloatArray:
        """Return a frame as numbers, a row for each example."""
        frame_of_examples = _as_frame(table)
        assert frame_of_examples is not None
        columns_of_numbers = list[FloatArray]()
        for column in self.columns:
            columns_of_numbers += column.encoded_series(frame_of_examples[column.name])
        return np.column_stack(columns_of_numbers)

    def decoded(self, rows: AnyArray) -> Data:
        """Return rows of numbers as a frame."""
        import narwhals as nw

        native_series_of_columns = dict[str, Data]()
        column_ends = np.cumsum([column.width for column in self.columns])
        numbers_of_columns = np.split(rows.T, column_ends[:-1])
        for column, numbers_of_column in zip(self.columns, numbers_of_columns, strict=True):
            decoded_series = nw.maybe_reset_index(column.decoded_series(numbers_of_column))
            native_series_of_columns[column.name] = nw.to_native(decoded_series)
        backend = self.columns[0].original_series.implementation
        return nw.to_native(nw.from_dict(native_series_of_columns, backend=backend))

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
        column_descriptions = []
        for column in self.columns:
            distinct_values = column.is_codes and column.distinct_values.to_list()
            column_descriptions.append(
                f"{column.name}:{column.original_series.dtype}:{distinct_values}"
            )
        digest = hashlib.sha256(repr(column_descriptions).encode())
        return f"Frames({digest.hexdigest()})"


def classes_of(labels: Sequence[Data]) -> AnyArray | None:
    """Return the classes of labels that are words, in ascending order; None for whole numbers."""
    from leakbound._base.labels import targets_of

    label_arrays = [targets_of(values, "labels") for values in labels if values is not None]
    if all(array.dtype.kind in "biuf" for array in label_arrays):
        return None
    all_labels = list[object]()
    for array in label_arrays:
        all_labels += array.ravel().tolist()
    label_types = {type(label).__name__ for label in all_labels}
    if label_types != {"str"}:
        raise InputTypeError(
            "labels must be whole numbers or words, all of them: got "
            f"{', '.join(sorted(label_types))}"
        )
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


def _stacked_frames(frames: Sequence[Data]) -> Data:
    import narwhals as nw

    return nw.maybe_reset_index(nw.concat(frames, how="vertical"))


def _is_missing_in_series(series: Data) -> BoolArray:
    """Return which values are null or not a number."""
    is_null = series.is_null()
    is_missing: BoolArray = np.asarray(is_null.to_numpy(), dtype=np.bool_)
    if series.dtype.is_float():
        numbers = np.asarray(series.to_numpy(), dtype=np.float64)
        is_missing = is_missing | np.isnan(numbers)
    return is_missing


def _distinct_values_of_series(series: Data) -> Data:
    """Return a series of the distinct values, in an order that rows have no part in."""
    first_row_of_word = dict[object, int]()
    for row, value in enumerate(series.to_list()):
        first_row_of_word.setdefault(_word_of(value), row)

    def type_and_text(word: object) -> tuple[str, str]:
        return str(type(word)), str(word)

    words_in_order = sorted(first_row_of_word, key=type_and_text)
    first_rows = [first_row_of_word[word] for word in words_in_order]
    return series[first_rows]


def _word_of(value: object) -> object:
    """Return what equal values have in common, all missing ones among them."""
    is_nan = value != value
    if value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return value


def _series_as_utc_dates(series: Data) -> AnyArray:
    """Return dates, of UTC where they have a time zone."""
    import narwhals as nw

    without_time_zone = series
    if getattr(series.dtype, "time_zone", None) is not None:
        series_in_utc_zone = series.dt.convert_time_zone("UTC")
        without_time_zone = series_in_utc_zone.dt.replace_time_zone(None)
    microseconds = without_time_zone.cast(nw.Datetime("us"))
    dates_of_series: AnyArray = np.asarray(microseconds.to_numpy()).astype("datetime64[us]")
    return dates_of_series


def _largest_unit_of_dates(dates: AnyArray) -> np.timedelta64:
    """Return the largest unit that all dates are multiples of."""
    time_since_epoch = dates - _EPOCH
    for unit in (_DAY, _SECOND):
        remainders_of_units = (time_since_epoch % unit).astype(np.int64)
        if not remainders_of_units.any():
            return unit
    return _MICROSECOND


def _series_of_numbers(column: _FrameColumn, numbers: FloatArray, is_missing: BoolArray) -> Data:
    """Return numbers as a series of the type of a column."""
    import narwhals as nw

    original_dtype = column.original_series.dtype
    values: AnyArray = numbers
    dtype: Data = nw.Float64
    time_zone = None
    if column.unit is not None:
        dates = _EPOCH + np.round(numbers).astype(np.int64) * column.unit
        values = dates.astype("datetime64[us]")
        dtype = nw.Datetime("us")
        time_zone = getattr(original_dtype, "time_zone", None)
    elif original_dtype.is_integer():
        values = np.round(numbers).astype(np.int64)
        # Whole numbers with gaps have no type in some libraries: they are cast below.
        if not is_missing.any():
            dtype = original_dtype
    values_with_nulls: list[object] = values.tolist()
    for row in np.flatnonzero(is_missing).tolist():
        values_with_nulls[row] = None
    backend = column.original_series.implementation
    series = nw.new_series(column.name, values_with_nulls, dtype, backend=backend)
    if time_zone is not None:
        series_in_utc = series.dt.replace_time_zone("UTC")
        series = series_in_utc.dt.convert_time_zone(time_zone)
    if column.unit is not None:
        series = series.cast(original_dtype)
    native_series = nw.to_native(series)
    if hasattr(native_series, "iloc"):  # pandas has types that narwhals does not tell apart
        native_dtype = nw.to_native(column.original_series).dtype
        return nw.from_native(native_series.astype(native_dtype), series_only=True)
    return series.cast(original_dtype)
