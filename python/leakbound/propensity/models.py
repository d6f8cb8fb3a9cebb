"""The models of P(member | features) to choose from."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from leakbound._base.checks import choice, integer, real
from leakbound._base.streams import seed_of
from leakbound._base.types import ArrayInput, HasMember
from leakbound.errors import IncompatibleOptionsError, MissingExtraError, OptionTypeError
from leakbound.propensity.data import Rows
from leakbound.propensity.engines import ClassifierEngine, Engine, LogisticEngine
from leakbound.propensity.fit import PropensityFit

Calibration: TypeAlias = Literal["platt"]

_FOLDS = 255
"""The largest number of folds: a fold is one byte."""


@runtime_checkable
class Propensity(Protocol):
    """A kind of propensity model, to be fitted to D'."""

    def fit(
        self,
        X: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None = None,
        seed: int | None = None,
    ) -> PropensityFit:
        """Learn P(member | features) from D'."""


@dataclass(frozen=True)
class LogisticPropensity:
    """Logistic regression with an L2 penalty and Platt's calibration, built for the bootstrap.

    Minimises Σᵢ ln(1 + exp(−sᵢ(a + xᵢ·b))) + ½ l2 ‖b‖² over the intercept a, which is not
    penalised, and the slopes b; s = ±1. It is scikit-learn's ``LogisticRegression(C=1/l2)``. The
    features are used as they are: the penalty depends on their units, so give columns of comparable
    spread.

    The calibration rescales the log-odds η to A·η + B, fitted to log-odds that were predicted
    outside of each row's fold, with targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2): scikit-learn's
    ``CalibratedClassifierCV(method="sigmoid", ensemble=False)`` on the same folds.

    Parameters
    ----------
    l2 : float
        Penalty, at least 0. With 0, separable classes and dependent features are refused.
    calibration : {"platt"} or None
        The calibration, or None for none.
    folds : int
        Number of folds of the calibration, at least 2: stratified by class, drawn by the seed of
        the fit.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines", 1999.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> features = rng.normal(size=(1000, 1)) + member[:, None]
    >>> fit = LogisticPropensity(calibration=None).fit(features, member)
    >>> [round(p, 2) for p in fit.predict([[-2.0], [0.5], [3.0]]).tolist()]
    [0.08, 0.48, 0.9]
    """

    l2: float = 1.0
    calibration: Calibration | None = "platt"
    folds: int = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2", real(self.l2, "l2", least=0, below=1e300))
        _check_calibration(self.calibration, self.folds)

    def fit(
        self,
        X: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None = None,
        seed: int | None = None,
    ) -> PropensityFit:
        """Learn P(member | features) from D'.

        Parameters
        ----------
        X : array-like, shape (m', d)
            Features of D', finite.
        member : array-like, shape (m',)
            Membership, booleans, {0, 1} or {-1, +1}.
        ids : array-like, shape (m',), optional
            A different id for each row, by which an audit finds out that it audits none of them; by
            default the index of a pandas table, unless that only counts the rows.
        seed : int, optional
            Seed of the folds; by default a new one, which the fit records.

        Returns
        -------
        PropensityFit
            The fitted model.
        """
        engine = LogisticEngine(self.l2)
        name = f"logistic regression, l2={self.l2:g}"
        return _fitted(self, engine, name, X, member, ids, seed_of(seed))


@dataclass(frozen=True)
class SklearnPropensity:
    """Any scikit-learn classifier with `predict_proba` as a propensity model.

    Every bootstrap refit clones and fits it anew on copies of rows, which takes as long as that
    takes. A `random_state` that is None is set from the seeds.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Not fitted, or fitted in vain.
    calibration : {"platt"} or None
        Whether to calibrate its decision function, or its log-odds within ±36, over folds that
        follow rows. A `CalibratedClassifierCV` is refused: it would split copies of one row between
        its folds.
    folds : int
        Number of folds of the calibration, at least 2.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = SklearnPropensity(DecisionTreeClassifier(max_depth=1))
    >>> fit = model.fit([[0.0], [1.0], [2.0], [3.0]], [False, True, False, True])
    >>> fit.predict([[0.2], [2.0]]).round(6).tolist()
    [0.0, 0.666667]
    """

    estimator: Any
    calibration: Calibration | None = None
    folds: int = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        _check_calibration(self.calibration, self.folds)
        calibrated = _calibrated_class()
        if not all(
            hasattr(self.estimator, name) for name in ("fit", "predict_proba", "get_params")
        ):
            message = (
                "estimator must be a scikit-learn classifier with predict_proba, got "
                f"{self.estimator!r}"
            )
            raise OptionTypeError(message)
        if isinstance(self.estimator, calibrated):
            message = (
                "a CalibratedClassifierCV splits the copies of a resampled row between its folds; "
                'pass the classifier inside it with calibration="platt"'
            )
            raise IncompatibleOptionsError(message)

    def fit(
        self,
        X: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None = None,
        seed: int | None = None,
    ) -> PropensityFit:
        """Learn P(member | features) from D'.

        Parameters
        ----------
        X, member, ids, seed
            As for `LogisticPropensity.fit`; the seed is that of the estimator too.

        Returns
        -------
        PropensityFit
            The fitted model.
        """
        seed = seed_of(seed)
        engine = ClassifierEngine(self.estimator, seed)
        name = " ".join(repr(self.estimator).split())
        return _fitted(self, engine, name, X, member, ids, seed)


def as_propensity(model: Any) -> Propensity:
    """Return a propensity model, wrapping a scikit-learn classifier."""
    if isinstance(model, LogisticPropensity | SklearnPropensity):
        return model
    if hasattr(model, "predict_proba") or not isinstance(model, Propensity):
        return SklearnPropensity(model)
    return model


def _check_calibration(calibration: object, folds: object) -> None:
    if calibration is not None:
        choice(calibration, "calibration", Calibration)
    integer(folds, "folds", least=2, most=_FOLDS)


def _fitted(
    model: LogisticPropensity | SklearnPropensity,
    engine: Engine,
    name: str,
    X: ArrayInput,
    member: ArrayInput | HasMember,
    ids: ArrayInput | None,
    seed: int,
) -> PropensityFit:
    folds = model.folds if model.calibration else 0
    rows = Rows.read(X, member, ids=ids, folds=folds, seed=seed)
    said = f"{name}, Platt over {folds} folds" if folds else name
    return PropensityFit(said, rows, seed=seed, _engine=engine, _state=engine.learn(rows))


def _calibrated_class() -> type:
    try:
        from sklearn.calibration import CalibratedClassifierCV
    except ImportError as error:
        message = (
            "scikit-learn classifiers need the extra ml: pip install 'leakbound[ml]'; "
            "LogisticPropensity needs none"
        )
        raise MissingExtraError(message) from error
    found: type = CalibratedClassifierCV
    return found
