"""Bootstrap refits of calibrated propensities beside a scikit-learn loop on the same resamples."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray
from leakbound.propensity import LogisticPropensity, PropensityFit
from ratios import Compare

COLUMNS = 50
TIMED = 20
"""Refits of the peer that are timed; its time is scaled to the number of ours."""


def fitted(rows: int) -> tuple[PropensityFit, FloatArray]:
    """A model of `rows` rows of 50 features, and as many rows to predict."""
    rng = np.random.default_rng(rows)
    features = rng.standard_normal((2 * rows, COLUMNS))
    weak_slopes = rng.normal(loc=0, scale=0.15, size=COLUMNS - 1)
    log_odds = features @ np.append(0.5, weak_slopes)
    member = rng.random(2 * rows) < expit(log_odds)
    fit = LogisticPropensity().fit(features[:rows], member[:rows])
    return fit, features[rows:]


def scikit_learn_refit(
    fit: PropensityFit, copies_of_rows: NDArray[np.uint32], audited_features: FloatArray
) -> FloatArray:
    """One refit and its predictions, by scikit-learn."""
    folds = PredefinedSplit(fit.rows.folds)
    model: Any = CalibratedClassifierCV(LogisticRegression(), cv=folds, ensemble=False)
    model.fit(fit.rows.features, fit.rows.member, sample_weight=copies_of_rows)
    propensities: FloatArray = model.predict_proba(audited_features)[:, 1]
    return propensities


def test_refits_beside_scikit_learn(compare: Compare) -> None:
    fit, audited_features = fitted(10_000)
    rows = _core.PropensityRows(fit.rows.features, fit.rows.member, folds=fit.rows.folds, l2=1.0)
    resamples = rows.resamples(seed=Purpose.RESAMPLES.derived(0), first=0, count=TIMED)
    refits = partial(fit.bootstrap, audited_features, K=600, seed=0)
    propensities = expit(refits())
    for replicate in (0, TIMED - 1):
        of_scikit_learn = scikit_learn_refit(fit, resamples[replicate], audited_features)
        np.testing.assert_allclose(propensities[replicate], of_scikit_learn, atol=1e-3)

    def scikit_learn_loop() -> None:
        for copies_of_rows in resamples:
            scikit_learn_refit(fit, copies_of_rows, audited_features)

    compare(
        "600 calibrated refits, 50 features",
        refits,
        peer=f"a scikit-learn loop ({TIMED} refits timed, scaled)",
        run_peer=scikit_learn_loop,
        size=10_000,
        rounds=3,
        peer_share=TIMED / 600,
    )


@pytest.mark.parametrize(("rows", "replicates"), [(10_000, 150), (10_000, 1200), (40_000, 150)])
def test_scaling(compare: Compare, rows: int, replicates: int) -> None:
    fit, audited_features = fitted(rows)
    usual, _ = fitted(10_000)
    refits = partial(fit.bootstrap, audited_features[:10], K=replicates, seed=0)
    assert refits().shape == (replicates, 10)
    compare(
        f"refits, K = {replicates:,}",
        refits,
        peer="10,000 rows, K = 600",
        run_peer=partial(usual.bootstrap, audited_features[:10], K=600, seed=0),
        size=rows,
        rounds=3,
    )


@pytest.fixture
def threads() -> Iterator[None]:
    before = _core.threads()
    yield
    _core.set_threads(before)


@pytest.mark.usefixtures("threads")
def test_threads(compare: Compare) -> None:
    fit, audited_features = fitted(10_000)

    def refits(count: int) -> FloatArray:
        _core.set_threads(count)
        return fit.bootstrap(audited_features[:10], K=600, seed=0)

    np.testing.assert_array_equal(refits(1), refits(2))
    compare(
        "refits, two threads",
        partial(refits, 2),
        peer="one thread",
        run_peer=partial(refits, 1),
        size=10_000,
        rounds=3,
    )
