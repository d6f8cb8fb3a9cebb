"""Bets on the coins of steps, one after the other: docs/theory/dp-sgd.md has theorem and proof.

Let W be the right ones of r guesses about the m coins of a step, named from what was released until
then. Under Gaussian DP of each step the mean of W, given the past, is at most

    w = m Φ(μ - a), where Φ(-a) + Φ(μ - a) = r/m,

and 1 - s + s W / w at most 1 on average, for any stake s in [0, 1]. Their product over steps is a
nonnegative supermartingale: it ever exceeds 1/level with probability at most level (Ville 1939),
whenever the run ends. One game of all coins must allow for coins given away together; bets not.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leakbound._base.bisection import halved
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.dp_sgd.canaries import Observed
from leakbound.stats import normal_quantile

# Shares of a step's coins that planning considers guessing.
_SHARES = np.array([1, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01])
# Stakes that planning considers: from all down to half a percent of what there is.
_STAKES = 0.5 ** np.arange(0, 8, 0.5)
# Of the μ planned for: how much of it planning asks whether a bet proves.
_FRACTIONS = np.linspace(0.0, 1.0, 201)[:-1]
# Standard scores of the counts over which planning averages.
_SCORES = normal_quantile((np.arange(9) + 0.5) / 9)
# Halvings of a bracket: after so many its ends hardly differ as doubles.
_HALVINGS = 55
# Coins that are ranked at a time.
_CHUNK = 1 << 21
# Relative allowance for rounding: in the largest mean, and in the logarithm of what was won.
_SLACK = 1e-9


def most_correct(mu: float, share: float) -> float:
    """Return w/m, the largest mean share of coins guessed right if a share of them is guessed."""
    low = mu / 2
    high = mu + 1 - normal_quantile(share / 2)

    def is_guessed(threshold: float) -> bool:
        return _below(-threshold) + _below(mu - threshold) >= share

    low, _ = halved(low, high, is_guessed, most=_HALVINGS)
    return min(share, _below(mu - low) * (1 + _SLACK))


def _below(x: float) -> float:
    """Return Φ(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


@dataclass(frozen=True)
class Plan:
    """Guesses and stake that prove most of a run as stated, and the μ that they prove."""

    guesses: int
    stake: float
    proves: float


@lru_cache(maxsize=64)
def plan_bet(mu: float, coins: int, steps: int, level: float) -> Plan:
    """Choose guesses and stake from what is declared; the number of coins is of each step."""
    guesses = np.unique(np.maximum(1, np.rint(_SHARES * coins)))
    proved = (_FRACTIONS * mu).tolist()
    shares = (guesses / coins).tolist()
    limit = coins * np.array([[most_correct(one, part) for part in shares] for one in proved])
    right = coins * np.array([most_correct(mu, part) for part in shares])
    spread = np.sqrt(right * (1 - right / guesses))
    counts = np.clip(right + spread * _SCORES[:, None], 0, guesses)
    best = Plan(guesses=int(guesses[0]), stake=1.0, proves=0.0)
    promise = (-1.0, -math.inf)
    for stake in _STAKES:
        with np.errstate(divide="ignore"):
            won = np.log1p(stake * (counts[:, None, :] / limit - 1)).mean(axis=0)
        enough = steps * won >= -math.log(level)
        for number, (column, growth) in enumerate(zip(enough.T, won[0], strict=True)):
            reached = -1.0
            if column.any():
                reached = proved[int(column.nonzero()[0][-1])]
            if (reached, growth) > promise:
                best = Plan(
                    guesses=int(guesses[number]), stake=float(stake), proves=max(reached, 0.0)
                )
                promise = (reached, float(growth))
    return best


def correct_guesses(observed: Observed, guesses: int) -> IntArray:
    """Return how many of so many guesses about the coins of a step were right, in each step."""
    coins = observed.design.step_coins()
    counts = list[IntArray]()
    rows = max(1, _CHUNK // observed.design.step_canaries)
    for start in range(0, observed.steps, rows):
        scores = observed.released[start : start + rows].astype(np.float64) - 0.5
        right = (scores > 0) == coins[start : start + len(scores)]
        counts.append(np.count_nonzero(_furthest(np.abs(scores), guesses) & right, axis=1))
    return np.concatenate(counts)


def _furthest(far: FloatArray, number: int) -> BoolArray:
    """Return which entries of each row are its largest, the first of equal ones."""
    least = np.partition(far, -number, axis=1)[:, -number, None]
    above = far > least
    equal = far == least
    missing = number - np.count_nonzero(above, axis=1, keepdims=True)
    furthest: BoolArray = above | (equal & (np.cumsum(equal, axis=1) <= missing))
    return furthest


def largest_refuted(plan: Plan, correct: IntArray, coins: int, level: float) -> float:
    """Return the largest μ that what was won refutes, for steps of so many coins; 0 if none."""

    def refuted(mu: float) -> bool:
        """Whether what there was ever came to 1/level."""
        limit = most_correct(mu, plan.guesses / coins) * coins
        with np.errstate(divide="ignore"):
            won = np.cumsum(np.log1p(plan.stake * (correct / limit - 1)))
        return bool(np.max(won) * (1 - _SLACK) >= -math.log(level))

    if not refuted(0.0):
        return 0.0
    low = 0.0
    high = 1.0
    while refuted(high):
        low = high
        high = 2 * high
    return halved(low, high, refuted, most=_HALVINGS)[0]
