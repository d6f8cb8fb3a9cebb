"""Tables column by column: sequential trees, and the Chow–Liu tree.

References
----------
B. Nowok, G. M. Raab, C. Dibben, "synthpop: bespoke creation of synthetic data in R", 2016; C. K.
Chow, C. N. Liu, "Approximating discrete probability distributions with dependence trees", 1968.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.checks import integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.generators.protocol import Samples, SeededSampler
from leakbound.generators.tables import Columns, Donors, Marginal

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
        integer(self.leaf, "leaf", least=1)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedSequentialCART":
        """Grow the trees, from at least 20 rows and 20 of each label: see `Generator.fit`."""
        columns, codes = Columns.fit(members, labels, self.categorical)
        steps = tuple(
            self._grow(codes[:, :j], codes[:, j], columns.marginals[j], columns.categorical[j])
            for j in range(codes.shape[1])
        )
        return FittedSequentialCART(columns, steps)

    def _grow(
        self,
        before: IntArray,
        codes: IntArray,
        marginal: Marginal,
        categorical: bool,  # noqa: FBT001
    ) -> "_Branches":
        if not before.shape[1]:
            return _Branches(None, Donors.fit(np.zeros(codes.size, np.int64)), codes)
        with needs("ml", "SequentialCART"):
            from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
        kind = DecisionTreeClassifier if categorical else DecisionTreeRegressor
        tree = kind(min_samples_leaf=self.leaf, random_state=Purpose.CART_TREES.derived(0, bits=32))
        # Numbers are predicted by rank, which no outlier dominates.
        ranks = (marginal.cumulative[1:] + marginal.cumulative[:-1])[codes]
        tree.fit(before, codes if categorical else ranks)
        return _Branches(tree, Donors.fit(tree.apply(before)), codes)


@dataclass(frozen=True, eq=False)
class _Branches:
    """One column: the tree, the members in its leaves, and their values. The first has no tree."""

    tree: Any
    donors: Donors
    codes: IntArray

    def draw(self, before: IntArray, rng: np.random.Generator) -> IntArray:
        leaves = np.zeros(len(before), np.int64) if self.tree is None else self.tree.apply(before)
        return self.codes[self.donors.draw(leaves, rng)]


@dataclass(frozen=True, eq=False)
class FittedSequentialCART(SeededSampler):
    """What `SequentialCART.fit` returns."""

    columns: Columns
    steps: tuple[_Branches, ...]

    def _draw(self, n: int, seed: int) -> Samples:
        rng = Purpose.CART_SAMPLES.rng(seed)
        codes = np.empty((n, len(self.steps)), np.int64)
        for j, step in enumerate(self.steps):
            codes[:, j] = step.draw(codes[:, :j], rng)
        return self.columns.samples(codes, rng)


@dataclass(frozen=True, kw_only=True)
class ChowLiuTree:
    """Tables: a tree of the strongest pairwise dependences, on columns cut into intervals.

    Within an interval values are drawn from the members'. Dependence of more than two columns at a
    time is lost; in exchange, little is learnt by heart.

    Parameters
    ----------
    categorical : tuple of int
        Columns that hold codes of categories, besides those with at most 20 distinct values.
    intervals : int
        Most intervals that a column of measurements is cut into, of about equal frequency.
    """

    categorical: tuple[int, ...] = ()
    intervals: int = 24

    def __post_init__(self) -> None:
        integer(self.intervals, "intervals", least=2)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedChowLiuTree":
        """Find the tree and the tables of its edges; labels are one more column of it.

        At least 20 rows are needed, and 20 of each label: see `Generator.fit`.
        """
        columns, codes = Columns.fit(members, labels, self.categorical)
        bins = codes.copy()
        for j in np.flatnonzero(~np.array(columns.categorical)).tolist():
            cumulative = columns.marginals[j].cumulative
            interval = ((cumulative[1:] + cumulative[:-1]) / 2 * self.intervals).astype(np.int64)
            bins[:, j] = np.unique(interval, return_inverse=True)[1][codes[:, j]]
        order, parents = _tree(bins)
        steps = []
        for j, parent in enumerate(parents):
            above = np.zeros(len(bins), np.int64) if parent < 0 else bins[:, parent]
            table = np.zeros((above.max() + 1, bins[:, j].max() + 1))
            np.add.at(table, (above, bins[:, j]), 1)
            cumulative = np.cumsum(table + PRIOR * table.sum(0) / table.sum(), axis=1)
            donors = Donors.fit(bins[:, j])
            steps.append(_Step(cumulative / cumulative[:, -1:], donors, codes[:, j]))
        return FittedChowLiuTree(columns, tuple(order), tuple(parents), tuple(steps))


@dataclass(frozen=True, eq=False)
class _Step:
    """One column: the distribution of its interval given the parent's, and who is in each."""

    cumulative: FloatArray
    donors: Donors
    codes: IntArray

    def draw(self, above: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return intervals and codes given the parent's intervals."""
        below = rng.random(above.size)[:, None] >= self.cumulative[above, :-1]
        bins = below.sum(1)
        return bins, self.codes[self.donors.draw(bins, rng)]


@dataclass(frozen=True, eq=False)
class FittedChowLiuTree(SeededSampler):
    """What `ChowLiuTree.fit` returns."""

    columns: Columns
    order: tuple[int, ...]
    parents: tuple[int, ...]
    steps: tuple[_Step, ...]

    def _draw(self, n: int, seed: int) -> Samples:
        rng = Purpose.CHOW_LIU_SAMPLES.rng(seed)
        bins = np.zeros((n, len(self.steps) + 1), np.int64)  # column -1 is the root's parent
        codes = np.empty((n, len(self.steps)), np.int64)
        for j in self.order:
            bins[:, j], codes[:, j] = self.steps[j].draw(bins[:, self.parents[j]], rng)
        return self.columns.samples(codes, rng)


def _tree(bins: IntArray) -> tuple[list[int], list[int]]:
    """Return columns with parents first, and the parent of each."""
    with needs("ml", "ChowLiuTree"):
        from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
        from sklearn.metrics import mutual_info_score
    columns = bins.shape[1]
    cost = np.zeros((columns, columns))
    for i in range(columns):
        for j in range(i):
            cost[i, j] = -mutual_info_score(bins[:, i], bins[:, j])
    # Positive costs: an edge of cost 0 is none to scipy.
    tree = minimum_spanning_tree(np.tril(cost - cost.min() + 1, -1))
    order, parents = breadth_first_order(tree, 0, directed=False)
    return order.tolist(), [-1 if parent < 0 else int(parent) for parent in parents.tolist()]
