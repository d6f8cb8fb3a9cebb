"""One release over many keys: coins hold whatever the release shares, and trials do not."""

import numpy as np
import pytest
from scipy.stats import binom

import leakbound as lb

LEVEL = 0.1


def dependent(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Release counts: all with noise in common, those below a threshold hidden, then normalised.

    What is done to noisy counts costs no privacy, and makes each of them depend on all.
    """
    noisy = counts + rng.laplace(scale=1 / epsilon, size=counts.size)
    shown = noisy + rng.normal(scale=3)
    shown[shown < np.quantile(shown, 0.2)] = shown.min()
    normalised: np.ndarray = shown / np.abs(shown).sum()
    return normalised


@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=0.01)])
def test_coins_hold_where_outputs_depend_on_each_other(claim: lb.PureDP | lb.ApproxDP) -> None:
    """Randomised response attains its claim: twice the nominal rate would fail."""
    games, epsilon, keys = 300, 1.0, 200
    most = int(binom.ppf(0.999, games, LEVEL))
    assert binom.cdf(most, games, 2 * LEVEL) < 0.05
    false = 0
    for game in range(games):
        rng = np.random.default_rng([7, game])
        member = rng.random(keys) < 0.5
        kept = rng.random(keys) < 1 / (1 + np.exp(-epsilon))
        counts = np.where(kept, member, ~member).astype(np.float64)
        order = rng.normal() * counts.sum() + counts  # of all counts together
        result = lb.audit(order, lb.Coins(member), claim=claim, confidence=1 - LEVEL, seed=game)
        false += result.bound > epsilon
    assert false <= most


def test_a_release_is_no_list_of_trials() -> None:
    """All counts are shown with chance δ: that keeps (0, δ)-DP, and trials say otherwise."""
    games, keys, delta = 200, 500, 0.2
    claim = lb.ApproxDP(delta=delta)
    refuted = {"coins": 0, "trials": 0}
    for game in range(games):
        rng = np.random.default_rng([8, game])
        member = rng.random(keys) < 0.5
        released = rng.normal(size=keys)
        if rng.random() < delta:
            released = released / 100 + member
        for name, design in (("coins", lb.Coins(member)), ("trials", lb.Trials(member))):
            result = lb.audit(released, design, claim=claim, seed=game)
            refuted[name] += result.check(epsilon=0.5, delta=delta) == "refuted"
    assert refuted["coins"] <= binom.ppf(0.999, games, 0.05)
    assert refuted["trials"] >= 30


def test_dependent_counts_prove_what_independent_ones_do() -> None:
    member = np.random.default_rng(0).random(10_000) < 0.5
    shown = dependent(5.0 + member, 1.0, np.random.default_rng(1))
    result = lb.audit(shown, lb.Coins(member), seed=0)
    assert 0.8 < result.bound <= 1.0
