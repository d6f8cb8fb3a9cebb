"""Joint bounds on number and count of guesses against linear programmes over all mechanisms.

Tiny games: every mechanism, every way to name nested sets of guesses and their directions, and
every rule that stops by the labels outside of the sets not yet looked into.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
import pytest

import leakbound._core as _core
from leakbound._base.types import Sides
from leakbound.claims.base import counts_of
from leakbound.claims.tradeoff import TradeOff
from programmes import best_mechanism


def nested_sets(m: int, levels: Sequence[int]) -> Iterator[tuple[frozenset[int], ...]]:
    """Every chain of sets of these sizes, the smallest first."""
    for order in combinations(range(m), levels[-1]):
        if len(levels) == 1:
            yield (frozenset(order),)
            continue
        for inner in nested_sets(levels[-1], levels[:-1]):
            yield (*(frozenset(order[i] for i in one) for one in inner), frozenset(order))


def rules(
    m: int, nested: Sequence[frozenset[int]], *, values: int, peeks: bool
) -> Iterator[tuple[int, ...]]:
    """Every rule of where to stop, as the level for each labelling of all examples.

    With `peeks` the labels inside the smallest set count too: what must not be.
    """
    labellings = list(product(range(values), repeat=m))

    def walk(level: int) -> Iterator[tuple[int, ...]]:
        if level == 0:
            yield (0,) * len(labellings)
            return
        seen = range(m) if peeks else [i for i in range(m) if i not in nested[level]]
        keys = sorted({tuple(labels[i] for i in seen) for labels in labellings})
        for inner in walk(level - 1):
            for stop in product((False, True), repeat=len(keys)):
                here = dict(zip(keys, stop, strict=True))
                yield tuple(
                    level if here[tuple(labels[i] for i in seen)] else below
                    for labels, below in zip(labellings, inner, strict=True)
                )

    yield from walk(len(nested) - 1)


def shrinking(
    inside: frozenset[int], levels: Sequence[int], labellings: Sequence[tuple[int, ...]]
) -> Iterator[dict[tuple[int, ...], frozenset[int]]]:
    """Every rule of which set to test, from one where all labels outside are equal.

    It stops, or leaves examples out, whose labels may decide how to go on.
    """
    yield dict.fromkeys(labellings, inside)
    if len(levels) > 1:
        for kept in map(frozenset, combinations(sorted(inside), levels[-2])):
            parts: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
            for labels in labellings:
                parts.setdefault(tuple(labels[i] for i in inside - kept), []).append(labels)
            for ways in product(*(shrinking(kept, levels[:-1], part) for part in parts.values())):
                yield {labels: tested for way in ways for labels, tested in way.items()}


def most_probable(
    m: int,
    levels: Sequence[int],
    least: Sequence[int],
    pairs: Sequence[tuple[float, float]],
    *,
    one_sided: bool = False,
    values: int = 2,
    peeks: bool = False,
) -> float:
    """Return the largest P(W ≥ v_L) of all mechanisms that are (ε, δ)-DP at all pairs."""
    labellings = list(product(range(values), repeat=m))
    outputs: set[tuple[bool, ...]] = set()
    for nested in nested_sets(m, levels):
        inside = sorted(nested[-1])
        for stops in rules(m, nested, values=values, peeks=peeks):
            for guessed in (
                [(1,) * len(inside)] if one_sided else product(range(values), repeat=len(inside))
            ):
                known = dict(zip(inside, guessed, strict=True))
                right = [{i for i in inside if known[i] == x[i]} for x in labellings]
                # all that matters of an output is where it wins
                outputs.add(
                    tuple(
                        len(nested[level] & of) >= least[level]
                        for level, of in zip(stops, right, strict=True)
                    )
                )
    wins = np.array(sorted(outputs), dtype=float)
    beaten = [any((o >= row).all() and (o > row).any() for o in wins) for row in wins]
    wins = wins[np.logical_not(beaten)]
    return best_mechanism(labellings, wins.T / len(labellings), pairs)


def joint_bound(
    m: int,
    levels: Sequence[int],
    least: Sequence[int],
    pairs: Sequence[tuple[float, float]],
    *,
    one_sided: bool = False,
    values: int = 2,
) -> float:
    curve = TradeOff.profile([e for e, _ in pairs], [d for _, d in pairs]).core
    counts = [
        counts_of(right, made, m, one_sided=one_sided, k=values)
        for made, right in zip(levels, least, strict=True)
    ]
    return _core.JointCertificate(counts, curve).bound_for(curve)


GAMES = [
    (3, (1, 2), (1, 2)),
    (3, (1, 3), (1, 3)),
    (3, (2, 3), (2, 3)),
    (3, (2, 3), (2, 2)),
    (3, (1, 2, 3), (1, 2, 3)),
    (4, (1, 3), (1, 3)),
    (4, (2, 4), (2, 4)),
    (4, (2, 4), (2, 3)),
]
CURVES = {
    "approximate": [(0.7, 0.05)],
    "failures only": [(0.0, 0.1)],
    "pure": [(0.5, 0.0)],
    "gaussian, from above": [
        (float(e), float(TradeOff.gaussian(0.6).delta(e))) for e in (-1.0, 0.0, 1.0)
    ],
}


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("m", "levels", "least"), GAMES)
def test_no_mechanism_and_no_rule_beats_the_joint_bound(
    m: int, levels: tuple[int, ...], least: tuple[int, ...], name: str, sides: Sides
) -> None:
    pairs, one_sided = CURVES[name], sides == "member"
    bound = joint_bound(m, levels, least, pairs, one_sided=one_sided)
    assert most_probable(m, levels, least, pairs, one_sided=one_sided) <= bound + 1e-9


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("m", "levels", "least"), [*GAMES[:5], (4, (2, 4), (2, 3))])
def test_neither_does_any_that_chooses_which_examples_are_left(
    m: int, levels: tuple[int, ...], least: tuple[int, ...], name: str
) -> None:
    """Sets are not nested: labels given up say from which end to go on."""
    labellings, outputs = list(product(range(2), repeat=m)), set()
    parts: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    start = frozenset(range(levels[-1]))
    for labels in labellings:
        parts.setdefault(labels[levels[-1] :], []).append(labels)
    for ways in product(*(shrinking(start, levels, part) for part in parts.values())):
        tested = {labels: one for way in ways for labels, one in way.items()}
        for guessed in product(range(2), repeat=m):
            right = [sum(guessed[i] == x[i] for i in tested[x]) for x in labellings]
            wins = zip(right, labellings, strict=True)
            outputs.add(tuple(w >= least[levels.index(len(tested[x]))] for w, x in wins))
    wins_of = np.array(sorted(outputs), dtype=float)
    best = best_mechanism(labellings, wins_of.T / len(labellings), CURVES[name])
    assert best <= joint_bound(m, levels, least, CURVES[name]) + 1e-9


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(
    ("m", "levels", "least", "values"),
    [(2, (1, 2), (1, 2), 3), (2, (1, 2), (1, 1), 4), (2, (2,), (2,), 4)],
)
def test_neither_does_any_where_a_guess_names_one_of_several_values(
    m: int, levels: tuple[int, ...], least: tuple[int, ...], values: int, name: str
) -> None:
    bound = joint_bound(m, levels, least, CURVES[name], values=values)
    best = most_probable(m, levels, least, CURVES[name], values=values)
    assert best <= bound + 1e-9
    assert bound <= 1.35 * best


@pytest.mark.parametrize("name", ["approximate", "failures only", "pure"])
def test_the_bound_is_attained(name: str) -> None:
    """With guesses of both sides the programmes leave next to nothing between."""
    m, levels, least = 4, (2, 4), (2, 4)
    bound = joint_bound(m, levels, least, CURVES[name])
    assert most_probable(m, levels, least, CURVES[name]) > 0.995 * bound


def test_a_label_seen_inside_breaks_it() -> None:
    m, levels, least = 3, (1, 3), (1, 2)
    pairs = CURVES["failures only"]
    bound = joint_bound(m, levels, least, pairs)
    assert most_probable(m, levels, least, pairs) <= bound + 1e-9
    assert most_probable(m, levels, least, pairs, peeks=True) > bound + 0.02


def test_the_closed_form_is_the_certificate() -> None:
    """(ε, δ)-DP: no mechanism reaches a count that refutes ε with probability above the level."""
    m, levels, level, share = 4, (2, 4), 0.6, 0.3
    for (epsilon, delta), one_sided in product([(0.7, 0.05), (0.0, 0.02)], [False, True]):
        kept = refuting(m, levels, epsilon, delta, level, share, one_sided=one_sided)
        assert kept
        sizes, counts = zip(*kept, strict=True)
        pairs = [(epsilon, delta)]
        assert most_probable(m, sizes, counts, pairs, one_sided=one_sided) <= level


def refuting(
    m: int,
    levels: Sequence[int],
    epsilon: float,
    delta: float,
    level: float,
    share: float,
    *,
    one_sided: bool = False,
    values: int = 2,
) -> list[tuple[int, int]]:
    """Return the levels at which some count refutes ε, with the least such count."""
    kept = []
    for made in levels:
        limits = [
            _core.approx_joint_epsilon(
                {"correct": c, "guesses": made, "m": m, "k": values, "one_sided": one_sided},
                delta,
                level,
                share,
            )
            for c in range(1, made + 1)
        ]
        assert limits == sorted(limits)
        kept.append((made, 1 + sum(limit < epsilon for limit in limits)))
    return [(made, least) for made, least in kept if least <= made]


@pytest.mark.parametrize(("level", "share"), [(0.4, 0.5), (0.6, 0.3), (0.85, 0.15)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.02), (0.7, 0.05), (0.0, 0.2), (0.3, 0.9)])
@pytest.mark.parametrize(("m", "levels"), [(1, (1,)), (2, (1,)), (2, (2,)), (2, (1, 2))])
def test_the_closed_form_holds_among_three_values(
    m: int, levels: tuple[int, ...], epsilon: float, delta: float, level: float, share: float
) -> None:
    kept = refuting(m, levels, epsilon, delta, level, share, values=3)
    if kept:
        sizes, counts = zip(*kept, strict=True)
        assert most_probable(m, sizes, counts, [(epsilon, delta)], values=3) <= level


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("delta", [0.5, 0.97])
@pytest.mark.parametrize(
    ("m", "levels", "least"),
    [(1, (1,), (1,)), (2, (1, 2), (1, 2)), (3, (1, 2), (1, 2)), (3, (3,), (3,))],
)
def test_failures_that_are_likely_leave_next_to_nothing_to_prove(
    m: int, levels: tuple[int, ...], least: tuple[int, ...], delta: float, sides: Sides
) -> None:
    pairs, one_sided = [(0.0, delta)], sides == "member"
    bound = joint_bound(m, levels, least, pairs, one_sided=one_sided)
    found = most_probable(m, levels, least, pairs, one_sided=one_sided)
    assert found <= bound + 1e-9
    assert one_sided or found >= delta  # all labels leak with probability δ
