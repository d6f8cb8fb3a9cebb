"""Several attacks on the same examples: the best one wins, and the choice is paid for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import errors
from leakbound._base.scores import Scores

SHIFTS = {"": 0.5, "strong": 2.0, "noise": 0.0}


@pytest.fixture
def member() -> np.ndarray:
    return np.random.default_rng(8).random(500) < 0.5


@pytest.fixture
def scores(member: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(9)
    return {name: rng.normal(size=500) + shift * member for name, shift in SHIFTS.items()}


@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=1e-5)], ids=repr)
def test_the_best_attack_wins_at_its_share(
    scores: dict[str, np.ndarray], member: np.ndarray, claim: Any
) -> None:
    result = lb.audit(scores, lb.Coins(member), claim=claim)
    share = 1 - 0.05 / 3
    alone = {
        name: lb.audit(values, lb.Coins(member), claim=claim, confidence=share).bound
        for name, values in scores.items()
    }
    assert result.options["attack"] == "strong"
    assert result.options["attacks"] == pytest.approx(alone, abs=1e-9)
    assert result.bound == pytest.approx(alone["strong"], abs=1e-9)
    only = lb.audit(scores["strong"], lb.Coins(member), claim=claim).bound
    assert result.options["attacks_cost"] == pytest.approx(only - result.bound, abs=1e-9)
    assert result.options["attacks_level"] == pytest.approx(0.05 / 3)
    assert 0 < result.bound < only
    assert result.confidence == 0.95
    assert lb.AuditResult.from_json(result.to_json()) == result


def test_rows_are_attacks(scores: dict[str, np.ndarray], member: np.ndarray) -> None:
    table = np.stack(list(scores.values()))
    result = lb.audit(table, lb.Coins(member))
    assert result.options["attack"] == "attack 1"
    assert result.bound == lb.audit(scores, lb.Coins(member)).bound
    assert lb.audit(list(table), lb.Coins(member)) == result
    assert lb.audit(table.tolist(), lb.Coins(member)) == result


def test_one_attack_by_name_costs_nothing(
    scores: dict[str, np.ndarray], member: np.ndarray
) -> None:
    result = lb.audit({"strong": scores["strong"]}, lb.Coins(member))
    assert result.bound == lb.audit(scores["strong"], lb.Coins(member)).bound
    assert (result.options["attack"], result.options["attacks_cost"]) == ("strong", 0.0)


def test_attacks_of_a_plan_are_joined_by_their_ids() -> None:
    plan = lb.InclusionPlan.create(200, seed=1)
    rng = np.random.default_rng(10)
    order = rng.permutation(200)
    values = plan.member + rng.normal(size=200) / 3
    shuffled = {
        name: Scores(values[order] * scale, plan.ids[order], name)
        for name, scale in (("a", 1.0), ("b", 0.5))
    }
    result = lb.audit(shuffled, lb.Coins(plan))
    assert result.bound == lb.audit({"a": values, "b": values / 2}, lb.Coins(plan)).bound
    mixed = {"a": shuffled["a"], "b": Scores(values, plan.ids, "b")}
    assert lb.audit(mixed, lb.Coins(plan)).bound == result.bound


@pytest.mark.parametrize(
    ("scores", "error", "words"),
    [
        ({}, errors.InputError, "at least one attack"),
        ({"a": [1.0, 2.0], "b": [1.0]}, errors.InputError, "scores of 'b'"),
        ({"a": [1.0, np.nan]}, errors.InputError, "scores of 'a'"),
        ([[1.0, 2.0], [3.0, 3.0]], errors.AbstentionError, "equal"),
        (np.ones((2, 2, 2)), errors.InputError, "one-dimensional"),
    ],
)
def test_bad_scores_are_refused(
    scores: Any | Mapping[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        lb.audit(scores, lb.Coins([0, 1]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_attacks_by_the_names_of_their_columns(library: str) -> None:
    module = pytest.importorskip(library)
    rng = np.random.default_rng(2)
    member = rng.random(200) < 0.5
    columns = {"loss": rng.normal(size=200) + member, "margin": rng.normal(size=200) + 2 * member}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    expected = lb.audit(columns, lb.Coins(member))
    assert lb.audit(frame, lb.Coins(member)).to_dict() == expected.to_dict()


def test_names_of_columns_differ() -> None:
    pandas = pytest.importorskip("pandas")
    member = np.arange(20) % 2 == 0
    for names in (["a", "a"], [0, 1]):
        with pytest.raises(lb.errors.InputError, match="must have different names"):
            lb.audit(pandas.DataFrame(np.zeros((20, 2)), columns=names), lb.Coins(member))


def test_a_column_is_one_attack() -> None:
    rng = np.random.default_rng(2)
    member = rng.random(200) < 0.5
    scores = rng.normal(size=200) + 2 * member
    column = lb.audit(scores[:, None], lb.Coins(member[:, None]))
    assert column == lb.audit(scores, lb.Coins(member))
