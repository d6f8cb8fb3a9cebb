"""Bets on the coins of steps: what a step can give away, games at the boundary, what they prove."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from leakbound.audits.dp_sgd.betting import (
    Plan,
    correct_guesses,
    largest_refuted,
    most_correct,
    plan_bet,
)
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed
from leakbound.results.dp_sgd import Wager
from noisy_steps import EXAMPLES, play
from validity.suite import most_errors

LEVEL = 0.05


# --- what a step can give away --------------------------------------------------------------------


@settings(max_examples=30)
@given(st.floats(1e-3, 12), st.floats(1e-4, 1))
def test_most_correct_guesses_solve_their_equation_from_above(mu: float, share: float) -> None:
    """Against another parameter, the share of wrong ones, and another solver."""

    def excess(wrong: float) -> float:
        return float(wrong + norm.sf(norm.isf(wrong) - mu) - share)

    wrong = brentq(excess, 1e-300, share, xtol=1e-300, rtol=1e-14, maxiter=5000)
    exact = float(norm.sf(norm.isf(wrong) - mu))
    assert most_correct(mu, share) == pytest.approx(min(exact, share), rel=1e-7)
    assert most_correct(mu, share) >= min(exact, share) * (1 - 1e-12)


@pytest.mark.parametrize("share", [1e-3, 0.3, 1.0])
def test_no_noise_and_no_leak_are_the_ends(share: float) -> None:
    assert most_correct(0.0, share) == pytest.approx(share / 2)
    assert most_correct(1e3, share) == share
    assert most_correct(1.0, 1.0) == pytest.approx(norm.cdf(0.5))


# --- games at the boundary ------------------------------------------------------------------------


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
    right = rng.random((steps, 1)) < most_correct(mu, guesses / coins) * coins / guesses
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


def accused(game: Observed, bets: list[Wager], mu: float) -> bool:
    coins = game.design.step_canaries
    return largest_refuted(bets, correct_guesses(game, bets), coins, LEVEL) > mu


def bets_of(mu: float, coins: int, steps: int) -> list[Wager]:
    planned = [(1.0, 0.8), (1.0, 0.1), (4.0, 0.1)]
    plans = [plan_bet(mu * more, coins, steps, LEVEL * weight) for more, weight in planned]
    names: list[Any] = ["each step", "across steps", "across steps"]
    return [
        plan.wager(name, weight)
        for name, plan, (_, weight) in zip(names, plans, planned, strict=True)
    ]


def count(games: int, mu: float, *, alone: bool, steps: int = 30, coins: int = 20) -> int:
    bets = bets_of(mu, coins, steps)
    bets = [replace(bets[0], weight=1.0)] if alone else bets
    guesses = bets[0].guesses
    made = (
        all_or_nothing(seed, mu, steps=steps, coins=coins, guesses=guesses) for seed in range(games)
    )
    return sum(accused(game, bets, mu) for game in made)


@pytest.mark.parametrize("alone", [True, False])
def test_steps_that_give_all_or_nothing_away_are_seldom_accused(*, alone: bool) -> None:
    """At most 5 %, and not far below for one bet: nothing is left to gain from these steps."""
    found = count(200, 1.0, alone=alone)
    assert found <= most_errors(200, LEVEL, 10)
    assert not alone or found >= 2


def test_that_test_would_see_a_mean_that_is_too_small() -> None:
    """Steps with a tenth more of μ than is tested are accused too often."""
    bets = [replace(bets_of(1.0, 20, 30)[0], weight=1.0)]
    make = partial(all_or_nothing, mu=1.6, steps=30, coins=20, guesses=bets[0].guesses)
    assert sum(accused(make(seed), bets, 1.0) for seed in range(200)) > most_errors(200, LEVEL, 10)


def test_bets_may_stop_whenever_they_are_ahead() -> None:
    """What was won by a step stays won: a longer run proves at least as much, of the same bets."""
    bets = bets_of(1.25, 50, 60)
    seen = play(3, noise=0.8, stated=0.8, steps=60, step_canaries=50, canaries=2)
    counts = correct_guesses(seen, bets)
    proved = [
        largest_refuted(bets, [one[:end] for one in counts], 50, LEVEL) for end in range(1, 61)
    ]
    assert np.all(np.diff(proved) >= 0)
    assert 0 < proved[-1] < 1.25


# --- guesses --------------------------------------------------------------------------------------


def test_guesses_of_a_step_do_not_look_ahead() -> None:
    seen = play(1, steps=12, step_canaries=30, canaries=2)
    bets = bets_of(1.0, 30, 12)
    later = seen.released.copy()
    later[7:] = -3.0
    changed = replace(seen, released=later)
    for one, other in zip(correct_guesses(seen, bets), correct_guesses(changed, bets), strict=True):
        assert np.array_equal(one[:7], other[:7])


def test_equal_scores_are_guessed_in_order_and_no_more_than_planned() -> None:
    seen = play(1, steps=3, step_canaries=10, canaries=2)
    same = replace(seen, released=np.ones_like(seen.released))
    (counts,) = correct_guesses(same, [Plan(4, 1.0, 0.0).wager("each step", 1.0)])
    assert np.array_equal(counts, seen.design.step_coins()[:, :4].sum(axis=1))


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3e38])
def test_values_beyond_single_precision_are_guesses_like_others(value: float) -> None:
    seen = play(1, steps=20, step_canaries=20, canaries=2)
    wild = seen.released.copy()
    wild[::3, 5] = value
    bets = bets_of(1.0, 20, 20)
    counts = correct_guesses(replace(seen, released=wild), bets)
    assert all(np.all(one <= bet.guesses) for one, bet in zip(counts, bets, strict=True))
    assert math.isfinite(largest_refuted(bets, counts, 20, LEVEL))


def test_long_runs_are_ranked_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = play(2, steps=40, step_canaries=30, canaries=2)
    bets = bets_of(1.0, 30, 40)
    whole = correct_guesses(seen, bets)
    monkeypatch.setattr("leakbound.audits.dp_sgd.betting._CHUNK", 70)
    parts = correct_guesses(seen, bets)
    assert all(np.array_equal(*pair) for pair in zip(whole, parts, strict=True))


# --- what they prove ------------------------------------------------------------------------------


@pytest.mark.parametrize(("coins", "steps"), [(2, 1), (2, 10**6), (10**6, 1), (1_000, 400)])
@pytest.mark.parametrize("mu", [1e-3, 1.0, 1e3])
def test_plans_are_legal_for_every_size(coins: int, steps: int, mu: float) -> None:
    plan = plan_bet(mu, coins, steps, LEVEL)
    assert 1 <= plan.guesses <= coins
    assert 0 < plan.stake <= 1
    assert 0 <= plan.proves <= mu
