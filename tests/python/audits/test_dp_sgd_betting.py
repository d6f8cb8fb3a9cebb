"""Bets on the coins of steps: what a step can give away, games at the boundary, what they prove."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from leakbound.audits.dp_sgd.betting import (
    correct_guesses,
    largest_mean_correct_share,
    largest_refuted,
    plan_bet,
)
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed
from noisy_steps import EXAMPLES, play
from validity.suite import most_errors

LEVEL = 0.05
COINS, STEPS = 20, 30


@settings(max_examples=30)
@given(st.floats(1e-3, 12), st.floats(1e-4, 1))
def test_most_correct_guesses_solve_their_equation_from_above(mu: float, share: float) -> None:
    """Against another parameter, the share of wrong ones, and another solver."""

    def excess(wrong: float) -> float:
        return float(wrong + norm.sf(norm.isf(wrong) - mu) - share)

    wrong = brentq(excess, 1e-300, share, xtol=1e-300, rtol=1e-14, maxiter=5000)
    exact = float(norm.sf(norm.isf(wrong) - mu))
    assert largest_mean_correct_share(mu, share) == pytest.approx(min(exact, share), rel=1e-7)
    assert largest_mean_correct_share(mu, share) >= min(exact, share) * (1 - 1e-12)


@pytest.mark.parametrize("share", [1e-3, 0.3, 1.0])
def test_no_noise_and_no_leak_are_the_ends(share: float) -> None:
    assert largest_mean_correct_share(0.0, share) == pytest.approx(share / 2)
    assert largest_mean_correct_share(1e3, share) == share
    assert largest_mean_correct_share(1.0, 1.0) == pytest.approx(norm.cdf(0.5))


def all_or_nothing(seed: int, mu: float, *, steps: int, coins: int, guesses: int) -> Observed:
    """A mechanism that is μ-GDP for each coin, and gives all guesses of a step away together.

    In a step it reveals some coins, all of them turned round with the probability that the
    trade-off function allows: right guesses of a step are all or none, and as many as can be.
    """
    rng = np.random.default_rng([seed, 5])
    design = CanaryDesign.create(
        canaries=2, step_canaries=coins, sampling_rate=0.1, max_steps=steps, seed=seed
    )
    signs = np.where(design.step_coins(), 1.0, -1.0)
    shown = rng.permuted(np.broadcast_to(np.arange(coins) < guesses, signs.shape), axis=1)
    right = (
        rng.random((steps, 1)) < largest_mean_correct_share(mu, guesses / coins) * coins / guesses
    )
    noise = 1e-3 * rng.normal(size=signs.shape)
    values = 0.5 + np.where(shown, 10 * signs * np.where(right, 1, -1), noise)
    return Observed(
        design=design,
        log_odds=np.zeros(2),
        released=values.astype(np.float32),
        squares=np.ones(steps),
        noise_multipliers=np.full(steps, 1 / mu),
        planned_noise=1 / mu,
        batch_sizes=rng.binomial(EXAMPLES, 0.1, size=steps),
    )


def accused(games: int, mu: float, *, true: float) -> int:
    """Count the games of a mechanism of μ = `true` that are accused of more than another μ."""
    plan = plan_bet(mu, COINS, STEPS, LEVEL)
    found = 0
    for seed in range(games):
        seen = all_or_nothing(seed, true, steps=STEPS, coins=COINS, guesses=plan.guesses)
        found += largest_refuted(plan, correct_guesses(seen, plan.guesses), COINS, LEVEL) > mu
    return found


def test_steps_that_give_all_or_nothing_away_are_seldom_accused() -> None:
    """At most 5 %, and not far below: nothing is left to gain from these steps."""
    assert 2 <= accused(200, 1.0, true=1.0) <= most_errors(200, LEVEL, 10)


def test_that_test_would_see_a_mean_that_is_too_small() -> None:
    """Steps with more than half of μ more than is tested are accused too often."""
    assert accused(200, 1.0, true=1.6) > most_errors(200, LEVEL, 10)


def test_bets_may_stop_whenever_they_are_ahead() -> None:
    """What was won by a step stays won: a longer run proves at least as much, of the same bets."""
    plan = plan_bet(1.25, 50, 60, LEVEL)
    seen = play(3, noise=0.8, stated=0.8, steps=60, step_canaries=50, canaries=2)
    counts = correct_guesses(seen, plan.guesses)
    proved = [largest_refuted(plan, counts[:end], 50, LEVEL) for end in range(1, 61)]
    assert np.all(np.diff(proved) >= 0)
    assert 0 < proved[-1] < 1.25


def test_equal_scores_are_guessed_in_order_and_no_more_than_planned() -> None:
    seen = play(1, steps=3, step_canaries=10, canaries=2)
    same = replace(seen, released=np.ones_like(seen.released))
    right = seen.design.step_coins()[:, :4].sum(axis=1)
    assert np.array_equal(correct_guesses(same, 4), right)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3e38])
def test_values_beyond_single_precision_are_guesses_like_others(value: float) -> None:
    seen = play(1, steps=20, step_canaries=20, canaries=2)
    wild = seen.released.copy()
    wild[::3, 5] = value
    plan = plan_bet(1.0, 20, 20, LEVEL)
    counts = correct_guesses(replace(seen, released=wild), plan.guesses)
    assert np.all(counts <= plan.guesses)
    assert math.isfinite(largest_refuted(plan, counts, 20, LEVEL))


def test_guesses_of_a_step_depend_on_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long runs are ranked in parts: other parts, and other values later, change nothing."""
    seen = play(2, steps=40, step_canaries=30, canaries=2)
    whole = correct_guesses(seen, 7)
    monkeypatch.setattr("leakbound.audits.dp_sgd.betting._MOST_COINS_AT_ONCE", 70)
    later = seen.released.copy()
    later[30:] = -3.0
    assert np.array_equal(whole[:30], correct_guesses(replace(seen, released=later), 7)[:30])


@pytest.mark.parametrize(("coins", "steps"), [(2, 1), (2, 10**6), (10**6, 1), (1_000, 400)])
@pytest.mark.parametrize("mu", [1e-3, 1.0, 1e3])
def test_plans_are_legal_for_every_size(coins: int, steps: int, mu: float) -> None:
    plan = plan_bet(mu, coins, steps, LEVEL)
    assert 1 <= plan.guesses <= coins
    assert 0 < plan.stake <= 1
    assert 0 <= plan.proves <= mu
