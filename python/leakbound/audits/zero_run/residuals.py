"""Scores less what features say of them: out-of-fold predictions that read no labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.streams import Purpose
from leakbound.errors import MissingExtraError

if TYPE_CHECKING:
    from leakbound._base.types import FloatArray, IntArray

__all__ = ["beyond_features"]

_FOLDS = 5
_PRODUCTS = 200
"""Squares and products that a fit may use: those that scores follow most."""
_CLIPPED = 3.0
"""Standard deviations at which features are clipped before they are multiplied."""
_PENALTIES = np.logspace(-1, 4, 11)
_BLOCK = 256


def beyond_features(
    scores: FloatArray, features: FloatArray, *, trees: bool = False, seed: int = 0
) -> FloatArray:
    """Return scores less their prediction from features, fold by fold from the other folds."""
    if scores.size < 2 * _FOLDS:
        return scores
    fold = Purpose.BEYOND_FEATURES.rng(seed).permutation(scores.size) % _FOLDS
    spread = features.std(axis=0)
    units = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    columns = np.column_stack([units, _telling(scores, units)])
    columns -= columns.mean(axis=0)
    left: FloatArray = scores - scores.mean()
    left -= _ridge(columns, left, fold)
    if trees:
        left -= _trees(units, left, fold, seed)
    return left


def _telling(scores: FloatArray, units: FloatArray) -> FloatArray:
    """Return the squares and products that scores, less a linear fit, follow most."""
    clipped = np.clip(units, -_CLIPPED, _CLIPPED)
    line = np.column_stack([np.ones(scores.size), units])
    left = scores - line @ np.linalg.lstsq(line, scores, rcond=None)[0]
    one, other = np.triu_indices(units.shape[1])
    strength = np.empty(one.size)
    for start in range(0, one.size, _BLOCK):
        here = slice(start, start + _BLOCK)
        products = clipped[:, one[here]] * clipped[:, other[here]]
        spread = products.std(axis=0)
        strength[here] = np.abs((products - products.mean(axis=0)).T @ left)
        strength[here] /= np.where(spread > 0, spread, np.inf)
    top = np.argsort(-strength, kind="stable")[:_PRODUCTS]
    return clipped[:, one[top]] * clipped[:, other[top]]


def _ridge(columns: FloatArray, scores: FloatArray, fold: IntArray) -> FloatArray:
    """Return ridge predictions of each fold, at the penalty that predicts all folds best."""
    grams = [columns[fold == k].T @ columns[fold == k] for k in range(_FOLDS)]
    crosses = [columns[fold == k].T @ scores[fold == k] for k in range(_FOLDS)]
    gram, cross = sum(grams), sum(crosses)
    predicted = np.empty((_PENALTIES.size, scores.size))
    for k in range(_FOLDS):
        values, vectors = np.linalg.eigh(gram - grams[k])
        turned = vectors.T @ (cross - crosses[k])
        table = columns[fold == k] @ vectors
        for i, penalty in enumerate(_PENALTIES):
            predicted[i, fold == k] = table @ (turned / (np.maximum(values, 0.0) + penalty))
    errors = ((scores - predicted) ** 2).sum(axis=1)
    best: FloatArray = predicted[int(np.argmin(errors))]
    return best


def _trees(units: FloatArray, scores: FloatArray, fold: IntArray, seed: int) -> FloatArray:
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError as error:
        message = (
            "the trees that predict scores are of scikit-learn, which needs the extra ml: "
            "pip install 'leakbound[ml]'"
        )
        raise MissingExtraError(message) from error
    predicted = np.empty(scores.size)
    for k in range(_FOLDS):
        model = HistGradientBoostingRegressor(
            max_iter=80,
            max_leaf_nodes=8,
            learning_rate=0.07,
            min_samples_leaf=30,
            early_stopping=False,
            random_state=Purpose.BEYOND_FEATURES_TREES.derived(seed, bits=32),
        )
        model.fit(units[fold != k], scores[fold != k])
        predicted[fold == k] = model.predict(units[fold == k])
    return predicted
