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

from leakbound._base.types import ArrayInput, FloatArray, IntArray
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
        edges = tuple(self._interval_edges(column) for column in range(len(self.domain)))
        cells = [
            _intervals_of(values, edges_of_column)
            for values, edges_of_column in zip(rows.T, edges, strict=True)
        ]
        columns_with_table = [column for column in range(len(cells)) if column != self.centre]
        if not columns_with_table:
            columns_with_table = [self.centre]
        rng = generator("generators/marginals", self.seed)
        # Replacing one member moves two cells of each table by one.
        decay_rate = self.epsilon / (2 * len(columns_with_table))
        stop_probability = -math.expm1(-decay_rate)
        noisy_counts = {}
        for column in columns_with_table:
            shape = (edges[self.centre].size - 1, edges[column].size - 1)
            counts = np.zeros(shape, np.int64)
            np.add.at(counts, (cells[self.centre], cells[column]), 1)
            # The difference of two geometric numbers is the two-sided geometric noise.
            first_geometric = rng.geometric(p=stop_probability, size=shape)
            second_geometric = rng.geometric(p=stop_probability, size=shape)
            noisy = counts + (first_geometric - second_geometric)
            noisy_counts[column] = np.maximum(noisy, 0).astype(np.float64)
        draw = partial(self._draw_rows, edges, noisy_counts)
        return FittedGenerator(draw=draw, learnt=noisy_counts)

    def _draw_rows(
        self,
        edges: tuple[FloatArray, ...],
        noisy_counts: dict[int, FloatArray],
        n: int,
        seed: int,
    ) -> Samples:
        """Draw rows from noisy counts: the centre, then each column given the centre."""
        rng = generator("generators/marginal-samples", seed)
        # Each table has counts of the centre; their mean has the least noise.
        counts_of_centre = [table.sum(axis=1) for table in noisy_counts.values()]
        centre_probabilities = _probabilities(np.mean(counts_of_centre, axis=0))
        centre_cells = rng.choice(centre_probabilities.size, size=n, p=centre_probabilities)
        cells = np.empty((n, len(edges)), np.int64)
        cells[:, self.centre] = centre_cells
        for column, table in noisy_counts.items():
            if column == self.centre:
                continue
            probabilities_given_centre = np.apply_along_axis(_probabilities, 1, table)
            cumulative = np.cumsum(probabilities_given_centre, axis=1)
            # Inversion of the distribution function.
            uniforms = rng.random(n)[:, None]
            cells[:, column] = (uniforms >= cumulative[centre_cells, :-1]).sum(axis=1)
        values = np.empty(cells.shape)
        for column, edges_of_column in enumerate(edges):
            lower_edges = edges_of_column[cells[:, column]]
            upper_edges = edges_of_column[cells[:, column] + 1]
            share_of_interval: float | FloatArray = 0.0
            if column not in self.categorical:
                share_of_interval = rng.random(n)
            values[:, column] = lower_edges + share_of_interval * (upper_edges - lower_edges)
        return Samples(values)

    def _interval_edges(self, column: int) -> FloatArray:
        lowest, highest = self.domain[column]
        if column in self.categorical:
            first = math.floor(lowest)
            last = math.floor(highest)
            return np.arange(first, last + 2, dtype=np.float64)
        return np.linspace(lowest, highest, num=self.intervals + 1)


def _intervals_of(values: FloatArray, edges: FloatArray) -> IntArray:
    """Return the interval that each value is in; those beyond the domain are in the last ones."""
    numbers = np.searchsorted(edges, values, side="right") - 1
    intervals: IntArray = np.clip(numbers, a_min=0, a_max=edges.size - 2)
    return intervals


def _probabilities(counts: FloatArray) -> FloatArray:
    """Return shares of counts, all equal if there are none."""
    if not counts.any():
        return np.full(counts.size, fill_value=1 / counts.size)
    probabilities: FloatArray = counts / counts.sum()
    return probabilities
