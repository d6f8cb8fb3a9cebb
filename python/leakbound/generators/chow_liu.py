r"""The Chow–Liu tree: the closest distribution in which each column depends on one other.

Among all distributions :math:`\prod_j p(x_j \mid x_{\text{parent}(j)})` over trees, the one closest
to the members in Kullback–Leibler divergence has the tree of largest total mutual information.

References
----------
C. K. Chow, C. N. Liu, "Approximating discrete probability distributions with dependence trees",
1968.
"""

from dataclasses import dataclass

import numpy as np

from leakbound._base.checks import integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.generators.protocol import Samples, SeededSampler
from leakbound.generators.tables import Columns, Donors, Marginal, read_table

PRIOR = 1.0
"""How many members' worth of independence is added to each row of a conditional table."""


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

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(1000, 3)).cumsum(1)
    >>> tree = ChowLiuTree().fit(x)
    >>> tree.parents  # each column depends on the one before
    (-1, 0, 1)
    """

    categorical: tuple[int, ...] = ()
    intervals: int = 24

    def __post_init__(self) -> None:
        integer(self.intervals, "intervals", least=2)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedChowLiuTree":
        """Find the tree and the tables of its edges; labels are one more column of it.

        At least 20 rows are needed, and 20 of each label: see `Generator.fit`.
        """
        columns, codes = Columns.fit(read_table(members, labels), self.categorical)
        bins = np.column_stack(
            [
                x if kind else self._cut(one)[x]
                for one, kind, x in zip(
                    columns.marginals, columns.categorical, codes.T, strict=True
                )
            ]
        )
        order, parents = _tree(bins)
        steps = [_Step.fit(bins, codes, j, parents[j]) for j in range(len(parents))]
        return FittedChowLiuTree(columns, tuple(order), tuple(parents), tuple(steps))

    def _cut(self, marginal: Marginal) -> IntArray:
        """Return the interval of each distinct value."""
        middle = (marginal.cumulative[1:] + marginal.cumulative[:-1]) / 2
        _, interval = np.unique((middle * self.intervals).astype(np.int64), return_inverse=True)
        return interval


@dataclass(frozen=True, eq=False)
class _Step:
    """One column: the distribution of its interval given the parent's, and who is in each."""

    cumulative: FloatArray
    donors: Donors
    codes: IntArray

    @classmethod
    def fit(cls, bins: IntArray, codes: IntArray, column: int, parent: int) -> "_Step":
        above = np.zeros(len(bins), np.int64) if parent < 0 else bins[:, parent]
        table = _joint(above, bins[:, column])
        overall = table.sum(0) / table.sum()
        cumulative = np.cumsum(table + PRIOR * overall, axis=1)
        donors = Donors.fit(bins[:, column])
        return cls(cumulative / cumulative[:, -1:], donors, codes[:, column])

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


def _joint(one: IntArray, other: IntArray) -> FloatArray:
    """Count pairs."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    return table


def _information(one: IntArray, other: IntArray) -> float:
    """Return the mutual information of two columns of intervals, in nats."""
    joint = _joint(one, other) / one.size
    independent = np.outer(joint.sum(1), joint.sum(0))
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def _tree(bins: IntArray) -> tuple[list[int], list[int]]:
    """Return columns with parents first, and the parent of each."""
    with needs("ml", "ChowLiuTree"):
        from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
    columns = bins.shape[1]
    cost = np.zeros((columns, columns))
    for i in range(columns):
        for j in range(i):
            cost[i, j] = -_information(bins[:, i], bins[:, j])
    lowest = cost.min()
    tree = minimum_spanning_tree(np.tril(cost - lowest + 1, -1))
    order, parents = breadth_first_order(tree, 0, directed=False)
    return order.tolist(), [-1 if parent < 0 else int(parent) for parent in parents.tolist()]
