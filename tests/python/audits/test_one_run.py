"""One-run audits: what the bound is made of, and what it does not depend on."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flat
import leakbound as lb
from leakbound._base.numerics import logit
from leakbound.errors import InputTypeError

Game = tuple[np.ndarray, np.ndarray]
BETA = 0.05
POLICIES = [lb.KLScan(), lb.UnionBound(), lb.UnionBound(grid="geometric"), lb.Fixed(100)]
every_policy = pytest.mark.parametrize("cuts", POLICIES, ids=repr)
every_side = pytest.mark.parametrize("sides", ["both", "member"])


def perfect(m: int) -> Game:
    """Every member above every non-member, half of each, no ties."""
    return np.arange(m, dtype=float), np.arange(m) >= m - m // 2


@pytest.mark.parametrize("m", [10, 200, 1000])
def test_a_perfect_attack_has_the_closed_form_bound(m: int) -> None:
    result = flat.coins(*perfect(m), sides="both", cuts=lb.KLScan())
    assert (result.guesses, result.correct, result.path) == (m, m, "interleaved")
    assert result.bound == pytest.approx(logit((BETA / 3) ** (1 / m)), rel=1e-11)


@every_policy
@every_side
def test_a_perfect_attack_reaches_the_ceiling(cuts: Any, sides: Any) -> None:
    result = flat.coins(*perfect(400), cuts=cuts, sides=sides)
    assert result.bound == pytest.approx(result.ceiling, rel=1e-9)


@every_policy
@every_side
@settings(max_examples=20)
@given(data=st.data())
def test_only_the_order_of_the_scores_counts(cuts: Any, sides: Any, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores, member = np.round(rng.normal(size=120), 1), rng.random(120) < 0.5
    result = lb.audit(scores, lb.Coins(member), cuts=cuts, sides=sides)
    stretched = lb.audit(np.exp(3 * scores) - 7, lb.Coins(member), cuts=cuts, sides=sides)
    assert (stretched.bound, stretched.guesses, stretched.path) == (
        result.bound,
        result.guesses,
        result.path,
    )
    turned = rng.permutation(120)
    shuffled = lb.audit(scores[turned], lb.Coins(member[turned]), cuts=cuts, sides=sides)
    assert (shuffled.bound, shuffled.correct) == (result.bound, result.correct)


@every_policy
@settings(max_examples=20)
@given(data=st.data())
def test_more_right_guesses_never_lower_the_bound(cuts: Any, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores, member = rng.integers(0, 40, size=110).astype(float), rng.random(110) < 0.5
    better = member.copy()
    better[np.argmax(np.where(member, -np.inf, scores))] = True
    worse = lb.audit(scores, lb.Coins(member), cuts=cuts, sides="member")
    result = lb.audit(scores, lb.Coins(better), cuts=cuts, sides="member")
    assert result.bound >= worse.bound * (1 - 1e-12)


def test_infinite_scores_are_scores() -> None:
    scores, member = perfect(100)
    scores[0], scores[-1] = -np.inf, np.inf
    assert lb.audit(scores, lb.Coins(member)).bound == flat.coins(*perfect(100)).bound


def test_where_no_cut_stands_out() -> None:
    result = lb.audit(perfect(10)[0], lb.Coins(~perfect(10)[1]), sides="both")
    assert result.bound == 0
    assert (result.guesses, result.correct) == (0, 0)
    assert result.reason == "no tested threshold has more correct guesses than chance explains"
    assert result.curve.bound.max() == 0


def test_scores_that_look_inverted_are_reported_and_not_flipped(game: Game) -> None:
    scores, member = game
    result = lb.audit(-scores, lb.Coins(member))
    assert result.bound == 0
    assert any("look inverted" in text for text in result.warnings)


def test_ties_are_reported_from_ten_percent_on(game: Game) -> None:
    scores, member = game
    order = np.argsort(scores)
    scores[order[:60]] = scores[order[0]]
    assert lb.audit(scores, lb.Coins(member)).warnings == ()
    scores[order[60]] = scores[order[0]]
    (text,) = lb.audit(scores, lb.Coins(member)).warnings
    assert "share their score" in text


def test_ties_are_never_ordered_by_membership() -> None:
    """Members first or last within a block: the audit cannot tell."""
    rng = np.random.default_rng(12)
    scores = rng.integers(0, 5, size=300).astype(float)
    member = rng.random(300) < 0.5
    results = [
        lb.audit(scores[rows], lb.Coins(member[rows]), cuts=lb.KLScan())
        for rows in (np.argsort(member, kind="stable"), np.argsort(~member, kind="stable"))
    ]
    assert results[0].bound == results[1].bound
    assert results[0].correct == results[1].correct
    assert results[0].curve.guesses.tolist() == results[1].curve.guesses.tolist()


@every_side
def test_too_few_examples_say_that_more_are_needed(sides: Any) -> None:
    for m in (8, 10, 12, 14, 16, 20, 24, 40):
        scores, member = perfect(m)
        result = lb.audit(scores, lb.Coins(member), sides=sides)
        few = any("even a perfect attack" in text for text in result.warnings)
        assert few == (lb.planning.ceiling(m, claim=lb.PureDP(), sides=sides) <= 1)


def test_the_scores_are_copied_once() -> None:
    rng = np.random.default_rng(0)
    member = rng.random(1_000_000) < 0.5
    scores = rng.normal(size=1_000_000)
    lb.audit(scores[:100], lb.Coins(member[:100]))
    tracemalloc.start()
    result = lb.audit(scores, lb.Coins(member))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.m == 1_000_000
    assert scores.nbytes < peak < 1.5 * scores.nbytes


@pytest.mark.parametrize("delta", ["", "a", [], np.array([1e-5, 1e-6]), True])
@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP()])
def test_a_delta_is_a_number(delta: Any, claim: Any) -> None:
    rng = np.random.default_rng(0)
    member = rng.random(100) < 0.5
    result = lb.audit(rng.normal(size=100) + member, lb.Coins(member), claim=claim, seed=0)
    for ask in (result.check, result.with_check):
        with pytest.raises(InputTypeError, match="delta must be a real number"):
            ask(epsilon=1.0, delta=delta)
