"""A score that is learnt from memberships holds on the half that it was not learnt on."""

from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import OneClassSVM

import leakbound as lb
from leakbound.attacks import learnt_score
from leakbound.errors import InputError, InputTypeError, LeakboundError

GAMES, LEVEL = 60, 0.25
Design = Literal["coins", "split", "plan"]


def outputs_of(rng: np.random.Generator, n: int) -> NDArray[Any]:
    """Return sorted probabilities of a model that is independent of membership."""
    return np.sort(rng.dirichlet(np.ones(3), n), 1)


def forest(seed: int) -> RandomForestClassifier:
    return RandomForestClassifier(20, random_state=seed)


def play(seed: int, design: Design, *, honest: bool) -> bool:
    """Return whether an audit of a learnt score accuses a model that leaks nothing."""
    rng, n = np.random.default_rng(seed), 240
    table = outputs_of(rng, n)
    plan = lb.InclusionPlan.create(n, seed=seed)
    member = plan.member if design != "split" else rng.permutation(np.arange(n) < n // 2)
    if not honest:
        scores: Any = forest(seed).fit(table, member).predict_proba(table)[:, 1]
        kind: Any = lb.RandomSplit(member) if design == "split" else lb.Coins(member)
        return bool(lb.audit(scores, kind, seed=seed).bound > 0)
    given: Any = plan if design == "plan" else member
    scores, rows = learnt_score(table, given, model=forest(seed), seed=seed)
    if design == "plan":
        kind = lb.Coins(plan.subset(rows))
    else:
        kind = lb.RandomSplit(member[rows]) if design == "split" else lb.Coins(member[rows])
    return bool(lb.audit(scores, kind, confidence=1 - LEVEL, seed=seed).bound > 0)


@pytest.mark.parametrize(
    "design", ["split", "plan", pytest.param("coins", marks=pytest.mark.validity)]
)
def test_a_learnt_score_accuses_nobody_on_its_other_half(design: Design) -> None:
    """More than `most` are once in a thousand; at twice the rate four in five times."""
    most = int(stats.binom.isf(1e-3, GAMES, LEVEL))
    assert stats.binom.sf(most, GAMES, 2 * LEVEL) > 0.8
    assert sum(play(seed, design, honest=True) for seed in range(GAMES)) <= most


@pytest.mark.parametrize("design", ["coins", "split"])
def test_on_the_rows_that_it_was_learnt_on_it_accuses_every_model(design: Design) -> None:
    assert all(play(seed, design, honest=False) for seed in range(10))


def test_scores_and_rows_are_of_one_half_and_a_leak_is_found() -> None:
    rng = np.random.default_rng(0)
    plan = lb.InclusionPlan.create(500, seed=3, ids=[f"c{i}" for i in range(500)])
    table = rng.normal(size=(500, 2)) + 3 * np.outer(plan.member, [1, -1])
    scores, rows = learnt_score(table, plan, seed=1)
    assert rows.size == len(scores) == 250
    assert scores.ids.tolist() == plan.ids[rows].tolist()
    again = learnt_score(table, plan, seed=1)
    np.testing.assert_array_equal(again.scores.values, scores.values)
    assert not np.array_equal(learnt_score(table, plan, seed=2).rows, rows)
    result = lb.audit(scores, lb.Coins(plan.subset(rows)), seed=0)
    assert result.bound > 2
    assert result.m == 250
    # the order of scores does not matter: rows are joined by id
    back = lb.attacks.Scores(scores.values[::-1], scores.ids[::-1], "learnt")
    assert lb.audit(back, lb.Coins(plan.subset(rows)), seed=0).bound == result.bound


@pytest.mark.parametrize("named", [False, True])
def test_the_half_that_was_learnt_on_cannot_be_audited_by_accident(named: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(0)
    ids = [f"c{i}" for i in range(200)] if named else None
    plan = lb.InclusionPlan.create(200, seed=3, ids=ids)
    scores, rows = learnt_score(outputs_of(rng, 200), plan, seed=1)
    learning = np.setdiff1d(np.arange(200), rows)
    for wrong in (
        lb.Coins(plan),
        lb.Coins(plan.subset(learning)),
        lb.Coins(plan.member),
        lb.RandomSplit(plan.member),
        lb.RandomSplit(plan.subset(learning)),
        lb.Coins(pd.Series(plan.member, index=plan.ids)),
    ):
        with pytest.raises(LeakboundError):
            lb.audit(scores, wrong, seed=0)


def test_outputs_are_joined_with_a_plan_by_ids() -> None:
    rng = np.random.default_rng(0)
    plan = lb.InclusionPlan.create(300, seed=3, ids=[f"c{i}" for i in range(300)])
    table = rng.normal(size=300) + 4 * plan.member
    moved = rng.permutation(300)
    scores, rows = learnt_score(table, plan, seed=1)
    again = learnt_score(table[moved], plan, ids=plan.ids[moved], seed=1)
    np.testing.assert_array_equal(again.rows, rows)
    np.testing.assert_array_equal(again.scores.values, scores.values)
    frame = pd.DataFrame({"loss": table[moved]}, index=plan.ids[moved])
    framed = learnt_score(frame, pd.Series(plan.member, index=plan.ids), seed=1)
    assert framed.scores.ids.tolist() == plan.ids[moved][framed.rows].tolist()
    audited = pd.Series(plan.member, index=plan.ids).loc[framed.scores.ids[::-1]]
    assert lb.audit(framed.scores, lb.Coins(audited), seed=0).bound > 2


def test_halves_are_of_strata_and_of_whole_groups_and_not_of_membership() -> None:
    rng = np.random.default_rng(0)
    stratum, group = np.repeat([0, 1, 2], [40, 200, 160]), np.arange(400) // 4
    table = outputs_of(rng, 400)
    member = rng.permutation(100)[group] < 50
    scores, rows = learnt_score(table, member, strata=stratum, groups=group, seed=4)
    assert np.bincount(stratum[rows]).tolist() == [20, 100, 80]
    assert not set(group[rows]) & set(np.delete(group, rows))
    kept: dict[str, Any] = {"strata": stratum[rows], "groups": group[rows]}
    assert lb.audit(scores, lb.RandomSplit(member[rows], **kept), seed=0).bound < 2
    # whoever was a member, the halves of a seed are the same
    other = learnt_score(table, ~member, strata=stratum, groups=group, seed=4)
    np.testing.assert_array_equal(other.rows, rows)
    alone = learnt_score(table[:41], member[:41], seed=0).rows.size
    assert alone in {20, 21}


def test_copies_are_carried() -> None:
    plan = lb.InclusionPlan.create(200, seed=3, copies=2)
    rng = np.random.default_rng(0)
    scores, rows = learnt_score(rng.normal(size=200) + 4 * plan.member, plan, seed=0)
    assert plan.subset(rows).copies == lb.audit(scores, lb.Coins(plan.subset(rows))).copies == 2
    choices = lb.planning.ChoicePlan.create(9, k=3, seed=1)
    assert choices.subset([4, 2]).chosen.tolist() == choices.chosen[[4, 2]].tolist()


@pytest.mark.parametrize("model", [LogisticRegression(), RidgeClassifier()])
def test_models_of_probabilities_and_of_decisions_are_copied(model: Any) -> None:
    rng = np.random.default_rng(0)
    member = rng.random(300) < 0.5
    scores, rows = learnt_score(rng.normal(size=300) + 3 * member, member, model=model, seed=0)
    assert scores.values[member[rows]].mean() > scores.values[~member[rows]].mean()
    assert not hasattr(model, "coef_")  # the copy was fitted


class Strange(LogisticRegression):  # type: ignore[misc]
    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        return np.ones((len(X), 3)) / 3


MEMBER = np.arange(40) % 3 == 0
BAD: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    (np.zeros((40, 2, 2)), MEMBER, {}, InputError, "two-dimensional"),
    (np.zeros(39), MEMBER, {}, InputError, "39"),
    (np.full(40, np.nan), MEMBER, {}, InputError, "finite"),
    (np.zeros(40), np.zeros(40), {}, InputError, "members"),
    (np.zeros(3), MEMBER[:3], {}, InputError, "to learn from"),
    (np.zeros(40), MEMBER, {"groups": np.zeros(40)}, InputError, "to learn from"),
    (np.zeros(40), MEMBER, {"model": "forest"}, InputTypeError, "got str"),
    (np.zeros(40), MEMBER, {"model": LogisticRegression}, InputTypeError, "LogisticRegression"),
    (np.zeros(40), MEMBER, {"model": Strange()}, InputError, r"shape \(20, 3\)"),
    (np.zeros(40), MEMBER, {"ids": [0] * 40}, InputError, "id"),
    (np.zeros(40), MEMBER, {"strata": [None] * 40}, InputTypeError, "strata"),
]


@pytest.mark.parametrize(("outputs", "member", "options", "error", "words"), BAD)
def test_what_cannot_be_learnt_is_refused(
    outputs: Any, member: Any, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        learnt_score(outputs, member, seed=0, **options)


def test_outlier_detectors_are_scored_by_their_decision() -> None:
    rng = np.random.default_rng(0)
    member = rng.random(100) < 0.5
    scores, _ = learnt_score(rng.normal(size=100), member, model=OneClassSVM(), seed=0)
    assert np.isfinite(scores.values).all()
