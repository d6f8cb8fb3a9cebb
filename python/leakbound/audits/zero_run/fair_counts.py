"""What right guesses prove where membership is fair, and what half of several draws prove."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from leakbound.claims import ApproxDP, PureDP
from leakbound.stats import clopper_pearson, fdp_lower_bound, one_run_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import FdpTest, IntArray
    from leakbound.claims import Claim

__all__ = ["middle", "proved", "strength", "tampered"]


@lru_cache(maxsize=65_536)
def proved(
    correct: int,
    guesses: int,
    examples: int,
    claim: Claim,
    level: float,
    test: FdpTest,
    one_sided: bool,  # noqa: FBT001 (a cache's key)
) -> float:
    """Return what so many right guesses prove where membership is fair.

    Parameters
    ----------
    correct, guesses, examples : int
        Right guesses, guesses, and examples guessed or not.
    claim : Claim
        The family of guarantees.
    level : float
        Probability of error.
    test : {"tight", "recursion"}
        For families of trade-off functions.
    one_sided : bool
        Whether only members are guessed.

    Returns
    -------
    float
        The bound on the claim's parameter.
    """
    if guesses == 0:
        return getattr(claim, "nothing", 0.0)
    if isinstance(claim, PureDP):
        p = clopper_pearson(correct, guesses, beta=level)
        return max(0.0, math.log(p) - math.log1p(-p)) if p > 0.5 else 0.0
    if isinstance(claim, ApproxDP):
        return one_run_epsilon(
            correct, guesses, examples, delta=claim.delta, beta=level, one_sided=one_sided
        )
    return fdp_lower_bound(
        correct, guesses, examples, claim=claim, tau=level, one_sided=one_sided, test=test
    )


@lru_cache(maxsize=65_536)
def tampered(correct: int, guesses: int, examples: int, claim: Claim, level: float) -> float:
    """Return the largest ε that so many surviving right guesses refute.

    Parameters
    ----------
    correct, guesses, examples : int
        Right guesses that stand, guesses, and examples guessed or not.
    claim : PureDP or ApproxDP
        The guarantee.
    level : float
        Probability of error.

    Returns
    -------
    float
        ε, in nats.
    """
    if isinstance(claim, PureDP):
        p = clopper_pearson(correct, guesses, beta=level)
        return max(0.0, math.log(p) - math.log1p(-p)) if p > 0.5 else 0.0
    return one_run_epsilon(
        correct, guesses, examples, delta=claim.delta, beta=level, bound="zero_run_sharp"
    )


def strength(claim: Claim, bound: float) -> float:
    """Return a bound as a number that is larger the more is proved, 0 for nothing.

    Parameters
    ----------
    claim : Claim
        The family.
    bound : float
        On its parameter.

    Returns
    -------
    float
        The bound, or its inverse where smaller parameters are the less private.
    """
    if getattr(claim, "order", "increasing") == "increasing":
        return bound
    return 1 / bound


def middle(
    kept: IntArray,
    made: IntArray,
    right: IntArray,
    claim: Claim,
    proved: Callable[[int, int, int], float],
) -> tuple[float, int, int, int]:
    """Return a bound that at least half of the draws reach, with its guesses, right ones and kept.

    A bound grows with the right guesses and falls with the examples kept: for each number of right
    guesses, the draws with at least so many and fewest kept are asked.

    Parameters
    ----------
    kept, made, right : ndarray of int64, shape (k,)
        Examples kept, guesses made and right ones in each draw.
    claim : Claim
        The family, whose parameter may grow or fall with what is proved.
    proved : callable
        Returns the bound of right guesses, guesses and examples.

    Returns
    -------
    tuple of float and int
        The bound, guesses, right ones, and the examples reckoned with.
    """
    needed = (right.size + 1) // 2
    number = int(np.sort(made)[::-1][needed - 1])
    if not number:
        return proved(0, 0, 0), 0, 0, int(np.sort(kept)[needed - 1])
    # draws that keep fewer examples than there are guesses make fewer: theirs are compared alone
    full = made == made.max() if (made == made.max()).sum() >= needed else None
    if full is None:
        each = sorted(
            (proved(int(c), int(n), int(k)), int(n), int(c), int(k))
            for k, n, c in zip(kept, made, right, strict=True)
        )
        return each[right.size - needed]
    pairs: list[tuple[int, int]] = []
    for correct in np.unique(right[full])[::-1]:
        enough = np.sort(kept[full & (right >= correct)])
        if enough.size >= needed:
            most = int(enough[needed - 1])
            if not pairs or most < pairs[-1][1]:
                pairs.append((int(correct), most))
    guesses = int(made.max())
    bounds = [(proved(c, guesses, k), guesses, c, k) for c, k in pairs]
    return max(bounds, key=lambda one: strength(claim, one[0]))
