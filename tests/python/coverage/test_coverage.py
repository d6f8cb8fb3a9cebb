"""How often a bound is above the truth: at most as often as its confidence allows.

Small games are enumerated, so their error is known exactly. Larger ones are rows of `validity`,
simulated at the boundary of their claims and judged by an exact binomial test.
"""

from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.numerics import logit
from leakbound.errors import AbstentionError
from validity.trials import pure_policies


def memberships(m: int) -> np.ndarray:
    bits = np.arange(2**m)[:, None] >> np.arange(m)
    return (bits & 1).astype(bool)


SMALL = 9
SMALL_SCORES = {
    "distinct": np.arange(SMALL, 0.0, -1),
    "tied": np.array([5.0, 5, 4, 3, 3, 3, 2, 1, 1]),
}


def error_curve(cuts: Any, sides: Any, scores: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """Exact probability that the bound exceeds each truth, summed over all memberships."""
    everyone = memberships(SMALL)

    def bound(member: np.ndarray) -> float:
        try:
            result = lb.audit(
                scores, lb.Coins(member), cuts=cuts, sides=sides, confidence=0.8, seed=3
            )
        except AbstentionError:  # the scores of a part are all equal: nothing is claimed
            return 0.0
        return result.bound

    bounds = np.array([bound(member) for member in everyone])
    upper = np.full(SMALL, fill_value=True)
    if sides == "both":  # the tied-block end nearest to the middle parts the roles
        ends = np.flatnonzero(np.diff(scores)) + 1
        upper = np.arange(SMALL) < ends[np.argmin(np.abs(ends - SMALL / 2))]
    right = (everyone == upper).sum(axis=1)
    return np.array(
        [(p**right * (1 - p) ** (SMALL - right))[bounds > logit(p)].sum() for p in truths]
    )


@pytest.mark.parametrize("scores", list(SMALL_SCORES))
@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("name", pure_policies(100))
def test_exact_error_of_small_audits(name: str, sides: Any, scores: str) -> None:
    truths = np.linspace(0.5, 0.95, 91)
    curve = error_curve(pure_policies(SMALL)[name], sides, SMALL_SCORES[scores], truths)
    assert curve.max() <= 0.2 * (1 + 1e-9)


def test_the_scan_spends_what_it_is_given() -> None:
    curve = error_curve(lb.KLScan(), "member", SMALL_SCORES["distinct"], np.linspace(0.5, 0.8, 301))
    assert curve.max() > 0.95 * 0.2


def test_why_members_must_be_drawn_by_coins() -> None:
    """With exactly half of six members, all six guesses are right in one of twenty draws."""
    scores, everyone, cuts = np.arange(6.0), memberships(6), lb.Fixed(6)
    audits = [lb.audit(scores, lb.Coins(m), cuts=cuts, confidence=0.98) for m in everyone]
    claims = np.array([audit.bound > 0 for audit in audits])
    assert claims.mean() == 1 / 64 <= 0.02
    assert claims[everyone.sum(axis=1) == 3].mean() == 1 / 20 > 0.02
