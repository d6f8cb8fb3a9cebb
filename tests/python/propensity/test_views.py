"""Views of a split: exact whatever they look at, and able to see what people do to one part."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from leakbound.propensity import likeness, split_views
from one_part import MISTAKES, RIGHT, Parts


def rng_of(*numbers: int) -> np.random.Generator:
    return np.random.default_rng([17, *numbers])


def p_value(view: str, parts: Parts, seed: int) -> float:
    """Return the p-value of a view, within classes if there are any."""
    rng = rng_of(seed)
    split = split_views.Split.of(parts.member, parts.labels, rng)
    points = likeness.ranked(parts.rows)
    if view == "pairs":
        return split_views.across(likeness.closest(points, split, rng), split, rng).p_value
    values: NDArray[np.float64] | None = likeness.usual(parts.rows)
    if view == "label":
        assert parts.labels is not None
        values = likeness.surprising(parts.rows, parts.labels, rng)
    assert values is not None
    return split_views.at_ends(likeness.in_order(values, rng), split, rng).p_value


# --- what was done to one part is seen, and nothing where nothing was -----------------------------


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_was_done_to_one_part_is_seen(mistake: str) -> None:
    """At the part of the level that a view has: the long form counts 36 of 40 at least."""
    play, view = MISTAKES[mistake]
    seen = [p_value(view, play(rng_of(game, 6)), game) < 3e-4 for game in range(2)]
    assert all(seen)


@pytest.mark.parametrize("split", RIGHT)
def test_a_right_split_is_not_contradicted(split: str) -> None:
    parts = RIGHT[split](rng_of(0, 6))
    kinds = ("pairs", "usual") if parts.labels is None else ("pairs", "usual", "label")
    assert min(p_value(view, parts, 0) for view in kinds) > 1e-3


def test_what_was_counted_is_told() -> None:
    """The first half of the records are members, and so are both records of half of the pairs."""
    member = np.arange(100) < 50
    rng = rng_of(1)
    split = split_views.Split.of(member, None, rng)
    least = split_views.at_ends(np.arange(100), split, rng)
    most = split_views.at_ends(np.arange(100)[::-1], split, rng)
    assert (least.seen, least.of, least.expected, least.end) == (50, 50, 25, "least")
    assert least.p_value == 1 / (1 + split_views.DRAWS)
    assert (most.seen, most.of, most.end) == (0, 50, "least")
    pairs = split_views.across(np.arange(100).reshape(50, 2), split, rng)
    assert (pairs.seen, pairs.of) == (0, 50)
    assert pairs.expected == pytest.approx(50 * 2 * 50 * 50 / (100 * 99))


# --- exactness ------------------------------------------------------------------------------------

STRATA = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
MEMBERS = (2, 1)


def memberships() -> Iterator[NDArray[np.bool_]]:
    """Yield every choice of two of the first five records and one of the last four."""
    rows = [np.flatnonzero(stratum == STRATA) for stratum in range(2)]
    choices = [combinations(inside, n) for inside, n in zip(rows, MEMBERS, strict=True)]
    for one, other in product(*choices):
        member = np.zeros(STRATA.size, dtype=bool)
        member[[*one, *other]] = True
        yield member


@pytest.mark.parametrize("view", ["ends", "pairs"])
def test_counts_are_drawn_by_their_law(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frequencies of drawn counts agree with those of all memberships (chi-squared, p > 0.001)."""
    monkeypatch.setattr(split_views, "_SMALLEST_PREFIX", 1)
    caught: dict[str, Any] = {}

    def catch(
        observed_counts: NDArray[np.int64], *, statistics: Any, drawn_counts: Any
    ) -> tuple[float, int]:
        assert statistics
        caught.update(found=tuple(observed_counts), drawn=drawn_counts)
        return 1.0, 0

    monkeypatch.setattr(split_views, "_resampled_p_value", catch)
    order = np.array([3, 8, 0, 6, 2, 1, 5, 7, 4])
    pairs = np.array([[0, 4], [5, 8], [1, 2]])
    law = Counter[tuple[int, ...]]()
    for member in memberships():
        rng = rng_of(2)
        split = split_views.Split.of(member, STRATA, rng)
        if view == "ends":
            split_views.at_ends(order, split, rng)
        else:
            split_views.across(pairs, split, rng)
        law[caught["found"]] += 1
    draws = caught["drawn"](40_000)
    seen = Counter(map(tuple, draws.tolist()))
    assert seen.keys() == law.keys()
    expected = np.array([law[one] for one in law]) / law.total() * len(draws)
    assert stats.chisquare([seen[one] for one in law], expected).pvalue > 1e-3


def test_p_values_of_random_memberships_are_rarely_small() -> None:
    """Counts of 250 p-values at most 1, 5 and 20 % are exceeded with probability 1e-4 each.

    Of one table with many equal rows, in strata and in parts of unlike sizes.
    """
    rng = rng_of(3)
    features = np.column_stack([rng.integers(0, 6, 60), rng.normal(size=60)])
    strata = rng.integers(0, 3, 60)
    usual, points = likeness.usual(features), likeness.ranked(features)
    found: dict[str, list[float]] = {"usual": [], "pairs": []}
    for _ in range(250):
        member = rng.permutation(60) < 20
        split = split_views.Split.of(member, strata, rng)
        found["usual"].append(
            split_views.at_ends(likeness.in_order(usual, rng), split, rng).p_value
        )
        pairs = likeness.closest(points, split, rng)
        found["pairs"].append(split_views.across(pairs, split, rng).p_value)
    for p_values in found.values():
        for level in (0.01, 0.05, 0.2):
            most = stats.binom.isf(1e-4, 250, level)
            assert np.count_nonzero(np.array(p_values) <= level) <= most


def test_draws_end_when_enough_have_reached_the_statistic() -> None:
    member = np.arange(40) % 2 == 0
    rng = rng_of(4)
    found = split_views.at_ends(np.arange(40), split_views.Split.of(member, None, rng), rng)
    assert found.p_value > 0.1
    assert round(20 / found.p_value) == pytest.approx(20 / found.p_value)


# --- orders and pairs say nothing of where rows are stored ----------------------------------------


def test_storage_has_no_part_in_how_usual_or_close_rows_are() -> None:
    rng = rng_of(5)
    features = np.column_stack([rng.normal(size=300), rng.integers(0, 4, 300), np.ones(300)])
    other = rng.permutation(300)
    assert np.array_equal(likeness.usual(features)[other], likeness.usual(features[other]))
    assert np.array_equal(likeness.ranked(features)[other], likeness.ranked(features[other]))


def test_pairs_are_disjoint_of_one_stratum_and_the_closest_first() -> None:
    rng = rng_of(6)
    points = np.concatenate([rng.normal(size=(200, 3)), np.repeat(rng.normal(size=(5, 3)), 5, 0)])
    strata = np.arange(225) % 3
    split = split_views.Split.of(np.arange(225) % 2 == 0, strata, rng)
    pairs = likeness.closest(points, split, rng)
    assert np.unique(pairs).size == pairs.size
    assert np.array_equal(strata[pairs[:, 0]], strata[pairs[:, 1]])
    apart = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    assert (np.diff(apart) >= 0).all()
    assert len(pairs) > 90


def test_pairs_are_those_taken_one_by_one() -> None:
    rng = rng_of(7)
    for _ in range(20):
        pairs = rng.integers(0, 12, (40, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        distances = rng.permutation(len(pairs)).astype(float)
        used, expected = set[int](), []
        for one, other in pairs[np.argsort(distances)].tolist():
            if not used & {one, other}:
                used |= {one, other}
                expected.append({one, other})
        taken = likeness._greedy_disjoint_pairs(pairs, distances, rng)
        assert [set(pair) for pair in taken.tolist()] == expected


def test_words_in_several_columns_are_one_column() -> None:
    """A word's share is that of the word, not a product of shares of its coordinates."""
    word = np.repeat([0, 1, 2, 3], [40, 30, 20, 10])
    coded = np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1], [-1, -1, -1]], dtype=float)[word]
    expected = np.log(np.bincount(word)[word] / 100)
    assert likeness.usual(coded, ["town"] * 3) == pytest.approx(expected)


# --- unusual input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "features",
    [np.ones((120, 3)), np.zeros((120, 1)), np.arange(120.0)[:, None] * 1e300, np.eye(120, 150)],
    ids=["all equal", "one constant column", "very large numbers", "more columns than rows"],
)
def test_strange_features_contradict_nothing(features: NDArray[np.float64]) -> None:
    member = np.random.default_rng(3).permutation(120) < 60
    labels = np.random.default_rng(4).integers(0, 2, 120)
    parts = Parts(features, member, labels)
    assert min(p_value(view, parts, 0) for view in ("pairs", "usual", "label")) > 1e-3


@pytest.mark.parametrize(
    "labels",
    [
        np.ones(120, dtype=int),
        np.array([f"name {k}" for k in range(120)]),
        np.arange(99) % 2,
    ],
    ids=["one class", "all different", "too few rows"],
)
def test_labels_that_cannot_be_learnt_are_no_view(labels: NDArray[Any]) -> None:
    assert likeness.surprising(np.ones((labels.size, 1)), labels, rng_of(8)) is None


def test_numbers_are_learnt_as_numbers() -> None:
    rng = rng_of(9)
    x = rng.normal(size=400)
    y = x + 0.1 * rng.normal(size=400)
    y[:5] = -3 * np.sign(x[:5])
    surprises = likeness.surprising(x[:, None], y, rng)
    assert surprises is not None
    assert surprises[:5].min() > np.quantile(surprises, 0.9)


def test_strata_of_two_and_of_one_part() -> None:
    """Within strata of two there is one pair at most, and it is always across."""
    rng = rng_of(10)
    strata = np.repeat(np.arange(3000), 2)
    first = rng.random(3000) < 0.5
    member = np.column_stack([first, ~first]).ravel()
    split = split_views.Split.of(member, strata, rng)
    assert 500 < split.sizes.size < 3000  # some are left out: not more counts than can be drawn
    pairs = likeness.closest(rng.normal(size=(6000, 2)), split, rng)
    assert split_views.across(pairs, split, rng).p_value == 1.0
    assert split_views.at_ends(rng.permutation(6000), split, rng).p_value > 1e-3
    assert split_views.at_ends(np.argsort(member), split, rng).p_value < 1e-3
    alone = split_views.Split.of(member, member.astype(int), rng)
    assert alone.sizes.size == 0
    assert split_views.at_ends(np.arange(6000), alone, rng).p_value == 1.0
    assert (
        split_views.across(likeness.closest(np.ones((6000, 1)), alone, rng), alone, rng).p_value
        == 1.0
    )
