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


TINY = np.where(np.arange(SIZE) == 5, "tiny", REGION)
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
    "one example": (lb.Coins(MEMBER), TINY, AbstentionError, "subgroup tiny of by: all 1 scores"),
    "no pair": (lb.RandomSplit(MEMBER), TINY, LeakboundError, "subgroup tiny of by"),
    "trials": (lb.Trials(MEMBER), REGION, OptionError, "by= is not for Trials: audit each of k"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_labels_that_make_no_subgroups_are_refused(name: str) -> None:
    design, by, kind, match = REFUSED[name]
    with pytest.raises(kind, match=match):
        lb.audit(SCORE, design, by=by, seed=0)


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (lb.Coins(MEMBER), "all 1 scores are equal"),
        (lb.RandomSplit(MEMBER), "of the split are non-members"),
    ],
)
def test_all_labels_that_cannot_be_audited_are_named_at_once(design: Any, said: str) -> None:
    by = REGION.astype("<U9")
    by[5] = "a single"
    (members,) = np.nonzero(MEMBER & (REGION == "south"))
    by[members[-2:]] = "equal"
    score = np.where(by == "equal", 1.0, SCORE)
    with pytest.raises((AbstentionError, DesignError)) as caught:
        lb.audit(score, design, by=by, seed=0)
    told = str(caught.value)
    assert said in told
    assert "Of 5 labels, 2 cannot be audited (a single, equal): merge them into others or" in told
    merged = np.where(np.isin(by, ["a single", "equal"]), "south", by)
    assert len(lb.audit(score, design, by=merged, seed=0)) == 3


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
