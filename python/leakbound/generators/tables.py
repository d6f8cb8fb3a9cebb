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
from leakbound.generators.members import LEAST_ROWS, read_labels, read_members
from leakbound.generators.protocol import FittedGenerator, Samples

MOST_CATEGORIES = 20  # at most so many distinct values make a column categorical
MOST_DECIMALS = 4  # values may be rounded to as many decimals; prices and rates have no more
MOST_INTERVALS = 24  # of about equal frequency, that a column of measurements is cut into
# Members' worth of independence in each row of a conditional table: no share is 0
PSEUDO_COUNT = 1.0
LARGEST_EXACT_INTEGER = 2**53  # whole numbers of float64 end here


def read_table(
    members: ArrayInput, labels: ArrayInput | None = None
) -> tuple[AnyArray, AnyArray | None]:
    """Read members that are rows of numbers, and their labels, at least 20 of each."""
    member_rows = read_members(members)
    if member_rows.ndim != 2:
        raise InputError(
            f"members must be a table with one row per member, got shape {member_rows.shape}"
        )
    member_labels = read_labels(labels, len(member_rows))
    if member_labels is not None:
        distinct_labels, label_counts = np.unique(member_labels, return_counts=True)
        if label_counts.min() < LEAST_ROWS:
            rarest_label = distinct_labels[label_counts.argmin()]
            raise InputError(
                f"label {rarest_label} has {label_counts.min()} members, but a generator needs "
                f"{LEAST_ROWS}: merge rare labels"
            )
    return member_rows, member_labels


def categorical_columns(member_rows: AnyArray, named_columns: tuple[int, ...]) -> tuple[bool, ...]:
    """Return which columns hold categories: those named, and those with few values."""
    is_categorical = [np.unique(values).size <= MOST_CATEGORIES for values in member_rows.T]
    last_column = len(is_categorical) - 1
    for column in named_columns:
        if not 0 <= column <= last_column:
            raise OptionError(
                f"categorical has column {column}, but the columns are 0 to {last_column}"
            )
        is_categorical[column] = True
    return tuple(is_categorical)


@dataclass(frozen=True, eq=False)
class Marginal:
    """The distribution of one column.

    A value that repeats is an atom and keeps its frequency. In a column of measurements a value
    that occurs once stands for its neighbourhood, half way to the values beside it; where all
    values are multiples of a step (whole numbers, two decimals, tens), so are those in between.
    Nothing is ever beyond the smallest and the largest value seen.

    `distinct_values` increase, `cumulative` is their distribution function, with a 0 before it, and
    `neighbourhood_starts` and `neighbourhood_ends` are the ends of their neighbourhoods.
    """

    distinct_values: FloatArray
    cumulative: FloatArray
    neighbourhood_starts: FloatArray
    neighbourhood_ends: FloatArray
    step: float
    decimals: int

    __repr__ = brief

    @classmethod
    def fit(cls, column: AnyArray, *, categorical: bool) -> "Marginal":
        """Learn the distribution of a column."""
        distinct_values, occurrences_of_values = np.unique(
            column.astype(np.float64), return_counts=True
        )
        # Each distinct value is an interval of shares, as wide as it is frequent.
        cumulative_counts = np.cumsum(occurrences_of_values, dtype=np.float64)
        cumulative_shares = np.insert(cumulative_counts / column.size, 0, 0.0)
        neighbourhood_starts = distinct_values.copy()
        neighbourhood_ends = distinct_values.copy()
        step = 0.0
        decimals = 0
        if not categorical:
            # A value that occurs once stands for all points nearer to it than to its neighbours.
            midpoints = _means_of_neighbours(distinct_values)
            occurs_once = occurrences_of_values == 1
            np.copyto(neighbourhood_starts[1:], midpoints, where=occurs_once[1:])
            np.copyto(neighbourhood_ends[:-1], midpoints, where=occurs_once[:-1])
            step, decimals = _step_between_values(distinct_values, column.dtype)
        return cls(
            distinct_values=distinct_values,
            cumulative=cumulative_shares,
            neighbourhood_starts=neighbourhood_starts,
            neighbourhood_ends=neighbourhood_ends,
            step=step,
            decimals=decimals,
        )

    def codes(self, column: AnyArray) -> IntArray:
        """Return the position of each of the fitted column's values among the distinct ones."""
        return np.searchsorted(self.distinct_values, column.astype(np.float64))

    def mid_ranks(self) -> FloatArray:
        """Return the middle of each distinct value's interval of shares."""
        return _means_of_neighbours(self.cumulative)

    def intervals(self) -> IntArray:
        """Return the interval of each distinct value, of about equal frequency, from 0 on."""
        equal_intervals = np.floor(self.mid_ranks() * MOST_INTERVALS)
        _, intervals_in_use = np.unique(equal_intervals, return_inverse=True)
        return intervals_in_use

    def values_of(self, codes: IntArray, relative_positions: FloatArray) -> FloatArray:
        """Return points of the neighbourhoods of values, at relative positions in [0, 1)."""
        starts_of_values = self.neighbourhood_starts[codes]
        widths_of_values = self.neighbourhood_ends[codes] - starts_of_values
        neighbourhood_points = starts_of_values + relative_positions * widths_of_values
        if self.step:
            smallest = self.distinct_values[0]
            steps_from_smallest = np.round((neighbourhood_points - smallest) / self.step)
            neighbourhood_points = smallest + steps_from_smallest * self.step
            neighbourhood_points = np.round(neighbourhood_points, self.decimals)
        return neighbourhood_points


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
        cls, members: ArrayInput, labels: ArrayInput | None, named_columns: tuple[int, ...]
    ) -> tuple["Columns", IntArray]:
        """Learn the columns, and return the codes of the members too: shape (n, columns)."""
        rows, member_labels = read_table(members, labels)
        member_columns = [*rows.T]
        is_categorical_column = categorical_columns(rows, named_columns)
        classes = None
        if member_labels is not None:
            classes, label_codes = np.unique(member_labels, return_inverse=True)
            member_columns.append(label_codes)
            is_categorical_column = (*is_categorical_column, True)
        marginals = []
        column_codes = []
        for column, is_categorical in zip(member_columns, is_categorical_column, strict=True):
            marginal = Marginal.fit(column, categorical=is_categorical)
            marginals.append(marginal)
            column_codes.append(marginal.codes(column))
        fitted_columns = cls(
            tuple(marginals), is_categorical_column, dtype=rows.dtype, classes=classes
        )
        return fitted_columns, np.column_stack(column_codes)

    def samples(self, codes: IntArray, sample_rng: np.random.Generator) -> Samples:
        """Return rows of codes as samples, each value somewhere in its code's neighbourhood."""
        labels = None
        feature_marginals = self.marginals
        if self.classes is not None:
            labels = self.classes[codes[:, -1]]
            feature_marginals = feature_marginals[:-1]
        sampled_columns = []
        for marginal, codes_of_column in zip(feature_marginals, codes.T, strict=False):
            relative_positions = sample_rng.random(len(codes))
            sampled_columns.append(marginal.values_of(codes_of_column, relative_positions))
        sampled_rows = np.column_stack(sampled_columns)
        return Samples(values=sampled_rows.astype(self.dtype), labels=labels)


@dataclass(frozen=True, eq=False)
class Donors:
    """Values of members by group: what a new row of a group draws from."""

    codes: IntArray
    groups: IntArray

    __repr__ = brief

    @classmethod
    def fit(cls, groups: IntArray, codes: IntArray) -> "Donors":
        """Put members into groups."""
        by_group = np.argsort(groups, kind="stable")
        return cls(codes=codes[by_group], groups=groups[by_group])

    def draw(self, groups: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the value of a member of each group in the list."""
        first_donors = np.searchsorted(self.groups, groups, side="left")
        ends_of_donors = np.searchsorted(self.groups, groups, side="right")
        # Each donor of the group is drawn with the same probability.
        donors_before = rng.random(groups.size) * (ends_of_donors - first_donors)
        return self.codes[first_donors + donors_before.astype(np.intp)]


def _means_of_neighbours(increasing: FloatArray) -> FloatArray:
    """Return the mean of each two values that follow each other."""
    means: FloatArray = (increasing[1:] + increasing[:-1]) / 2
    return means


def _step_between_values(
    distinct_values: FloatArray, dtype: np.dtype[np.generic]
) -> tuple[float, int]:
    """Return the largest step that all distances are multiples of, or 0, and its decimals."""
    largest_magnitude = np.abs(distinct_values).max()
    for decimals in range(MOST_DECIMALS + 1):
        power_of_ten = 10.0**decimals
        if largest_magnitude * power_of_ten >= LARGEST_EXACT_INTEGER:
            break
        rounded_values = np.round(distinct_values, decimals)
        if np.array_equal(rounded_values.astype(dtype), distinct_values.astype(dtype)):
            whole_numbers = np.round(distinct_values * power_of_ten).astype(np.int64)
            divisor = np.gcd.reduce(np.diff(whole_numbers), initial=0)
            return float(divisor) / power_of_ten, decimals
    return 0.0, 0


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
        fitted_columns, member_value_codes = Columns.fit(members, labels, self.categorical)
        with needs("ml", "SequentialCART"):
            from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
        # The first column has nothing before it, and no tree.
        first_codes = member_value_codes[:, 0]
        first_donors = Donors.fit(np.zeros_like(first_codes), first_codes)
        trees_and_donors_of_columns: list[
            tuple[DecisionTreeClassifier | DecisionTreeRegressor | None, Donors]
        ] = [(None, first_donors)]
        for column in range(1, member_value_codes.shape[1]):
            codes_of_columns_before = member_value_codes[:, :column]
            codes_of_column = member_value_codes[:, column]
            tree_class = DecisionTreeClassifier
            targets_of_tree: AnyArray = codes_of_column
            if not fitted_columns.categorical[column]:
                # Numbers are predicted by rank, which no outlier dominates.
                tree_class = DecisionTreeRegressor
                targets_of_tree = 2 * fitted_columns.marginals[column].mid_ranks()[codes_of_column]
            tree_of_column = tree_class(
                min_samples_leaf=self.leaf, random_state=Purpose.CART_TREES.derived(0, bits=32)
            )
            tree_of_column.fit(codes_of_columns_before, targets_of_tree)
            donors_of_column = Donors.fit(
                tree_of_column.apply(codes_of_columns_before), codes_of_column
            )
            trees_and_donors_of_columns.append((tree_of_column, donors_of_column))

        def draw(n: int, seed: int) -> Samples:
            sample_rng = Purpose.CART_SAMPLES.rng(seed)
            sample_value_codes = np.empty((n, len(trees_and_donors_of_columns)), np.int64)
            for column, (tree_of_column, donors_of_column) in enumerate(
                trees_and_donors_of_columns
            ):
                leaves_of_samples = np.zeros(n, np.int64)
                if tree_of_column is not None:
                    leaves_of_samples = tree_of_column.apply(sample_value_codes[:, :column])
                sample_value_codes[:, column] = donors_of_column.draw(leaves_of_samples, sample_rng)
            return fitted_columns.samples(sample_value_codes, sample_rng)

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
        fitted_columns, member_value_codes = Columns.fit(members, labels, self.categorical)
        # 1. Columns of measurements become intervals of about equal frequency.
        intervals_of_members = member_value_codes.copy()
        for column, is_categorical in enumerate(fitted_columns.categorical):
            if not is_categorical:
                interval_of_code = fitted_columns.marginals[column].intervals()
                intervals_of_members[:, column] = interval_of_code[member_value_codes[:, column]]
        # 2. The tree, and for each edge the distribution of the child given its parent.
        columns_parents_first, parents = _chow_liu_tree(intervals_of_members)
        distributions_and_donors_of_columns = list[tuple[FloatArray, Donors]]()
        for column, parent in enumerate(parents):
            intervals_of_parent = np.zeros(len(intervals_of_members), np.int64)
            if parent >= 0:
                intervals_of_parent = intervals_of_members[:, parent]
            intervals_of_child = intervals_of_members[:, column]
            conditional_distribution = _conditional_distribution(
                intervals_of_child, intervals_of_parent
            )
            donors_of_column = Donors.fit(intervals_of_child, member_value_codes[:, column])
            distributions_and_donors_of_columns.append((conditional_distribution, donors_of_column))

        def draw(n: int, seed: int) -> Samples:
            sample_rng = Purpose.CHOW_LIU_SAMPLES.rng(seed)
            sample_value_codes = np.empty((n, len(distributions_and_donors_of_columns)), np.int64)
            # Column -1 is the root's parent.
            intervals_of_samples = np.zeros(
                (n, len(distributions_and_donors_of_columns) + 1), np.int64
            )
            for column in columns_parents_first:
                conditional_distribution, donors_of_column = distributions_and_donors_of_columns[
                    column
                ]
                intervals_of_parent = intervals_of_samples[:, parents[column]]
                # Inverse of the distribution function; its last value is 1, and is left out.
                cumulative_probabilities = conditional_distribution[intervals_of_parent, :-1]
                is_beyond = sample_rng.random(n)[:, None] >= cumulative_probabilities
                intervals_of_samples[:, column] = is_beyond.sum(axis=1)
                sample_value_codes[:, column] = donors_of_column.draw(
                    intervals_of_samples[:, column], sample_rng
                )
            return fitted_columns.samples(sample_value_codes, sample_rng)

        return FittedGenerator(draw)


def _conditional_distribution(
    intervals_of_child: IntArray, intervals_of_parent: IntArray
) -> FloatArray:
    """Return the distribution function of a column given its parent, one row for each value."""
    counts_of_interval_pairs = np.zeros(
        (intervals_of_parent.max() + 1, intervals_of_child.max() + 1)
    )
    np.add.at(counts_of_interval_pairs, (intervals_of_parent, intervals_of_child), 1)
    # Additive smoothing, towards the distribution of the column by itself.
    child_counts = counts_of_interval_pairs.sum(axis=0)
    pseudo_counts = PSEUDO_COUNT * child_counts / counts_of_interval_pairs.sum()
    cumulative_counts = np.cumsum(counts_of_interval_pairs + pseudo_counts, axis=1)
    distribution: FloatArray = cumulative_counts / cumulative_counts[:, -1:]
    return distribution


def _chow_liu_tree(intervals: IntArray) -> tuple[list[int], list[int]]:
    """Return columns with parents first, and the parent of each."""
    with needs("ml", "ChowLiuTree"):
        from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
        from sklearn.metrics import mutual_info_score
    # The tree of largest total information is the spanning tree of least total cost.
    column_count = intervals.shape[1]
    costs_of_edges = np.zeros((column_count, column_count))
    for one_column in range(column_count):
        for other_column in range(one_column):
            mutual_information = mutual_info_score(
                intervals[:, one_column], intervals[:, other_column]
            )
            costs_of_edges[one_column, other_column] = -mutual_information
    # Positive costs: scipy takes an edge of cost 0 for no edge.
    positive_costs = np.tril(costs_of_edges - costs_of_edges.min() + 1, -1)
    spanning_tree = minimum_spanning_tree(positive_costs)
    columns_parents_first, parents = breadth_first_order(spanning_tree, 0, directed=False)
    return columns_parents_first.tolist(), np.maximum(parents, -1).tolist()
