"""How surprising the label of each record is, by models that do not know membership."""

import warnings
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.imports import needs
from leakbound._base.types import AnyArray, FloatArray, IntArray
from leakbound.propensity.likeness import WORDS
from leakbound.propensity.scaling import standardised

Features: TypeAlias = NDArray[np.float32]

# Classes of labels; rarer ones are one together.
_CLASSES = 20
# Rows that labels are learnt from at least: of fewer no model learns what is surprising.
_LESSONS = 100
# Trees of the forest that learns labels.
_TREES = 100
# Rows that a tree, or a linear model, learns from at most.
_LEARNT_FROM = 4_000
# Rows that are asked about at most.
_ASKED = 20_000
# Folds of the rows in which a linear model learns them.
_FOLDS = 5
# Standard deviations beyond which a feature counts as there.
_FARTHEST = 10.0
# Probability of a label below which all are equally surprising.
_RARE = 1e-3


def surprising(
    features: FloatArray, labels: NDArray[np.generic], rng: np.random.Generator
) -> FloatArray | None:
    """Return how surprising the label of each row is; NaN where it was not asked.

    A random forest and a linear model learn labels from standardised features, of all rows
    together and without membership: such models clean labels, too. Asked about each row are the
    trees that have not learnt from it, and a linear model of other rows. The answer is minus the
    logarithm of the mean of the label's two probabilities or, where labels are numbers with many
    values, the distance of the label's rank from the mean of two forecasts. None if labels have one
    value, or are mostly different words, or if there are fewer than 100 rows to learn from.
    """
    if labels.size < _LESSONS:
        return None
    values, code = np.unique(labels, return_inverse=True)
    numbers = labels.dtype.kind in "biuf" and values.size > WORDS
    mostly_different = 2 * values.size > code.size
    if values.size < 2 or (mostly_different and not numbers):
        return None
    with needs("ml", "a challenge of the split"):
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
        from sklearn.linear_model import LogisticRegression, Ridge
    # In a random order, that of storage has no part in what is learnt.
    asked = rng.permutation(code.size)[:_ASKED]
    trees = {
        "n_estimators": _TREES,
        "min_samples_leaf": 3,
        "bootstrap": True,
        "max_samples": min(asked.size, _LEARNT_FROM),
        "oob_score": True,
        "random_state": int(rng.integers(2**31)),
    }
    largest = np.abs(features).max(axis=0)
    shares = features / np.where(largest > 0, largest, 1.0)  # squares of these are finite
    known = standardised(shares, _FARTHEST)[asked].astype(np.float32)
    if numbers:
        ranks = code[asked] / values.size
        answers = _of_ranks(RandomForestRegressor(**trees), Ridge(), known, ranks)
    else:
        classes = np.unique(_common(code)[asked], return_inverse=True)[1]
        if classes.max() == 0:
            return None
        linear = LogisticRegression(max_iter=200)
        answers = _of_classes(RandomForestClassifier(**trees), linear, known, classes)
    surprise = np.full(code.size, np.nan)
    surprise[asked] = answers
    return surprise


def _common(code: IntArray) -> IntArray:
    """Return the class of each row, numbered by frequency; rare ones are one together."""
    counts = np.bincount(code)
    common = np.argsort(-counts, kind="stable")[:_CLASSES]
    number = np.full(counts.size, common.size)
    number[common] = np.arange(common.size)
    return number[code]


def _of_ranks(forest: Any, linear: Any, known: Features, ranks: FloatArray) -> FloatArray:
    """Return the distance of each rank from the mean of two forecasts."""
    of_trees = forest.fit(known, ranks).oob_prediction_
    of_line = np.zeros(ranks.size)
    for fitted, fold in _in_folds(linear, known, ranks):
        of_line[fold] = fitted.predict(known[fold])
    distances: FloatArray = np.abs(ranks - (of_trees + of_line) / 2)
    return distances


def _of_classes(forest: Any, linear: Any, known: Features, classes: IntArray) -> FloatArray:
    """Return minus the logarithm of the mean of two probabilities of each class."""
    of_trees = forest.fit(known, classes).oob_decision_function_
    of_line = np.zeros_like(of_trees)
    for fitted, fold in _in_folds(linear, known, classes):
        of_line[np.ix_(fold, fitted.classes_)] = fitted.predict_proba(known[fold])
    chances = (of_trees + of_line) / 2
    chance = chances[np.arange(classes.size), classes]
    surprise: FloatArray = -np.log(np.maximum(chance, _RARE))
    return surprise


def _in_folds(
    model: Any, known: Features, target: AnyArray
) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    """Yield a model of the other rows with each fold, where those have two values at least."""
    from sklearn.model_selection import KFold

    for others, fold in KFold(_FOLDS).split(known):
        lessons = others[:_LEARNT_FROM]
        if np.unique(target[lessons]).size < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that end early: the model is one of many
            fitted = model.fit(known[lessons], target[lessons])
        yield fitted, fold
