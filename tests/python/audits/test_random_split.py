"""Audits of random splits: what is paired, what is guessed, and what the bound is made of."""

from typing import Any

import numpy as np
import pytest
from sklearn import datasets

import leakbound as lb
from flat import split as audit
from leakbound import errors
from leakbound.audits.pairs import Pairs, Units, stretched
from leakbound.audits.split_challenge import challenge
from leakbound.cuts.games import PairGame
from one_part import MISTAKES
from scans import kl_scan

pytestmark = pytest.mark.usefixtures("few_trees")

CLAIMS = [lb.PureDP(), lb.ApproxDP(delta=1e-6), lb.GaussianDP(), lb.LaplaceDP()]


def split(examples: int, members: int, seed: int, mu: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores N(μ, 1) of a random subset, N(0, 1) of the others."""
    rng = np.random.default_rng(seed)
    member = rng.permutation(examples) < members
    return rng.normal(size=examples) + mu * member, member


def units(member: np.ndarray, strata: np.ndarray | None = None) -> Units:
    return Units.of(member, strata, None, "mean")


@pytest.mark.parametrize(
    ("examples", "members", "parts"),
    [(100, 50, 1), (100, 80, 1), (99, 7, 1), (2, 1, 1), (300, 220, 4)],
)
def test_as_many_as_can_be_are_paired_within_strata_and_each_once(
    examples: int, members: int, parts: int
) -> None:
    member, strata = split(examples, members, 1)[1], np.arange(examples) % parts
    pairs = Pairs.drawn(units(member, strata), seed=3)
    sizes = [min((strata[member] == s).sum(), (strata[~member] == s).sum()) for s in range(parts)]
    assert pairs.count == sum(sizes)
    assert (strata[pairs.members] == strata[pairs.others]).all()
    assert member[pairs.members].all()
    assert not member[pairs.others].any()
    both = np.concatenate([pairs.members, pairs.others])
    assert np.unique(both).size == both.size


def test_every_matching_is_as_likely_in_any_order_of_storage() -> None:
    """3 of 5 are members: 6 ways to match the others, and 4 of the coins."""
    for member in ([True, True, True, False, False], [False, True, False, True, True]):
        seen: dict[Any, int] = {}
        for seed in range(2400):
            pairs = Pairs.drawn(units(np.array(member)), seed)
            matched = frozenset(zip(pairs.members.tolist(), pairs.others.tolist(), strict=True))
            coins = tuple(pairs.first[np.argsort(pairs.others)].tolist())
            seen[matched, coins] = seen.get((matched, coins), 0) + 1
        # 24 equally likely outcomes, 100 each: 5 standard deviations
        assert len(seen) == 24
        assert all(abs(count - 100) < 5 * 10 for count in seen.values())


def test_the_guess_is_the_sign_and_zero_is_none() -> None:
    game = PairGame(
        scores=np.array([3.0, -2.0, 0.0, 1.0, -2.0]),
        member=np.array([True, True, True, False, False]),
        given=np.zeros(10),
        members=np.arange(5),
        others=np.arange(5, 10),
        seed=0,
    )
    path = game.ranked().path("member")
    assert (path.guesses, path.correct) == (4, 2)
    assert [path.count(r) for r in (1, 2, 4)] == [(1, 1), (3, 2), (4, 2)]  # two are tied
    path = game.ranked("broken").path("member")
    assert (path.guesses, path.correct) == (5, 3)  # the coin guesses last
    ranking = game.untied()
    assert (ranking.tied, ranking.blocks) == (0, 5)
    path = ranking.path("member")
    assert [path.count(r)[1] for r in (1, 3, 4, 5)] == [1, 2, 2, 3]


def test_one_path_has_the_whole_level() -> None:
    """The bound is that of the one sequence of guesses, at the full probability of error."""
    scores, member = split(1000, 700, 2, 1.0)
    result = audit(scores, member, seed=5, cuts=lb.KLScan(kappa=np.log(20)))
    pairs = Pairs.drawn(units(member), 5)
    z = scores - np.median(scores)
    z /= 1.4826 * np.median(np.abs(z))
    apart = z + z * np.abs(z) / 4
    apart = apart[pairs.members] - apart[pairs.others]
    right = (apart > 0)[np.argsort(-np.abs(apart))]
    assert result.bound == pytest.approx(
        kl_scan(right, beta=0.05, kappa=np.log(20)).logit, rel=1e-12
    )
    assert result.options["paths"] == ["pairs"]
    assert result.options["level"] == pytest.approx(0.05)
    assert (result.m, result.members, result.path) == (600, 300, "pairs")
    assert (result.options["pairs"], result.options["left_over"]) == (300, 400)
    shown = np.concatenate([scores[pairs.members], scores[pairs.others]])
    assert result.auc == pytest.approx(np.mean(shown[:300, None] > shown[None, 300:]), abs=1e-12)


def test_units_of_the_scores_do_not_matter() -> None:
    scores, member = split(600, 400, 6, 1.0)
    for scale in (1024.0, 2.0**-1000, 2.0**1020):
        assert audit(scores * scale, member).bound == audit(scores, member).bound


def test_one_scale_for_all_scores() -> None:
    values = np.array([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, 50.0, np.inf])
    scaled = stretched(values)
    assert (np.diff(scaled) > 0).all()
    z = (np.array([-1.0, 0.0, 1.0]) - 0.5) / (1.4826 * 1.5)
    assert scaled[2:5] == pytest.approx(z * (1 + np.abs(z) / 4))
    assert np.isfinite(scaled).all()
    assert stretched(np.array([np.inf, -np.inf, np.inf])).tolist() == [1, -1, 1]
    assert np.unique(stretched(np.array([0.0] * 9 + [1.0]))).size == 2  # most are equal
    assert np.isfinite(stretched(np.array([1e308, -1e308, 5e-324, 0.0, 0.0]))).all()
    assert stretched(np.full(3, 7.0)).tolist() == [0, 0, 0]


def test_groups_are_units_with_one_score() -> None:
    rng = np.random.default_rng(7)
    user = rng.integers(200, size=1000)
    inside = rng.permutation(200) < 100
    member, scores = inside[user], rng.normal(size=1000) + 3.0 * inside[user]
    result = audit(scores, member, groups=user)
    seen = np.unique(user)
    assert result.options["unit"] == "user"
    assert result.options["groups"] == seen.size
    means = np.array([scores[user == one].mean() for one in seen])
    alone = audit(means, inside[seen])
    assert result.bound == alone.bound > 0.5
    for how, function in (("max", np.max), ("log_mean_exp", lambda x: np.log(np.mean(np.exp(x))))):
        values = np.array([function(scores[user == one]) for one in seen])
        assert audit(scores, member, groups=user, aggregate=how).bound == pytest.approx(
            audit(values, inside[seen]).bound
        )
    named = audit(scores, member, groups=np.array([f"user {one}" for one in user]))
    assert named.options["groups"] == seen.size


@pytest.mark.parametrize("how", ["mean", "max", "log_mean_exp"])
def test_the_order_of_rows_in_a_group_says_nothing(how: Any) -> None:
    """Equal scores in another order: sums would round to what tells the order, and so the side."""
    rng = np.random.default_rng(15)
    inside = rng.permutation(400) < 200
    values = np.sort(rng.choice([0.1, 0.2, 0.3], size=(400, 3)), axis=1)
    member, user = np.repeat(inside, 3), np.repeat(np.arange(400), 3)
    turned = np.where(inside[:, None], values, values[:, ::-1])
    made = [Units.of(member, None, user, how).scores(one.ravel()) for one in (values, turned)]
    assert (made[0] == made[1]).all()
    claims = [
        audit(one.ravel(), member, groups=user, aggregate=how).bound for one in (values, turned)
    ]
    assert claims[0] == claims[1]
    tables = [np.column_stack([one.ravel(), one.ravel() ** 2]) for one in (values, turned)]
    first, second = (Units.of(member, None, user, how).features(table) for table in tables)
    assert (first == second).all()


def test_infinite_scores_of_a_group() -> None:
    values = np.array([np.inf, 1.0, -np.inf, np.inf, 2.0, 4.0, -np.inf, -np.inf])
    member = np.ones(8, bool)
    for how, expected in (
        ("mean", [np.inf, 0.0, 3.0, -np.inf]),
        ("max", [np.inf, np.inf, 4.0, -np.inf]),
    ):
        made = Units.of(member, None, np.array([0, 0, 1, 1, 2, 2, 3, 3]), how)  # type: ignore[arg-type]
        assert made.scores(values).tolist() == expected


SCORES = np.arange(8.0)
HALF = np.arange(8) % 2 == 0
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"member": np.ones(8, bool)}, errors.DesignError, "all 8 units of the split are members"),
    ({"member": np.zeros(8, bool)}, errors.DesignError, "are non-members"),
    ({"strata": HALF}, errors.DesignError, "no stratum has both"),
    ({"strata": [1.0, np.nan] * 4}, errors.InputTypeError, "strata is missing at row 1"),
    ({"strata": ["a", None] * 4}, errors.InputTypeError, "strata is missing at row 1"),
    ({"strata": [1, 2, 3]}, errors.InputError, "strata has 3 values"),
    ({"groups": [0, 0, 1, 1, 2, 2, 3, 3]}, errors.InputError, "4 of 4 groups are not whole"),
    (
        {"groups": [0, 1] * 4, "strata": [0, 0, 1, 1] * 2},
        errors.InputError,
        "is in more than one stratum",
    ),
    ({"sides": "member"}, errors.OptionError, "does not apply to RandomSplit"),
    ({"aggregate": "median"}, errors.OptionError, "aggregate must be one of"),
    ({"cuts": lb.Weighted()}, errors.OptionError, "which of a pair"),
    ({"cuts": lb.Fixed(5)}, errors.OptionError, r"more guesses than there are pairs \(4\)"),
    (
        {"cuts": lb.OutsideIn([2, 5]), "claim": lb.GaussianDP()},
        errors.OptionError,
        r"more guesses, 5, than there are pairs \(4\)",
    ),
    ({"scores": np.ones(8)}, errors.AbstentionError, "all 8 scores are equal"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED, ids=lambda x: str(x)[:40])
def test_what_is_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        audit(**{"scores": SCORES, "member": HALF, **options})


def test_storage_order_has_no_part_in_ties() -> None:
    """Scores of two values, members stored first: the differences of 0 are no guesses."""
    rng = np.random.default_rng(8)
    scores = rng.integers(2, size=4000).astype(float)
    member = np.arange(4000) < 2000
    bounds = [audit(scores, member, seed=seed) for seed in range(3)]
    assert all(result.bound == 0 and result.guesses < 1200 for result in bounds)
    fixed = audit(scores, member, cuts=lb.Fixed(2000))
    assert fixed.guesses < 1200


def test_pairs_of_equal_scores_are_no_error() -> None:
    """Whether all are depends on who is a member, so it must not decide what is raised."""
    scores, member = np.arange(8) % 4 // 2 * 1.0, np.arange(8) % 2 == 0
    strata = np.arange(8) // 2
    for claim in CLAIMS:
        cuts = lb.KLScan() if claim == lb.PureDP() else lb.Fixed(2)
        result = audit(scores, member, strata=strata, claim=claim, cuts=cuts)
        assert (result.bound, bool(result.reason)) == (0, True)


def test_features_contradict_a_split_that_was_not_random() -> None:
    rng = np.random.default_rng(11)
    features = rng.normal(size=(1200, 3))
    by_feature = np.abs(features[:, 1]) > 0.6
    scores = rng.normal(size=1200) + 2 * by_feature
    result = audit(scores, by_feature, features=features)
    assert result.bound == 0
    assert result.summary().contradicted[0].name == "random split"
    (said,) = result.warnings  # none about the size of a bound that there is not
    assert "column is number 1 of the features, counted from 0 (advantage 0.5" in said
    assert "drop it and audit again" in said
    assert "use ZeroRun" in said
    assert not np.nanmax(result.curve.bound)
    assert result.verdict == "withheld"
    assert result.is_withheld
    assert result.ceiling > 1
    for relation in ("replace", "add_remove"):
        assert result.check(epsilon=0.1, relation=relation) == "inconclusive"
    family = audit(scores, by_feature, features=features, claim=lb.GaussianDP())
    assert (family.bound, family.rejected) == (0, None)
    for claimed in ({"epsilon": 0.1, "delta": 1e-5}, {"parameter": 0.1}):
        assert family.check(**claimed, relation="replace") == "inconclusive"
    member = rng.permutation(1200) < 900
    scores = rng.normal(size=1200) + 2 * member
    honest = audit(scores, member, features=features)
    assert honest.bound == audit(scores, member).bound > 0
    assert not honest.is_withheld
    assert honest.options["challenge"]["p_value"] > 1e-3


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("a class oversampled in training", "rows that resemble each other lie in one part"),
        ("outliers dropped in training", "the least usual rows are in the training set less often"),
        ("border of classes cleaned in training", "rows whose label is most surprising are in the"),
    ],
)
def test_what_was_done_to_one_part_withholds_the_bound(mistake: str, words: str) -> None:
    play, _ = MISTAKES[mistake]
    parts = play(np.random.default_rng(1))
    scores = np.random.default_rng(2).normal(size=parts.member.size)
    result = audit(scores, parts.member, features=parts.rows, labels=parts.labels, seed=0)
    assert result.is_withheld
    (said,) = result.warnings
    assert words in said
    assert "was something removed, added or made in one part after the split?" in said
    assert "clean first, then split" in said
    numbers: Any = result.options["challenge"]
    assert numbers["p_value"] == min(numbers["p_values"].values()) < 1e-3
    assert 0 <= numbers["seen"] <= numbers["of"]


def test_strata_are_labels_where_there_are_no_others() -> None:
    play, _ = MISTAKES["border of classes cleaned in training"]
    parts = play(np.random.default_rng(1))
    scores = np.random.default_rng(2).normal(size=parts.member.size)
    result = audit(scores, parts.member, features=parts.rows, strata=parts.labels, seed=0)
    assert result.is_withheld
    assert "surprising labels" in result.options["challenge"]["p_values"]


def test_labels_need_features() -> None:
    with pytest.raises(errors.OptionError, match=r"labels are compared .* pass features too"):
        lb.RandomSplit([0, 1], labels=[0, 1])


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "wine", "diabetes"])
def test_right_splits_of_standard_data_are_not_withheld(name: str) -> None:
    rows, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    member = np.random.default_rng(5).permutation(len(rows)) < len(rows) // 2
    result = audit(np.sin(rows.sum(axis=1)), member, features=rows, labels=target, seed=0)
    assert not result.is_withheld
    assert len(result.options["challenge"]["p_values"]) == 4


def test_features_of_groups_are_means() -> None:
    rng = np.random.default_rng(12)
    user = np.repeat(np.arange(300), 3)
    inside = np.arange(300) < 150  # sorted: users in the order in which they came
    features = np.column_stack([user / 100 + rng.normal(size=900), rng.normal(size=900)])
    result = audit(rng.normal(size=900), inside[user], groups=user, features=features)
    assert result.summary().contradicted


def test_p_values_of_random_splits_are_rarely_small() -> None:
    """P(p ≤ 0.2) ≤ 0.2: 20 games exceed 10 with probability 6e-4 (binomial)."""
    rng = np.random.default_rng(13)
    features = rng.normal(size=(120, 2))
    small = 0
    for seed in range(20):
        member = rng.permutation(120) < 70
        drawn = units(member)
        small += challenge(Pairs.drawn(drawn, seed), drawn, features, seed).p_value <= 0.2
    assert small <= 10


def test_dp_sgd_has_its_own_curve() -> None:
    claim = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=10)
    expected = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=10, relation="replace")
    member = np.arange(40) % 2 == 0
    design = lb.RandomSplit(member)
    audited = lb.audit(np.sin(np.arange(40.0)), design, claim=claim, cuts=lb.Fixed(4))
    assert audited.claim == expected


def test_a_withheld_bound_says_what_the_view_saw_and_what_to_do() -> None:
    """Unusual rows were dropped from one part: no column was written after the split."""
    rng = np.random.default_rng(0)
    table = rng.standard_t(4, size=(1600, 5))
    member = rng.permutation(1600) < 800
    keep = ~member | (np.abs(table) < 3).all(axis=1)
    units = np.arange(int(keep.sum()))
    for groups in (None, units):
        split = lb.RandomSplit(member[keep], features=table[keep], groups=groups)
        result = lb.audit(rng.normal(size=units.size), split, seed=0)
        said = result.summary()
        (warning,) = result.warnings
        assert result.is_withheld
        assert "contradict a random split" in said.headline
        assert said.next_steps[0].startswith("Find out what was removed, added or changed")
        assert ("pass their groups" in warning) == (groups is None)
        assert ("groups of rows" in warning) == (groups is not None)
