"""Mechanisms of benchmarks have the law and the guarantee that they state."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import benchmark, simulate
from leakbound.errors import OptionError

GAMES = {
    name: getattr(benchmark, name)()
    for name in benchmark.__all__
    if name[0].isupper() and not isinstance(getattr(benchmark, name), type)
}


@pytest.mark.parametrize("name", GAMES)
def test_a_seed_plays_one_game(name: str) -> None:
    play: Any = GAMES[name]
    one, again, other = play(500, seed=1), play(500, seed=1), play(500, seed=2)
    assert np.array_equal(one.scores, again.scores)
    assert np.array_equal(one.member, again.member)
    assert not np.array_equal(one.scores, other.scores)
    assert one.scores.shape == one.member.shape == (500,)
    assert 200 < one.member.sum() < 300


def integrated(epsilon: float, share: float, shift: float, *, two_sided: bool) -> float:
    """Return the larger of δ(ε) in both directions, by integration of densities."""
    law = scipy_stats.norm.pdf

    def member(x: float) -> float:
        return float((1 - share) * law(x) + share * law(x - shift))

    def other(x: float) -> float:
        return float((1 - share) * law(x) + share * law(x + shift)) if two_sided else float(law(x))

    gaps = [
        integrate.quad(
            lambda x, p=p, q=q: max(0.0, p(x) - math.exp(epsilon) * q(x)),
            -15,
            15,
            points=[-4, -2, 0, 2, 4],
            limit=500,
        )[0]
        for p, q in ((member, other), (other, member))
    ]
    return float(max(gaps))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("share", "shift"), [(0.05, 4.0), (0.6, 1.0)])
def test_the_profile_of_tails(epsilon: float, share: float, shift: float) -> None:
    for play in (simulate.one_sided_tail, simulate.two_sided_tail):
        game = play(2, share, shift, seed=0)
        two_sided = play is simulate.two_sided_tail
        expected = integrated(epsilon, share, shift, two_sided=two_sided)
        assert game.delta(epsilon) == pytest.approx(expected, rel=1e-3, abs=1e-9)
        assert game.least(lb.PureDP()) == math.inf


@pytest.mark.parametrize("name", ["OneSidedTail", "TwoSidedTail", "Laplace", "DPSGD", "Ties"])
def test_scores_leak_what_the_profile_says(name: str) -> None:
    """The share of members above the best threshold, less e^ε that of others, is δ(ε)."""
    game = GAMES[name](400_000, seed=3)
    order = np.argsort(-game.scores, kind="stable")
    ranked, scores = game.member[order], game.scores[order]
    ends = np.append(scores[1:] != scores[:-1], True)
    told = (np.cumsum(ranked) / ranked.sum())[ends]
    wrong = (np.cumsum(~ranked) / (~ranked).sum())[ends]
    for epsilon in (0.0, 0.5):
        gaps = (
            (told - math.exp(epsilon) * wrong).max(),
            (1 - wrong - math.exp(epsilon) * (1 - told)).max(),
        )
        assert max(0.0, *gaps) == pytest.approx(game.delta(epsilon), abs=0.006)


def test_the_least_parameter_of_a_family_that_is_true() -> None:
    gaussian = lb.GaussianDP()
    response = simulate.randomized_response(2, 1.0, seed=0)
    right = scipy_stats.norm.ppf(1 / (1 + math.exp(-1.0)))
    assert response.least(gaussian) == pytest.approx(2 * right, rel=1e-5)
    assert simulate.gaussian(2, 1.5, seed=0).least(gaussian) == 1.5
    assert simulate.laplace(2, 0.7, seed=0).least(lb.LaplaceDP()) == pytest.approx(0.7, rel=1e-5)
    assert simulate.null(2, seed=0).least(gaussian) == 0.0
    assert simulate.null(2, seed=0).least(lb.LaplaceDP()) == 0.0
    family = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=50)
    assert GAMES["DPSGD"](2, seed=0).least(family) == pytest.approx(1.0, rel=1e-4)
    tail = simulate.one_sided_tail(2, seed=0).least(gaussian)
    assert 3.4 < tail < 4.0  # 4 as ε grows without end
    unknown = simulate.Game(
        scores=np.zeros(2), member=np.ones(2, bool), truth=math.nan, parameter="epsilon"
    )
    assert math.isnan(unknown.least(lb.PureDP()))


def test_losses_near_zero_are_tied_at_zero() -> None:
    game = simulate.losses_near_zero(10_000, seed=0)
    assert 0.1 < (game.scores == 0).mean() < 0.5
    assert np.isfinite(game.scores).all()


def test_shifted_members_have_their_propensities() -> None:
    game = simulate.shifted(40_000, shift=1.5, seed=1)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        near = (game.propensity > low) & (game.propensity < low + 0.2)
        expected = game.propensity[near].mean()
        assert game.member[near].mean() == pytest.approx(expected, abs=0.02)
    told = game.scores - 1.5 * game.features[:, 0]
    assert told[game.member].mean() - told[~game.member].mean() == pytest.approx(1.0, abs=0.05)


def test_rankings_are_right_as_often_as_they_say() -> None:
    game = simulate.rankings(40_000, 0.6, 0.8, seed=2)
    assert ((game.baseline > 0) == game.member).mean() == pytest.approx(0.6, abs=0.01)
    assert ((game.scores > 0) == game.member).mean() == pytest.approx(0.8, abs=0.01)
    assert game.truth == pytest.approx(math.log(4) - math.log(1.5))


def test_bad_parameters() -> None:
    with pytest.raises(OptionError, match="share must be"):
        simulate.one_sided_tail(2, 0.0, seed=0)
    with pytest.raises(OptionError, match="shift must be"):
        simulate.two_sided_tail(2, 0.1, -1.0, seed=0)
    with pytest.raises(OptionError, match="attack must be"):
        simulate.rankings(2, 0.6, 1.0, seed=0)
    with pytest.raises(OptionError, match="sampling_rate must be"):
        simulate.dp_sgd(2, sampling_rate=2.0, seed=0)
