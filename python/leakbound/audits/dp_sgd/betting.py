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

from leakbound._base.numerics import doubled_and_halved, halved
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.dp_sgd.canaries import Observed
from leakbound.stats import normal_quantile

# Shares of a step's coins that planning considers guessing.
_PLANNED_SHARES = np.array([1, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01])
# Stakes that planning considers: from all down to half a percent of what there is.
_PLANNED_STAKES = 0.5 ** np.arange(0, 8, 0.5)
# Of the μ planned for: how much of it planning asks whether a bet proves.
_PLANNED_FRACTIONS_OF_MU = np.linspace(0.0, 1.0, 201)[:-1]
# Standard scores of the counts over which planning averages.
_STANDARD_SCORES = normal_quantile((np.arange(9) + 0.5) / 9)
# Halvings of a bracket: after so many its ends hardly differ as doubles.
_HALVINGS = 55
# Coins that are ranked at a time.
_MOST_COINS_AT_ONCE = 1 << 21
# Relative allowance for rounding: in the largest mean, and in the logarithm of what was won.
_ROUNDING_ALLOWANCE = 1e-9


def largest_mean_correct_share(mu: float, guessed_share: float) -> float:
    """Return w/m, the largest mean share of coins guessed right if a share of them is guessed."""
    least_threshold = mu / 2
    largest_threshold = mu + 1 - normal_quantile(guessed_share / 2)

    def is_guessed(threshold: float) -> bool:
        return _normal_cdf(-threshold) + _normal_cdf(mu - threshold) >= guessed_share

    least_threshold, _ = halved(least_threshold, largest_threshold, is_guessed, most=_HALVINGS)
    return min(guessed_share, _normal_cdf(mu - least_threshold) * (1 + _ROUNDING_ALLOWANCE))


def _normal_cdf(x: float) -> float:
    """Return Φ(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


@dataclass(frozen=True)
class BetPlan:
    """Guesses and stake that prove most of a run as stated, and the μ that they prove."""

    guesses: int
    stake: float
    proves: float


@lru_cache(maxsize=64)
def plan_bet(mu: float, coins: int, steps: int, level: float) -> BetPlan:
    """Choose guesses and stake from what is declared; the number of coins is of each step."""
    planned_guesses = np.unique(np.maximum(1, np.rint(_PLANNED_SHARES * coins)))
    proved_mus = (_PLANNED_FRACTIONS_OF_MU * mu).tolist()
    guessed_shares = (planned_guesses / coins).tolist()

    def largest_mean_counts(mu: float) -> FloatArray:
        mean_shares = [largest_mean_correct_share(mu, share) for share in guessed_shares]
        return coins * np.array(mean_shares)

    largest_means = np.array([largest_mean_counts(proved_mu) for proved_mu in proved_mus])
    expected_correct = largest_mean_counts(mu)
    standard_deviations = np.sqrt(expected_correct * (1 - expected_correct / planned_guesses))
    likely_counts = expected_correct + standard_deviations * _STANDARD_SCORES[:, None]
    likely_counts = np.clip(likely_counts, 0, planned_guesses)
    best_plan = BetPlan(guesses=int(planned_guesses[0]), stake=1.0, proves=0.0)
    best_promise = (-1.0, -math.inf)
    for stake in _PLANNED_STAKES:
        with np.errstate(divide="ignore"):
            relative_gains = likely_counts[:, None, :] / largest_means - 1
            log_growth = np.log1p(stake * relative_gains).mean(axis=0)
        is_refuted = steps * log_growth >= -math.log(level)
        for option, growth_at_zero in enumerate(log_growth[0]):
            largest_proved = -1.0
            refuted_options = np.flatnonzero(is_refuted[:, option])
            if refuted_options.size:
                largest_proved = proved_mus[int(refuted_options[-1])]
            if (largest_proved, growth_at_zero) > best_promise:
                best_plan = BetPlan(
                    guesses=int(planned_guesses[option]),
                    stake=float(stake),
                    proves=max(largest_proved, 0.0),
                )
                best_promise = (largest_proved, float(growth_at_zero))
    return best_plan


def correct_guesses(observed: Observed, guesses: int) -> IntArray:
    """Return how many of so many guesses about the coins of a step were right, in each step."""
    coins = observed.design.step_coins()
    counts_of_chunks = list[IntArray]()
    steps_at_once = max(1, _MOST_COINS_AT_ONCE // observed.design.step_canaries)
    for start in range(0, observed.steps, steps_at_once):
        released = observed.released[start : start + steps_at_once]
        centred_scores = released.astype(np.float64) - 0.5
        is_correct = (centred_scores > 0) == coins[start : start + len(released)]
        is_guessed = _is_among_largest(np.abs(centred_scores), guesses)
        counts_of_chunks.append(np.count_nonzero(is_guessed & is_correct, axis=1))
    return np.concatenate(counts_of_chunks)


def _is_among_largest(distances_from_half: FloatArray, number_of_largest: int) -> BoolArray:
    """Return which entries of each row are its largest, the first of equal ones."""
    partitioned_distances = np.partition(distances_from_half, -number_of_largest, axis=1)
    smallest_of_largest = partitioned_distances[:, -number_of_largest, None]
    is_above_smallest = distances_from_half > smallest_of_largest
    equals_smallest = distances_from_half == smallest_of_largest
    tied_entries_needed = number_of_largest - np.count_nonzero(
        is_above_smallest, axis=1, keepdims=True
    )
    is_first_tied = equals_smallest & (np.cumsum(equals_smallest, axis=1) <= tied_entries_needed)
    is_among_largest: BoolArray = is_above_smallest | is_first_tied
    return is_among_largest


def largest_refuted(
    bet_plan: BetPlan, correct_of_steps: IntArray, coins: int, level: float
) -> float:
    """Return the largest μ that what was won refutes, for steps of so many coins; 0 if none."""

    def is_refuted(mu: float) -> bool:
        """Whether what there was ever came to 1/level."""
        largest_mean_count = largest_mean_correct_share(mu, bet_plan.guesses / coins) * coins
        with np.errstate(divide="ignore"):
            log_factors_of_steps = np.log1p(
                bet_plan.stake * (correct_of_steps / largest_mean_count - 1)
            )
        log_capital = np.cumsum(log_factors_of_steps)
        return bool(np.max(log_capital) * (1 - _ROUNDING_ALLOWANCE) >= -math.log(level))

    if not is_refuted(0.0):
        return 0.0
    refuted_mu, _ = doubled_and_halved(is_refuted, most=_HALVINGS)
    return refuted_mu
