"""Members in data frames: as numbers for generators and attacks, as frames for models."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.types import AnyArray, BoolArray, Data, FloatArray, Strings
from leakbound.errors import InputError, InputTypeError

_DAY = np.timedelta64(1, "D")
_SECOND = np.timedelta64(1, "s")


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of a frame: numbers, dates as numbers of a unit, or codes of distinct values.

    `values` is a series of the distinct values that codes stand for, a missing one among them; None
    for numbers and dates. `gap` says whether a second column of numbers marks missing values, for
    which `middle` stands.
    """

    name: str
    like: Data
    values: Data = None
    unit: np.timedelta64 | None = None
    gap: bool = False
    middle: float = 0.0

    @classmethod
    def of(cls, series: Data) -> Self:
        """Settle how a column is written as numbers."""
        kind = series.dtype
        if kind.is_nested():
            raise InputError(
                f"column {series.name!r} of members holds {kind}: give each of its parts a column"
            )
        temporal = str(kind).startswith(("Datetime", "Date"))
        numeric = kind.is_numeric() and not kind.is_decimal()
        if not numeric and not temporal:
            return cls(series.name, series, values=_distinct(series))
        missing = _missing(series)
        unit = None
        if temporal:
            unit = _unit(_moments(series)[~missing])
        found = cls(series.name, series, unit=unit)
        if not missing.any():
            return found
        known = found.numbers(series)[~missing]
        if not known.size:
            return cls(series.name, series, values=_distinct(series))
        return dataclasses.replace(found, gap=True, middle=float(np.sort(known)[known.size // 2]))

    @property
    def width(self) -> int:
        """Columns of numbers."""
        return 1 + self.gap

    def numbers(self, series: Data) -> FloatArray:
        """Return numbers or dates as numbers; anything where they are missing."""
        if self.unit is None:
            return np.asarray(series.to_numpy(), dtype=np.float64)
        since: FloatArray = (_moments(series) - np.datetime64(0, "us")) / self.unit
        return since

    def encoded(self, series: Data) -> list[FloatArray]:
        """Return a column as columns of numbers."""
        missing = _missing(series)
        if self.values is not None:
            places = {_key(one): code for code, one in enumerate(self.values.to_list())}
            keys = [_key(one) for one in series.to_list()]
            return [np.array([places[key] for key in keys], dtype=np.float64)]
        if not self.gap:
            return [self.numbers(series)]
        numbers = np.where(missing, self.middle, self.numbers(series))
        return [numbers, missing.astype(np.float64)]

    def decoded(self, columns: AnyArray) -> Data:
        """Return columns of numbers as a column of the type that it was."""
        first = np.asarray(columns[0], dtype=np.float64)
        if self.values is not None:
            codes = first.astype(np.int64)
            known = (codes == first) & (codes >= 0) & (codes < len(self.values))
            if not known.all():
                raise InputError(
                    f"the generator made {shown(float(first[~known][0]))} in column {self.name!r}, "
                    f"where codes of words are 0 to {len(self.values) - 1}: take a generator that "
                    "draws values of members, such as SequentialCART"
                )
            return self.values[codes.tolist()]
        missing = np.zeros(first.size, dtype=np.bool_)
        if self.gap:
            missing = columns[1] > 0.5
        return _stored(first, missing, self)


@dataclass(frozen=True, eq=False)
class Frames:
    """How members in frames become numbers, and numbers frames of the same type."""

    columns: tuple[_Column, ...]
    given: Callable[[Data], Data] | None

    @classmethod
    def of(cls, tables: Sequence[Data], given: Callable[[Data], Data] | None) -> Self | None:
        """Settle it by all rows of members and real non-members; None if members are no frame."""
        frames = [_frame(one) for one in tables]
        first = frames[0]
        if first is None:
            return None
        together = first
        for other in frames[1:]:
            if other is None or other.columns != first.columns:
                raise InputError(
                    "nonmembers must be a frame with the columns of members: "
                    f"{', '.join(map(repr, first.columns))}"
                )
            together = _stacked([together, other])
        return cls(tuple(_Column.of(series) for series in together.iter_columns()), given)

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers, none missing."""
        return all(one.values is None and one.unit is None and not one.gap for one in self.columns)

    @property
    def categorical(self) -> tuple[int, ...]:
        """Which columns of numbers are codes."""
        found = []
        place = 0
        for column in self.columns:
            if column.values is not None:
                found.append(place)
            if column.gap:
                found.append(place + 1)
            place += column.width
        return tuple(found)

    def encoded(self, table: Data) -> FloatArray:
        """Return a frame as numbers, a row for each example."""
        frame = _frame(table)
        assert frame is not None
        parts = [part for one in self.columns for part in one.encoded(frame[one.name])]
        return np.column_stack(parts)

    def decoded(self, rows: AnyArray) -> Data:
        """Return rows of numbers as a frame."""
        import narwhals as nw

        made = dict[str, Data]()
        place = 0
        for column in self.columns:
            values = column.decoded(rows[:, place : place + column.width].T)
            made[column.name] = nw.to_native(nw.maybe_reset_index(values))
            place += column.width
        backend = self.columns[0].like.implementation
        return nw.to_native(nw.from_dict(made, backend=backend))

    def written(self, rows: AnyArray) -> FloatArray:
        """Return rows as those of members are: what a generator made where values are missing."""
        return self.encoded(self.decoded(rows))

    def inputs(self, rows: AnyArray) -> Data:
        """Return what models are given."""
        table = self.decoded(rows)
        if self.given is None:
            return table
        return self.given(table)

    def taught(self, generator: Data) -> Data:
        """Return a generator of tables that knows which columns are codes."""
        named = getattr(generator, "categorical", None)
        if named is None or not dataclasses.is_dataclass(generator):
            return generator
        if named:
            raise InputTypeError(
                "columns of words are known to be categories: leave categorical out, and make "
                "other columns of categories .astype('category')"
            )
        taught: Data = generator
        return dataclasses.replace(taught, categorical=self.categorical)

    def __repr__(self) -> str:
        """Name what numbers stand for, for checkpoints."""
        words = [
            f"{one.name}:{one.like.dtype}:{one.values is not None and one.values.to_list()}"
            for one in self.columns
        ]
        return f"Frames({hashlib.sha256(repr(words).encode()).hexdigest()})"


def classes_of(labels: Sequence[Data]) -> AnyArray | None:
    """Return the classes of labels that are words, in ascending order; None for whole numbers."""
    from leakbound._base.labels import targets_of

    given = [targets_of(one, "labels") for one in labels if one is not None]
    if not given or all(one.dtype.kind in "biuf" for one in given):
        return None
    words: Strings = tuple(str(one) for part in given for one in part.ravel().tolist())
    kinds = {type(one) for part in given for one in part.ravel().tolist()}
    if kinds != {str}:
        raise InputTypeError(
            "labels must be whole numbers or words, all of them: got "
            f"{', '.join(sorted(one.__name__ for one in kinds))}"
        )
    return np.unique(np.array(words))


def _frame(table: Data) -> Data:
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


def _missing(series: Data) -> BoolArray:
    """Return which values are null or not a number."""
    missing: BoolArray = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    if series.dtype.is_float():
        missing = missing | np.isnan(np.asarray(series.to_numpy(), dtype=np.float64))
    return missing


def _distinct(series: Data) -> Data:
    """Return a series of the distinct values, in an order that rows have no part in."""
    first = dict[object, int]()
    for row, one in enumerate(series.to_list()):
        first.setdefault(_key(one), row)
    keys = sorted(first, key=lambda key: (str(type(key)), str(key)))
    return series[[first[key] for key in keys]]


def _key(value: object) -> object:
    """Return what equal values have in common, all missing ones among them."""
    if value is None or value != value or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return value


def _moments(series: Data) -> AnyArray:
    """Return dates, of UTC where they have a time zone."""
    import narwhals as nw

    plain = series
    if getattr(series.dtype, "time_zone", None) is not None:
        plain = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    stored = np.asarray(plain.cast(nw.Datetime("us")).to_numpy())
    moments: AnyArray = stored.astype("datetime64[us]")
    return moments


def _unit(moments: AnyArray) -> np.timedelta64:
    """Return the largest unit that all dates are multiples of."""
    since = moments - np.datetime64(0, "us")
    for unit in (_DAY, _SECOND):
        if not (since % unit).astype(np.int64).any():
            return unit
    return np.timedelta64(1, "us")


def _stored(numbers: FloatArray, missing: BoolArray, column: _Column) -> Data:
    """Return numbers as a series of the type of a column."""
    import narwhals as nw

    kind = column.like.dtype
    whole = kind.is_integer() or column.unit is not None
    values = numbers
    if whole:
        values = np.round(numbers)
    listed: list[object] = values.tolist()
    if column.unit is not None:
        moments = np.datetime64(0, "us") + values.astype(np.int64) * column.unit
        listed = moments.astype("datetime64[us]").tolist()
    elif whole:
        listed = values.astype(np.int64).tolist()
    for place in np.flatnonzero(missing).tolist():
        listed[place] = None
    backend = column.like.implementation
    if column.unit is not None:
        zone = getattr(kind, "time_zone", None)
        made = nw.new_series(column.name, listed, nw.Datetime("us"), backend=backend)
        if zone is not None:
            made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        made = made.cast(kind)
    elif missing.any() or not whole:
        made = nw.new_series(column.name, listed, nw.Float64, backend=backend)
    else:
        made = nw.new_series(column.name, listed, kind, backend=backend)
    native = nw.to_native(made)
    if hasattr(native, "iloc"):  # pandas has types that narwhals does not tell apart
        native = native.astype(nw.to_native(column.like).dtype)
        return nw.from_native(native, series_only=True)
    return made.cast(kind)
