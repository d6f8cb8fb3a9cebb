"""Numbers of guesses that depend on scores, under families of trade-off functions."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

import leakbound as lb
import leakbound._core as _core
from leakbound import simulate, stats
from leakbound._base.types import FloatArray, Sides
from leakbound.validity import most_errors

TAU = 0.1
M = 300
LEVELS = (30, 60, 120)

PLAYS: dict[str, Callable[[int], simulate.Game]] = {
    "null": lambda seed: simulate.null(M, seed=seed),
    "gaussian": lambda seed: simulate.gaussian(M, 1.0, seed=seed),
    "mixture": lambda seed: simulate.mixture(M, 1.0, seed=seed),
}


def least(levels: tuple[int, ...], mu: float, sides: Sides) -> tuple[list[int], float]:
    """Return the least counts at a μ, and the joint bound on reaching the one at the level."""
    curve, one_sided = lb.TradeOff.gaussian(mu).core, sides == "member"
    tau = [TAU / 1.4] * len(levels)
    counts = _core.fdp_least_rejected(levels, M, one_sided, curve, tau)
    reached = [(made, c) for made, c in zip(levels, counts, strict=True) if c <= made]
    made, right = zip(*reached, strict=True)
    return counts, _core.JointCertificate(made, right, M, one_sided, curve).bound_for(curve)


def by_outliers(scores: FloatArray, sides: Sides) -> int:
    """Return a level that depends on how many scores are far out: about 60 are."""
    apart = (scores - scores.mean()) / scores.std()
    count = (apart > 0.84).sum() if sides == "member" else (np.abs(apart) > 1.28).sum()
    return int(np.digitize(count, [58, 63]))


def by_gaps(scores: FloatArray, sides: Sides) -> int:
    """Return the level before the widest gap: what a greedy attack would guess."""
    ranked = np.sort(scores)[::-1]
    edges = [level if sides == "member" else level // 2 for level in LEVELS]
    return int(np.argmax([ranked[edge - 1] - ranked[edge] for edge in edges]))


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("choose", [by_outliers, by_gaps])
@pytest.mark.parametrize(("name", "mu"), [("null", 0.0), ("gaussian", 1.0), ("mixture", 1.0)])
@pytest.mark.parametrize(
    "games", [pytest.param(500, id="quick"), pytest.param(20_000, marks=pytest.mark.validity)]
)
def test_the_truth_is_kept(
    name: str, mu: float, choose: Callable[[FloatArray, Sides], int], sides: Sides, games: int
) -> None:
    counts, bound = least(LEVELS, mu, sides)
    assert TAU / 2.5 < bound < 1.3 * TAU
    order: Literal["member", "interleaved"] = "member" if sides == "member" else "interleaved"
    rejected, seen = 0, set()
    for seed in range(games):
        game = PLAYS[name](seed)
        level = choose(game.scores, sides)
        path = _core.Ranking(game.scores, game.member).path(order)
        made, right = path.count(LEVELS[level])
        assert made == LEVELS[level]
        rejected += right >= counts[level]
        seen.add(level)
    assert len(seen) > 1
    assert rejected <= most_errors(games, bound, 12)


@pytest.mark.parametrize("sides", ["both", "member"])
def test_least_counts_never_fall_and_one_level_is_its_tight_test(sides: Sides) -> None:
    before = [0] * len(LEVELS)
    for mu in np.linspace(0, 1.2, 25):
        counts, bound = least(LEVELS, float(mu), sides)
        assert all(a <= b for a, b in zip(before, counts, strict=True))
        assert bound > 0
        before = counts
    curve = lb.TradeOff.gaussian(0.5).core
    one_sided = sides == "member"
    (count,) = _core.fdp_least_rejected([60], M, one_sided, curve, [TAU])
    alone = _core.JointCertificate([60], [count], M, one_sided, curve).bound_for(curve)
    tradeoff = lb.TradeOff.gaussian(0.5)
    tight = stats.fdp_p_value(count, 60, M, tradeoff=tradeoff, one_sided=one_sided)
    assert 0.999 * tight < alone < 1.02 * tight
