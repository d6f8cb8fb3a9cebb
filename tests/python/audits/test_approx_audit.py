"""Audits of (ε, δ)-DP: what is planned, what is paid, what is said, and how often it is wrong."""

from typing import Any, Literal

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors, stats

Sides = Literal["both", "member"]
SIDES: tuple[Sides, ...] = ("both", "member")
CLAIM = lb.ApproxDP(delta=1e-5)
Game = tuple[np.ndarray, np.ndarray]


def gaussian(m: int, seed: int, shift: float = 1.0) -> Game:
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    return rng.normal(size=m) + np.where(member, shift, -shift) / 2, member


def guesses_of(game: Game, sides: Sides) -> np.ndarray:
    """Which guesses are right, from the ends of the ranking; m is even."""
    scores, member = game
    ranked = member[np.argsort(-scores)]
    if sides == "member":
        return ranked
    path = np.empty_like(ranked)
    path[::2], path[1::2] = ranked[: member.size // 2], ~ranked[::-1][: member.size // 2]
    return path


@pytest.mark.parametrize("sides", SIDES)
def test_a_fixed_number_of_guesses_is_the_function_of_stats(sides: Sides) -> None:
    game = gaussian(1000, 1)
    right = int(guesses_of(game, sides)[:60].sum())
    result = flat.coins(*game, claim=CLAIM, cuts=lb.Fixed(60), sides=sides)
    assert (result.guesses, result.correct) == (60, right)
    one_sided = sides == "member"
    expected = stats.one_run_epsilon(right, 60, 1000, delta=1e-5, beta=0.05, one_sided=one_sided)
    assert result.bound == pytest.approx(expected, abs=1e-11)
    assert result.options["cuts"] == {"type": "Fixed", "guesses": 60}


def test_a_scan_of_members_is_the_function_of_stats() -> None:
    game = gaussian(2000, 2)
    result = flat.coins(*game, claim=CLAIM, cuts=lb.KLScan(), sides="member")
    path = guesses_of(game, "member")
    expected = stats.kl_scan(path, beta=0.05, min_guesses=100, delta=1e-5)
    assert (result.bound, result.guesses) == (expected.logit, expected.cut)
    assert result.options["cuts"]["min_guesses"] == 100


def test_a_scan_of_both_sides_is_the_best_of_three() -> None:
    game = gaussian(2000, 3)
    path = guesses_of(game, "both")
    result = flat.coins(*game, claim=CLAIM, cuts=lb.KLScan())
    level = result.options["level"]
    together = stats.kl_scan(path, beta=level, min_guesses=100, delta=1e-5, one_sided=False)
    # a path of one role has half of the guesses, and failures of all of the examples
    halves = [
        stats.kl_scan(side, beta=level, min_guesses=100, delta=2e-5)
        for side in (path[::2], path[1::2])
    ]
    assert level == pytest.approx(0.05 / 3)
    best = max(bound.logit for bound in (together, *halves))
    assert result.bound == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("sides", SIDES)
def test_a_union_is_the_best_of_its_cuts(sides: Sides) -> None:
    m = 60
    game = gaussian(m, 4, shift=3.0)
    path = guesses_of(game, sides)
    result = flat.coins(*game, claim=CLAIM, cuts=lb.UnionBound(), sides=sides)
    paths = {
        "member": [(path, True)],
        "both": [(path[::2], True), (path[1::2], True), (path, False)],
    }
    best = max(
        stats.one_run_epsilon(
            int(one[:r].sum()),
            r,
            m,
            delta=1e-5,
            beta=0.05 / len(paths[sides]) / one.size,
            one_sided=one_sided,
        )
        for one, one_sided in paths[sides]
        for r in range(1, one.size + 1)
    )
    assert result.bound == pytest.approx(best, abs=1e-11)
    assert best > 0


@pytest.mark.parametrize("sides", SIDES)
def test_the_plan_is_made_before_labels(sides: Sides) -> None:
    scores, member = gaussian(3000, 5)
    leaking = lb.audit(scores, lb.Coins(member), claim=CLAIM, sides=sides)
    noise = lb.audit(scores, lb.Coins(member[::-1].copy()), claim=CLAIM, sides=sides)
    assert leaking.options["cuts"] == noise.options["cuts"]
    told, plain = leaking.options["outside_in"], noise.options["outside_in"]
    assert (told["levels"], told["failures"]) == (plain["levels"], plain["failures"])
    assert leaking.options["cuts"] == {"type": "OutsideIn", "levels": None}
    assert leaking.bound > 1


@pytest.mark.parametrize(
    "cuts", [lb.Fixed(100), lb.KLScan(min_guesses=50), lb.UnionBound(grid="geometric")], ids=str
)
def test_the_bound_falls_as_delta_grows_and_starts_at_pure_dp(cuts: Any) -> None:
    game = gaussian(2000, 7)
    bounds = [
        flat.coins(*game, claim=lb.ApproxDP(delta=delta), cuts=cuts).bound
        for delta in (1e-14, 1e-7, 1e-5, 1e-3)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(flat.coins(*game, cuts=cuts).bound, abs=1e-6)


def test_a_bound_speaks_of_smaller_deltas_too() -> None:
    result = flat.coins(*gaussian(3000, 8), claim=CLAIM)
    assert result.epsilon() == result.epsilon(delta=1e-6) == result.epsilon(delta=1e-5)
    assert result.check(epsilon=0.5, delta=1e-5) == result.check(epsilon=0.5) == "refuted"
    assert result.check(epsilon=result.ceiling + 0.1, delta=1e-5) == "inconclusive"
    with pytest.raises(errors.OptionError, match="at most 1e-05"):
        result.epsilon(delta=1e-4)
    with pytest.raises(errors.OptionError, match=r"delta = 0\.1"):
        result.check(epsilon=1, delta=0.1)


def test_ties_are_broken_by_the_seed_alone() -> None:
    scores, member = gaussian(2000, 10)
    coarse = np.round(scores)
    results = [
        lb.audit(coarse, lb.Coins(member), claim=CLAIM, cuts=lb.Fixed(100), seed=seed)
        for seed in range(20)
    ]
    assert {result.guesses for result in results} == {100}
    assert len({result.correct for result in results}) > 1
    assert any("drawn at random" in text for text in results[0].warnings)
    again = lb.audit(coarse, lb.Coins(member), claim=CLAIM, cuts=lb.Fixed(100), seed=0)
    assert again == results[0]
    with pytest.raises(errors.AbstentionError):
        lb.audit(np.ones(10), lb.Coins(member[:10]), claim=CLAIM)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(errors.OptionError, match="delta"):
        flat.coins(*gaussian(100, 13), claim=CLAIM, cuts=lb.UnionBound(tail="hoeffding"))
