"""Coins and splits of users, hospitals, documents: what is audited, and in which words."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import report
from leakbound.errors import DesignError, InputError, InputTypeError, OptionError
from pages import undrawn, words_of

pytestmark = pytest.mark.usefixtures("few_trees")

__all__ = ["undrawn"]

RNG = np.random.default_rng(0)
USER = np.repeat(np.arange(200), RNG.integers(1, 7, 200))
COIN = RNG.random(200) < 0.5
MEMBER = COIN[USER]
SCORE = RNG.normal(size=USER.size) + 1.5 * MEMBER
BY_HAND: dict[str, Callable[[Any], Any]] = {
    "mean": lambda values: values.mean(),
    "max": lambda values: values.max(),
    "sum": lambda values: values.sum(),
    "log_mean_exp": lambda values: np.log(np.mean(np.exp(values))),
}


@pytest.mark.parametrize("aggregate", BY_HAND)
def test_an_audit_of_users_is_one_of_their_scores(aggregate: Any) -> None:
    found = lb.audit(SCORE, lb.Coins(MEMBER, groups=USER, aggregate=aggregate), seed=0)
    own = [BY_HAND[aggregate](SCORE[one == USER]) for one in range(200)]
    expected = lb.audit(own, lb.Coins(COIN, unit="user"), seed=0)
    assert found.bound == expected.bound > 1
    assert (found.m, found.members) == (200, COIN.sum())
    assert (found.options["groups"], found.options["unit"]) == (200, "user")


def test_the_order_of_rows_says_nothing() -> None:
    order = RNG.permutation(USER.size)
    found = lb.audit(SCORE[order], lb.Coins(MEMBER[order], groups=USER[order]), seed=0)
    assert found.bound == lb.audit(SCORE, lb.Coins(MEMBER, groups=USER), seed=0).bound


def test_a_plan_has_the_coins_of_users_by_their_names() -> None:
    names = np.array([f"user {one}" for one in range(200)])
    order = RNG.permutation(200)
    plan = lb.InclusionPlan(COIN[order], ids=names[order], unit="reader")
    assert np.isin(names[USER], plan.included(names[order])).tolist() == MEMBER.tolist()
    found = lb.audit(SCORE, lb.Coins(plan, groups=names[USER]), seed=0)
    assert found.bound == lb.audit(SCORE, lb.Coins(MEMBER, groups=USER), seed=0).bound
    assert found.wording.units == "readers"
    with pytest.raises(InputError, match=r"1 of member are not in groups \(user 199\)"):
        lb.audit(SCORE[:-1], lb.Coins(plan, groups=names[np.minimum(USER, 198)][:-1]))
    with pytest.raises(OptionError, match="the plan was drawn for each reader: leave unit out"):
        lb.Coins(plan, groups=USER, unit="user")


def test_a_plan_keeps_its_unit(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(20, seed=1, unit="hospital")
    plan.save(tmp_path / "plan.npz")
    read = lb.InclusionPlan.load(tmp_path / "plan.npz")
    assert read == plan != lb.InclusionPlan.create(20, seed=1)
    assert (read.unit, plan.subset([1, 2]).unit) == ("hospital", "hospital")
    assert lb.audit(np.arange(20), lb.Coins(read)).wording.unit == "hospital"


def test_the_most_exposed_are_users() -> None:
    names = np.array([f"user {one}" for one in range(200)])[USER]
    listed = lb.audit(SCORE, lb.Coins(MEMBER, groups=names), seed=0).exposed
    assert listed is not None
    assert len(listed.ids) > 10
    for row, name in zip(listed.rows.tolist(), listed.ids, strict=True):
        assert names[row] == name
        assert MEMBER[row]


def test_rows_of_users_without_groups_are_sent_to_groups() -> None:
    user = np.arange(600) // 3
    member = COIN[user]
    scores = RNG.normal(size=600) + member
    with pytest.raises(DesignError, match="pass groups=, the unit of each row"):
        lb.audit(scores, lb.Coins(member))
    assert lb.audit(scores, lb.Coins(member, groups=user)).m == 200
    with pytest.raises(DesignError, match="that of 100, repeated 2 times"):
        lb.audit(scores, lb.Coins(COIN[:100][user // 2], groups=user))


OWN = RNG.random(USER.size) < 0.5
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "both coins": (
        lambda: lb.Coins(OWN, groups=USER, unit="hospital"),
        DesignError,
        r"of 200 hospitals are members in some rows and not in others, the first being \d+ \(rows",
    ),
    "another length": (
        lambda: lb.Coins(MEMBER, groups=USER[1:]),
        InputError,
        f"groups has {USER.size - 1} values and there are {USER.size} scores",
    ),
    "one group": (
        lambda: lb.Coins(MEMBER, groups=np.full(USER.size, "all")),
        DesignError,
        "rows are of one user, all: an audit needs the coins of many users",
    ),
    "a group is missing": (
        lambda: lb.Coins(MEMBER, groups=[None, *USER[1:]]),
        InputTypeError,
        "groups is missing at row 0",
    ),
    "two priors": (
        lambda: lb.Coins(MEMBER, groups=USER, prior=np.linspace(0.4, 0.6, USER.size)),
        DesignError,
        "prior has several values for user 0",
    ),
    "an aggregate": (lambda: lb.Coins(MEMBER, aggregate="median"), OptionError, "aggregate"),  # type: ignore[arg-type]
    "a unit": (lambda: lb.Coins(MEMBER, unit="<b>"), OptionError, "unit must be a singular noun"),
    "a unit of a split": (lambda: lb.RandomSplit(MEMBER, unit=""), OptionError, "singular noun"),
    "two words": (lambda: lb.Coins(MEMBER, unit="big user"), OptionError, "noun of one word"),
    "no unit": (lambda: lb.Coins(MEMBER, unit=3), InputTypeError, "unit must be a word"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_groups_that_make_no_sense_are_refused(name: str) -> None:
    make, kind, match = REFUSED[name]
    with pytest.raises(kind, match=match):
        lb.audit(SCORE, make())


def test_a_tally_has_no_groups() -> None:
    tally = lb.Tally.of(SCORE, MEMBER)
    with pytest.raises(OptionError, match="put together the scores of each group before"):
        lb.audit(tally, lb.Coins(groups=USER))
    said = str(lb.audit(tally, lb.Coins(unit="company")))
    assert "for adding or removing one company" in said


def sentences(found: lb.AuditResult) -> list[str]:
    """Return whatever a reader gets to see of a result."""
    texts = [
        words_of(report.render(found)),
        str(found),
        repr(found),
        *found.warnings,
        *(f"{one.name}. {one.statement}" for one in found.assumptions),
        found.with_check(epsilon=1.0, relation=found.relation, delta=found.claim.delta)
        .summary()
        .answer,
    ]
    return [one for text in texts for one in re.split(r"(?<=\.)\s", text)]


SOURCE = ", with pairs in place of examples"
"""How the theorem of a paper differs."""


@pytest.mark.parametrize("strength", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("cuts", [None, lb.KLScan(), lb.Fixed(40), lb.OutsideIn()])
@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=0.02)])
def test_every_sentence_says_what_is_audited(strength: float, cuts: Any, claim: Any) -> None:
    rough = np.round(RNG.normal(size=USER.size) + strength * MEMBER, 1)
    for design in (
        lb.Coins(MEMBER, groups=USER, unit="hospital"),
        lb.RandomSplit(MEMBER, groups=USER, unit="hospital"),
    ):
        if isinstance(claim, lb.ApproxDP) and isinstance(cuts, lb.KLScan):
            continue
        found: lb.AuditResult = lb.audit(rough, design, claim=claim, cuts=cuts, seed=0)
        said = sentences(found)
        assert [one for one in said if "example" in one.replace(SOURCE, "")] == []
        assert any("one hospital" in one for one in said)
        read = lb.AuditResult.from_json(found.to_json())
        assert str(read) == str(found)


def test_an_accountant_s_unit_is_that_of_the_audit() -> None:
    found = lb.audit(SCORE, lb.Coins(MEMBER, groups=USER, unit="hospital"))
    found.against(epsilon=8, delta=0, relation="add_remove", unit="hospital")
    for other in ("example", "user"):
        with pytest.raises(OptionError, match="k examples of a"):
            found.against(epsilon=8, delta=0, relation="add_remove", unit=other)


@pytest.mark.parametrize("planned", [False, True])
def test_a_bundle_of_users_verifies(tmp_path: Path, planned: bool) -> None:  # noqa: FBT001
    drawn: Any = MEMBER
    if planned:
        drawn = lb.InclusionPlan(COIN, unit="user")
    found = lb.audit(SCORE, lb.Coins(drawn, groups=USER, aggregate="sum"), seed=0)
    found.bundle(tmp_path / "bundle", scores=SCORE, plan=drawn, groups=USER)
    assert lb.evidence.verify_bundle(tmp_path / "bundle").valid


def test_does_it_leak_about_a_user() -> None:
    """The question of a newcomer, in a few lines: a coin for each user, and one audit."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_digits(return_X_y=True)
    user = np.arange(len(y)) // 6
    plan = lb.InclusionPlan.create(300, unit="user", seed=0)
    member = np.isin(user, plan.included(plan.ids))
    model = RandomForestClassifier(max_depth=7, random_state=0).fit(x[member], y[member])
    scores = lb.attacks.score(model, x, y).values
    result = lb.audit(scores, lb.Coins(plan, groups=user), seed=0)
    assert "for adding or removing one user with ε < 2." in result.summary().headline


def test_why_is_my_bound_0_for_few_users_and_small_subgroups() -> None:
    """Many rows of few users prove nothing, and the result says so; so does a plan before."""
    user = np.arange(400) // 100
    member = np.array([True, False, True, False])[user]
    few = lb.audit(member + RNG.random(400), lb.Coins(member, groups=user), seed=0)
    assert (few.bound, few.ceiling) == (0, 0)
    assert "No attack could show anything with these 4 users" in str(few)
    assert any("more users" in one for one in few.warnings)
    by = np.repeat(["many", "few"], [USER.size - 6, 6])
    member, scores = RNG.random(by.size) < 0.5, RNG.normal(size=by.size)
    member[-6:] = [True, False] * 3
    small = lb.audit(scores, lb.Coins(member), by=by, seed=0)["few"]
    assert "No attack could show anything with these 6 examples" in str(small)
    assert lb.planning.ceilings(by)["few"] == 0
    split = lb.audit(scores, lb.RandomSplit(member), by=by, seed=0)["few"]
    assert (split.bound, split.ceiling) == (0, 0)
