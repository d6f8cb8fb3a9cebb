"""Bounds as other papers print them, for `leakbound.benchmark`: (scores, member, claim, level) → ε.

Where a paper fixes a number of guesses or a threshold in advance, so do they: a quarter of the
examples, the most confident of both sides. Some are not valid, which their docstrings say.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray, IntArray, TailBound
from leakbound.claims import Claim
from leakbound.errors import OptionError

__all__ = ["FORMS", "NOT_GAUSSIAN"]

_EXAMPLES_PER_GUESS = 4
"""One of so many examples is guessed about, where the number is fixed in advance."""


def ranked_by_score(scores: FloatArray, member: BoolArray) -> BoolArray:
    """Return membership in the order of scores, the highest first."""
    return member[np.argsort(-scores, kind="stable")]


def correct_in_turn(ranked_member: BoolArray) -> BoolArray:
    """Return which guesses are right: "member" from the top and "other" from the bottom in turn."""
    guesses_of_other = ranked_member.size // 2
    guesses_of_member = ranked_member.size - guesses_of_other
    from_the_bottom = ranked_member[::-1]
    is_correct = np.empty_like(ranked_member)
    is_correct[::2] = ranked_member[:guesses_of_member]
    is_correct[1::2] = ~from_the_bottom[:guesses_of_other]
    return is_correct


def correct_guesses(scores: FloatArray, member: BoolArray) -> tuple[IntArray, IntArray]:
    """Return how many of the first r guesses are right: of both sides in turn, and of "member"."""
    ranked_member = ranked_by_score(scores, member)
    return np.cumsum(correct_in_turn(ranked_member)), np.cumsum(ranked_member)


def fixed(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float, *, form: TailBound
) -> float:
    """Bound by one number of guesses that is fixed in advance."""
    if isinstance(claim, lb.GaussianDP):
        raise OptionError("of pure and approximate DP alone")
    of_both_sides, _ = correct_guesses(scores, member)
    guesses = member.size // _EXAMPLES_PER_GUESS
    correct = int(of_both_sides[guesses - 1])
    return claim.lower_bound(correct, guesses, member.size, level, form=form)


def steinke_theorem_5_2(scores: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Steinke, Nasr, Jagielski (2023), Theorem 5.2."""
    return fixed(scores, member=member, claim=claim, level=level, form="steinke")


def zero_run_theorem_5_1(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float
) -> float:
    """Cebere, Even, Bleistein, Bellet (2026), Theorem 5.1.1, on fair coins."""
    return fixed(scores, member=member, claim=claim, level=level, form="zero_run")


def mahloujifar_algorithm_3(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float
) -> float:
    """Mahloujifar, Melis, Chaudhuri (2025), Algorithm 3, with the curve of the claim."""
    of_both_sides, _ = correct_guesses(scores, member)
    guesses = member.size // _EXAMPLES_PER_GUESS
    correct = int(of_both_sides[guesses - 1])
    if isinstance(claim, lb.PureDP | lb.ApproxDP):
        tradeoff = partial(lb.TradeOff.approx, delta=claim.delta)
        claim = lb.TradeOffFamily(parameter="epsilon", tradeoff=tradeoff, bracket=(0.0, 30.0))
    return claim.lower_bound(correct, guesses, member.size, level, test="recursion")


def panoramia_union(scores: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Kazmi et al. (2024): all numbers of guesses of "member", each at a share of the level."""
    if isinstance(claim, lb.GaussianDP):
        raise OptionError("of pure and approximate DP alone")
    _, correct = correct_guesses(scores, member)
    examples = member.size
    share_of_level = level / examples
    if isinstance(claim, lb.PureDP):
        all_guesses = np.arange(1, examples + 1)
        lowest_accuracies = clopper_pearson_lower_limit(correct, all_guesses, share_of_level)
        return positive_log_odds(float(lowest_accuracies.max()))
    bounds = []
    for guesses in numbers_of_guesses(1, examples):
        bound = claim.lower_bound(
            int(correct[guesses - 1]), guesses, examples, share_of_level, form="panoramia"
        )
        bounds.append(bound)
    return max(bounds)


def numbers_of_guesses(fewest: int, most: int) -> list[int]:
    """Return at most 60 numbers, each about as much larger than the last one."""
    spaced = np.geomspace(fewest, most, num=60)
    distinct_numbers = np.unique(np.rint(spaced))
    numbers: list[int] = distinct_numbers.astype(int).tolist()
    return numbers


def panoramia_hoeffding(scores: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Kazmi et al. (2024), equation 1: the same by Hoeffding's inequality, of pure DP."""
    if not isinstance(claim, lb.PureDP):
        raise OptionError("of pure DP alone")
    _, correct = correct_guesses(scores, member)
    guesses = np.arange(1, member.size + 1)
    log_of_share = math.log(member.size / level)
    deviations = np.sqrt(log_of_share / (2 * guesses))
    lowest_accuracies = correct / guesses - deviations
    return positive_log_odds(float(lowest_accuracies.max()))


def two_samples(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float, *, tests: float
) -> float:
    """Return the best of all thresholds, at so many tests' share of the level.

    Limits on true and false positives are those of two independent samples: not valid where
    examples leak together.
    """
    by_score = np.argsort(-scores, kind="stable")
    members_above = np.cumsum(member[by_score])
    others_above = np.cumsum(~member[by_score])
    members = int(members_above[-1])
    others = int(others_above[-1])
    others_below = others - others_above
    level_of_limit = level / (2 * tests)
    # True and false positive rates of "member" above a threshold, and of "other" below it.
    lowest_share_above = clopper_pearson_lower_limit(members_above, members, level_of_limit)
    lowest_share_below = clopper_pearson_lower_limit(others_below, others, level_of_limit)
    pairs_of_rates = (
        (lowest_share_above, 1 - lowest_share_below),
        (lowest_share_below, 1 - lowest_share_above),
    )
    bounds = []
    for true_positives, false_positives in pairs_of_rates:
        if isinstance(claim, lb.GaussianDP):
            bound = stats.norm.ppf(true_positives) - stats.norm.ppf(false_positives)
        else:
            beyond_delta = np.maximum(true_positives - claim.delta, 1e-300)
            bound = np.log(beyond_delta / false_positives)
        bounds.append(bound)
    return max(0.0, float(np.nanmax(bounds)))


def clopper_pearson_bonferroni(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float
) -> float:
    """Clopper-Pearson on two samples, every threshold at its share: examples are independent."""
    return two_samples(scores, member=member, claim=claim, level=level, tests=member.size)


def clopper_pearson_uncorrected(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float
) -> float:
    """Clopper-Pearson on two samples, the best threshold at the level of one: not valid."""
    return two_samples(scores, member=member, claim=claim, level=level, tests=1)


def uncorrected_sweep(scores: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Return the best of many numbers of guesses at the level of one: not valid."""
    if isinstance(claim, lb.GaussianDP):
        raise OptionError("of pure and approximate DP alone")
    bounds = []
    for correct in correct_guesses(scores, member):
        for guesses in numbers_of_guesses(4, member.size):
            bound = claim.lower_bound(int(correct[guesses - 1]), guesses, member.size, level)
            bounds.append(bound)
    return max(bounds)


def product_channel(scores: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Guesses about all examples as independent draws of a Gaussian channel.

    After Xiang et al., arXiv 2509.08704. Not valid for all of Gaussian DP: not where examples leak
    together, as on the mixture.
    """
    if not isinstance(claim, lb.GaussianDP):
        raise OptionError("of Gaussian DP alone")
    examples = member.size
    of_both_sides, _ = correct_guesses(scores, member)
    correct = int(of_both_sides[-1])
    lowest_accuracy = clopper_pearson_lower_limit(correct, examples, level)
    return max(0.0, 2 * float(stats.norm.ppf(lowest_accuracy)))


def clopper_pearson_lower_limit(successes: Any, trials: Any, level: float) -> Any:
    """Return the lower limit of a probability, 0 where there is no success."""
    limit = stats.beta.ppf(level, a=successes, b=trials - successes + 1)
    return np.nan_to_num(limit)


def positive_log_odds(probability: float) -> float:
    """Return the log-odds of a probability, 0 where they are negative."""
    if probability > 0.5:
        return math.log(probability) - math.log1p(-probability)
    return 0.0


FORMS = (
    steinke_theorem_5_2,
    mahloujifar_algorithm_3,
    zero_run_theorem_5_1,
    panoramia_union,
    panoramia_hoeffding,
    clopper_pearson_bonferroni,
    clopper_pearson_uncorrected,
    uncorrected_sweep,
    product_channel,
)
"""Published forms and common practice, each a bound of `leakbound.benchmark`."""
NOT_GAUSSIAN = (
    steinke_theorem_5_2,
    zero_run_theorem_5_1,
    panoramia_union,
    panoramia_hoeffding,
    uncorrected_sweep,
)
"""Those of them that are not for Gaussian DP."""
