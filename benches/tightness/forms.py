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

_SHARE = 4
"""One of so many examples is guessed about, where the number is fixed in advance."""


def paths(scores: FloatArray, member: BoolArray) -> tuple[IntArray, IntArray]:
    """Return how many of the first r guesses are right: of both sides in turn, and of "member"."""
    ranked = member[np.argsort(-scores, kind="stable")]
    m = ranked.size
    right = np.empty(m, dtype=np.bool_)
    right[::2], right[1::2] = ranked[: (m + 1) // 2], ~ranked[::-1][: m // 2]
    return np.cumsum(right), np.cumsum(ranked)


def fixed(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float, *, form: TailBound
) -> float:
    """Bound by one number of guesses that is fixed in advance."""
    if isinstance(claim, lb.GaussianDP):
        raise OptionError("of pure and approximate DP alone")
    both, _ = paths(scores, member)
    guesses = member.size // _SHARE
    return claim.lower_bound(int(both[guesses - 1]), guesses, member.size, level, form=form)


def steinke_theorem_5_2(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Steinke, Nasr, Jagielski (2023), Theorem 5.2."""
    return fixed(s, member=member, claim=claim, level=level, form="steinke")


def zero_run_theorem_5_1(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Cebere, Even, Bleistein, Bellet (2026), Theorem 5.1.1, on fair coins."""
    return fixed(s, member=member, claim=claim, level=level, form="zero_run")


def mahloujifar_algorithm_3(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Mahloujifar, Melis, Chaudhuri (2025), Algorithm 3, with the curve of the claim."""
    both, _ = paths(s, member)
    guesses = member.size // _SHARE
    counts = int(both[guesses - 1]), guesses, member.size
    if isinstance(claim, lb.PureDP | lb.ApproxDP):
        curve = partial(lb.TradeOff.approx, delta=claim.delta)
        claim = lb.TradeOffFamily(parameter="epsilon", tradeoff=curve, bracket=(0.0, 30.0))
    return claim.lower_bound(*counts, level, test="recursion")


def panoramia_union(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Kazmi et al. (2024): all numbers of guesses of "member", each at a share of the level."""
    if isinstance(claim, lb.GaussianDP):
        raise OptionError("of pure and approximate DP alone")
    _, right = paths(s, member)
    m = member.size
    if isinstance(claim, lb.PureDP):
        limit = stats.beta.ppf(level / m, right, np.arange(1, m + 1) - right + 1)
        return odds(float(np.nan_to_num(limit).max()))
    tries = np.unique(np.rint(np.geomspace(1, m, 60))).astype(int).tolist()
    return max(
        claim.lower_bound(int(right[r - 1]), r, m, level / m, form="panoramia") for r in tries
    )


def panoramia_hoeffding(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Kazmi et al. (2024), equation 1: the same by Hoeffding's inequality, of pure DP."""
    if not isinstance(claim, lb.PureDP):
        raise OptionError("of pure DP alone")
    _, right = paths(s, member)
    guesses = np.arange(1, member.size + 1)
    limit = right / guesses - np.sqrt(math.log(member.size / level) / (2 * guesses))
    return odds(float(limit.max()))


def two_samples(
    scores: FloatArray, member: BoolArray, claim: Claim, level: float, *, tests: float
) -> float:
    """Return the best of all thresholds, at so many tests' share of the level.

    Limits on true and false positives are those of two independent samples: not valid where
    examples leak together.
    """
    order = np.argsort(-scores, kind="stable")
    told = np.cumsum(member[order])
    wrong = np.cumsum(~member[order])
    members = int(told[-1])
    others = int(wrong[-1])
    share = level / (2 * tests)

    def low(k: Any, n: int) -> Any:
        return np.nan_to_num(stats.beta.ppf(share, k, n - k + 1))

    # Of members above, of others above; of others below, of members below.
    pairs = (
        (low(told, members), 1 - low(others - wrong, others)),
        (low(others - wrong, others), 1 - low(told, members)),
    )
    if isinstance(claim, lb.GaussianDP):
        gaps = [stats.norm.ppf(right) - stats.norm.ppf(false) for right, false in pairs]
    else:
        gaps = [np.log(np.maximum(right - claim.delta, 1e-300) / false) for right, false in pairs]
    return max(0.0, float(np.nanmax(gaps)))


def clopper_pearson_bonferroni(
    s: FloatArray, member: BoolArray, claim: Claim, level: float
) -> float:
    """Clopper-Pearson on two samples, every threshold at its share: examples are independent."""
    return two_samples(s, member=member, claim=claim, level=level, tests=member.size)


def clopper_pearson_uncorrected(
    s: FloatArray, member: BoolArray, claim: Claim, level: float
) -> float:
    """Clopper-Pearson on two samples, the best threshold at the level of one: not valid."""
    return two_samples(s, member=member, claim=claim, level=level, tests=1)


def uncorrected_sweep(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Return the best of many numbers of guesses at the level of one: not valid."""
    if isinstance(claim, lb.GaussianDP):
        raise OptionError("of pure and approximate DP alone")
    m = member.size
    tries = np.unique(np.rint(np.geomspace(4, m, 60))).astype(int).tolist()
    return max(
        claim.lower_bound(int(right[r - 1]), r, m, level)
        for right in paths(s, member)
        for r in tries
    )


def product_channel(s: FloatArray, member: BoolArray, claim: Claim, level: float) -> float:
    """Guesses about all examples as independent draws of a Gaussian channel.

    After Xiang et al., arXiv 2509.08704. Not valid for all of Gaussian DP: not where examples leak
    together, as on the mixture.
    """
    if not isinstance(claim, lb.GaussianDP):
        raise OptionError("of Gaussian DP alone")
    m = member.size
    right = int(paths(s, member)[0][-1])
    p = stats.beta.ppf(level, right, m - right + 1)
    if right:
        return max(0.0, 2 * float(stats.norm.ppf(p)))
    return 0.0


def odds(p: float) -> float:
    """Return the log-odds of a probability, 0 where they are negative."""
    if p > 0.5:
        return math.log(p) - math.log1p(-p)
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
