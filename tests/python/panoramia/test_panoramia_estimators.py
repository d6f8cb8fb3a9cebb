"""Targets that are no torch modules: estimators of scikit-learn, and functions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from census import Census, features
from leakbound.errors import OptionError
from leakbound.panoramia import Options, run
from leakbound.panoramia.examples import Examples
from leakbound.panoramia.models.target import fingerprint, margins_of, taught
from memory import people

MEMBERS = 1000


X, Y = people(MEMBERS, 77)
OPTIONS = Options(inputs=features, saturation=(), seeds=(0,))


def grown(x: np.ndarray, y: np.ndarray) -> Any:
    return DecisionTreeClassifier(random_state=0).fit(features(x), y)


def test_estimators_are_targets_and_helpers() -> None:
    targets = {"fits all": grown(X, Y), "never saw": grown(*people(MEMBERS, 78))}
    report = run(targets, (X, Y), Census(), options=OPTIONS)
    heart, never = (row.results[0] for row in report.rows)
    assert heart.auc > 0.65 > 0.6 > never.auc


def test_a_function_is_a_target_without_a_helper_of_its_kind() -> None:
    ask = grown(X, Y).predict_proba
    with pytest.raises(OptionError, match=r"Helper\(network=\.\.\.\)"):
        run(ask, (X, Y), Census(), options=OPTIONS)
    alone = replace(OPTIONS, helper=None)
    (row,) = run(ask, (X, Y), Census(), options=alone).rows
    assert row.results[0].auc > 0.65


def test_margins_of_certain_answers_are_finite_and_ordered() -> None:
    answers = np.array([[1.0, 0.0], [1 - 2.0**-53, 2.0**-53], [0.5, 0.5], [0.0, 1.0]])
    found = margins_of(lambda _: answers, Examples(np.zeros((4, 1)), np.zeros(4, np.int64)), None)
    assert found[:, 0].tolist() == sorted(found[:, 0].tolist(), reverse=True)
    assert (found[0, 0], found[2, 0], found[3, 0]) == (37.0, 0.0, -37.0)
    assert found[1, 0] < 37.0


def test_targets_without_labels_must_be_networks() -> None:
    with pytest.raises(OptionError, match="members need labels"):
        margins_of(lambda x: x, Examples(np.zeros((4, 3), np.int64), None), None)


def test_helpers_are_like_the_target_and_random_by_their_seed() -> None:
    forest = RandomForestClassifier(3, max_depth=2).fit(features(X), Y)
    lesson = Examples(X[:200], Y[:200])
    one, same, other = (taught(forest, lesson, features, seed) for seed in (0, 0, 1))
    assert (one.n_estimators, one.max_depth) == (3, 2)
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    assert fingerprint(len) != fingerprint(len)
