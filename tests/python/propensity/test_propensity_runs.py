"""Bootstraps: what is drawn depends on the seed alone."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray
from leakbound.errors import OptionError
from leakbound.propensity import LogisticPropensity, PropensityFit, SklearnPropensity


def shifted(m: int, d: int = 3) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(m)
    member = rng.random(m) < 0.5
    return rng.normal(size=(m, d)) + 0.4 * member[:, None], member


@pytest.fixture(scope="module")
def fit() -> PropensityFit:
    return LogisticPropensity().fit(*shifted(300))


def test_the_number_of_threads_changes_no_bit(fit: PropensityFit) -> None:
    features, threads = shifted(40)[0], _core.threads()
    draws = []
    try:
        for count in (1, 3):
            _core.set_threads(count)
            draws.append(fit.bootstrap(features, K=100))
    finally:
        _core.set_threads(threads)
    np.testing.assert_array_equal(draws[0], draws[1])


def test_classifier_replicates_are_fits_of_the_copied_rows() -> None:
    features, member = shifted(150)
    fit = SklearnPropensity(GaussianNB()).fit(features, member)
    rows = _core.PropensityRows(features, member, folds=None, l2=0.0)
    counts = rows.resamples(seed=Purpose.CLASSIFIER_RESAMPLES.derived(4), first=0, count=3)
    for draw, count in zip(fit.bootstrap(features, K=3, seed=4), counts, strict=True):
        weighted = GaussianNB().fit(features, member, sample_weight=count)
        with np.errstate(divide="ignore"):
            chance = weighted.predict_proba(features)
            np.testing.assert_allclose(draw, np.log(chance[:, 1] / chance[:, 0]), atol=1e-6)


def test_a_calibration_that_splits_copies_is_refused() -> None:
    from sklearn.calibration import CalibratedClassifierCV

    with pytest.raises(OptionError, match="splits the copies"):
        SklearnPropensity(CalibratedClassifierCV(GaussianNB()))
