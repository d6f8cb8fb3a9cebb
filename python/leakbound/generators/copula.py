r"""The Gaussian copula: every column as it was, and the correlations of their normal scores.

A row is a normal vector :math:`Z \sim N(0, R)` whose coordinates go through
:math:`x_j = F_j^{-1}(\Phi(Z_j))`, with the empirical distribution :math:`F_j` of column j. The
*score* of a value is the mean of :math:`Z_j` given that value. In a column with atoms scores move
less than :math:`Z_j` does, so that taking the correlation of scores for R would weaken it. R is
chosen instead such that the scores of *samples* correlate as those of the members: with the Hermite
coefficients :math:`a_{jk}` of column j's scores,

.. math:: \operatorname{Cov}(s_i, s_j) = \sum_{k \ge 1} a_{ik} a_{jk} R_{ij}^k ,

which increases in :math:`R_{ij}` and is inverted by bisection ("normal to anything").

References
----------
M. C. Cario, B. L. Nelson, "Modeling and generating random vectors with arbitrary marginal
distributions and correlation matrix", 1997.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.generators.protocol import Samples, SeededSampler
from leakbound.generators.tables import Marginal, categories, read_table
from leakbound.stats import normal_cdf, normal_quantile

DEGREE = 40  # terms of the series: what is left out is the share of variance beyond them
HALVINGS = 40  # the correlations to 2e-12
STRONGEST = 0.9999  # two columns that determine each other would make R singular


@dataclass(frozen=True, kw_only=True)
class GaussianCopula:
    """Tables: empirical columns tied together by correlations, within each label.

    The fastest generator of tables and, where columns depend on each other in one direction, the
    closest to real data. Each label has its own copula; how many samples have it is random.

    Parameters
    ----------
    categorical : tuple of int
        Columns that hold codes of categories, besides those with at most 20 distinct values.
        Samples never hold a code that the members lack.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(45, 12, 500).round()
    >>> members = np.column_stack([age, 1000 + 40 * age + rng.normal(0, 99, 500).round()])
    >>> samples = GaussianCopula().fit(members).sample(2000, seed=1)
    >>> samples
    Samples(n=2000, shape=(2,))
    >>> bool(np.corrcoef(samples.values.T)[0, 1] > 0.9)
    True
    """

    categorical: tuple[int, ...] = ()

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedGaussianCopula":
        """Learn columns and correlations, from at least 20 rows and 20 of each label.

        See `Generator.fit`.
        """
        rows, classes = read_table(members, labels)
        kinds = categories(rows, self.categorical)
        parts: dict[Any, NDArray[Any]] = {None: rows}
        if classes is not None:
            parts = {label: rows[classes == label] for label in np.unique(classes)}
        strata = {}
        for label, part in parts.items():
            marginals = tuple(
                Marginal.fit(column, categorical=kind)
                for column, kind in zip(part.T, kinds, strict=True)
            )
            root = _root(_latent_correlations(part, marginals))
            strata[label] = marginals, root, len(part) / len(rows)
        return FittedGaussianCopula(strata, rows.dtype)


@dataclass(frozen=True, eq=False)
class FittedGaussianCopula(SeededSampler):
    """What `GaussianCopula.fit` returns.

    For each label the columns, a square root of their correlations, and its share of the members.
    """

    strata: Mapping[Any, tuple[tuple[Marginal, ...], FloatArray, float]]
    dtype: np.dtype[Any]

    def _draw(self, n: int, seed: int) -> Samples:
        rng = Purpose.COPULA_SAMPLES.rng(seed)
        names, strata = list(self.strata), list(self.strata.values())
        which = rng.choice(len(names), size=n, p=[share for *_, share in strata])
        values = np.empty((n, len(strata[0][0])))
        for position, (marginals, root, _) in enumerate(strata):
            rows = np.flatnonzero(which == position)
            shares = normal_cdf(rng.standard_normal((rows.size, len(root))) @ root.T)
            for j, marginal in enumerate(marginals):
                values[rows, j] = marginal.quantile(shares[:, j])
        return Samples(
            values.astype(self.dtype), None if names == [None] else np.array(names)[which]
        )


def _latent_correlations(rows: NDArray[Any], marginals: tuple[Marginal, ...]) -> FloatArray:
    """Return the correlations of the normal vector that give samples those of the members."""
    scores, series = zip(*map(_normal_scores, marginals), strict=True)
    observed = np.column_stack(
        [one[marginal.codes(x)] for one, marginal, x in zip(scores, marginals, rows.T, strict=True)]
    )
    # The covariances that scores of samples are to have.
    wanted = (observed - observed.mean(0)).T @ (observed - observed.mean(0)) / len(rows)
    terms = np.array(series).T
    products = terms[:, :, None] * terms[:, None, :]
    # Bisection for all pairs at once: the series increases in the correlation.
    low, high = np.full(wanted.shape, -STRONGEST), np.full(wanted.shape, STRONGEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        covariance = np.zeros_like(middle)
        for product in products[::-1]:
            covariance = middle * (product + covariance)
        above = covariance > wanted
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    # A constant column correlates with nothing.
    spread = observed.std(0) > 0
    latent = np.where(np.outer(spread, spread), (low + high) / 2, 0.0)
    np.fill_diagonal(latent, 1)
    return latent


def _normal_scores(marginal: Marginal) -> tuple[FloatArray, FloatArray]:
    """Return the score of each distinct value, and the scores' Hermite coefficients.

    The integral of the k-th normalised Hermite polynomial times the normal density is minus the
    polynomial before times the density, over √k: no quadrature is needed for a step function.
    """
    # The ends at minus and plus infinity have no density.
    limits = normal_quantile(marginal.cumulative)[1:-1]
    density = np.exp(-(limits**2) / 2) / np.sqrt(2 * np.pi)
    before, here = np.zeros_like(limits), np.ones_like(limits)
    integrals = np.empty((DEGREE, marginal.values.size))
    for k in range(1, DEGREE + 1):
        integrals[k - 1] = -np.diff(here * density, prepend=0, append=0) / np.sqrt(k)
        before, here = here, (limits * here - np.sqrt(k - 1) * before) / np.sqrt(k)
    scores = integrals[0] / np.diff(marginal.cumulative)
    return scores, integrals @ scores


def _root(correlations: FloatArray) -> FloatArray:
    """Return B with B Bᵀ the correlations, made positive semidefinite with a unit diagonal."""
    values, vectors = np.linalg.eigh(correlations)
    root = vectors * np.sqrt(np.maximum(values, 0))
    scaled: FloatArray = root / np.linalg.norm(root, axis=1, keepdims=True)
    return scaled
