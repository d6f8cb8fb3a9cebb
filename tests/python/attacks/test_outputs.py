"""Scores of models that are no torch modules: estimators, and functions."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

import leakbound as lb
from leakbound import errors
from leakbound.attacks import margin_threshold, score

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


def test_numbers_beside_two_classes_are_not_read_by_their_range() -> None:
    """Scores of two calls would be of two kinds, where only one has answers beyond 0 and 1."""
    x = np.array([[0.2], [0.9], [1.4]])

    def linear(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(rows[:, 0])

    assert score(linear, x[:2], [0, 1]).signal == "logit_margin"
    with pytest.raises(errors.InputError, match=r"answers from 0.2 to 1.4: .* signal=\"residual\""):
        score(linear, x, [0, 1, 1])
    assert score(linear, x, [0, 1, 1], signal="residual").signal == "residual"


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
        (answers(0.5), [0, 0], errors.InputError, r"shape \(m, classes\)"),
        (answers([[2.0, -1.0]]), [0], errors.OptionError, "at index 0, 1"),
        (answers([[3.0, 1.0]]), [0], errors.InputError, "sum to 4"),
        (answers([[np.nan, 1.0]]), [0], errors.OptionError, "probabilities"),
        (answers([[0.5, 0.5]]), [2], errors.InputError, "class 2 at index 0"),
        (answers([[0.5, 0.5]]), [0, 1], errors.InputError, "has 1 values"),
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


class Wrapped:
    """A model that hides the one inside from whoever looks for it."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def fit(self, x: Any, y: Any) -> Any:
        self._model.fit(x, y)
        self.classes_ = self._model.classes_
        return self

    def predict(self, x: Any) -> Any:
        return self._model.predict(x)

    def decision_function(self, x: Any) -> Any:
        return self._model.decision_function(x)


class Own(SVC):  # type: ignore[misc]
    """A subclass."""


WRAPPED: dict[str, Any] = {
    "plain": lambda svc: svc,
    "pipeline": lambda svc: make_pipeline(StandardScaler(), svc),
    "search": lambda svc: GridSearchCV(svc, {"tol": [1e-3]}, cv=2),
    "search of shapes": lambda svc: GridSearchCV(
        svc.set_params(decision_function_shape="ovr"), {"decision_function_shape": ["ovo"]}, cv=2
    ),
    "both": lambda svc: GridSearchCV(make_pipeline(StandardScaler(), svc), {}, cv=2),
    "another's": Wrapped,
}


@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("kind", [SVC, NuSVC, Own])
@pytest.mark.parametrize("classes", [3, 4])
def test_values_of_pairs_of_classes_are_put_together(kind: Any, wrap: str, classes: int) -> None:
    """Three classes have three pairs, whose values were taken for those of classes."""
    y = np.array(list("cabd"))[RNG.integers(classes, size=200)]
    found = [
        score(WRAPPED[wrap](kind(decision_function_shape=shape)).fit(X[:200], y), X[:200], y)
        for shape in ("ovo", "ovr")
    ]
    if wrap == "search of shapes":
        found[1] = score(kind().fit(X[:200], y), X[:200], y)
    np.testing.assert_allclose(found[0].values, found[1].values, rtol=1e-12)


def test_values_of_classes_stay_what_they_are() -> None:
    model = LinearSVC(random_state=0).fit(X, Y)
    own = np.searchsorted(model.classes_, Y)
    expected = margin_threshold(model.decision_function(X), own)
    np.testing.assert_array_equal(score(model, X, Y).values, expected.values)


@pytest.mark.parametrize(
    "model",
    [
        IsolationForest(n_estimators=5, random_state=0),
        OneClassSVM(),
        LocalOutlierFactor(novelty=True),
        make_pipeline(StandardScaler(), OneClassSVM()),
    ],
)
def test_detectors_of_outliers_have_no_classes(model: Any) -> None:
    model.fit(X)
    np.testing.assert_array_equal(score(model, X, Y).values, model.score_samples(X))
    found = score(model, X, Y, signal=lambda values, _: values)
    np.testing.assert_array_equal(found.values, model.decision_function(X))


def test_decisions_of_unknown_sign_are_refused() -> None:
    class Detector:
        """As of PyOD: larger for outliers."""

        def decision_function(self, x: Any) -> Any:
            return x[:, 0]

    with pytest.raises(errors.InputTypeError, match="say what its values mean, by signal="):
        score(Detector(), X, Y)
    found = score(Detector(), X, Y, signal=lambda values, _: -values)
    np.testing.assert_array_equal(found.values, -X[:, 0])


def test_a_detector_without_scores_is_refused() -> None:
    with pytest.raises(errors.InputTypeError, match="neither predict_proba nor"):
        score(LocalOutlierFactor().fit(X), X, Y)


def test_classes_may_be_anything_that_has_a_name() -> None:
    """Integers beyond a float, dates, and what other packages hold."""
    chances = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    expected = np.log([3, 1, 3])
    big = [2**63, 2**63 + 1]
    days = [date(2020, 1, 1), date(2020, 1, 2)]
    for names in (big, [2**70, 2**70 + 1], ["a", "b"], days, [Decimal("1.1"), Decimal(2)]):
        model = Named(np.array(names), chances)
        for y in (
            [names[0], names[0], names[1]],
            np.array([names[0], names[0], names[1]]),
            pd.Series([names[0], names[0], names[1]]),
        ):
            np.testing.assert_allclose(score(model, X[:3], y).values, expected, atol=1e-12)
    with pytest.raises(errors.InputError, match=f"the class {big[1] + 1} at index 1, which the mo"):
        score(Named(np.array(big), chances), X[:3], [big[0], big[1] + 1, big[0]])


class Named:
    """A model of classes with names."""

    def __init__(self, classes: Any, chances: Any) -> None:
        self.classes_, self._chances = classes, chances

    def predict_proba(self, _: Any) -> Any:
        return self._chances
