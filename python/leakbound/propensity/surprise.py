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

Predictors: TypeAlias = NDArray[np.float32]
"""Standardised features of the rows that are asked about, shape (rows, columns)."""

# Classes of labels; rarer ones are one together.
_MOST_CLASSES = 20
# Rows that labels are learnt from at least: of fewer no model learns what is surprising.
_FEWEST_ROWS = 100
_TREES_OF_FOREST = 100
# Rows that a tree, or a linear model, learns from at most.
_MOST_TRAINING_ROWS = 4_000
# Rows that are asked about at most.
_MOST_ROWS_ASKED = 20_000
# Folds of the rows, each predicted by a linear model of the others.
_FOLDS_OF_LINEAR_MODEL = 5
# Standard deviations at which features are clipped.
_CLIPPED_AT = 10.0
# Probability of a label below which all are equally surprising.
_SMALLEST_PROBABILITY = 1e-3


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
    if labels.size < _FEWEST_ROWS:
        return None
    distinct_labels, label_codes = np.unique(labels, return_inverse=True)
    are_numbers = labels.dtype.kind in "biuf" and distinct_labels.size > WORDS
    are_mostly_different = 2 * distinct_labels.size > label_codes.size
    if distinct_labels.size < 2 or (are_mostly_different and not are_numbers):
        return None
    with needs("ml", "a challenge of the split"):
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
        from sklearn.linear_model import LogisticRegression, Ridge
    # In a random order, that of storage has no part in what is learnt.
    asked_rows = rng.permutation(label_codes.size)[:_MOST_ROWS_ASKED]
    options_of_forest = {
        "n_estimators": _TREES_OF_FOREST,
        "min_samples_leaf": 3,
        "bootstrap": True,
        "max_samples": min(asked_rows.size, _MOST_TRAINING_ROWS),
        "oob_score": True,
        "random_state": int(rng.integers(2**31)),
    }
    predictors = _standardised_predictors(features, asked_rows)
    surprises_of_labels = np.full(label_codes.size, np.nan)
    if are_numbers:
        forest = RandomForestRegressor(**options_of_forest)
        ranks = label_codes[asked_rows] / distinct_labels.size
        surprises_of_labels[asked_rows] = _rank_errors(forest, Ridge(), predictors, ranks)
        return surprises_of_labels
    frequent_classes = _frequent_classes(label_codes)[asked_rows]
    _, classes = np.unique(frequent_classes, return_inverse=True)
    if classes.max() == 0:
        return None
    forest = RandomForestClassifier(**options_of_forest)
    linear_model = LogisticRegression(max_iter=200)
    surprises_of_labels[asked_rows] = _class_log_losses(forest, linear_model, predictors, classes)
    return surprises_of_labels


def _standardised_predictors(features: FloatArray, asked_rows: IntArray) -> Predictors:
    """Return standardised features of some rows, clipped."""
    largest_values = np.abs(features).max(axis=0)
    positive_divisors = np.where(largest_values > 0, largest_values, 1.0)
    # At most 1 in size: their squares are finite.
    standardised_features = standardised(features / positive_divisors, _CLIPPED_AT)
    return standardised_features[asked_rows].astype(np.float32)


def _frequent_classes(label_codes: IntArray) -> IntArray:
    """Return the class of each row, numbered by frequency; rare ones are one together."""
    rows_with_label = np.bincount(label_codes)
    most_frequent_codes = np.argsort(-rows_with_label, kind="stable")[:_MOST_CLASSES]
    class_of_label = np.full(rows_with_label.size, most_frequent_codes.size)
    class_of_label[most_frequent_codes] = np.arange(most_frequent_codes.size)
    return class_of_label[label_codes]


def _rank_errors(
    forest: Any, linear_model: Any, predictors: Predictors, ranks: FloatArray
) -> FloatArray:
    """Return the distance of each rank from the mean of two forecasts."""
    forest_forecasts = forest.fit(predictors, ranks).oob_prediction_
    linear_forecasts = np.zeros(ranks.size)
    for fitted_model, rows_of_fold in _models_of_other_folds(linear_model, predictors, ranks):
        linear_forecasts[rows_of_fold] = fitted_model.predict(predictors[rows_of_fold])
    mean_forecasts = (forest_forecasts + linear_forecasts) / 2
    distances_from_forecasts: FloatArray = np.abs(ranks - mean_forecasts)
    return distances_from_forecasts


def _class_log_losses(
    forest: Any, linear_model: Any, predictors: Predictors, classes: IntArray
) -> FloatArray:
    """Return minus the logarithm of the mean of two probabilities of each class."""
    forest_probabilities = forest.fit(predictors, classes).oob_decision_function_
    linear_probabilities = np.zeros_like(forest_probabilities)
    for fitted_model, rows_of_fold in _models_of_other_folds(linear_model, predictors, classes):
        probabilities_in_fold = fitted_model.predict_proba(predictors[rows_of_fold])
        linear_probabilities[np.ix_(rows_of_fold, fitted_model.classes_)] = probabilities_in_fold
    mean_probabilities = (forest_probabilities + linear_probabilities) / 2
    probability_of_label = mean_probabilities[np.arange(classes.size), classes]
    bounded_probability = np.maximum(probability_of_label, _SMALLEST_PROBABILITY)
    log_losses: FloatArray = -np.log(bounded_probability)
    return log_losses


def _models_of_other_folds(
    model: Any, predictors: Predictors, target: AnyArray
) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    """Yield a model of the other rows with each fold, where those have two values at least."""
    from sklearn.model_selection import KFold

    for rows_of_other_folds, rows_of_fold in KFold(_FOLDS_OF_LINEAR_MODEL).split(predictors):
        training_rows = rows_of_other_folds[:_MOST_TRAINING_ROWS]
        training_target = target[training_rows]
        if np.unique(training_target).size < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that end early: the model is one of many
            fitted_model = model.fit(predictors[training_rows], training_target)
        yield fitted_model, rows_of_fold
