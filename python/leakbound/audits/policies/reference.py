"""What audits plan for before labels are seen: a truth, and the number of guesses best for it."""

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from leakbound._base.types import FloatArray, Sides
from leakbound.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP
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
    scale = 1.0
    if sides == "member":
        last = -reach
        scale = 0.5
    threshold = np.linspace(reach, last, 4001)
    right = scale * normal_cdf(mu / 2 - threshold)
    wrong = scale * normal_cdf(-mu / 2 - threshold)
    return right + wrong, right


def _margins(k: int, apart: float) -> Curve:
    """Return shares of secrets by the margin of the best of k scores."""
    x = np.linspace(-8.0, 8.0 + apart, 400)
    margin = np.linspace(8.0 + apart, 0.0, 200)[:, None]
    width = x[1] - x[0]
    # Probabilities of the best score, that of the right value and of a wrong one.
    of_right = np.exp(-0.5 * (x - apart) ** 2)
    of_wrong = np.exp(-0.5 * x**2)
    best_is_right = of_right * width / math.sqrt(math.tau)
    best_is_wrong = of_wrong * width / math.sqrt(math.tau)
    # How likely one wrong value, and the right one, are below it by the margin.
    wrong_below = normal_cdf(x - margin)
    right_below = normal_cdf(x - apart - margin)
    right = wrong_below ** (k - 1) @ best_is_right
    wrong = (wrong_below ** (k - 2) * right_below) @ best_is_wrong
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
        deviation = math.sqrt(guesses * p * (1 - p))
        drawn = np.rint(guesses * p + _COUNTS * deviation)
        counts = np.clip(drawn, 0, guesses)
        return float(np.mean([bound(int(correct), guesses) for correct in counts]))

    each = zip(candidates.tolist(), precision.tolist(), strict=True)
    proved = [mean(guesses, p) for guesses, p in each]
    best = int(np.argmax(proved))
    return Fixed(int(candidates[best])), proved[best]


@lru_cache(maxsize=256)
def plan_guesses(
    examples: int, level: float, claim: Guarantee, sides: Sides
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most at the reference, and what it proves there."""
    # Curves of other families are slow, and plans need none of their own.
    if not isinstance(claim, PureDP | ApproxDP | GaussianDP | LaplaceDP):
        claim = GaussianDP()
    return best_fixed(examples, level=level, claim=claim, sides=sides, curve=reference(sides))
