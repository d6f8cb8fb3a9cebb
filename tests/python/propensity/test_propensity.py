"""Propensity models against scikit-learn and against refits of every resample."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray
from leakbound.propensity import LogisticPropensity, PropensityFit


def shifted(m: int, d: int, *, seed: int = 0, shift: float = 1.0) -> tuple[FloatArray, BoolArray]:
    """Members and non-members whose features differ, in unlike units."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(m, d)) * np.geomspace(0.2, 5.0, d) + np.linspace(-3.0, 30.0, d)
    slopes = shift * rng.normal(size=d) / np.sqrt(d) / np.geomspace(0.2, 5.0, d)
    centred = (features - np.linspace(-3.0, 30.0, d)) @ slopes - 0.3
    return features, rng.random(m) < 1 / (1 + np.exp(-centred))


def peer(l2: float) -> LogisticRegression:
    return LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-12, max_iter=500)


@pytest.mark.parametrize("l2", [1e-3, 1.0, 50.0])
def test_logistic_regression_agrees_with_scikit_learn(l2: float) -> None:
    features, member = shifted(700, 6)
    ours = LogisticPropensity(l2, calibration=None).fit(features, member)
    theirs = peer(l2).fit(features, member)
    np.testing.assert_allclose(
        ours.log_odds(features), theirs.decision_function(features), atol=1e-6
    )
    np.testing.assert_allclose(
        ours.predict(features), theirs.predict_proba(features)[:, 1], atol=1e-7
    )


def test_calibration_agrees_with_scikit_learn_on_the_same_folds() -> None:
    features, member = shifted(600, 4, shift=2.0)
    ours = LogisticPropensity().fit(features, member, seed=3)
    folds = PredefinedSplit(ours.rows.folds)
    theirs = CalibratedClassifierCV(peer(1.0), method="sigmoid", cv=folds, ensemble=False)
    theirs.fit(features, member)
    np.testing.assert_allclose(
        ours.predict(features), theirs.predict_proba(features)[:, 1], atol=2e-5
    )


def refit(fit: PropensityFit, counts: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> FloatArray:
    """Calibrated intercept and slopes of one resample, by scikit-learn and a plain Newton loop."""
    features, member, folds = fit.rows.features, fit.rows.member, fit.rows.folds
    assert folds is not None
    scores = np.empty(member.size)
    for fold in np.unique(folds):
        out = folds != fold
        scores[~out] = (
            peer(1.0)
            .fit(features[out], member[out], sample_weight=counts[out])
            .decision_function(features[~out])
        )
    full = peer(1.0).fit(features, member, sample_weight=counts)
    positive, negative = counts[member].sum(), counts[~member].sum()
    target = np.where(member, (positive + 1) / (positive + 2), 1 / (negative + 2))
    line = np.array([1.0, 0.0])
    design = np.column_stack([scores, np.ones_like(scores)])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ line))
        gradient = design.T @ (counts * (p - target))
        line -= np.linalg.solve((design.T * (counts * p * (1 - p))) @ design, gradient)
    return np.concatenate([line[0] * full.intercept_ + line[1], line[0] * full.coef_[0]])


def test_bootstrap_draws_are_refits_of_each_resample() -> None:
    features, member = shifted(400, 3)
    fit = LogisticPropensity().fit(features, member)
    draws = fit.bootstrap(features[:50], K=6, seed=11)
    rows = _core.PropensityRows(features, member, folds=fit.rows.folds, l2=1.0)
    for draw, counts in zip(
        draws, rows.resamples(seed=Purpose.RESAMPLES.derived(11), first=0, count=6), strict=True
    ):
        line = refit(fit, counts)
        np.testing.assert_allclose(draw, line[0] + features[:50] @ line[1:], atol=1e-6)
