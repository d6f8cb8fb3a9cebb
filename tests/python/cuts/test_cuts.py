"""Every cut policy answers the same question: what do scores and membership prove at a level?"""

from typing import Any, cast

import numpy as np
import pytest

import leakbound as lb
from leakbound.cuts import CUT_POLICIES, CutPolicy, Policy, ScoreGame, SecondLook
from leakbound.cuts.policy import PathPolicy

LEVEL = 0.05
POLICIES: tuple[CutPolicy, ...] = (
    lb.KLScan(),
    lb.UnionBound(grid="geometric"),
    lb.Fixed(60),
    lb.OutsideIn(),
    lb.Weighted(),
)
each = pytest.mark.parametrize("policy", POLICIES, ids=repr)


def game(*, leak: float = 2.0, digits: int = 12) -> ScoreGame:
    rng = np.random.default_rng(5)
    member = rng.random(400) < 0.5
    scores = np.round(1 / (1 + np.exp(-rng.normal(size=400) - leak * (member - 0.5))), digits)
    return ScoreGame(scores=scores, member=member, sides="member", seed=3)


def test_the_policies_here_are_all_of_them() -> None:
    # SecondLook is made of others: see test_second_look.py
    assert {SecondLook, *map(type, POLICIES)} == set(CUT_POLICIES)
    assert all(issubclass(kind, Policy) for kind in CUT_POLICIES if kind is not SecondLook)


@each
def test_an_audit_reports_what_its_policy_finds_once(policy: CutPolicy) -> None:
    assert isinstance(policy, Policy)
    played = game()
    found = policy.audit(played, LEVEL)
    result = lb.audit(
        played.scores, lb.Coins(played.member), cuts=policy, sides="member", seed=played.seed
    )
    assert found.best.logit == result.bound > 0
    assert (found.best.cut, found.best.successes) == (result.guesses, result.correct)
    assert found.ceiling == result.ceiling >= result.bound
    assert found.warnings == result.warnings
    assert result.theorem.endswith(policy.method)
    curve = result.curve
    (place,) = np.flatnonzero(curve.guesses == found.best.cut)
    assert curve.correct[place] == found.best.successes
    assert curve.bound[place] == found.best.logit
    assert np.all(np.diff(curve.guesses) > 0)


@pytest.mark.parametrize("ratio", [1.01, 1.1, 1.5])
def test_no_cut_of_a_grid_is_counted_twice(ratio: float) -> None:
    for length in range(1, 200):
        cuts = lb.UnionBound(grid="geometric", ratio=ratio).cuts(length)
        assert cuts == sorted(set(cuts))
        assert (cuts[0], cuts[-1]) == (1, length)
    assert lb.UnionBound(grid=[10, 50, 90]).cuts(60) == [10, 50, 60]
    assert lb.Fixed(90).cuts(60) == [60]


@pytest.mark.parametrize("cuts", [lb.Fixed(60), lb.KLScan()], ids=repr)
@pytest.mark.parametrize("leak", [0.0, 2.0])
def test_ties_move_a_cut_to_the_end_of_their_block(cuts: PathPolicy, leak: float) -> None:
    played = game(leak=leak, digits=1)
    found = cuts.audit(played, LEVEL)
    ends = np.cumsum(np.unique(-played.scores, return_counts=True)[1])
    if isinstance(cuts, lb.Fixed):
        assert found.best.cut == ends[ends >= cuts.guesses][0]
        assert f"moved from 60 to {found.best.cut} guesses" in " ".join(found.warnings)
    elif found.best.logit > 0:
        assert found.best.cut in ends


@each
def test_what_a_level_leaves_open_is_filled_in_and_nothing_else(policy: CutPolicy) -> None:
    if isinstance(policy, PathPolicy):
        options = cast("dict[str, Any]", policy.described(LEVEL))
        full = type(policy)(**{name: options[name] for name in options if name != "type"})
        assert options["type"] == type(policy).__name__
        assert full.described(LEVEL / 2) == options
        path = game().ranked().path("member")
        assert full.bound(path, "member", LEVEL).logit == policy.bound(path, "member", LEVEL).logit
