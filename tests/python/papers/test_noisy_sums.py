"""Noisy sums have the law and the propensities that they state."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

from noisy_sums import _Population, noisy_sum


def test_a_seed_plays_one_game() -> None:
    one, again, other = (noisy_sum(500, shift=0.5, seed=seed, holdout=10) for seed in (1, 1, 2))
    assert np.array_equal(one.scores, again.scores)
    assert np.array_equal(one.member, again.member)
    assert not np.array_equal(one.scores, other.scores)
    assert 200 < one.member.sum() < 300
    assert one.scores.shape == one.member.shape == np.unique(one.scores).shape == (500,)


def log_lengths(pull: float, dimension: int) -> float:
    """Return ln of the integral of r^(dimension - 1) e^(r pull - r²/2), around its mode."""

    def height(r: float) -> float:
        return (dimension - 1) * math.log(r) - r * r / 2 + r * pull

    mode = (pull + math.sqrt(pull**2 + 4 * (dimension - 1))) / 2
    ends, how = (max(1e-9, mode - 15), mode + 15), {"epsabs": 0, "epsrel": 1e-12, "limit": 500}
    value, _ = integrate.quad(lambda r: math.exp(height(r) - height(mode)), *ends, **how)
    return height(mode) + math.log(value)


@pytest.mark.parametrize("dimension", [3, 50, 10_000])
def test_log_odds_by_integration(dimension: int) -> None:
    population = _Population(dimension=dimension, features=1, bias=2.0, ratio=0.4)
    cosines = np.array([-0.9, -0.3, 0.0, 0.1, 0.8]) * min(1, 5 / math.sqrt(dimension))
    expected = [
        log_lengths(2 * t, dimension) - log_lengths(0.8 * t, dimension) - (4 - 0.64) / 2
        for t in cosines
    ]
    assert population.log_odds(cosines) == pytest.approx(expected, abs=1e-8)


def test_propensities_are_calibrated() -> None:
    games = [noisy_sum(400, dimension=20, shift=0.2, seed=seed) for seed in range(40)]
    propensity = np.concatenate([game.propensity for game in games])
    member = np.concatenate([game.member for game in games])
    for low in np.arange(0.0, 1.0, 0.1):
        rows = (propensity >= low) & (propensity < low + 0.1)
        error = 4 * math.sqrt(0.25 / rows.sum())
        assert member[rows].mean() == pytest.approx(propensity[rows].mean(), abs=error)


def test_members_stand_out_of_the_sum_by_their_own_length() -> None:
    """Without a shift E⟨x, θ⟩ is larger by ‖x‖² - ‖E x‖² for a member, whatever the dimension.

    A member meets itself in the sum, where an example outside it meets one more other.
    """
    for dimension, seeds in ((600, 60), (20, 200)):
        gaps, first = [], []
        for seed in range(seeds):
            game = noisy_sum(60, mu=1.0, dimension=dimension, seed=seed)
            gaps.append(game.scores[game.member].mean() - game.scores[~game.member].mean())
            first.append(game.features.mean() / math.sqrt(dimension))
            assert np.all(game.log_odds == 0)
        expected = 1 - np.mean(first) ** 2
        assert np.mean(gaps) == pytest.approx(expected, abs=4 * np.std(gaps) / math.sqrt(seeds))


def test_members_and_others_have_one_law_but_for_membership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members come from whole vectors in blocks, others from a shortcut: their features agree."""
    monkeypatch.setattr("noisy_sums._COORDINATES_OF_BLOCK", 7 * 30)
    games = [noisy_sum(200, dimension=30, features=4, seed=seed) for seed in range(30)]
    features = np.concatenate([game.features for game in games])
    member = np.concatenate([game.member for game in games])
    for column in features.T:
        assert scipy_stats.ks_2samp(column[member], column[~member]).pvalue > 1e-4
    others = noisy_sum(2, dimension=30, features=4, holdout=6000, seed=99)
    assert others.holdout_member.sum() == 3000
    test = scipy_stats.ks_2samp(others.holdout_features[:, 0], features[:, 0])
    assert test.pvalue > 1e-4
