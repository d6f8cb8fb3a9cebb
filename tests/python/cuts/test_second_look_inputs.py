"""The second look where there is nothing to look at, and policies that are none."""

from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.types import CoinSides
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import SecondLook
from leakbound.errors import AbstentionError, DesignError, InputTypeError

CLAIMS = [PureDP(), ApproxDP(delta=1e-3), GaussianDP()]
HALF = np.arange(60) % 2 == 0
of_claims = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)


def parts_of(result: lb.AuditResult) -> Any:
    """Return what a result tells of its parts."""
    return result.options["parts"]


@of_claims
@pytest.mark.parametrize(
    ("scores", "design"),
    [
        (np.zeros(60), lb.Coins(HALF)),
        (np.full(60, np.inf), lb.Coins(HALF)),
        (np.zeros(60), lb.RandomSplit(HALF)),
        (np.zeros((60, 3)), lb.Choices(np.arange(60) % 3, 3)),
        (lb.Tally.of(np.zeros(60), HALF), lb.Coins()),
    ],
    ids=["coins", "infinite", "split", "choices", "tally"],
)
def test_scores_that_are_all_tied_are_refused(claim: Claim, scores: Any, design: Any) -> None:
    with pytest.raises(AbstentionError, match="equal"):
        lb.audit(scores, design, claim=claim, seed=0)


@of_claims
@pytest.mark.parametrize("design", [lb.Coins(HALF), lb.RandomSplit(HALF)], ids=["coins", "split"])
def test_scores_that_are_nearly_all_tied_prove_nothing(claim: Claim, design: Any) -> None:
    """Blocks of ranks are cut through ties, in an order that knows no label."""
    result = lb.audit(np.append(1.0, np.zeros(59)), design, claim=claim, seed=0)
    assert result.bound == 0
    assert "chance" in result.reason


@of_claims
@pytest.mark.parametrize("member", [np.ones(60, bool), np.zeros(60, bool)], ids=["all", "none"])
@pytest.mark.parametrize("design", [lb.Coins, lb.RandomSplit])
def test_an_empty_side_is_refused(claim: Claim, member: Any, design: Any) -> None:
    with pytest.raises(DesignError, match="members"):
        lb.audit(np.arange(60.0), design(member), claim=claim, seed=0)


@of_claims
@pytest.mark.parametrize(
    ("sides", "members"), [("auto", 0), ("auto", 5), ("both", 0), ("both", 5), ("member", 0)]
)
def test_few_coins_may_all_fall_alike(claim: Claim, sides: CoinSides, members: int) -> None:
    """Five fair coins do so in one audit of sixteen: that is no reason for an error or a claim."""
    member = np.arange(5) < members
    result = lb.audit(np.arange(5.0), lb.Coins(member), claim=claim, sides=sides, seed=0)
    assert result.bound == 0 < len(result.reason)


@of_claims
@pytest.mark.parametrize("m", [2, 3, 4, 5, 7, 8, 11, 16])
def test_fewer_examples_than_a_block_are_looked_at(claim: Claim, m: int) -> None:
    """Blocks begin with four ranks. A perfect attack is the case in which most is tested."""
    member = np.arange(m) >= m // 2
    designs: list[tuple[Any, Any]] = [
        (np.arange(m), lb.Coins(member)),
        (np.arange(m), lb.RandomSplit(member)),
        (np.eye(3)[np.arange(m) % 3], lb.Choices(np.arange(m) % 3, 3)),
    ]
    for scores, design in designs:
        result = lb.audit(scores, design, claim=claim, cuts=SecondLook(look=0.9), seed=0)
        (look,) = [part for part in parts_of(result) if part["name"] == "look"]
        # A label at least of each end is seen, and not tested.
        assert 0 <= look["correct"] <= look["guesses"] < m
        assert 0 <= result.bound <= result.ceiling


@of_claims
def test_one_side_has_its_own_tests(claim: Claim) -> None:
    rng = np.random.default_rng(1)
    member = rng.random(1000) < 0.5
    scores = rng.normal(size=1000) + 2 * member
    cuts = SecondLook(look=0.5)
    design = lb.Coins(member)
    result = lb.audit(scores, design, claim=claim, cuts=cuts, sides="member", seed=0)
    first = "scan" if isinstance(claim, PureDP) else "outside-in"
    assert [part["name"] for part in parts_of(result)] == [first, "look"]
    assert [part["level"] for part in parts_of(result)] == pytest.approx([0.025, 0.025])
    assert parts_of(result)[1]["guesses"] > 0
    assert result.options["paths"] == ["member"]


@of_claims
@pytest.mark.parametrize("name", ["SecondLook", "second-look", SecondLook])
def test_a_policy_by_its_name_is_refused_by_the_names_of_policies(claim: Claim, name: Any) -> None:
    with pytest.raises(InputTypeError, match=r"SecondLook\(\.\.\.\)"):
        lb.audit(np.arange(60.0), lb.Coins(HALF), claim=claim, cuts=name, seed=0)


@of_claims
def test_a_result_of_before_is_read_and_shown(claim: Claim) -> None:
    """It has one test, and says nothing of parts."""
    rng = np.random.default_rng(2)
    member = rng.random(400) < 0.5
    scores = rng.normal(size=400) + 2 * member
    found = lb.audit(scores, lb.Coins(member), claim=claim, seed=0)
    stored: Any = found.to_dict()
    del stored["options"]["parts"]
    stored["options"]["cuts"] = {"type": "OutsideIn", "levels": None}
    before = lb.AuditResult.from_dict(stored)
    assert before.bound == found.bound
    at: Any = {"epsilon": 0.1, "delta": 1e-3}
    if isinstance(claim, PureDP):
        at = {"epsilon": 0.1}
    assert before.check(**at) == found.check(**at) == "refuted"
    assert before.summary().headline == found.summary().headline
    names = [one.name for one in before.summary().metrics]
    assert [name for name in names if "tests" in name] == []
    assert [
        name for name in (one.name for one in found.summary().metrics) if name not in names
    ] == [f"Largest of {len(parts_of(found))} tests"]
