"""Joint bounds against every rule that sees some labels and then names other examples to test.

Linear programmes over all mechanisms, for three examples: a rule reveals labels one by one, in
whatever order they suggest, and then names a set of examples not seen, a guess about each of them,
and so a number of guesses. The look is one such rule, whose order of ranks is fixed.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
import pytest
from scipy import stats

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound.claims.base import counts_of
from leakbound.claims.tradeoff import TradeOff
from programmes import Pairs, best_mechanism

M = 3
Labels: TypeAlias = tuple[int, ...]
LABELLINGS: list[Labels] = list(product((0, 1), repeat=M))
# Where a rule is right often enough: a set of labellings
Wins: TypeAlias = frozenset[Labels]
CURVES: dict[str, Pairs] = {
    "approximate": [(0.7, 0.05)],
    "failures only": [(0.0, 0.1)],
    "many failures": [(0.3, 0.3)],
    "pure": [(0.5, 0.0)],
    "gaussian, from above": [
        (float(e), float(TradeOff.gaussian(0.6).delta(e))) for e in (-1.0, 0.0, 1.0)
    ],
}
LEAST: list[dict[int, int]] = [
    {1: 1, 2: 2, 3: 3},
    {1: 1, 2: 2},
    {1: 1, 3: 3},
    {2: 2, 3: 2},
    {1: 1, 2: 2, 3: 2},
]
"""Least counts that win, by the number of guesses."""


def largest(sets: Iterable[Wins]) -> list[Wins]:
    """Return the sets that are in no other one."""
    kept: list[Wins] = []
    for one in sorted(set(sets), key=len, reverse=True):
        if not any(one <= other for other in kept):
            kept.append(one)
    return kept


def wins_of_trees(least: Mapping[int, int]) -> list[Wins]:
    """Return where each rule that reveals labels one by one wins."""

    def after(known: tuple[int | None, ...]) -> list[Wins]:
        free = [i for i in range(M) if known[i] is None]
        left = [x for x in LABELLINGS if all(k in {None, v} for k, v in zip(known, x, strict=True))]
        found: list[Wins] = [frozenset()]
        for made, right in least.items():
            for named in combinations(free, made):
                for guessed in product((0, 1), repeat=made):
                    pairs = list(zip(named, guessed, strict=True))
                    found.append(
                        frozenset(x for x in left if sum(x[i] == v for i, v in pairs) >= right)
                    )
        for i in free:
            ways = [after((*known[:i], value, *known[i + 1 :])) for value in (0, 1)]
            found += [one | other for one, other in product(*ways)]
        return largest(found)

    return after((None,) * M)


def wins_of_tiling() -> list[Wins]:
    """Return where the one choice wins that depends on labels outside of it, but is no tree.

    One example is tested where the others are 0 and 1 in turn, and none where all are equal.
    """
    edges = [((0, 1, 0), (0, 1, 1)), ((0, 0, 1), (1, 0, 1)), ((1, 0, 0), (1, 1, 0))]
    return [frozenset(way) for way in product(*edges)]


def best_of(wins: Iterable[Wins], pairs: Pairs) -> float:
    """Return the largest probability that any mechanism gives a rule of these to win."""
    gain = np.array([[x in one for one in wins] for x in LABELLINGS], dtype=float)
    return best_mechanism(LABELLINGS, gain / len(LABELLINGS), pairs)


def joint_bound(least: Mapping[int, int], pairs: Pairs) -> float:
    counts = [counts_of(right, made, M, one_sided=False) for made, right in sorted(least.items())]
    curve = TradeOff.profile([e for e, _ in pairs], [d for _, d in pairs]).core
    return _core.JointCertificate(counts, curve).bound_for(curve)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("least", LEAST, ids=str)
def test_no_rule_that_sees_labels_first_beats_the_joint_bound(
    least: dict[int, int], name: str
) -> None:
    wins = wins_of_trees(least)
    if least.get(1) == 1:
        wins += wins_of_tiling()
    assert 0 < best_of(wins, CURVES[name]) <= joint_bound(least, CURVES[name]) + 1e-9


def test_the_test_of_a_number_fixed_before_is_beaten() -> None:
    """The condition: a number that labels chose has the joint test, not that of this number."""
    least, (epsilon, delta) = {1: 1, 3: 2}, (0.7, 0.05)
    p = float(expit(np.array([epsilon]))[0])

    def fixed(made: int, right: int) -> float:
        tail = float(stats.binom.sf(right - 1, made, p))
        at = float(stats.binom.pmf(right, made, p))
        return tail + M * delta * tail * (1 - tail) / (right * at)

    alone = max(fixed(made, right) for made, right in least.items())
    best = best_of(wins_of_trees(least), [(epsilon, delta)])
    assert best > alone + 0.005
    assert best <= joint_bound(least, [(epsilon, delta)]) + 1e-9


def test_a_rule_that_tests_labels_it_saw_is_beaten() -> None:
    """The condition: no label that is tested was seen."""
    pairs = CURVES["approximate"]
    peeking = [frozenset(LABELLINGS)]  # the guess is the label seen
    assert best_of(peeking, pairs) > joint_bound({1: 1}, pairs) + 0.1
    assert math.isclose(best_of(peeking, pairs), 1.0)
