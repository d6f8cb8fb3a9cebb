"""Scores of models that are no torch modules: estimators, and functions."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakbound as lb
from leakbound import errors
from leakbound.attacks import score

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 20))
Y = np.array(["no", "maybe", "yes"])[RNG.integers(3, size=400)]


def test_margins_and_losses_are_those_of_the_probabilities() -> None:
    model = LogisticRegression().fit(X, Y)
    chances = model.predict_proba(X)
    own = chances[np.arange(400), np.searchsorted(model.classes_, Y)]
    np.testing.assert_allclose(score(model, X, Y).values, np.log(own / (1 - own)), rtol=1e-9)
    losses = score(model, X, Y, signal="cross_entropy")
    np.testing.assert_allclose(losses.values, np.log(own), rtol=1e-12)
    assert losses.signal == "cross_entropy"


def test_functions_have_classes_by_number() -> None:
    found = score(lambda x: x, [[0.25, 0.75], [0.5, 0.5]], [1, 0], ids=["a", "b"])
    np.testing.assert_allclose(found.values, [np.log(3), 0], atol=1e-15)
    assert found.ids.tolist() == ["a", "b"]


def test_a_signal_of_ones_own_takes_any_answer() -> None:
    def nearness(answer: Any, y: Any) -> Any:
        return -np.abs(answer - y)

    found = score(lambda x: x[:, 0], X, np.zeros(400), signal=nearness)
    assert found.signal == "nearness"
    np.testing.assert_array_equal(found.values, -np.abs(X[:, 0]))


def answers(table: Any) -> Any:
    return lambda _: table


@pytest.mark.parametrize(
    ("model", "y", "error", "words"),
    [
        (3, [0, 1], errors.InputTypeError, "predict_proba"),
        (answers([0.5, 0.5]), [0, 1], errors.InputError, "shape"),
        (answers([[1.0], [1.0]]), [0, 0], errors.InputError, r"shape \(m, classes\)"),
        (answers([[2.0, -1.0]]), [0], errors.OptionError, "at index 0, 1"),
        (answers([[3.0, 1.0]]), [0], errors.InputError, "sum to 4"),
        (answers([[np.nan, 1.0]]), [0], errors.OptionError, "probabilities"),
        (answers([[0.5, 0.5]]), [2], errors.InputError, "class 2 at index 0"),
        (answers([[0.5, 0.5]]), [0, 1], errors.InputError, "y"),
        (answers([[[0.5, 0.5]], [[0.5, 0.5]]]), [0], errors.InputError, "2 tables"),
    ],
)
def test_what_cannot_be_scored(model: Any, y: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        score(model, None, y)


def test_a_tree_that_learns_by_heart_is_told() -> None:
    plan = lb.InclusionPlan.create(400, seed=1)
    tree = DecisionTreeClassifier(random_state=0).fit(plan.included(X), plan.included(Y))
    scores = score(tree, X, Y)
    assert np.isposinf(scores.values[plan.member]).all()
    assert lb.audit(scores, lb.Coins(plan)).bound > 0.3
