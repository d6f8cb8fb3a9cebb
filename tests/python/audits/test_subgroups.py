"""An audit of each subgroup: what it proves, says, stores and refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as lb
from leakbound.audits.subgroups import confidence_at, one_of
from leakbound.errors import (
    AbstentionError,
    DesignError,
    InputError,
    InputTypeError,
    LeakboundError,
    OptionError,
)
from leakbound.stats import binomial_tail

pytestmark = pytest.mark.usefixtures("few_trees")

RNG = np.random.default_rng(0)
SIZE = 600
MEMBER = RNG.random(SIZE) < 0.5
REGION = np.array(["north", "south", "west"])[RNG.integers(3, size=SIZE)]
SCORE = RNG.normal(size=SIZE) + 2.0 * MEMBER
THIRD = confidence_at(0.05 / 3)


def test_a_part_of_the_error_is_never_more() -> None:
    for parts in range(1, 400):
        level = 0.05 / parts
        assert 1 - confidence_at(level) == pytest.approx(level, rel=1e-9)
        assert lb.audit(SCORE, lb.Coins(MEMBER), confidence=confidence_at(level), seed=0).bound > 0
        if parts > 5:
            break


@pytest.mark.parametrize("name", ["coins", "split"])
def test_each_subgroup_is_an_audit_of_its_own(name: str) -> None:
    """Of several attacks, and of whatever else a design has for each row."""
    prior = np.where(MEMBER, 0.5, 0.51)
    strata = RNG.integers(2, size=SIZE)
    scores = {"one": SCORE, "other": -SCORE}

    def design(rows: Any) -> Any:
        if name == "coins":
            return lb.Coins(MEMBER[rows], prior=prior[rows])
        return lb.RandomSplit(MEMBER[rows], strata=strata[rows])

    found = lb.audit(scores, design(slice(None)), by=REGION, seed=0)
    assert [*found] == ["north", "south", "west"]
    for region, one in found.items():
        rows = region == REGION
        own = {attack: values[rows] for attack, values in scores.items()}
        alone = lb.audit(own, design(rows), confidence=THIRD, seed=0)
        assert one.bound == alone.bound > 0.5
        assert one.ceiling == alone.ceiling
        assert one == one_of(alone, region, 3)


def test_a_subgroup_says_what_it_is_one_of() -> None:
    found = lb.audit(SCORE, lb.Coins(MEMBER), by=REGION, seed=0)["south"]
    said = found.summary()
    assert "subgroup south of 3" in said.design
    assert any("95 % for all 3 subgroups together" in one.note for one in said.metrics)
    assert found.assumptions[-1].name == "labels without membership"
    assert "(98.333 % confidence)" in said.headline
    assert lb.AuditResult.from_json(found.to_json()) == found


def test_a_plan_and_ids_are_joined_before_labels_part_them() -> None:
    names = np.array([f"id {row}" for row in range(SIZE)])
    order = RNG.permutation(SIZE)
    plan = lb.InclusionPlan(MEMBER[order], ids=names[order])
    pd = pytest.importorskip("pandas")
    by = pd.Series(REGION[order][::-1], index=names[order][::-1])
    found = lb.audit(SCORE, lb.Coins(plan), by=by, ids=names, seed=0)
    expected = lb.audit(SCORE, lb.Coins(MEMBER), by=REGION, seed=0)
    for region, one in found.items():
        assert one.bound == expected[region].bound
        listed = one.exposed
        assert listed is not None
        assert {REGION[names == name].item() for name in listed.ids} == {region}


def test_users_have_one_label() -> None:
    user = np.arange(SIZE) // 2
    coin = MEMBER[user]
    design = lb.Coins(coin, groups=user)
    found = lb.audit(SCORE + coin, design, by=REGION[user], seed=0)
    assert sum(one.m for one in found.values()) == SIZE // 2
    with pytest.raises(DesignError, match=r"of 300 groups have several labels in by, the first"):
        lb.audit(SCORE, design, by=REGION)


def test_a_bundle_of_a_subgroup_verifies(tmp_path: Path) -> None:
    found = lb.audit(SCORE, lb.Coins(MEMBER), by=REGION, seed=0)["north"]
    rows = REGION == "north"
    found.bundle(tmp_path / "bundle", scores=SCORE[rows], plan=MEMBER[rows])
    assert lb.evidence.verify_bundle(tmp_path / "bundle").valid


SIDES = np.where((np.cumsum(~MEMBER) <= 60) & ~MEMBER, "some", REGION)
REFUSED: dict[str, tuple[Any, Any, type[LeakboundError], str]] = {
    "a label each": (
        lb.Coins(MEMBER),
        np.arange(SIZE),
        DesignError,
        "by has 600 labels .* the largest subgroup has 1: at 1/600 of the error probability",
    ),
    "none": (lb.Coins(MEMBER), [None, *REGION[1:]], InputTypeError, "by is missing at row 0"),
    "NaN": (lb.Coins(MEMBER), [*range(599), np.nan], InputTypeError, "by is missing at row 599"),
    "length": (lb.Coins(MEMBER), REGION[1:], InputError, "by has 599 values"),
    "membership": (lb.Coins(MEMBER), MEMBER, DesignError, "subgroup False of by: 0 of"),
    "one part": (
        lb.RandomSplit(MEMBER),
        SIDES,
        DesignError,
        "all 60 units of the split are non-members.* Labels must",
    ),
    "one part of coins": (lb.Coins(MEMBER), SIDES, DesignError, "subgroup some of by: 0 of 60"),
    "trials": (lb.Trials(MEMBER), REGION, OptionError, "by= is not for Trials: audit k"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_labels_that_make_no_subgroups_are_refused(name: str) -> None:
    design, by, kind, match = REFUSED[name]
    with pytest.raises(kind, match=match):
        lb.audit(SCORE, design, by=by, seed=0)


@pytest.mark.parametrize(
    ("design", "why"),
    [
        (lb.Coins(MEMBER), "all 1 scores are equal, so nothing can be guessed"),
        (lb.RandomSplit(MEMBER), "all 1 units of the split are non-members"),
    ],
)
def test_labels_that_cannot_be_audited_are_named_and_the_others_are_audited(
    design: Any, why: str, tmp_path: Path
) -> None:
    by = REGION.astype("<U9")
    by[5] = "a single"
    (members,) = np.nonzero(MEMBER & (REGION == "south"))
    by[members[-2:]] = "equal"
    score = np.where(by == "equal", 1.0, SCORE)
    found = lb.audit(score, design, by=by, seed=0)
    assert [*found] == ["north", "south", "west"]
    # Each of five labels has its share, those without a result too.
    for region, one in found.items():
        rows = by == region
        alone = lb.audit(
            score[rows],
            type(design)(MEMBER[rows]),
            confidence=confidence_at(0.05 / 5),
            seed=0,
        )
        assert one.bound == alone.bound
        assert one.options["subgroups"] == 5
        said = one.options["not_audited"]
        assert isinstance(said, str)
        assert said.startswith(f"a single ({why}")
        assert "; equal (all 2 " in said
        statement = one.assumptions[-1].statement
        assert statement.endswith(f"Not audited, each with its share: {said}.")
    # A bundle of one of them has the words of the others.
    rows = by == "north"
    found["north"].bundle(tmp_path / "bundle", scores=score[rows], plan=MEMBER[rows])
    assert lb.evidence.verify_bundle(tmp_path / "bundle").valid


def test_where_no_label_can_be_audited_all_are_named() -> None:
    by = np.where(np.arange(SIZE) < SIZE // 2, "one", "other")
    with pytest.raises(AbstentionError) as caught:
        lb.audit(np.where(by == "one", 1.0, 2.0), lb.Coins(MEMBER), by=by, seed=0)
    told = str(caught.value)
    assert "Of 2 labels, 2 cannot be audited (one, other): merge them into others or" in told


def test_one_user_alone_is_named() -> None:
    user = np.arange(SIZE) // 2
    by = np.where(user == 0, "alone", REGION[user])
    found = lb.audit(SCORE, lb.Coins(MEMBER[user], groups=user), by=by, seed=0)
    assert "alone (all 2 rows are of one user, 0)" in str(found["north"].options["not_audited"])


def test_a_part_that_few_strata_explain_is_left_out() -> None:
    """Of a stratum that is nearly all members, a label may have members alone."""
    rng = np.random.default_rng(1)
    stratum = np.repeat(["full", "half"], 300)
    member = np.concatenate([rng.permutation(300) < 297, rng.permutation(300) < 150])
    (some,) = np.nonzero(member & (stratum == "full"))
    by = np.where(np.isin(np.arange(600), some[:40]), "few", REGION)
    scores = rng.normal(size=600) + member
    found = lb.audit(scores, lb.RandomSplit(member, strata=stratum), by=by, seed=0)
    assert "few (all 40 units" in str(found["north"].options["not_audited"])
    (halves,) = np.nonzero(member & (stratum == "half"))
    by = np.where(np.isin(np.arange(600), halves[:40]), "few", REGION)
    with pytest.raises(
        DesignError, match="subgroup few of by: all 40 units of the split are members"
    ):
        lb.audit(scores, lb.RandomSplit(member, strata=stratum), by=by, seed=0)


def test_what_cannot_be_audited_costs_no_error() -> None:
    """Whatever the reason reads: of scores without leakage, some bound is above 0 in one in five.

    One of three labels has one or two examples, whose memberships decide whether it is left out.
    """
    games = 250
    level = 0.2
    false = 0
    for seed in range(games):
        rng = np.random.default_rng(seed)
        member = rng.permutation(80) < 40
        by = np.repeat(["a", "b", "tiny"], [39, 39, 2])
        design = lb.RandomSplit(member)
        found = lb.audit(rng.normal(size=80), design, by=by, confidence=1 - level, seed=seed)
        false += any(one.bound > 0 for one in found.values())
    assert false > 0
    assert binomial_tail(false, games, level) > 0.01
    assert binomial_tail(int(games * 2 * level), games, level) < 1e-6  # twice the rate is seen


def test_a_tally_has_no_labels() -> None:
    with pytest.raises(OptionError, match="a tally has counts"):
        lb.audit(lb.Tally.of(SCORE, MEMBER), lb.Coins(), by=REGION)


def test_features_of_subgroups_keep_their_names_and_notes() -> None:
    """They are read once, with those of all subgroups."""
    rng = np.random.default_rng(1)
    member = rng.permutation(np.arange(800) < 400)
    by = np.where(np.arange(800) < 400, "north", "south")
    told = np.where((by == "south") & member, "old", "new")
    frame = pd.DataFrame({"size": rng.normal(size=800), "age": told, "same": 1.0})
    split = lb.RandomSplit(member, features=frame)
    found = lb.audit(rng.normal(size=800), split, by=by, seed=0)
    assert "'age' (advantage" in found["south"].warnings[0]
    assert not found["north"].is_withheld
    assert "column 'same'" in found["north"].assumptions[0].statement
