"""Columns of tables: what they may hold, and their empirical distributions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import check_length, vector
from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.errors import ArrayTypeError, MembersError, OptionError, TooFewMembersError
from leakbound.generators.protocol import Samples

LEAST_ROWS = 20
"""Fewest rows of one kind that a distribution is learnt from."""
FEW = 20
"""At most so many distinct values make a column categorical."""
DECIMALS = 4
"""Values may be rounded to as many decimals."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, and a label for each where there are labels."""

    values: FloatArray
    labels: NDArray[Any] | None
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return len(self.values)

    def classes(self) -> Iterator[tuple[Any, FloatArray]]:
        """Yield each label with its rows; one pair with label None where there are no labels."""
        if self.labels is None:
            yield None, self.values
            return
        for label in np.unique(self.labels):
            yield label, self.values[self.labels == label]

    def categorical(self, named: tuple[int, ...]) -> tuple[bool, ...]:
        """Return which columns hold categories: those named, and those with few values."""
        columns = self.values.shape[1]
        for column in named:
            if not 0 <= column < columns:
                message = (
                    f"categorical names column {column}, and the columns are 0 to {columns - 1}"
                )
                raise OptionError(message)
        return tuple(j in named or np.unique(self.values[:, j]).size <= FEW for j in range(columns))


def read_table(members: ArrayInput, labels: ArrayInput | None = None) -> Table:
    """Read members that are rows of numbers."""
    rows = read_array(members)
    if rows.ndim != 2:
        message = (
            f"members must be a table with one row for each, got shape {rows.shape}; flatten "
            "images, or use a generator of images"
        )
        raise MembersError(message)
    values = rows.astype(np.float64)
    classes = read_labels(labels, len(values))
    if classes is not None:
        _check_classes(classes)
    return Table(values, classes, rows.dtype)


def read_array(members: ArrayInput) -> NDArray[Any]:
    """Read members of any one shape."""
    array = np.asarray(members)
    if array.dtype.kind not in "biuf":
        message = (
            f"members must hold real numbers, got dtype {array.dtype}; encode strings as codes "
            "first, for example with pandas.factorize"
        )
        raise ArrayTypeError(message)
    if array.ndim < 2 or 0 in array.shape[1:]:
        message = (
            "members must have a row for each and at least one value in it, got shape "
            f"{array.shape}"
        )
        raise MembersError(message)
    _check_finite(array)
    if len(array) < LEAST_ROWS:
        message = f"there are {len(array)} members, and a generator needs at least {LEAST_ROWS}"
        raise TooFewMembersError(message)
    return array


def read_labels(labels: ArrayInput | None, examples: int) -> NDArray[Any] | None:
    """Read class labels: integers, booleans or strings, one for each example."""
    if labels is None:
        return None
    classes = vector(labels, "labels", kinds="biufU")
    if classes.dtype.kind == "f":
        message = (
            f"labels must be classes (integers, booleans or strings), got dtype {classes.dtype}; "
            "put a numeric target among the columns of members"
        )
        raise ArrayTypeError(message)
    check_length(classes, examples, "labels")
    return classes


def _check_finite(values: NDArray[Any]) -> None:
    strange = ~np.isfinite(values)
    if strange.any():
        index = tuple(np.argwhere(strange)[0].tolist())
        message = (
            f"members must be finite, but {np.count_nonzero(strange)} values are not, the first "
            f"being {values[index]} at index {', '.join(map(str, index))}; drop those rows or fill "
            "them in"
        )
        raise MembersError(message)


def _check_classes(labels: NDArray[Any]) -> None:
    classes, sizes = np.unique(labels, return_counts=True)
    if sizes.min() < LEAST_ROWS:
        message = (
            f"label {classes[sizes.argmin()]} has {sizes.min()} members, and a generator needs at "
            f"least {LEAST_ROWS} of each; merge rare labels, or leave their members out"
        )
        raise TooFewMembersError(message)


@dataclass(frozen=True, eq=False)
class Marginal:
    """The distribution of one column, as a quantile function.

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
    def fit(cls, column: FloatArray, *, categorical: bool, dtype: np.dtype[Any]) -> "Marginal":
        """Learn the distribution of a column."""
        values, counts = np.unique(column, return_counts=True)
        cumulative = np.concatenate([[0.0], np.cumsum(counts) / column.size])
        low, high = values.copy(), values.copy()
        step, decimals = 0.0, 0
        if not categorical:
            once = counts == 1
            middle = (values[1:] + values[:-1]) / 2
            low[1:][once[1:]] = middle[once[1:]]
            high[:-1][once[:-1]] = middle[once[:-1]]
            step, decimals = _step(values, dtype)
        return cls(values, cumulative, low, high, step, decimals)

    def codes(self, column: FloatArray) -> IntArray:
        """Return the position of each of the fitted column's values among the distinct ones."""
        return np.searchsorted(self.values, column)

    def quantile(self, shares: FloatArray) -> FloatArray:
        """Return the value below which each share of the members lies."""
        code = np.searchsorted(self.cumulative, shares, side="right") - 1
        code = np.clip(code, 0, self.values.size - 1)
        width = self.cumulative[code + 1] - self.cumulative[code]
        return self.place(code, np.clip((shares - self.cumulative[code]) / width, 0, 1))

    def place(self, codes: IntArray, within: FloatArray) -> FloatArray:
        """Return points of the neighbourhoods of values."""
        found = self.low[codes] + within * (self.high[codes] - self.low[codes])
        if self.step:
            first = self.values[0]
            found = first + np.round((found - first) / self.step) * self.step
            found = np.round(found, self.decimals)
        return found


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table, the labels as one more: rows are codes of distinct values."""

    marginals: tuple[Marginal, ...]
    categorical: tuple[bool, ...]
    dtype: np.dtype[Any]
    classes: NDArray[Any] | None

    @classmethod
    def fit(cls, table: Table, named: tuple[int, ...]) -> tuple["Columns", IntArray]:
        """Learn the columns, and return the codes of the members too: shape (n, columns)."""
        kinds = table.categorical(named)
        marginals = [
            Marginal.fit(column, categorical=kind, dtype=table.dtype)
            for column, kind in zip(table.values.T, kinds, strict=True)
        ]
        codes = [one.codes(x) for one, x in zip(marginals, table.values.T, strict=True)]
        classes = None
        if table.labels is not None:
            classes, label = np.unique(table.labels, return_inverse=True)
            one = Marginal.fit(label.astype(np.float64), categorical=True, dtype=label.dtype)
            marginals, kinds, codes = [*marginals, one], (*kinds, True), [*codes, label]
        return cls(tuple(marginals), kinds, table.dtype, classes), np.column_stack(codes)

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
    """Members by group: whom a new row of a group takes its value from."""

    order: IntArray
    groups: IntArray

    @classmethod
    def fit(cls, groups: IntArray) -> "Donors":
        """Put members into groups."""
        order = np.argsort(groups, kind="stable")
        return cls(order, groups[order])

    def draw(self, groups: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a member of each group asked for."""
        first = np.searchsorted(self.groups, groups, side="left")
        end = np.searchsorted(self.groups, groups, side="right")
        return self.order[first + (rng.random(groups.size) * (end - first)).astype(np.intp)]


def _step(values: FloatArray, dtype: np.dtype[Any]) -> tuple[float, int]:
    """Return the largest step that all distances are multiples of, or 0, and its decimals."""
    for decimals in range(DECIMALS + 1):
        scale = 10.0**decimals
        if np.abs(values).max() * scale >= 2**53:
            break
        if np.array_equal(np.round(values, decimals).astype(dtype), values.astype(dtype)):
            whole = np.round(values * scale).astype(np.int64)
            return float(np.gcd.reduce(np.diff(whole), initial=0)) / scale, decimals
    return 0.0, 0
