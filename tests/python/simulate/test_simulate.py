"""Simulated games have the law and the guarantee that they state."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

from leakbound import simulate
from leakbound.errors import InputTypeError, OptionError
from leakbound.simulate.noisy_sums import _Population


def test_a_seed_plays_one_game() -> None:
    """The others are played in tests of benchmarks."""
    one, again, other = (
        simulate.noisy_sum(500, shift=0.5, seed=seed, holdout=10) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.scores, again.scores)
    assert np.array_equal(one.member, again.member)
    assert not np.array_equal(one.scores, other.scores)
    assert 200 < one.member.sum() < 300
    assert one.scores.shape == one.member.shape == np.unique(one.scores).shape == (500,)


def tradeoff_gap(game: simulate.Game, epsilon: float) -> float:
    """Return P(log odds > ε | in) - e^ε P(… | out) for N(±μ/2, 1), by integration."""
    mu = game.truth
    law, odds = scipy_stats.norm.pdf, math.exp(epsilon)
    value, _ = integrate.quad(
        lambda x: max(0.0, law(x - mu / 2) - odds * law(x + mu / 2)),
        epsilon / mu,
        epsilon / mu + 12,
        epsabs=1e-14,
    )
    return float(value)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_the_profile_of_gaussian_games(mu: float, epsilon: float) -> None:
    for game in (simulate.gaussian(2, mu, seed=0), simulate.mixture(2, mu, seed=0)):
        assert game.delta(epsilon) == pytest.approx(tradeoff_gap(game, epsilon), abs=1e-12)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
def test_epsilon_inverts_delta(delta: float) -> None:
    for game in (simulate.gaussian(2, 1.3, seed=0), response(1.3, delta=1e-9)):
        epsilon = game.epsilon(delta)
        assert game.delta(epsilon) <= delta
        assert game.delta(epsilon * (1 - 1e-11)) >= delta * (1 - 1e-9)


def response(epsilon: float, delta: float = 0.0) -> simulate.Game:
    return simulate.randomized_response(2, epsilon, delta=delta, seed=0)


def test_where_no_epsilon_or_none_above_zero_will_do() -> None:
    assert simulate.gaussian(2, 1.0, seed=0).epsilon(0.0) == math.inf
    assert simulate.gaussian(2, 0.0, seed=0).epsilon(0.0) == 0.0
    assert simulate.null(2, seed=0).epsilon(0.0) == 0.0
    assert response(2.0).epsilon(0.0) == pytest.approx(2.0)
    assert response(2.0, delta=0.1).epsilon(0.05) == math.inf
    with pytest.raises(OptionError, match="delta must be at least 0"):
        simulate.null(5, seed=0).epsilon(1.0)


def test_randomized_response_reports_at_the_odds_it_claims() -> None:
    game = simulate.randomized_response(40_000, 1.2, fraction=0.5, delta=0.05, seed=3)
    right = (game.scores > 0) == game.member
    size = np.abs(game.scores)
    plain, answered = size > 2, (size > 1) & (size <= 2)
    assert plain.sum() == pytest.approx(1000, abs=4 * math.sqrt(950))
    assert plain.sum() + answered.sum() == 20_000
    assert right[plain].all()
    assert right[answered].mean() == pytest.approx(1 / (1 + math.exp(-1.2)), abs=0.013)
    assert right[size <= 1].mean() == pytest.approx(0.5, abs=0.015)


def test_one_canary_of_the_mixture_is_a_gaussian_channel() -> None:
    """Signed by membership, the score of one canary is N(μ/2, 1), over independent games."""
    games = [simulate.mixture(3, 1.4, dependence=0.5, seed=seed) for seed in range(2000)]
    for i in range(3):
        draws = [game.scores[i] * (1 if game.member[i] else -1) for game in games]
        assert scipy_stats.kstest(draws, "norm", args=(0.7, 1)).pvalue > 1e-4


def test_canaries_of_the_mixture_leak_together() -> None:
    def spread(dependence: float) -> float:
        games = [simulate.mixture(200, 1.0, dependence=dependence, seed=s) for s in range(150)]
        counts = [((game.scores > 0) == game.member).sum() for game in games]
        return float(np.var(counts))

    binomial = 200 * 0.6915 * 0.3085
    assert spread(0.0) < 1.4 * binomial
    assert spread(0.95) > 5 * binomial


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
    games = [simulate.noisy_sum(400, dimension=20, shift=0.2, seed=seed) for seed in range(40)]
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
            game = simulate.noisy_sum(60, mu=1.0, dimension=dimension, seed=seed)
            gaps.append(game.scores[game.member].mean() - game.scores[~game.member].mean())
            first.append(game.features.mean() / math.sqrt(dimension))
            assert np.all(game.log_odds == 0)
        expected = 1 - np.mean(first) ** 2
        assert np.mean(gaps) == pytest.approx(expected, abs=4 * np.std(gaps) / math.sqrt(seeds))


def test_members_and_others_have_one_law_but_for_membership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members come from whole vectors in blocks, others from a shortcut: their features agree."""
    monkeypatch.setattr("leakbound.simulate.noisy_sums._BLOCK", 7 * 30)
    games = [simulate.noisy_sum(200, dimension=30, features=4, seed=seed) for seed in range(30)]
    features = np.concatenate([game.features for game in games])
    member = np.concatenate([game.member for game in games])
    for column in features.T:
        assert scipy_stats.ks_2samp(column[member], column[~member]).pvalue > 1e-4
    others = simulate.noisy_sum(2, dimension=30, features=4, holdout=6000, seed=99)
    assert others.holdout_member.sum() == 3000
    test = scipy_stats.ks_2samp(others.holdout_features[:, 0], features[:, 0])
    assert test.pvalue > 1e-4


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (simulate.null, 0, {}, "m must be at least 1"),
    (simulate.null, 5, {"seed": -1}, "seed must be at least 0"),
    (simulate.gaussian, 5, {"mu": -1.0}, "mu must be at least 0"),
    (simulate.gaussian, 5, {"mu": "1"}, "mu must be a real"),
    (simulate.mixture, 5, {"dependence": 1.5}, "dependence must"),
    (simulate.randomized_response, 5, {"epsilon": 1.0, "fraction": 0.0}, "fraction must be above"),
    (simulate.noisy_sum, 5, {"dimension": 3, "features": 2}, "dimension=3 is too small"),
]


@pytest.mark.parametrize(("play", "m", "options", "text"), REFUSED)
def test_bad_options(play: Any, m: int, options: dict[str, Any], text: str) -> None:
    with pytest.raises((OptionError, InputTypeError), match=text):
        play(m, **{"seed": 0, **options})
