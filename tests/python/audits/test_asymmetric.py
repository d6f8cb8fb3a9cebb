"""Curves that are not their own mirror image: what guesses of members, of others and of both do.

In game "members" a share d of the members is given away and nobody else is; in game "others" a
share d of the non-members. The best tests for members have power d + (1 - d)α in the first and
α/(1 - d) in the second: mirror images of each other.
"""

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import flat
import leakbound as lb
from leakbound import stats
from leakbound.claims import TradeOffFamily
from leakbound.claims.tradeoff import TradeOff

Given = Literal["members", "others"]
GAMES, LEVEL = 20, 0.05
MOST = int(binom.ppf(1 - 1e-4, GAMES, LEVEL))
"""False claims in 20 games that a valid audit exceeds with probability 1e-4 at most."""
TRUTH = 0.4


def members_given(d: float) -> TradeOff:
    return TradeOff.table([0, 1], [1 - d, 0])


def others_given(d: float) -> TradeOff:
    return TradeOff.table([0, 1 - d, 1], [1, 0, 0])


CURVES = {"members": members_given, "others": others_given}


def family(kind: Given, least: float = TRUTH) -> TradeOffFamily:
    """The curves of a game; a bound, if there is one, is at least the smallest d."""
    return TradeOffFamily(parameter="d", tradeoff=CURVES[kind], bracket=(least, 0.99))


def game(kind: Given, seed: int, m: int = 300, chance: Any = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Scores and membership: those given away are at the end of the ranking where they belong."""
    rng = np.random.default_rng([seed, 3])
    member = rng.random(m) < chance
    told = (member == (kind == "members")) & (rng.random(m) < TRUTH)
    end = 5.0 if kind == "members" else -5.0
    return rng.random(m) + np.where(told, end, 0.0), member


def false_claims(audit: Any) -> int:
    return sum(audit(seed) > 0 for seed in range(GAMES))


@pytest.mark.parametrize("kind", ["members", "others"])
@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize(
    "options", [{"correction": "match"}, {"correction": "tamper"}], ids=["match", "tamper"]
)
def test_the_bound_holds_under_shift(kind: Given, sides: Any, options: Any) -> None:
    def bound(seed: int) -> float:
        propensity = 0.3 + 0.4 * np.random.default_rng([seed, 4]).random(400)
        scores, member = game(kind, seed, 400, propensity)
        how = {"claim": family(kind), "sides": sides, "cuts": lb.Fixed(100)}
        how |= {"adversary": "raw"}
        return float(flat.zero_run(scores, member, propensity, **how, **options).bound)

    assert false_claims(bound) <= MOST


def test_guesses_of_members_are_not_bounded_by_the_mirror_image() -> None:
    """Which of f and its inverse bounds them matters: the other one is refuted."""

    def bound(seed: int) -> float:
        scores, member = game("members", seed)
        how: Any = {"cuts": lb.Fixed(50), "sides": "member"}
        return flat.coins(scores, member, claim=family("others"), **how).bound

    assert false_claims(bound) == GAMES


@pytest.mark.parametrize("test", ["tight", "recursion"])
@pytest.mark.parametrize("kind", ["members", "others"])
@pytest.mark.parametrize("d", [0.1, 0.5, 0.8])
def test_one_guess_is_right_as_often_as_the_curve_says(test: Any, kind: Given, d: float) -> None:
    # "member" where that is known, else "non-member", or the reverse: right with (1 + d)/2
    how: Any = {"tradeoff": CURVES[kind](d), "test": test}
    assert stats.fdp_p_value(1, 1, 1, **how) >= (1 + d) / 2
    assert not stats.fdp_rejects(1, 1, 1, tau=(1 + d) / 2 - 1e-6, **how)
    # without abstention, guesses of "member" are right with 1/2
    assert stats.fdp_p_value(1, 1, 1, one_sided=True, **how) >= 0.5


SYMMETRIC = [
    TradeOff.gaussian(1.3),
    TradeOff.gaussian(0.4, 0.1),
    TradeOff.laplace(0.7),
    TradeOff.approx(1.0, 0.05),
    TradeOff.table([0, 1], [1, 0]),
    TradeOff.table([0, 1 / (1 + math.e), 1], [1, 1 / (1 + math.e), 0]),
    TradeOff.table([0, 0.1, 0.3, 0.5, 0.8, 1], [0.8, 0.5, 0.3, 0.1, 0.0, 0.0]),
]


@pytest.mark.parametrize("curve", SYMMETRIC, ids=repr)
def test_a_symmetric_curve_stays_what_it_is(curve: TradeOff) -> None:
    assert curve.symmetrized() is curve


@st.composite
def tables(draw: st.DrawFn) -> TradeOff:
    """Convex curves below 1 - α: the highest of a few lines."""
    slopes = draw(st.lists(st.floats(0, 8), min_size=1, max_size=4))
    tops = draw(st.lists(st.floats(0, 1), min_size=len(slopes), max_size=len(slopes)))
    alpha = np.linspace(0, 1, 41)
    lines = [
        np.minimum(top, 1) * (1 - alpha) - slope * alpha
        for top, slope in zip(tops, slopes, strict=True)
    ]
    return TradeOff.table(alpha, np.max([np.zeros(41), *lines], axis=0))


@given(curve=tables(), as_profile=st.booleans())
def test_the_symmetrized_curve_is_the_hull_of_both(curve: TradeOff, *, as_profile: bool) -> None:
    if as_profile:
        grid = np.linspace(-4, 4, 33)
        curve = TradeOff.profile(grid, curve.delta(grid))
    hull = curve.symmetrized()
    alpha = np.linspace(0, 1, 301)
    f = curve.f(alpha)
    # f⁻¹ by the points of f read the other way round; it is below their chords
    order = np.argsort(f, kind="stable")
    mirrored = np.interp(alpha, f[order], alpha[order], right=0.0)
    values = hull.f(alpha)
    assert np.all(values <= np.minimum(f, mirrored) + 1e-9)
    assert np.all(np.diff(values, 2) >= -1e-9)
    # its own mirror image: all ε twice
    epsilon = np.linspace(-3, 3, 25)
    other = 1 - np.exp(epsilon) + np.exp(epsilon) * curve.delta(-epsilon)
    both = np.maximum(curve.delta(epsilon), other)
    assert np.allclose(hull.delta(epsilon), both, atol=1e-9)


def test_the_rejected_curve_is_the_one_that_was_tested() -> None:
    scores, member = game("others", 1)
    found = lb.audit(
        np.where(member, scores, scores - 5),
        lb.Coins(member),
        claim=family("others", least=0.001),
        cuts=lb.Fixed(100),
    )
    assert found.bound > 0.01
    assert found.rejected == others_given(found.bound).symmetrized()
