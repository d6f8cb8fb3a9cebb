"""How often the true trade-off function is rejected: never more often than the level says."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
from leakbound import simulate, stats
from leakbound._base.types import FdpTest
from leakbound.validity import most_errors

TAU = 0.1
M = 300
GUESSES = 60
NOISE, RATE, STEPS = 0.8, 0.2, 20

Ranked = tuple[NDArray[np.float64], NDArray[np.bool_]]


def gaussian(seed: int) -> Ranked:
    game = simulate.gaussian(M, 1.0, seed=seed)
    return game.scores, game.member


def mixture(seed: int) -> Ranked:
    game = simulate.mixture(M, 1.0, seed=seed)
    return game.scores, game.member


def noisy_batches(seed: int) -> Ranked:
    """DP-SGD with canaries of orthogonal gradients, seen at every step: likelihood ratios."""
    rng = np.random.default_rng(seed)
    member = rng.random(M) < 0.5
    sampled = (rng.random((STEPS, M)) < RATE) & member
    seen = sampled + NOISE * rng.normal(size=(STEPS, M))
    ratio = np.exp((2 * seen - 1) / (2 * NOISE**2))
    return np.log(1 - RATE + RATE * ratio).sum(axis=0), member


def right(ranked: Ranked, *, member_only: bool) -> int:
    """Count correct guesses at a fixed number of them."""
    scores, member = ranked
    order = np.argsort(-scores)
    if member_only:
        return int(member[order[:GUESSES]].sum())
    half = GUESSES // 2
    return int(member[order[:half]].sum() + (~member[order[-half:]]).sum())


def rejections(
    game: Callable[[int], Ranked],
    curve: lb.TradeOff,
    test: FdpTest,
    *,
    member_only: bool,
    games: int,
) -> int:
    counts = [right(game(seed), member_only=member_only) for seed in range(games)]
    # Rejection is monotone in the count, so each is tested once.
    rejected = {
        count: stats.fdp_rejects(
            count, GUESSES, M, tradeoff=curve, tau=TAU, one_sided=member_only, test=test
        )
        for count in set(counts)
    }
    return sum(rejected[count] for count in counts)


@pytest.mark.parametrize("test", ["tight", "recursion"])
@pytest.mark.parametrize("member_only", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "mixture", "noisy batches"])
@pytest.mark.parametrize(
    "games", [pytest.param(500, id="quick"), pytest.param(20_000, marks=pytest.mark.validity)]
)
def test_the_truth_is_kept(name: str, member_only: bool, test: FdpTest, games: int) -> None:  # noqa: FBT001 (a parameter of the test)
    if name == "noisy batches":
        claim = lb.SubsampledGaussianDP(sampling_rate=RATE, steps=STEPS)
        game, curve = noisy_batches, claim.curve(NOISE, "member" if member_only else "both")
    else:
        game = {"gaussian": gaussian, "mixture": mixture}[name]
        curve = lb.TradeOff.gaussian(1.0)
    count = rejections(game, curve, test, member_only=member_only, games=games)
    assert count <= most_errors(games, TAU, 12)


def test_the_level_is_used_at_the_boundary() -> None:
    """Without leakage guesses are coin tosses: the tight test is the exact binomial one."""
    curve = lb.TradeOff.gaussian(0.0)
    for count in range(25, 50):
        p = stats.fdp_p_value(count, 50, 50, tradeoff=curve)
        assert p == pytest.approx(stats.binomial_tail(count, 50, 0.5), rel=1e-4)
