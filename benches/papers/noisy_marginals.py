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

from leakbound._base.types import FloatArray, IntArray
from leakbound.generators.protocol import FittedGenerator, Samples
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

    def fit(self, members: FloatArray) -> FittedGenerator:
        """Count, and add noise: all that is kept of the members is noisy.

        `members` have a column for each of `domain`; labels are columns like others.
        """
        edges = [self._interval_edges(column) for column in range(len(self.domain))]
        intervals = [
            _intervals_of(values, edges_of_column)
            for values, edges_of_column in zip(members.T, edges, strict=True)
        ]
        columns_with_table = [column for column in range(len(edges)) if column != self.centre]
        rng = generator("generators/marginals", self.seed)
        # Replacing one member moves two cells of each table by one.
        decay_rate = self.epsilon / (2 * len(columns_with_table))
        stop_probability = -math.expm1(-decay_rate)
        intervals_of_centre = edges[self.centre].size - 1
        noisy_counts = {}
        for column in columns_with_table:
            intervals_of_column = edges[column].size - 1
            shape = (intervals_of_centre, intervals_of_column)
            counts = np.zeros(shape, dtype=np.int64)
            cells_of_members = (intervals[self.centre], intervals[column])
            np.add.at(counts, cells_of_members, 1)
            # The difference of two geometric numbers is the two-sided geometric noise.
            first_geometric = rng.geometric(p=stop_probability, size=shape)
            second_geometric = rng.geometric(p=stop_probability, size=shape)
            counts_with_noise = counts + (first_geometric - second_geometric)
            noisy_counts[column] = np.maximum(counts_with_noise, 0.0)
        draw = partial(self._draw_rows, edges, noisy_counts)
        return FittedGenerator(draw=draw, learnt=noisy_counts)

    def _draw_rows(
        self,
        edges: list[FloatArray],
        noisy_counts: dict[int, FloatArray],
        n: int,
        seed: int,
    ) -> Samples:
        """Draw rows from noisy counts: the centre, then each column given the centre."""
        rng = generator("generators/marginal-samples", seed)
        # Each table has counts of the centre; their mean has the least noise.
        counts_of_centre = [table.sum(axis=1) for table in noisy_counts.values()]
        mean_counts_of_centre = np.mean(counts_of_centre, axis=0)
        centre_probabilities = _probabilities(mean_counts_of_centre)
        centre_intervals = rng.choice(centre_probabilities.size, size=n, p=centre_probabilities)
        drawn_intervals = {self.centre: centre_intervals}
        for column, table in noisy_counts.items():
            probabilities_given_centre = np.apply_along_axis(_probabilities, 1, table)
            cumulative = np.cumsum(probabilities_given_centre, axis=1)
            cumulative_of_rows = cumulative[centre_intervals, :-1]
            # Inversion of the distribution function.
            is_beyond = rng.random((n, 1)) >= cumulative_of_rows
            drawn_intervals[column] = np.count_nonzero(is_beyond, axis=1)
        columns = []
        for column, edges_of_column in enumerate(edges):
            lower_edges = edges_of_column[drawn_intervals[column]]
            upper_edges = edges_of_column[drawn_intervals[column] + 1]
            share_of_interval: float | FloatArray = 0.0
            if column not in self.categorical:
                share_of_interval = rng.random(n)
            values = lower_edges + share_of_interval * (upper_edges - lower_edges)
            columns.append(values)
        return Samples(np.column_stack(columns))

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
