"""The (ε, δ) bound of common practice: a loop over thresholds, each at its share of the level.

For every vertex of the concave hull of right against wrong member guesses, Theorem 5.2 of Steinke,
Nasr and Jagielski (2023) is inverted for ε at β divided by the number of vertices. That number
depends on membership, so the bound is not valid; it is here for its cost.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

__all__ = ["hull", "loop"]

_Counts: TypeAlias = NDArray[np.int64]


def hull(scores: NDArray[np.float64], member: NDArray[np.bool_]) -> tuple[_Counts, _Counts]:
    """Return right and wrong member guesses at the vertices, from no guess to all."""
    by_score = np.argsort(-scores, kind="stable")
    right = np.concatenate([[0], np.cumsum(member[by_score])])
    wrong = np.arange(right.size) - right
    vertices = np.arange(right.size)
    while True:
        rises = np.diff(right[vertices])
        runs = np.diff(wrong[vertices])
        # Cross products of each two steps that follow each other.
        is_below_hull = rises[1:] * runs[:-1] >= rises[:-1] * runs[1:]
        if not is_below_hull.any():
            return right[vertices], wrong[vertices]
        is_vertex = np.concatenate([[True], ~is_below_hull, [True]])
        vertices = vertices[is_vertex]


def loop(
    right: _Counts,
    wrong: _Counts,
    m: int,
    *,
    beta: float,
    delta: float,
    shares: int,
    step: int = 1,
) -> float:
    """Return the best bound over thresholds, the promising ones first; every `step`-th only."""
    guesses = right + wrong
    level = beta / shares
    # The lower limit of Clopper and Pearson of the accuracy.
    lowest_accuracy = stats.beta.ppf(level, a=right, b=wrong + 1)
    most_promising_first = np.argsort(-np.nan_to_num(lowest_accuracy))
    best_epsilon = 0.0
    for threshold in most_promising_first[::step]:
        if right[threshold] > guesses[threshold] * special.expit(best_epsilon):
            best_epsilon = _epsilon_lower_bound(
                correct=int(right[threshold]),
                guesses=int(guesses[threshold]),
                m=m,
                level=level,
                delta=delta,
                at_least=best_epsilon,
            )
    return best_epsilon


def _epsilon_lower_bound(
    correct: int, guesses: int, m: int, level: float, delta: float, at_least: float
) -> float:
    """Return the ε at which the p-value is the level, if it is larger than one known before."""

    def excess(epsilon: float) -> float:
        p_value = _p_value(correct, guesses=guesses, m=m, epsilon=epsilon, delta=delta)
        return p_value - level

    if excess(at_least) >= 0:
        return at_least
    upper_end = max(1.0, 2 * at_least)
    while excess(upper_end) < 0:
        upper_end *= 2
    return float(optimize.brentq(excess, at_least, upper_end, xtol=1e-6))


def _p_value(correct: int, guesses: int, m: int, epsilon: float, delta: float) -> float:
    """Return the p-value of Theorem 5.2: a binomial tail, and what δ adds to it."""
    probability = special.expit(epsilon)
    tail = stats.binom.sf(correct - 1, n=guesses, p=probability)
    drops = np.arange(1, correct + 1)
    larger_tails = stats.binom.sf(correct - drops - 1, n=guesses, p=probability)
    gains_per_drop = (larger_tails - tail) / drops
    largest_gain = gains_per_drop.max(initial=0.0)
    return float(tail + 2 * m * delta * largest_gain)
