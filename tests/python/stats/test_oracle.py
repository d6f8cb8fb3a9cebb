"""A slow and obvious second implementation of the audit, compared with ours on small inputs.

Everything is written from the definitions: lists of examples, sums over all outcomes, bisection.
"""

import math
from collections.abc import Callable
from itertools import groupby
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leakbound as lb
from leakbound import _core

Guesses = list[bool]
Block = tuple[int, int]
"""Guesses made and guesses right on examples of one score."""
Cut = tuple[int, int]
"""Guesses made and guesses right up to the end of a block."""

BETA = 0.05


def kl(x: float, q: float) -> float:
    """KL divergence between coins, with 0 ln 0 = 0."""
    hit = x * math.log(x / q) if x > 0 else 0.0
    return hit + ((1 - x) * math.log((1 - x) / (1 - q)) if x < 1 else 0.0)


def bisect(holds: Callable[[float], bool]) -> float:
    """The largest p in (0, 1) at which a condition that ends somewhere still holds."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def kl_limit(r: int, w: int, kappa: float) -> float:
    return bisect(lambda q: 0 < q < w / r and r * kl(w / r, q) >= kappa) if w else 0.0


def exact_limit(r: int, w: int, beta: float) -> float:
    def tail(p: float) -> float:
        return math.fsum(math.comb(r, k) * p**k * (1 - p) ** (r - k) for k in range(w, r + 1))

    return bisect(lambda p: tail(p) <= beta) if w else 0.0


def crossing(cuts: list[Cut], least: list[int], p: float) -> float:
    """P(some cut has at least so many correct guesses), one guess at a time."""
    needed = dict(zip([r for r, _ in cuts], least, strict=True))
    alive, crossed = {0: 1.0}, 0.0
    for r in range(1, cuts[-1][0] + 1):
        after: dict[int, float] = {}
        for w, mass in alive.items():
            after[w] = after.get(w, 0.0) + mass * (1 - p)
            after[w + 1] = after.get(w + 1, 0.0) + mass * p
        reached = [w for w in after if w >= needed.get(r, r + 1)]
        crossed += math.fsum(after.pop(w) for w in reached)
        alive = after
    return crossed


def scan(cuts: list[Cut], limit: Callable[[int, int], float], beta: float) -> float:
    """Invert the law of the largest limit over all cuts."""
    observed = max(limit(r, w) for r, w in cuts)
    if observed == 0:
        return 0.0
    near = observed * (1 - 1e-9)  # the cut that was observed counts as reached
    least = [next((w for w in range(r + 1) if limit(r, w) >= near), r + 1) for r, _ in cuts]
    return bisect(lambda p: crossing(cuts, least, p) <= beta)


def union(cuts: list[Cut], length: int, beta: float) -> float:
    return max(exact_limit(r, w, beta / length) for r, w in cuts)


def cuts_of(blocks: list[Block]) -> list[Cut]:
    sizes, right = zip(*blocks, strict=True)
    return list(zip(np.cumsum(sizes).tolist(), np.cumsum(right).tolist(), strict=True))


def paths(scores: list[float], member: list[bool], sides: str) -> list[list[Cut]]:
    """Cuts of every path, from the definitions of roles and visiting orders."""
    ranked = sorted(zip(scores, member, strict=True), key=lambda pair: -pair[0])
    groups = [[m for _, m in group] for _, group in groupby(ranked, key=lambda pair: pair[0])]
    down = [(len(group), sum(group)) for group in groups]
    if sides == "member":
        return [cuts_of(down)]
    ends = np.cumsum([size for size, _ in down])[:-1]
    above = 1 + min(range(len(ends)), key=lambda i: (abs(ends[i] - len(scores) / 2), i))
    top = down[:above]
    bottom = [(size, size - right) for size, right in reversed(down[above:])]
    mixed, left, rest = [], list(top), list(bottom)
    made = [0, 0]
    while left or rest:
        side = 0 if left and (not rest or made[0] <= made[1]) else 1
        block = (left, rest)[side].pop(0)
        made[side] += block[0]
        mixed.append(block)
    return [cuts_of(top), cuts_of(bottom), cuts_of(mixed)]


def oracle(scores: list[float], member: list[bool], cuts: Any, sides: str) -> float:
    found = paths(scores, member, sides)
    beta = BETA / len(found)
    if isinstance(cuts, lb.Fixed):
        r, w = next(cut for cut in found[-1] if cut[0] >= cuts.guesses)
        best = exact_limit(r, w, BETA)
    elif isinstance(cuts, lb.UnionBound):
        best = max(union(path, path[-1][0], beta) for path in found)
    else:
        kappa = math.log(1 / beta) + 1 if cuts.kappa is None else cuts.kappa
        best = max(scan(path, lambda r, w: kl_limit(r, w, kappa), beta) for path in found)
    return max(0.0, math.log(best / (1 - best))) if best > 0 else 0.0


def leaky(draw: st.DrawFn, least: int, most: int) -> tuple[list[float], list[bool]]:
    """Scores with ties that say something about membership, more or less."""
    m = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    member = rng.random(m) < 0.5
    strength, levels = draw(st.sampled_from([0, 2, 5])), draw(st.sampled_from([2, 6, 1000]))
    raw = strength * member + rng.normal(size=m)
    scores = np.round(raw * levels / 6, 0 if levels < 1000 else 8)
    scores[0] = scores[1:].max() + 1  # at least two different scores
    return scores.tolist(), member.tolist()


games = st.composite(leaky)
ORDERS: list[Literal["member_half", "nonmember_half", "interleaved", "member"]]
ORDERS = ["member_half", "nonmember_half", "interleaved", "member"]
POLICIES = [lb.KLScan(), lb.KLScan(kappa=2.5), lb.UnionBound(), lb.Fixed(4)]


@pytest.mark.parametrize("cuts", POLICIES, ids=repr)
@pytest.mark.parametrize("sides", ["both", "member"])
@given(data=st.data())
def test_the_audit_agrees_with_the_oracle(cuts: Any, sides: Any, data: st.DataObject) -> None:
    scores, member = data.draw(games(4, 24))
    result = lb.audit(scores, lb.Coins(member), cuts=cuts, sides=sides)
    assert result.bound == pytest.approx(oracle(scores, member, cuts, sides), abs=1e-8)


@given(data=st.data())
def test_paths_agree_with_the_oracle_at_every_cut(data: st.DataObject) -> None:
    scores, member = data.draw(games(2, 60))
    names = ["members", "non-members", "interleaved"]
    result = lb.audit(scores, lb.Coins(member), cuts=lb.UnionBound())
    expected = paths(scores, member, "both")[names.index(result.path)]
    assert list(zip(result.curve.guesses, result.curve.correct, strict=True)) == expected
    alone = lb.audit(scores, lb.Coins(member), cuts=lb.UnionBound(), sides="member")
    (expected,) = paths(scores, member, "member")
    assert list(zip(alone.curve.guesses, alone.curve.correct, strict=True)) == expected
    assert list(zip(alone.roc.guesses, alone.roc.members, strict=True)) == expected


@given(data=st.data(), tied=st.booleans())
def test_every_order_agrees_with_the_oracle(data: st.DataObject, *, tied: bool) -> None:
    scores, member = data.draw(games(2, 60 if tied else 400))
    if not tied:  # and long: words of guesses are then visited at once
        scores = np.argsort(np.argsort(scores, kind="stable"), kind="stable").astype(float).tolist()
    ranking = _core.Ranking(np.array(scores), np.array(member))
    expected = [*paths(scores, member, "both"), *paths(scores, member, "member")]
    for order, cuts in zip(ORDERS, expected, strict=True):
        path = ranking.path(order)
        guesses, correct = path.sample(path.guesses)
        assert list(zip(guesses.tolist(), correct.tolist(), strict=True)) == cuts


@pytest.mark.parametrize("tail", ["exact", "hoeffding"])
def test_the_union_of_panoramia_agrees_with_all_cuts_of_100_games(tail: Any) -> None:
    def hoeffding_limit(r: int, w: int, beta: float) -> float:
        return max(0.0, w / r - math.sqrt(math.log(1 / beta) / (2 * r)))

    limit = exact_limit if tail == "exact" else hoeffding_limit
    found = []
    for seed in range(100):
        rng = np.random.default_rng([2402, seed])
        m, levels = int(rng.integers(5, 90)), int(rng.choice([4, 1000]))
        member = rng.random(m) < 0.5
        strengths = np.sort(rng.uniform(0, 4, 2))
        baseline, attack = np.round(
            levels * (strengths[:, None] * member + rng.normal(size=(2, m))) / 6
        )
        for ranking in (baseline, attack):
            ranking[0] = ranking[1:].max() + 1  # at least two different scores
        result = lb.audit(
            attack, lb.Panoramia(member, baseline=baseline), cuts=lb.UnionBound(tail=tail)
        )
        best = [
            max(limit(r, w, BETA / (2 * m)) for r, w in paths(list(one), list(member), "member")[0])
            for one in (baseline, attack)
        ]
        c, both = (math.log(p / (1 - p)) if p > 0.5 else 0.0 for p in best)
        assert (result.c_lb, result.c_plus_epsilon_lb) == pytest.approx((c, both), abs=1e-7)
        assert result.epsilon_tilde == pytest.approx(max(0.0, both - c), abs=1e-7)
        found.append((c, both))
    assert sum(0 < c < both for c, both in found) > 10


@given(data=st.data())
def test_auc_agrees_with_all_pairs(data: st.DataObject) -> None:
    scores, member = data.draw(games(2, 60))
    pairs = [
        (a > b) + (a == b) / 2
        for a, is_in in zip(scores, member, strict=True)
        for b, is_out in zip(scores, member, strict=True)
        if is_in and not is_out
    ]
    expected = sum(pairs) / len(pairs) if pairs else 0.5
    assert lb.audit(scores, lb.Coins(member)).auc == pytest.approx(expected, abs=1e-12)
