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
        return _shares_above_thresholds(standardized_difference, lowest_threshold=0.0)
    member_mean = mu / 2
    if sides != "member":
        return _shares_above_thresholds(member_mean, lowest_threshold=0.0)
    guessed_of_each_role, right_of_each_role = _shares_above_thresholds(
        member_mean, lowest_threshold=-_DEVIATIONS - member_mean
    )
    return guessed_of_each_role / 2, right_of_each_role / 2


def _shares_above_thresholds(member_mean: float, *, lowest_threshold: float) -> Curve:
    """Return how often scores N(±mean, 1) are above falling thresholds, and those of N(mean, 1)."""
    highest_threshold = _DEVIATIONS + member_mean
    thresholds = np.linspace(highest_threshold, lowest_threshold, _THRESHOLDS)
    right_share = normal_cdf(member_mean - thresholds)
    wrong_share = normal_cdf(-member_mean - thresholds)
    return right_share + wrong_share, right_share


def _reference_of_choices(k: int, standardized_difference: float) -> Curve:
    """Return shares of secrets by the margin of the best of k scores."""
    largest_score = 8.0 + standardized_difference
    best_scores = np.linspace(-8.0, largest_score, 400)
    least_margins = np.linspace(largest_score, 0.0, 200)[:, None]
    score_spacing = best_scores[1] - best_scores[0]
    best_scores_if_right = best_scores - standardized_difference
    # Probabilities of the best score, that of the right value and of a wrong one.
    right_density = np.exp(-0.5 * best_scores_if_right**2)
    wrong_density = np.exp(-0.5 * best_scores**2)
    best_is_right = right_density * score_spacing / math.sqrt(math.tau)
    best_is_wrong = wrong_density * score_spacing / math.sqrt(math.tau)
    # How likely one wrong value, and the right one, are below it by the margin.
    wrong_is_below = normal_cdf(best_scores - least_margins)
    right_is_below = normal_cdf(best_scores_if_right - least_margins)
    other_wrong_are_below = wrong_is_below ** (k - 2)
    all_wrong_are_below = wrong_is_below ** (k - 1)
    right_share = all_wrong_are_below @ best_is_right
    share_of_one_wrong = (other_wrong_are_below * right_is_below) @ best_is_wrong
    return right_share + (k - 1) * share_of_one_wrong, right_share


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
        standard_deviation = math.sqrt(guesses * precision * (1 - precision))
        expected_correct = guesses * precision
        correct_counts = np.rint(expected_correct + _STANDARD_SCORES * standard_deviation)
        proved_bounds = []
        for correct in np.clip(correct_counts, 0, guesses):
            proved_bound = claim.lower_bound(
                int(correct), guesses, examples, level, test="recursion", one_sided=one_sided
            )
            proved_bounds.append(proved_bound)
        return float(np.mean(proved_bounds))

    mean_bounds = [*map(mean_bound, candidates.tolist(), precisions.tolist())]
    best_candidate = int(np.argmax(mean_bounds))
    return Fixed(int(candidates[best_candidate])), mean_bounds[best_candidate]


@lru_cache(maxsize=256)
def plan_guesses(
    examples: int, level: float, claim: Guarantee, sides: Sides
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most at the reference, and what it proves there."""
    # Curves of other families are slow, and plans need none of their own.
    if not isinstance(claim, PureDP | ApproxDP | GaussianDP | LaplaceDP):
        claim = GaussianDP()
    return best_fixed(examples, level=level, claim=claim, sides=sides, curve=reference(sides))
