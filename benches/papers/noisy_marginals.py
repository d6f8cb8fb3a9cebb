r"""Noisy marginals: a table with a guarantee of differential privacy.

Columns are cut into intervals of a domain that is *given*, not learnt; for each column but the
centre the counts of pairs (value, centre) are released with two-sided geometric noise, and rows are
drawn from what the counts say: the centre first, then each column given the centre. To replace a
member changes at most two cells of each of the J tables by one, so that noise with
:math:`P(k) \propto e^{-\varepsilon |k| / 2J}` makes the release ε-differentially private for
replacing one member, with δ = 0; drawing rows is post-processing. The number of members is public.

References
----------
A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms",
2009 (the noise); R. McKenna, G. Miklau, D. Sheldon, "Winning the NIST Contest: A scalable and
general approach to differentially private synthetic data", 2021 (noisy marginals).
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from leakbound._base.types import ArrayInput, FloatArray
from leakbound.errors import OptionError
from leakbound.generators.protocol import FittedGenerator, Samples
from leakbound.generators.tables import read_table
from streams import generator

__all__ = ["NoisyMarginals"]


@dataclass(frozen=True, kw_only=True)
class NoisyMarginals:
    """Tables: pairwise counts with noise, ε-differentially private for replacing one member.

    Parameters
    ----------
    domain : sequence of (float, float)
        Lowest and highest value of each column: public knowledge, not learnt from the members.
        Values beyond are moved to the end.
    epsilon : float
        The guarantee, above 0; δ is 0. It covers one call of `fit` with one seed, and any number of
        samples.
    categorical : tuple of int
        Columns of whole numbers, each of which is an interval of its own.
    intervals : int
        Into how many each other column is cut.
    centre : int
        The column that all others are drawn given.
    seed : int
        Of the noise. The guarantee is for a seed that nobody knows.
    """

    domain: tuple[tuple[float, float], ...]
    epsilon: float = 1.0
    categorical: tuple[int, ...] = ()
    intervals: int = 16
    centre: int = 0
    seed: int = 0

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Count, and add noise: all that is kept of the members is noisy.

        At least 20 rows are needed, with a column for each of `domain`; labels are columns like
        others here, and refused beside them. See `Generator.fit`.
        """
        rows, _ = read_table(members)
        if labels is not None or rows.shape[1] != len(self.domain):
            count = f"{rows.shape[1]} columns and domain {len(self.domain)}"
            raise OptionError(
                f"members have {count}; give the range of each, and labels as a column"
            )
        edges = tuple(self._edges(column) for column in range(len(self.domain)))
        cells = [
            np.clip(np.searchsorted(edge, x, side="right") - 1, 0, edge.size - 2)
            for edge, x in zip(edges, rows.T, strict=True)
        ]
        others = [column for column in range(len(cells)) if column != self.centre] or [self.centre]
        rng = generator("generators/marginals", self.seed)
        # Replacing one member moves two cells of each table by one.
        rate = self.epsilon / (2 * len(others))
        stop = -math.expm1(-rate)
        counts = {}
        for column in others:
            shape = edges[self.centre].size - 1, edges[column].size - 1
            table = np.zeros(shape, np.int64)
            np.add.at(table, (cells[self.centre], cells[column]), 1)
            # The difference of two geometric numbers is the two-sided geometric noise.
            noise = rng.geometric(stop, shape) - rng.geometric(stop, shape)
            counts[column] = np.maximum(table + noise, 0).astype(np.float64)
        return FittedGenerator(draw=partial(self._draw, edges, counts), learnt=counts)

    def _draw(
        self, edges: tuple[FloatArray, ...], counts: dict[int, FloatArray], n: int, seed: int
    ) -> Samples:
        """Draw rows from noisy counts: the centre, then each column given the centre."""
        rng = generator("generators/marginal-samples", seed)
        # Each table has counts of the centre; their mean has the least noise.
        centre = _shares(np.mean([table.sum(axis=1) for table in counts.values()], axis=0))
        first = rng.choice(centre.size, n, p=centre)
        cells = np.empty((n, len(edges)), np.int64)
        cells[:, self.centre] = first
        for column, table in counts.items():
            if column != self.centre:
                below = np.cumsum(np.apply_along_axis(_shares, 1, table), axis=1)
                cells[:, column] = (rng.random(n)[:, None] >= below[first, :-1]).sum(axis=1)
        values = np.empty(cells.shape)
        for column, edge in enumerate(edges):
            low = edge[cells[:, column]]
            high = edge[cells[:, column] + 1]
            within: float | FloatArray = 0.0
            if column not in self.categorical:
                within = rng.random(n)
            values[:, column] = low + within * (high - low)
        return Samples(values)

    def _edges(self, column: int) -> FloatArray:
        low, high = self.domain[column]
        if column in self.categorical:
            return np.arange(math.floor(low), math.floor(high) + 2, dtype=np.float64)
        return np.linspace(low, high, self.intervals + 1)


def _shares(counts: FloatArray) -> FloatArray:
    if not counts.any():
        return np.full(counts.size, 1 / counts.size)
    shares: FloatArray = counts / counts.sum()
    return shares
