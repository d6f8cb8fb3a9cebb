"""What fits, evaluates and refits: our own logistic regression, or a scikit-learn classifier."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray
from leakbound.propensity.data import Rows

_LIMIT = 36.0
"""Log-odds beyond which a double holds no probability but 0 or 1, or hardly any."""


Refits: TypeAlias = Callable[[int, int], FloatArray]
"""Log-odds, a row for each refit, from the first one's number and how many there are."""


class Engine(Protocol):
    """A kind of model, without data: small, frozen and picklable."""

    def learn(self, rows: Rows) -> Any:
        """Fit all rows and return what `log_odds` needs."""

    def log_odds(self, state: Any, features: FloatArray) -> FloatArray:
        """Return the log-odds of each row of features, shape (m,)."""

    def refits(self, rows: Rows, features: FloatArray, seed: int) -> Refits:
        """Return what gives log-odds of features under refits on resamples, by their numbers."""


@dataclass(frozen=True)
class LogisticEngine:
    """L2-regularised logistic regression, in the extension; states are intercept and slopes."""

    l2: float

    def learn(self, rows: Rows) -> FloatArray:
        """Return intercept and slopes, calibrated."""
        prepared = _core.PropensityRows(rows.features, rows.member, folds=rows.folds, l2=self.l2)
        return prepared.coefficients(prepared.fit())

    def log_odds(self, state: FloatArray, features: FloatArray) -> FloatArray:
        """Return a + x·b for each row."""
        values: FloatArray = _core.linear_log_odds(state[None, :], features)[0]
        return values

    def refits(self, rows: Rows, features: FloatArray, seed: int) -> Refits:
        """Return a + x·b for each row under each refit."""
        prepared = _core.PropensityRows(rows.features, rows.member, folds=rows.folds, l2=self.l2)
        model, drawn = prepared.fit(), Purpose.RESAMPLES.derived(seed)

        def block(first: int, count: int) -> FloatArray:
            lines = prepared.bootstrap(model, seed=drawn, first=first, count=count)
            return _core.linear_log_odds(np.ascontiguousarray(lines), features)

        return block


@dataclass(frozen=True)
class ClassifierEngine:
    """A scikit-learn classifier, cloned for every fit."""

    estimator: Any
    seed: int

    def learn(self, rows: Rows) -> "_Calibrated":
        """Fit the classifier, and its calibration if rows have folds."""
        once = np.ones(rows.member.size, dtype=np.uint32)
        return self._fit(rows, once, Purpose.CLASSIFIER, self.seed)

    def log_odds(self, state: "_Calibrated", features: FloatArray) -> FloatArray:
        """Return the classifier's log-odds, calibrated."""
        return state.log_odds(features)

    def refits(self, rows: Rows, features: FloatArray, seed: int) -> Refits:
        """Return the log-odds of features under each refit."""
        prepared = _core.PropensityRows(rows.features, rows.member, folds=rows.folds, l2=0.0)
        drawn = Purpose.CLASSIFIER_RESAMPLES.derived(seed)

        def block(first: int, count: int) -> FloatArray:
            resamples = prepared.resamples(seed=drawn, first=first, count=count)
            fits = (
                self._fit(rows, counts, Purpose.CLASSIFIER_REFITS, seed, first + k)
                for k, counts in enumerate(resamples)
            )
            return np.stack([fitted.log_odds(features) for fitted in fits])

        return block

    def _fit(
        self, rows: Rows, counts: NDArray[np.uint32], purpose: Purpose, *numbers: int
    ) -> "_Calibrated":
        fitted = self._fit_classifier(rows, counts, purpose, *numbers)
        if rows.folds is None:
            return _Calibrated(fitted, 1.0, 0.0, decision=False)
        scores = np.empty(rows.member.size)
        for fold in np.unique(rows.folds):
            held_out = rows.folds == fold
            outside = np.where(held_out, 0, counts).astype(np.uint32)
            model = self._fit_classifier(rows, outside, purpose, *numbers)
            scores[held_out] = _scores(model, rows.features[held_out])
        slope, intercept = _core.platt_calibration(scores, rows.member, counts)
        return _Calibrated(fitted, slope, intercept, decision=True)

    def _fit_classifier(
        self, rows: Rows, counts: NDArray[np.uint32], purpose: Purpose, *numbers: int
    ) -> Any:
        from sklearn.base import clone

        copies = np.repeat(np.arange(counts.size), counts)
        model = seeded(clone(self.estimator), purpose, *numbers)
        return model.fit(rows.features[copies], rows.member[copies])


@dataclass(frozen=True)
class _Calibrated:
    """A fitted classifier and the calibration of its scores."""

    model: Any
    slope: float
    intercept: float
    decision: bool

    def log_odds(self, features: FloatArray) -> FloatArray:
        if not self.decision:
            return probability_log_odds(self.model, features)
        return self.slope * _scores(self.model, features) + self.intercept


def seeded(estimator: Any, purpose: Purpose, *numbers: int) -> Any:
    """Set every unset `random_state` of an estimator, nested ones too, from numbers."""
    unset = sorted(
        name
        for name, value in estimator.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    states = {name: purpose.derived(*numbers, k, bits=32) for k, name in enumerate(unset)}
    return estimator.set_params(**states)


def probability_log_odds(model: Any, features: FloatArray) -> FloatArray:
    """Return the log-odds of membership by `predict_proba`; ±inf at 0 and 1."""
    probabilities = np.asarray(model.predict_proba(features), dtype=np.float64)
    member = int(np.flatnonzero(np.asarray(model.classes_, dtype=bool))[0])
    with np.errstate(divide="ignore"):
        values: FloatArray = np.log(probabilities[:, member]) - np.log(probabilities[:, 1 - member])
    return values


def _scores(model: Any, features: FloatArray) -> FloatArray:
    """Return what a calibration rescales: the decision function, or log-odds within ±36."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(features), dtype=np.float64)
    return np.clip(probability_log_odds(model, features), -_LIMIT, _LIMIT)
