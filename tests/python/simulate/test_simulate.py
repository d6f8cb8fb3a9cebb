"""Simulated games have the law and the guarantee that they state."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

from leakbound import simulate
from leakbound.errors import InputTypeError, OptionError


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


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (simulate.null, 0, {}, "m must be at least 1"),
    (simulate.null, 5, {"seed": -1}, "seed must be at least 0"),
    (simulate.gaussian, 5, {"mu": -1.0}, "mu must be at least 0"),
    (simulate.gaussian, 5, {"mu": "1"}, "mu must be a real"),
    (simulate.mixture, 5, {"dependence": 1.5}, "dependence must"),
    (simulate.randomized_response, 5, {"epsilon": 1.0, "fraction": 0.0}, "fraction must be above"),
]


@pytest.mark.parametrize(("play", "m", "options", "text"), REFUSED)
def test_bad_options(play: Any, m: int, options: dict[str, Any], text: str) -> None:
    with pytest.raises((OptionError, InputTypeError), match=text):
        play(m, **{"seed": 0, **options})
