"""One release of many keys with a coin for each: right as coins, false as trials."""

import numpy as np

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.stats import binomial_tail

KEYS = 1000
GAMES = 1000
EPSILON = 0.5
LUCK = 1e-3
DELTA = lb.ApproxDP(delta=0.2)


def shared_noise(member: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Counts with noise of each key for epsilon, shared noise, a threshold, and normalised."""
    noisy = 5 + member + rng.laplace(scale=1 / EPSILON, size=KEYS) + rng.laplace(scale=5)
    kept = np.where(noisy < np.quantile(noisy, 0.1), 0.0, noisy)
    scores: FloatArray = kept / kept.sum()
    return scores


def all_or_nothing(member: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Show who is in it with probability 0.2: (0, 0.2)-DP."""
    if rng.random() < DELTA.delta:
        return member + rng.random(KEYS)
    return rng.random(KEYS)


def test_coins_hold_for_a_release_whose_keys_depend_on_each_other() -> None:
    false = 0
    for seed in range(GAMES):
        rng = np.random.default_rng(seed)
        member = rng.random(KEYS) < 0.5
        scores = shared_noise(member, rng)
        false += lb.audit(scores, lb.Coins(member), seed=seed).bound > EPSILON
    assert binomial_tail(false, GAMES, 0.05) > LUCK
    assert binomial_tail(int(2 * 0.05 * GAMES), GAMES, 0.05) < LUCK


def test_trials_claim_what_is_false_of_a_release_and_coins_do_not() -> None:
    games = 100
    by_coins = by_trials = 0
    for seed in range(games):
        rng = np.random.default_rng(seed)
        member = rng.random(KEYS) < 0.5
        scores = all_or_nothing(member, rng)
        by_coins += lb.audit(scores, lb.Coins(member), claim=DELTA, seed=seed).bound > 0
        found = lb.audit(scores, lb.Trials(member), claim=DELTA, seed=seed)
        by_trials += found.bound > EPSILON
    assert binomial_tail(by_coins, games, 0.05) > LUCK
    assert binomial_tail(by_trials, games, 0.05) < LUCK
