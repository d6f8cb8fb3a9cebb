"""Bootstrap refits of calibrated propensities beside a scikit-learn loop on the same resamples."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

import leakbound._core as _core
from leakbound.propensity import LogisticPropensity, PropensityFit
from ratios import Ratio, measure

_Floats: TypeAlias = NDArray[np.float64]
Record: TypeAlias = Callable[[Ratio, Callable[[], object]], None]

COLUMNS = 50
TIMED = 20
"""Refits of the peer that are timed; its time is scaled to the number of ours."""


def fitted(rows: int) -> tuple[PropensityFit, _Floats]:
    """A model of `rows` rows of 50 features, and as many rows to predict."""
    rng = np.random.default_rng(rows)
    features = rng.standard_normal((2 * rows, COLUMNS))
    weak_slopes = rng.normal(0, 0.15, COLUMNS - 1)
    log_odds = features @ np.r_[0.5, weak_slopes]
    member = rng.random(2 * rows) < 1 / (1 + np.exp(-log_odds))
    fit = LogisticPropensity().fit(features[:rows], member[:rows])
    return fit, features[rows:]


def scikit_learn_refit(
    fit: PropensityFit, copies_of_rows: NDArray[np.uint32], audited_features: _Floats
) -> _Floats:
    """One refit and its predictions, by scikit-learn."""
    folds = PredefinedSplit(fit.rows.folds)
    model: Any = CalibratedClassifierCV(LogisticRegression(), cv=folds, ensemble=False)
    model.fit(fit.rows.features, fit.rows.member, sample_weight=copies_of_rows)
    propensities: _Floats = model.predict_proba(audited_features)[:, 1]
    return propensities


def test_refits_beside_scikit_learn(record: Record) -> None:
    fit, audited_features = fitted(10_000)
    rows = _core.PropensityRows(fit.rows.features, fit.rows.member, folds=fit.rows.folds, l2=1.0)
    resamples = rows.resamples(seed=0, first=0, count=TIMED)
    log_odds = fit.bootstrap(audited_features, K=600)
    for replicate in (0, TIMED - 1):
        propensities = 1 / (1 + np.exp(-log_odds[replicate]))
        of_scikit_learn = scikit_learn_refit(fit, resamples[replicate], audited_features)
        np.testing.assert_allclose(propensities, of_scikit_learn, atol=1e-3)
    ratio = measure(
        "600 calibrated refits, 50 features",
        lambda: fit.bootstrap(audited_features, K=600),
        peer=f"a scikit-learn loop ({TIMED} refits timed, scaled)",
        run_peer=lambda: [
            scikit_learn_refit(fit, copies_of_rows, audited_features)
            for copies_of_rows in resamples
        ],
        size=10_000,
        rounds=3,
    )
    scale = TIMED / 600
    scaled = replace(ratio, ratio=ratio.ratio * scale, spread=ratio.spread * scale)
    record(scaled, lambda: fit.bootstrap(audited_features, K=600))


@pytest.mark.parametrize(("rows", "replicates"), [(10_000, 150), (10_000, 1200), (40_000, 150)])
def test_scaling(record: Record, rows: int, replicates: int) -> None:
    fit, audited_features = fitted(rows)
    usual, _ = fitted(10_000)
    assert fit.bootstrap(audited_features[:10], K=replicates).shape == (replicates, 10)
    ratio = measure(
        f"refits, K = {replicates:,}",
        lambda: fit.bootstrap(audited_features[:10], K=replicates),
        peer="10,000 rows, K = 600",
        run_peer=lambda: usual.bootstrap(audited_features[:10], K=600),
        size=rows,
        rounds=3,
    )
    record(ratio, lambda: fit.bootstrap(audited_features[:10], K=replicates))


@pytest.fixture
def threads() -> Iterator[None]:
    before = _core.threads()
    yield
    _core.set_threads(before)


@pytest.mark.usefixtures("threads")
def test_threads(record: Record) -> None:
    fit, audited_features = fitted(10_000)

    def run(count: int) -> _Floats:
        _core.set_threads(count)
        return fit.bootstrap(audited_features[:10], K=600)

    np.testing.assert_array_equal(run(1), run(2))
    ratio = measure(
        "refits, two threads",
        lambda: run(2),
        peer="one thread",
        run_peer=lambda: run(1),
        size=10_000,
        rounds=3,
    )
    record(ratio, lambda: run(2))
