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
_STANDARD_SCORES = normal_quantile((np.arange(9) + 0.5) / 9)
# Standard deviations beyond which scores are not looked at, and thresholds up to there.
_DEVIATIONS = 7.5
_THRESHOLDS = 4001

# Shares of all examples guessed, increasing, and guessed right.
Curve: TypeAlias = tuple[FloatArray, FloatArray]


def reference(sides: Sides, k: int = 2, *, mu: float = 1.0) -> Curve:
    """Return shares of all examples guessed, and guessed right, as a threshold falls.

    Scores are N(μ/2, 1) for members and N(-μ/2, 1) for others: what a μ-GDP mechanism allows, and
    the truth that audits plan for where nothing else is said.
    """
    standardized_difference = mu / math.sqrt(2)
    if k > 2:
        return _reference_of_choices(k, standardized_difference)
    if sides == "pairs":  # differences are N(μ, 2) where the first of two is the member
        highest_threshold = _DEVIATIONS + standardized_difference
        thresholds = np.linspace(highest_threshold, 0.0, _THRESHOLDS)
        right = normal_cdf(standardized_difference - thresholds)
        wrong = normal_cdf(-standardized_difference - thresholds)
        return right + wrong, right
    highest_threshold = _DEVIATIONS + mu / 2
    lowest_threshold = 0.0
    share_guessed = 1.0
    if sides == "member":
        lowest_threshold = -highest_threshold
        share_guessed = 0.5
    thresholds = np.linspace(highest_threshold, lowest_threshold, _THRESHOLDS)
    right = share_guessed * normal_cdf(mu / 2 - thresholds)
    wrong = share_guessed * normal_cdf(-mu / 2 - thresholds)
    return right + wrong, right


def _reference_of_choices(k: int, standardized_difference: float) -> Curve:
    """Return shares of secrets by the margin of the best of k scores."""
    largest_score = 8.0 + standardized_difference
    scores = np.linspace(-8.0, largest_score, 400)
    margins = np.linspace(largest_score, 0.0, 200)[:, None]
    score_spacing = scores[1] - scores[0]
    # Probabilities of the best score, that of the right value and of a wrong one.
    right_density = np.exp(-0.5 * (scores - standardized_difference) ** 2)
    wrong_density = np.exp(-0.5 * scores**2)
    best_is_right = right_density * score_spacing / math.sqrt(math.tau)
    best_is_wrong = wrong_density * score_spacing / math.sqrt(math.tau)
    # How likely one wrong value, and the right one, are below it by the margin.
    wrong_is_below = normal_cdf(scores - margins)
    right_is_below = normal_cdf(scores - standardized_difference - margins)
    other_wrong_are_below = wrong_is_below ** (k - 2) * right_is_below
    right = wrong_is_below ** (k - 1) @ best_is_right
    wrong_for_each = other_wrong_are_below @ best_is_wrong
    return right + (k - 1) * wrong_for_each, right


def best_fixed(
    examples: int, level: float, claim: Guarantee, sides: Sides, curve: Curve
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most, and what it proves on average.

    Counts are tested by the recursion: the tight test, which costs more, prefers the same numbers.
    """
    guessed_share, right_share = curve
    spaced_guesses = np.geomspace(1, examples, _CANDIDATES)
    candidates = np.unique(np.rint(spaced_guesses).astype(int))
    precisions = np.interp(candidates / examples, guessed_share, right_share / guessed_share)
    one_sided = sides == "member"

    def mean_bound(guesses: int, precision: float) -> float:
        deviation = math.sqrt(guesses * precision * (1 - precision))
        counts = np.rint(guesses * precision + _STANDARD_SCORES * deviation)
        bounds = []
        for correct in np.clip(counts, 0, guesses):
            bound = claim.lower_bound(
                int(correct), guesses, examples, level, test="recursion", one_sided=one_sided
            )
            bounds.append(bound)
        return float(np.mean(bounds))

    mean_bounds = []
    for guesses, precision in zip(candidates.tolist(), precisions.tolist(), strict=True):
        mean_bounds.append(mean_bound(guesses, precision))
    best = int(np.argmax(mean_bounds))
    return Fixed(int(candidates[best])), mean_bounds[best]


@lru_cache(maxsize=256)
def plan_guesses(
    examples: int, level: float, claim: Guarantee, sides: Sides
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most at the reference, and what it proves there."""
    # Curves of other families are slow, and plans need none of their own.
    if not isinstance(claim, PureDP | ApproxDP | GaussianDP | LaplaceDP):
        claim = GaussianDP()
    return best_fixed(examples, level=level, claim=claim, sides=sides, curve=reference(sides))
