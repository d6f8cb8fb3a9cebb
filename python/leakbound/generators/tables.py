"""Columns of tables: what they may hold, and their empirical distributions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.errors import InputError, OptionError
from leakbound.generators.members import LEAST_ROWS, read_array, read_labels
from leakbound.generators.protocol import Samples

FEW = 20  # at most so many distinct values make a column categorical
DECIMALS = 4  # values may be rounded to as many decimals; prices and rates have no more


def read_table(
    members: ArrayInput, labels: ArrayInput | None = None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read members that are rows of numbers, and their labels, at least 20 of each."""
    rows = read_array(members)
    if rows.ndim != 2:
        message = f"members must be a table with one row per member, got shape {rows.shape}"
        raise InputError(message)
    classes = read_labels(labels, len(rows))
    if classes is not None:
        names, sizes = np.unique(classes, return_counts=True)
        if sizes.min() < LEAST_ROWS:
            message = (
                f"label {names[sizes.argmin()]} has {sizes.min()} members, but a generator needs "
                f"{LEAST_ROWS}: merge rare labels"
            )
            raise InputError(message)
    return rows, classes


def categories(rows: NDArray[Any], named: tuple[int, ...]) -> tuple[bool, ...]:
    """Return which columns hold categories: those named, and those with few values."""
    columns = rows.shape[1]
    for column in named:
        if not 0 <= column < columns:
            message = f"categorical has column {column}, but the columns are 0 to {columns - 1}"
            raise OptionError(message)
    return tuple(j in named or np.unique(rows[:, j]).size <= FEW for j in range(columns))


@dataclass(frozen=True, eq=False)
class Marginal:
    """The distribution of one column.

    A value that repeats is an atom and keeps its frequency. In a column of measurements a value
    that occurs once stands for its neighbourhood, half way to the values beside it; where all
    values are multiples of a step (whole numbers, two decimals, tens), so are those in between.
    Nothing is ever beyond the smallest and the largest value seen.
    """

    values: FloatArray
    cumulative: FloatArray
    low: FloatArray
    high: FloatArray
    step: float
    decimals: int

    @classmethod
    def fit(cls, column: NDArray[Any], *, categorical: bool) -> "Marginal":
        """Learn the distribution of a column."""
        values, counts = np.unique(column.astype(np.float64), return_counts=True)
        # Each distinct value is an interval of shares, as wide as it is frequent.
        cumulative = np.concatenate([[0.0], np.cumsum(counts) / column.size])
        low, high = values.copy(), values.copy()
        step, decimals = 0.0, 0
        if not categorical:
            once = counts == 1
            middle = (values[1:] + values[:-1]) / 2
            low[1:][once[1:]] = middle[once[1:]]
            high[:-1][once[:-1]] = middle[once[:-1]]
            step, decimals = _step(values, column.dtype)
        return cls(values, cumulative, low, high, step, decimals)

    def codes(self, column: NDArray[Any]) -> IntArray:
        """Return the position of each of the fitted column's values among the distinct ones."""
        return np.searchsorted(self.values, column.astype(np.float64))

    def place(self, codes: IntArray, within: FloatArray) -> FloatArray:
        """Return points of the neighbourhoods of values."""
        points = self.low[codes] + within * (self.high[codes] - self.low[codes])
        if self.step:
            first = self.values[0]
            points = first + np.round((points - first) / self.step) * self.step
            points = np.round(points, self.decimals)
        return points


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table, the labels as one more: rows are codes of distinct values."""

    marginals: tuple[Marginal, ...]
    categorical: tuple[bool, ...]
    dtype: np.dtype[Any]
    classes: NDArray[Any] | None

    @classmethod
    def fit(
        cls, members: ArrayInput, labels: ArrayInput | None, named: tuple[int, ...]
    ) -> tuple["Columns", IntArray]:
        """Learn the columns, and return the codes of the members too: shape (n, columns)."""
        rows, names = read_table(members, labels)
        columns, kinds, classes = [*rows.T], categories(rows, named), None
        if names is not None:
            classes, label = np.unique(names, return_inverse=True)
            columns, kinds = [*columns, label], (*kinds, True)
        pairs = list(zip(columns, kinds, strict=True))
        marginals = tuple(Marginal.fit(column, categorical=kind) for column, kind in pairs)
        codes = [one.codes(column) for one, column in zip(marginals, columns, strict=True)]
        return cls(marginals, kinds, rows.dtype, classes), np.column_stack(codes)

    def samples(self, codes: IntArray, rng: np.random.Generator) -> Samples:
        """Return rows of codes as samples, each value somewhere in its code's neighbourhood."""
        labels = None if self.classes is None else self.classes[codes[:, -1]]
        width = codes.shape[1] - (self.classes is not None)
        values = [
            self.marginals[j].place(codes[:, j], rng.random(len(codes))) for j in range(width)
        ]
        return Samples(np.column_stack(values).astype(self.dtype), labels)


@dataclass(frozen=True, eq=False)
class Donors:
    """Values of members by group: what a new row of a group draws from."""

    codes: IntArray
    groups: IntArray

    @classmethod
    def fit(cls, groups: IntArray, codes: IntArray) -> "Donors":
        """Put members into groups."""
        order = np.argsort(groups, kind="stable")
        return cls(codes[order], groups[order])

    def draw(self, groups: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the value of a member of each group in the list."""
        first = np.searchsorted(self.groups, groups, side="left")
        end = np.searchsorted(self.groups, groups, side="right")
        return self.codes[first + (rng.random(groups.size) * (end - first)).astype(np.intp)]


def _step(values: FloatArray, dtype: np.dtype[Any]) -> tuple[float, int]:
    """Return the largest step that all distances are multiples of, or 0, and its decimals."""
    for decimals in range(DECIMALS + 1):
        scale = 10.0**decimals
        if np.abs(values).max() * scale >= 2**53:  # whole numbers of float64 end here
            break
        if np.array_equal(np.round(values, decimals).astype(dtype), values.astype(dtype)):
            whole = np.round(values * scale).astype(np.int64)
            return float(np.gcd.reduce(np.diff(whole), initial=0)) / scale, decimals
    return 0.0, 0
