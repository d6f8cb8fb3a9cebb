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

    def learn(self, rows: Rows) -> Any:
        """Fit the classifier."""
        once = np.ones(rows.member.size, dtype=np.uint32)
        return self._fit(rows, once, Purpose.CLASSIFIER, self.seed)

    def log_odds(self, state: Any, features: FloatArray) -> FloatArray:
        """Return the classifier's log-odds."""
        return probability_log_odds(state, features)

    def refits(self, rows: Rows, features: FloatArray, seed: int) -> Refits:
        """Return the log-odds of features under each refit."""
        prepared = _core.PropensityRows(rows.features, rows.member, folds=None, l2=0.0)
        drawn = Purpose.CLASSIFIER_RESAMPLES.derived(seed)

        def block(first: int, count: int) -> FloatArray:
            resamples = prepared.resamples(seed=drawn, first=first, count=count)
            fits = (
                self._fit(rows, counts, Purpose.CLASSIFIER_REFITS, seed, first + k)
                for k, counts in enumerate(resamples)
            )
            return np.stack([probability_log_odds(fitted, features) for fitted in fits])

        return block

    def _fit(self, rows: Rows, counts: NDArray[np.uint32], purpose: Purpose, *numbers: int) -> Any:
        from sklearn.base import clone

        copies = np.repeat(np.arange(counts.size), counts)
        model = seeded(clone(self.estimator), purpose, *numbers)
        return model.fit(rows.features[copies], rows.member[copies])


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
