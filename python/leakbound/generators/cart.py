"""Sequential trees: each column from the columns before it, as synthpop does.

References
----------
B. Nowok, G. M. Raab, C. Dibben, "synthpop: bespoke creation of synthetic data in R", 2016.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.checks import integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, IntArray
from leakbound.generators.protocol import Samples, SeededSampler
from leakbound.generators.tables import Columns, Donors, Marginal, read_table


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

    Examples
    --------
    >>> import numpy as np
    >>> angle = np.random.default_rng(0).uniform(0, 6.3, 1000)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> samples = SequentialCART().fit(circle).sample(1000, seed=0)
    >>> bool((np.abs((samples.values**2).sum(1) - 1) < 0.3).mean() > 0.9)
    True
    """

    categorical: tuple[int, ...] = ()
    leaf: int = 15

    def __post_init__(self) -> None:
        integer(self.leaf, "leaf", least=1)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedSequentialCART":
        """Grow the trees, from at least 20 rows and 20 of each label: see `Generator.fit`."""
        columns, codes = Columns.fit(read_table(members, labels), self.categorical)
        steps = tuple(
            _Step.fit(codes[:, :j], codes[:, j], columns.marginals[j], columns.categorical[j], self)
            for j in range(codes.shape[1])
        )
        return FittedSequentialCART(columns, steps)


@dataclass(frozen=True, eq=False)
class _Step:
    """One column: the tree, the members in its leaves, and their values. The first has no tree."""

    tree: Any
    donors: Donors
    codes: IntArray

    @classmethod
    def fit(
        cls,
        before: IntArray,
        codes: IntArray,
        marginal: Marginal,
        categorical: bool,  # noqa: FBT001
        options: SequentialCART,
    ) -> "_Step":
        if not before.shape[1]:
            return cls(None, Donors.fit(np.zeros(codes.size, np.int64)), codes)
        with needs("ml", "SequentialCART"):
            from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
        kind = DecisionTreeClassifier if categorical else DecisionTreeRegressor
        ranks = (marginal.cumulative[1:] + marginal.cumulative[:-1])[codes]
        tree = kind(
            min_samples_leaf=options.leaf, random_state=Purpose.CART_TREES.derived(0, bits=32)
        )
        tree.fit(before, codes if categorical else ranks)
        return cls(tree, Donors.fit(tree.apply(before)), codes)

    def draw(self, before: IntArray, rng: np.random.Generator) -> IntArray:
        leaves = np.zeros(len(before), np.int64) if self.tree is None else self.tree.apply(before)
        return self.codes[self.donors.draw(leaves, rng)]


@dataclass(frozen=True, eq=False)
class FittedSequentialCART(SeededSampler):
    """What `SequentialCART.fit` returns."""

    columns: Columns
    steps: tuple[_Step, ...]

    def _draw(self, n: int, seed: int) -> Samples:
        rng = Purpose.CART_SAMPLES.rng(seed)
        codes = np.empty((n, len(self.steps)), np.int64)
        for j, step in enumerate(self.steps):
            codes[:, j] = step.draw(codes[:, :j], rng)
        return self.columns.samples(codes, rng)
