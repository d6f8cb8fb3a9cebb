"""Tests of what bounds from a probe assume: normal noise, independent, and fresh in each step.

Statistics do not change with the scale of a tensor's noise, and are compared with draws from their
law. So p-values are exact; draws end once enough of them were larger (Besag and Clifford 1991).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leakbound._base import shares
from leakbound._base.types import FloatArray, IntArray
from leakbound.audits.dp_sgd.step.contrasts import Noise
from leakbound.results.dp_step import Tested

# Larger draws after which a p-value is settled
_ENOUGH = 20
# Draws at a time at first, numbers in memory at most
_FIRST = 64
_NUMBERS = 2_000_000
# Draws at most; of few numbers there may be more draws, of so many numbers together
_MOST_GAMES = 100_000
_MOST_NUMBERS = 50_000_000
# Contrasts and tensors that are tested for independence, at most
_MOST_ROWS = 24
_MOST_TENSORS = 32
# Values that are tested for normality at most, and of one tensor by itself at least
_MOST_VALUES = 8192
_FEWEST_VALUES = 256
# Variance of the mean cube and fourth power of one standard normal number
_OF_CUBES = 15.0
_OF_FOURTHS = 24.0


class PValue(NamedTuple):
    """The p-value of a test by draws."""

    value: float
    least: float = 0.0
    """The smallest that the draws could give; 0 if there was nothing to test."""


def refuting(p_values: dict[Tested, float], level: float) -> tuple[Tested, ...]:
    """Return which tests refute, each at its share of the level."""
    parts: dict[Tested, float] = {
        "normal": shares.STEP_NORMAL.of(level),
        "independent": shares.STEP_INDEPENDENT.of(level),
        "steps": shares.STEP_FRESH.of(level),
    }
    return tuple(name for name, p in p_values.items() if p <= parts[name])


def simulated(seen: float, draw: Callable[[int], FloatArray], numbers: int, level: float) -> PValue:
    """Return the p-value of a statistic by draws from its law; `numbers` are those of one draw.

    Draws are limited, so that no p-value may be as small as the level.
    """
    most = min(math.ceil(1 / level), max(_MOST_GAMES, _MOST_NUMBERS // numbers))
    least = 1 / (1 + most)
    games = larger = 0
    size = _FIRST
    while games < most:
        size = max(1, min(size, most - games, _NUMBERS // numbers))
        above = draw(size) >= seen
        if larger + np.count_nonzero(above) >= _ENOUGH:
            last = int(np.flatnonzero(above)[_ENOUGH - larger - 1])
            return PValue(_ENOUGH / (games + last + 1), least)
        larger += int(np.count_nonzero(above))
        games += size
        size *= 2
    return PValue((1 + larger) / (1 + games), least)


def independence(noise: Noise, level: float, rng: np.random.Generator) -> PValue:
    """Return the p-value of independent values with one σ in each tensor.

    Rows are contrasts, so products of two rows have mean 0 and a variance that grows with
    correlations of values. Of each tensor they are scaled by its own squares (John 1971; Ledoit and
    Wolf 2002); under the claim they are Wishart matrices.
    """
    tensors = [one for one in map(noise.contrasts.get, noise.used) if one is not None]
    if len(tensors) > _MOST_TENSORS:
        chosen = rng.choice(len(tensors), size=_MOST_TENSORS, replace=False)
        tensors = [tensors[place] for place in chosen]
    widths = [one.shape[1] for one in tensors]
    if not tensors:
        return PValue(1.0)
    rows = min(len(tensors[0]), _MOST_ROWS, max(2, sum(widths) // 4))
    if rows < 2:
        return PValue(1.0)
    # Where rounding leaves nothing of the noise, there is nothing to test
    tensors = [one for one in tensors if one[:rows].any()]
    widths = [one.shape[1] for one in tensors]
    if not tensors:
        return PValue(1.0)
    seen = sum(_scaled(one[:rows] @ one[:rows].T) * one.shape[1] for one in tensors)

    def draw(games: int) -> FloatArray:
        total: FloatArray = np.zeros((games, rows, rows))
        for width in widths:
            total += _scaled(_wisharts(rng, games, rows, width)) * width
        return _off_diagonal(total)

    return simulated(
        float(_off_diagonal(np.asarray(seen))),
        draw,
        numbers=rows * rows,
        level=shares.STEP_INDEPENDENT.of(level),
    )


def _scaled(products: FloatArray) -> FloatArray:
    """Scale matrices to a trace of 1."""
    scaled: FloatArray = products / np.einsum("...ii->...", products)[..., None, None]
    return scaled


def _off_diagonal(products: FloatArray) -> FloatArray:
    """Return the squares off the diagonal, over the squared mean on it."""
    diagonal = np.einsum("...ii->...i", products)
    off: FloatArray = np.einsum("...ij,...ij->...", products, products) - (diagonal**2).sum(-1)
    ratio: FloatArray = off / diagonal.mean(-1) ** 2
    return ratio


def _wisharts(rng: np.random.Generator, games: int, rows: int, width: int) -> FloatArray:
    """Draw products of `rows` vectors of so many normal numbers (Bartlett's decomposition)."""
    if width < 2 * rows:
        vectors = rng.normal(size=(games, rows, width))
        return vectors @ vectors.transpose(0, 2, 1)
    lower = np.tril(rng.normal(size=(games, rows, rows)), -1)
    places = np.arange(rows)
    lower[:, places, places] = np.sqrt(rng.chisquare(width - places, size=(games, rows)))
    return lower @ lower.transpose(0, 2, 1)


def normality(noise: Noise, level: float, rng: np.random.Generator) -> PValue:
    """Return the p-value of skewness and kurtosis of the noise (Jarque and Bera 1980).

    The statistic is the largest one of all values together and of each tensor with many values.
    """
    each = max(8, _MOST_VALUES // max(1, len(noise.used)))
    values = [noise.contrasts[name].ravel()[:each] for name in noise.used]
    # Where rounding leaves nothing of the noise, there is nothing to test
    values = [one for one in values if one.size > 1 and one.any()]
    if not values:
        return PValue(1.0)
    sizes = np.array([one.size for one in values])

    def draw(games: int) -> FloatArray:
        return _shape(rng.normal(size=(games, int(sizes.sum()))), sizes)

    return simulated(
        float(_shape(np.concatenate(values)[None], sizes)[0]),
        draw,
        numbers=int(sizes.sum()),
        level=shares.STEP_NORMAL.of(level),
    )


def _shape(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Return how far third and fourth powers are from those of normal numbers, row by row."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    squares = values**2
    second = np.add.reduceat(squares, starts, axis=1) / sizes
    third = np.add.reduceat(values * squares, starts, axis=1) / second**1.5
    fourth = np.add.reduceat(squares**2, starts, axis=1) / second**2 - 3 * sizes
    own = (third**2 / _OF_CUBES + fourth**2 / _OF_FOURTHS) / sizes
    together = third.sum(1) ** 2 / _OF_CUBES + fourth.sum(1) ** 2 / _OF_FOURTHS
    largest: FloatArray = np.maximum(
        together / sizes.sum(), own.max(axis=1, where=sizes >= _FEWEST_VALUES, initial=0.0)
    )
    return largest


def freshness(
    noise: Noise, steps: dict[str, FloatArray], level: float, rng: np.random.Generator
) -> PValue:
    """Return the p-value of fresh noise of one scale in steps in a row.

    Differences of steps some lag apart have twice the variance of the noise with seeds, tensor by
    tensor. `steps` has what consecutive steps released of the values tested, a row for each.
    """
    names = [name for name in noise.used if steps[name].size]
    if not names:
        return PValue(1.0)
    length = len(steps[names[0]])
    lags = range(1, length)
    counts = np.array([noise.counts[name] for name in names], dtype=np.float64)
    scales = np.array([noise.deviation(name) for name in names]) ** 2
    p_values = []
    for lag in lags:
        starts = [row for row in range(length - lag) if row // lag % 2 == 0]  # disjoint pairs
        later = [row + lag for row in starts]
        squares = np.array([((steps[n][later] - steps[n][starts]) ** 2).sum() for n in names]) / 2
        degrees = np.array([steps[n][starts].size for n in names], dtype=np.float64)

        def draw(games: int, degrees: FloatArray = degrees) -> FloatArray:
            size = (games, len(names))
            known = rng.chisquare(counts, size=size) / counts
            return _off((rng.chisquare(degrees, size=size) / known).sum(1), degrees)

        seen = float(_off((squares / scales).sum(), degrees))
        part = shares.STEP_FRESH.of(level, len(lags))
        p_values.append(simulated(seen, draw, numbers=2 * len(names), level=part))
    # each lag has an equal part of the share
    smallest = min(one.value for one in p_values)
    return PValue(min(1.0, len(lags) * smallest), len(lags) * max(one.least for one in p_values))


def _off(ratio: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return by what factor squares are too large or too small, as a logarithm."""
    with np.errstate(divide="ignore"):
        off: FloatArray = np.abs(np.log(ratio / degrees.sum()))
    return off
