"""Tables: their columns and empirical distributions, sequential trees, and the Chow–Liu tree.

References
----------
B. Nowok, G. M. Raab, C. Dibben, "synthpop: bespoke creation of synthetic data in R", 2016; C. K.
Chow, C. N. Liu, "Approximating discrete probability distributions with dependence trees", 1968.
"""

from dataclasses import dataclass

import numpy as np

from leakbound._base.brief import brief
from leakbound._base.checks import MOST_EXAMPLES, integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, FloatArray, IntArray
from leakbound.errors import InputError, OptionError
from leakbound.generators.members import LEAST_ROWS, read_array, read_labels
from leakbound.generators.protocol import FittedGenerator, Samples

FEW = 20  # at most so many distinct values make a column categorical
DECIMALS = 4  # values may be rounded to as many decimals; prices and rates have no more


def read_table(
    members: ArrayInput, labels: ArrayInput | None = None
) -> tuple[AnyArray, AnyArray | None]:
    """Read members that are rows of numbers, and their labels, at least 20 of each."""
    rows = read_array(members)
    if rows.ndim != 2:
        raise InputError(f"members must be a table with one row per member, got shape {rows.shape}")
    classes = read_labels(labels, len(rows))
    if classes is not None:
        names, sizes = np.unique(classes, return_counts=True)
        if sizes.min() < LEAST_ROWS:
            raise InputError(
                f"label {names[sizes.argmin()]} has {sizes.min()} members, but a generator needs "
                f"{LEAST_ROWS}: merge rare labels"
            )
    return rows, classes


def categories(rows: AnyArray, named: tuple[int, ...]) -> tuple[bool, ...]:
    """Return which columns hold categories: those named, and those with few values."""
    columns = rows.shape[1]
    for column in named:
        if not 0 <= column < columns:
            raise OptionError(
                f"categorical has column {column}, but the columns are 0 to {columns - 1}"
            )
    few = [np.unique(values).size <= FEW for values in rows.T]
    return tuple(j in named or few[j] for j in range(columns))


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

    __repr__ = brief

    @classmethod
    def fit(cls, column: AnyArray, *, categorical: bool) -> "Marginal":
        """Learn the distribution of a column."""
        values, counts = np.unique(column.astype(np.float64), return_counts=True)
        # Each distinct value is an interval of shares, as wide as it is frequent.
        cumulative = np.concatenate([[0.0], np.cumsum(counts) / column.size])
        low = values.copy()
        high = values.copy()
        step = 0.0
        decimals = 0
        if not categorical:
            # A value that occurs once stands for all points nearer to it than to its neighbours.
            middle = (values[1:] + values[:-1]) / 2
            once = counts == 1
            low[1:] = np.where(once[1:], middle, low[1:])
            high[:-1] = np.where(once[:-1], middle, high[:-1])
            step, decimals = _step(values, column.dtype)
        return cls(
            values=values, cumulative=cumulative, low=low, high=high, step=step, decimals=decimals
        )

    def codes(self, column: AnyArray) -> IntArray:
        """Return the position of each of the fitted column's values among the distinct ones."""
        return np.searchsorted(self.values, column.astype(np.float64))

    def intervals(self) -> IntArray:
        """Return the interval of each distinct value, of about equal frequency, from 0 on."""
        middle = (self.cumulative[1:] + self.cumulative[:-1]) / 2
        _, interval = np.unique((middle * INTERVALS).astype(np.int64), return_inverse=True)
        return interval

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
    dtype: np.dtype[np.generic]
    classes: AnyArray | None

    __repr__ = brief

    @classmethod
    def fit(
        cls, members: ArrayInput, labels: ArrayInput | None, named: tuple[int, ...]
    ) -> tuple["Columns", IntArray]:
        """Learn the columns, and return the codes of the members too: shape (n, columns)."""
        rows, names = read_table(members, labels)
        columns = [*rows.T]
        kinds = categories(rows, named)
        classes = None
        if names is not None:
            classes, label = np.unique(names, return_inverse=True)
            columns = [*columns, label]
            kinds = (*kinds, True)
        marginals = []
        codes = []
        for column, kind in zip(columns, kinds, strict=True):
            marginal = Marginal.fit(column, categorical=kind)
            marginals.append(marginal)
            codes.append(marginal.codes(column))
        fitted = cls(
            marginals=tuple(marginals), categorical=kinds, dtype=rows.dtype, classes=classes
        )
        return fitted, np.column_stack(codes)

    def samples(self, codes: IntArray, rng: np.random.Generator) -> Samples:
        """Return rows of codes as samples, each value somewhere in its code's neighbourhood."""
        labels = None
        features = self.marginals
        if self.classes is not None:
            labels = self.classes[codes[:, -1]]
            features = features[:-1]
        values = []
        for j, marginal in enumerate(features):
            within = rng.random(len(codes))
            values.append(marginal.place(codes[:, j], within))
        return Samples(values=np.column_stack(values).astype(self.dtype), labels=labels)


@dataclass(frozen=True, eq=False)
class Donors:
    """Values of members by group: what a new row of a group draws from."""

    codes: IntArray
    groups: IntArray

    __repr__ = brief

    @classmethod
    def fit(cls, groups: IntArray, codes: IntArray) -> "Donors":
        """Put members into groups."""
        order = np.argsort(groups, kind="stable")
        return cls(codes=codes[order], groups=groups[order])

    def draw(self, groups: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the value of a member of each group in the list."""
        first = np.searchsorted(self.groups, groups, side="left")
        end = np.searchsorted(self.groups, groups, side="right")
        places = rng.random(groups.size) * (end - first)
        return self.codes[first + places.astype(np.intp)]


def _step(values: FloatArray, dtype: np.dtype[np.generic]) -> tuple[float, int]:
    """Return the largest step that all distances are multiples of, or 0, and its decimals."""
    for decimals in range(DECIMALS + 1):
        scale = 10.0**decimals
        if np.abs(values).max() * scale >= 2**53:  # whole numbers of float64 end here
            break
        rounded = np.round(values, decimals)
        if np.array_equal(rounded.astype(dtype), values.astype(dtype)):
            whole = np.round(values * scale).astype(np.int64)
            divisor = np.gcd.reduce(np.diff(whole), initial=0)
            return float(divisor) / scale, decimals
    return 0.0, 0


INTERVALS = 24  # most of those that a column is cut into, of about equal frequency
PRIOR = 1.0  # members' worth of independence in each row of a conditional table: no share is 0


@dataclass(frozen=True, kw_only=True)
class SequentialCART:
    """Tables: a tree for each column, which predicts it from the columns before.

    A new row is made from left to right, the label last: the tree of a column finds the members
    that resemble the row so far, and one of them gives the value. Trees follow dependence of any
    shape, thresholds and interactions included; dependence on more columns than a tree has levels
    is lost.

    Parameters
    ----------
    categorical : tuple of int
        Columns that hold codes of categories, besides those with at most 20 distinct values.
    leaf : int
        Fewest members that a value is drawn from. With fewer, samples follow the members more
        closely and begin to copy them.
    """

    categorical: tuple[int, ...] = ()
    leaf: int = 15

    def __post_init__(self) -> None:
        integer(self.leaf, name="leaf", least=1, most=MOST_EXAMPLES)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Grow the trees, from at least 20 rows and 20 of each label: see `Generator.fit`."""
        columns, codes = Columns.fit(members, labels, self.categorical)
        with needs("ml", "SequentialCART"):
            from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
        # The first column has nothing before it, and no tree.
        start = codes[:, 0]
        steps: list[tuple[DecisionTreeClassifier | DecisionTreeRegressor | None, Donors]] = [
            (None, Donors.fit(np.zeros_like(start), start))
        ]
        for j in range(1, codes.shape[1]):
            before = codes[:, :j]
            target = codes[:, j]
            kind = DecisionTreeClassifier
            answer: AnyArray = target
            if not columns.categorical[j]:
                # Numbers are predicted by rank, which no outlier dominates.
                cumulative = columns.marginals[j].cumulative
                kind = DecisionTreeRegressor
                answer = (cumulative[1:] + cumulative[:-1])[target]
            tree = kind(
                min_samples_leaf=self.leaf, random_state=Purpose.CART_TREES.derived(0, bits=32)
            )
            tree.fit(before, answer)
            steps.append((tree, Donors.fit(tree.apply(before), target)))

        def draw(n: int, seed: int) -> Samples:
            rng = Purpose.CART_SAMPLES.rng(seed)
            codes = np.empty((n, len(steps)), np.int64)
            for j, (tree, donors) in enumerate(steps):
                leaves = np.zeros(n, np.int64)
                if tree is not None:
                    leaves = tree.apply(codes[:, :j])
                codes[:, j] = donors.draw(leaves, rng)
            return columns.samples(codes, rng)

        return FittedGenerator(draw)


@dataclass(frozen=True, kw_only=True)
class ChowLiuTree:
    """Tables: a tree of the strongest pairwise dependences, on columns cut into intervals.

    Within an interval values are drawn from the members'. Dependence of more than two columns at a
    time is lost; in exchange, little is memorised. `categorical` is as for `SequentialCART`.
    """

    categorical: tuple[int, ...] = ()

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Find the tree and the tables of its edges; labels are one more column of it.

        At least 20 rows are needed, and 20 of each label: see `Generator.fit`.
        """
        columns, codes = Columns.fit(members, labels, self.categorical)
        # 1. Columns of measurements become intervals of about equal frequency.
        bins = codes.copy()
        for j, categorical in enumerate(columns.categorical):
            if not categorical:
                bins[:, j] = columns.marginals[j].intervals()[codes[:, j]]
        # 2. The tree, and for each edge the distribution of the child given its parent.
        order, parents = _tree(bins)
        steps = list[tuple[FloatArray, Donors]]()
        for child, values, parent in zip(bins.T, codes.T, parents, strict=True):
            above = np.zeros(len(bins), np.int64)
            if parent >= 0:
                above = bins[:, parent]
            steps.append((_conditional(child, above), Donors.fit(child, values)))

        def draw(n: int, seed: int) -> Samples:
            rng = Purpose.CHOW_LIU_SAMPLES.rng(seed)
            codes = np.empty((n, len(steps)), np.int64)
            drawn = np.zeros((n, len(steps) + 1), np.int64)  # column -1 is the root's parent
            for j in order:
                cumulative, donors = steps[j]
                # Inverse of the distribution function; its last value is 1, and is left out.
                of_parent = cumulative[drawn[:, parents[j]], :-1]
                below = rng.random(n)[:, None] >= of_parent
                drawn[:, j] = below.sum(1)
                codes[:, j] = donors.draw(drawn[:, j], rng)
            return columns.samples(codes, rng)

        return FittedGenerator(draw)


def _conditional(child: IntArray, above: IntArray) -> FloatArray:
    """Return the distribution function of a column given its parent, one row for each value."""
    table = np.zeros((above.max() + 1, child.max() + 1))
    np.add.at(table, (above, child), 1)
    cumulative = np.cumsum(table + PRIOR * table.sum(0) / table.sum(), axis=1)
    shares: FloatArray = cumulative / cumulative[:, -1:]
    return shares


def _tree(bins: IntArray) -> tuple[list[int], list[int]]:
    """Return columns with parents first, and the parent of each."""
    with needs("ml", "ChowLiuTree"):
        from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
        from sklearn.metrics import mutual_info_score
    # The tree of largest total information is the spanning tree of least total cost.
    columns = bins.shape[1]
    cost = np.zeros((columns, columns))
    for i in range(columns):
        for j in range(i):
            information = mutual_info_score(bins[:, i], bins[:, j])
            cost[i, j] = -information
    # Positive costs: scipy takes an edge of cost 0 for no edge.
    tree = minimum_spanning_tree(np.tril(cost - cost.min() + 1, -1))
    order, parents = breadth_first_order(tree, 0, directed=False)
    return order.tolist(), np.maximum(parents, -1).tolist()
