"""The (ε, δ) bound from raw scores, beside a loop over thresholds with the published formula."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

import leakbound as lb
from bonferroni import hull, loop
from leakbound import simulate
from ratios import Ratio, measure

Record: TypeAlias = Callable[[Ratio, Callable[[], object]], None]

CLAIM = lb.ApproxDP(delta=1e-5)
STEP = 40
"""Which thresholds of the loop are timed at the largest size: all of them take minutes."""


@pytest.mark.parametrize(("size", "step", "rounds"), [(10_000, 1, 5), (1_000_000, STEP, 2)])
def test_audit_beside_the_loop(record: Record, size: int, step: int, rounds: int) -> None:
    game = simulate.gaussian(size, 1.0, seed=0)
    thresholds = hull(game.scores, game.member)[0].size

    def ours() -> lb.AuditResult:
        return lb.audit(game.scores, lb.Coins(game.member), claim=CLAIM)

    def theirs() -> float:
        right, wrong = hull(game.scores, game.member)
        return loop(right, wrong=wrong, m=size, beta=0.05, delta=1e-5, shares=right.size, step=step)

    result = ours()
    assert result.bound > theirs()
    assert result.bound < game.epsilon(1e-5)
    ratio = measure(
        "(ε, δ) bound, both sides",
        ours,
        peer=f"loop over {len(range(0, thresholds, step))} of {thresholds} thresholds",
        run_peer=theirs,
        size=size,
        rounds=rounds,
    )
    record(ratio, ours)
    assert ratio.ratio > 0


def test_the_loop_is_the_published_bound_at_each_threshold() -> None:
    game = simulate.gaussian(500, 2.0, seed=0)
    right, wrong = hull(game.scores, game.member)
    assert right[0] == wrong[0] == 0
    assert right[-1] + wrong[-1] == 500
    at = int((right + wrong > 60).argmax())
    one = slice(at, at + 1)
    found = loop(right[one], wrong=wrong[one], m=500, beta=0.05, delta=1e-5, shares=1)
    correct = int(right[at])
    guesses = int(right[at] + wrong[at])
    expected = lb.stats.one_run_epsilon(
        correct, guesses, 500, delta=1e-5, beta=0.05, bound="steinke"
    )
    assert found == pytest.approx(expected, abs=1e-5)
