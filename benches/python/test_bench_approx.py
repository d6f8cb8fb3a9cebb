"""The (ε, δ) bound from raw scores, beside a loop over thresholds with the published formula."""

from functools import partial

import numpy as np
import pytest

import leakbound as lb
from bonferroni import hull, loop
from leakbound import simulate
from ratios import Compare

CLAIM = lb.ApproxDP(delta=1e-5)
STEP = 40
"""Which thresholds of the loop are timed at the largest size: all of them take minutes."""


@pytest.mark.parametrize(("size", "step", "rounds"), [(10_000, 1, 5), (1_000_000, STEP, 2)])
def test_audit_beside_the_loop(compare: Compare, size: int, step: int, rounds: int) -> None:
    game = simulate.gaussian(size, 1.0, seed=0)
    right, _ = hull(game.scores, game.member)
    thresholds = right.size
    ours = partial(lb.audit, game.scores, lb.Coins(game.member), claim=CLAIM)

    def theirs() -> float:
        right, wrong = hull(game.scores, game.member)
        return loop(right, wrong=wrong, m=size, beta=0.05, delta=1e-5, shares=right.size, step=step)

    assert theirs() < ours().bound < game.epsilon(1e-5)
    ratio = compare(
        "(ε, δ) bound, both sides",
        ours,
        peer=f"loop over {len(range(0, thresholds, step))} of {thresholds} thresholds",
        run_peer=theirs,
        size=size,
        rounds=rounds,
    )
    assert ratio.ratio > 0


def test_the_loop_is_the_published_bound_at_each_threshold() -> None:
    game = simulate.gaussian(500, 2.0, seed=0)
    right, wrong = hull(game.scores, game.member)
    assert right[0] == wrong[0] == 0
    assert right[-1] + wrong[-1] == 500
    threshold = int((right + wrong > 60).argmax())
    correct = int(right[threshold])
    incorrect = int(wrong[threshold])
    bound = loop(
        np.array([correct]), wrong=np.array([incorrect]), m=500, beta=0.05, delta=1e-5, shares=1
    )
    published_bound = lb.stats.one_run_epsilon(
        correct, correct + incorrect, 500, delta=1e-5, beta=0.05, bound="steinke"
    )
    assert bound == pytest.approx(published_bound, abs=1e-5)
