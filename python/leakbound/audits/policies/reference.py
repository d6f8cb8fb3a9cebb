"""What audits plan for before labels are seen: a truth, and the number of guesses best for it."""

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from leakbound._base.types import FloatArray, Sides
from leakbound.claims import GaussianDP, SubsampledGaussianDP, TradeOffFamily
from leakbound.claims.base import Guarantee
from leakbound.cuts import Fixed
from leakbound.stats import normal_cdf, normal_quantile

# Numbers of guesses that planning compares.
_CANDIDATES = 60
# Standard scores of the counts of correct guesses over which planning averages.
_COUNTS = normal_quantile((np.arange(9) + 0.5) / 9)

# Shares of all examples guessed, increasing, and guessed right.
Curve: TypeAlias = tuple[FloatArray, FloatArray]


def reference(sides: Sides, k: int = 2, *, mu: float = 1.0) -> Curve:
    """Return shares of all examples guessed, and guessed right, as a threshold falls.

    Scores are N(μ/2, 1) for members and N(-μ/2, 1) for others: what a μ-GDP mechanism allows, and
    the truth that audits plan for where nothing else is said.
    """
    apart = mu / math.sqrt(2)
    if k > 2:
        return _margins(k, apart)
    if sides == "pairs":  # differences are N(μ, 2) where the first of two is the member
        threshold = np.linspace(7.5 + apart, 0.0, 4001)
        right = normal_cdf(apart - threshold)
        wrong = normal_cdf(-apart - threshold)
        return right + wrong, right
    reach = 7.5 + mu / 2
    last = 0.0
    if sides == "member":
        last = -reach
    threshold = np.linspace(reach, last, 4001)
    right = normal_cdf(mu / 2 - threshold)
    wrong = normal_cdf(-mu / 2 - threshold)
    scale = 1.0
    if sides == "member":
        scale = 0.5
    return scale * (right + wrong), scale * right


def _margins(k: int, apart: float) -> Curve:
    """Return shares of secrets by the margin of the best of k scores."""
    x = np.linspace(-8.0, 8.0 + apart, 400)
    margin = np.linspace(8.0 + apart, 0.0, 200)
    density = np.exp(-0.5 * np.array([x - apart, x]) ** 2) * (x[1] - x[0]) / math.sqrt(math.tau)
    # how likely all others are below: of the right value, and of each of the wrong ones
    below = normal_cdf(x - margin[:, None])
    right = below ** (k - 1) @ density[0]
    wrong = (below ** (k - 2) * normal_cdf(x - apart - margin[:, None])) @ density[1]
    return right + (k - 1) * wrong, right


def best_fixed(
    examples: int, level: float, claim: Guarantee, sides: Sides, curve: Curve
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most, and what it proves on average.

    Counts are tested by the recursion: the tight test, which costs more, prefers the same numbers.
    """
    share, right = curve
    candidates = np.unique(np.rint(np.geomspace(1, examples, _CANDIDATES)).astype(int))
    precision = np.interp(candidates / examples, share, right / share)

    def bound(correct: int, guesses: int) -> float:
        return claim.lower_bound(
            correct, guesses, examples, level, test="recursion", one_sided=sides == "member"
        )

    def mean(guesses: int, p: float) -> float:
        counts = np.rint(guesses * p + _COUNTS * math.sqrt(guesses * p * (1 - p)))
        return float(np.mean([bound(int(c), guesses) for c in np.clip(counts, 0, guesses)]))

    proved = [mean(int(r), float(p)) for r, p in zip(candidates, precision, strict=True)]
    best = int(np.argmax(proved))
    return Fixed(int(candidates[best])), proved[best]


@lru_cache(maxsize=256)
def plan_guesses(
    examples: int, level: float, claim: Guarantee, sides: Sides
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most at the reference, and what it proves there."""
    # Curves of other families are slow, and plans need none of their own.
    if isinstance(claim, SubsampledGaussianDP | TradeOffFamily):
        claim = GaussianDP()
    return best_fixed(examples, level=level, claim=claim, sides=sides, curve=reference(sides))
