"""The (ε, δ) bound of common practice: a loop over thresholds, each at its share of the level.

For every vertex of the concave hull of right against wrong member guesses, Theorem 5.2 of Steinke,
Nasr and Jagielski (2023) is inverted for ε at β divided by the number of vertices. That number
depends on membership, so the bound is not valid; it is here for its cost.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

__all__ = ["hull", "loop"]

_Ints = NDArray[np.int64]


def hull(scores: NDArray[np.float64], member: NDArray[np.bool_]) -> tuple[_Ints, _Ints]:
    """Return right and wrong member guesses at the vertices, from no guess to all."""
    order = np.argsort(-scores, kind="stable")
    right = np.concatenate([[0], np.cumsum(member[order])])
    wrong = np.arange(right.size) - right
    kept = np.arange(right.size)
    while True:
        rise = np.diff(right[kept])
        run = np.diff(wrong[kept])
        inside = rise[1:] * run[:-1] >= rise[:-1] * run[1:]
        if not inside.any():
            return right[kept], wrong[kept]
        kept = kept[np.concatenate([[True], ~inside, [True]])]


def loop(
    right: _Ints,
    wrong: _Ints,
    m: int,
    *,
    beta: float,
    delta: float,
    shares: int,
    step: int = 1,
) -> float:
    """Return the best bound over thresholds, the promising ones first; every `step`-th only."""
    guesses = right + wrong
    limit = stats.beta.ppf(beta / shares, right, wrong + 1)
    best = 0.0
    for index in np.argsort(-np.nan_to_num(limit))[::step]:
        if right[index] > guesses[index] * special.expit(best):
            counts = int(right[index]), int(guesses[index])
            best = max(best, _epsilon(*counts, m, beta / shares, delta, best))
    return best


def _epsilon(correct: int, guesses: int, m: int, level: float, delta: float, least: float) -> float:
    def excess(epsilon: float) -> float:
        return _p_value(correct, guesses=guesses, m=m, epsilon=epsilon, delta=delta) - level

    if excess(least) >= 0:
        return least
    high = max(1.0, 2 * least)
    while excess(high) < 0:
        high *= 2
    return float(optimize.brentq(excess, least, high, xtol=1e-6))


def _p_value(correct: int, guesses: int, m: int, epsilon: float, delta: float) -> float:
    p = special.expit(epsilon)
    tail = stats.binom.sf(correct - 1, guesses, p)
    drops = np.arange(1, correct + 1)
    gains = (stats.binom.sf(correct - drops - 1, guesses, p) - tail) / drops
    return float(tail + 2 * m * delta * gains.max(initial=0.0))
