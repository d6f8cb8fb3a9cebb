"""Models of P(member | features), and ways to split the data for fitting."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.checks import check_ids, choice, integer, real, seed_of, vector
from leakbound._base.features import Encoding, placed_features
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose, drawn_folds
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.errors import OptionError
from leakbound.propensity.falsification import in_a_line, probability_log_odds, seeded
from leakbound.propensity.fit import Model, PropensityFit, Rows

Calibration: TypeAlias = Literal["platt"]

# The largest number of folds: a fold is one byte.
_FOLDS = 255


@dataclass(frozen=True)
class LogisticPropensity(Model):
    """Logistic regression with an L2 penalty and Platt's calibration, built for the bootstrap.

    Minimises Σᵢ ln(1 + exp(−sᵢ(a + xᵢ·b))) + ½ l2 ‖b‖² over intercept a and slopes b; s = ±1. It is
    scikit-learn's ``LogisticRegression(C=1/l2)``: the penalty depends on the units of features, so
    give columns of comparable spread. The calibration (Platt 1999) rescales log-odds η to A·η + B,
    fitted to log-odds that were predicted outside of each row's fold.

    Parameters
    ----------
    l2 : float
        Penalty, at least 0. With 0, separable classes and dependent features are refused.
    calibration : {"platt"} or None
        The calibration, or None for none.
    folds : int
        Number of folds of the calibration, at least 2: stratified by class, drawn by the seed of
        the fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> features = rng.normal(size=(1000, 1)) + member[:, None]
    >>> fit = LogisticPropensity(calibration=None).fit(features, member)
    >>> [round(p, 2) for p in fit.predict([[-2.0], [0.5], [3.0]]).tolist()]
    [0.08, 0.48, 0.9]
    """

    _linear: ClassVar[bool] = True
    l2: float = 1.0
    calibration: Calibration | None = "platt"
    folds: int = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2", real(self.l2, "l2", least=0, below=1e300))
        if self.calibration is not None:
            choice(self.calibration, "calibration", Calibration)
        integer(self.folds, "folds", least=2, most=_FOLDS)

    @property
    def _folds(self) -> int:
        if self.calibration is None:
            return 0
        return self.folds

    @property
    def _name(self) -> str:
        name = f"logistic regression, l2={self.l2:g}"
        if self._folds:
            name += f", Platt over {self.folds} folds"
        return name

    def _rows(self, rows: Rows) -> _core.PropensityRows:
        return _core.PropensityRows(rows.features, rows.member, folds=rows.folds, l2=self.l2)

    def _learn(self, rows: Rows, _seed: int, /) -> FloatArray:
        """Return intercept and slopes, calibrated."""
        table = self._rows(rows)
        return table.coefficients(table.fit())

    def _log_odds(self, state: FloatArray, features: FloatArray, /) -> FloatArray:
        values: FloatArray = _core.linear_log_odds(state[None, :], features)[0]
        return values

    def _refits(self, rows: Rows, features: FloatArray, count: int, seed: int, /) -> FloatArray:
        table = self._rows(rows)
        drawn = Purpose.RESAMPLES.derived(seed)
        lines = table.bootstrap(table.fit(), seed=drawn, first=0, count=count)
        return _core.linear_log_odds(np.ascontiguousarray(lines), features)


@dataclass(frozen=True)
class SklearnPropensity(Model):
    """Any scikit-learn classifier with `predict_proba` as an exploratory propensity model.

    Every bootstrap refit fits a clone on resampled rows. A `random_state` that is None is set from
    the seeds. A `CalibratedClassifierCV` is refused: it would split copies of one row
    between its folds.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = SklearnPropensity(DecisionTreeClassifier(max_depth=1))
    >>> fit = model.fit([[0.0], [1.0], [2.0], [3.0]], [False, True, False, True])
    >>> fit.predict([[0.2], [2.0]]).round(6).tolist()
    [0.0, 0.666667]
    """

    _linear: ClassVar[bool] = False
    estimator: Any

    def __post_init__(self) -> None:
        with needs("ml", "SklearnPropensity"):
            from sklearn.calibration import CalibratedClassifierCV
        in_a_line(self.estimator)
        if isinstance(self.estimator, CalibratedClassifierCV):
            raise OptionError(
                "a CalibratedClassifierCV splits the copies of a resampled row between its folds; "
                "pass the classifier inside it"
            )

    @property
    def _name(self) -> str:
        return in_a_line(self.estimator)

    def _learn(self, rows: Rows, seed: int, /) -> object:
        once = np.ones(rows.member.size, dtype=np.uint32)
        return self._fitted(rows, once, Purpose.CLASSIFIER, seed)

    def _log_odds(self, state: Any, features: FloatArray, /) -> FloatArray:
        return probability_log_odds(state, features)

    def _refits(self, rows: Rows, features: FloatArray, count: int, seed: int, /) -> FloatArray:
        table = _core.PropensityRows(rows.features, rows.member, folds=None, l2=0.0)
        drawn = Purpose.CLASSIFIER_RESAMPLES.derived(seed)
        refits = np.empty((count, len(features)))
        for k in range(count):
            (copies,) = table.resamples(seed=drawn, first=k, count=1)
            fit = self._fitted(rows, copies, Purpose.CLASSIFIER_REFITS, seed, k)
            refits[k] = probability_log_odds(fit, features)
        return refits

    def _fitted(
        self, rows: Rows, copies: NDArray[np.uint32], purpose: Purpose, *numbers: int
    ) -> object:
        """Fit a clone to rows repeated by `copies`."""
        from sklearn.base import clone

        chosen = np.repeat(np.arange(copies.size), copies)
        model = seeded(clone(self.estimator), purpose, *numbers)
        return model.fit(rows.features[chosen], rows.member[chosen])


def hold_out(ids: ArrayInput, *, size: int, seed: int | None = None) -> tuple[IntArray, IntArray]:
    """Split examples into D', used to fit propensities, and the audit set; return rows of each.

    An example's side depends on its id, the seed and the other ids alone: not on the order of the
    rows, nor on membership. Split first. Where members and non-members are two pools of fixed
    sizes, split each with a size of its own, fixed beforehand.

    Parameters
    ----------
    ids : array-like, shape (n,)
        A different integer or string for each example.
    size : int
        Number of examples in D', at least 1 and below n.
    seed : int, optional
        Seed of the split; by default a new one.
    """
    names = vector(ids, "ids", kinds="biufSUOT")
    check_ids(names, np.ones(names.size, dtype=np.bool_))
    count = integer(size, "size", least=1, most=names.size - 1)
    key = Purpose.HOLD_OUT.derived(seed_of(seed)).to_bytes(8, "little")
    keyed = [blake2b(str(name).encode(), key=key).digest() for name in names.tolist()]
    order = np.array(sorted(range(names.size), key=keyed.__getitem__), dtype=np.int64)
    return np.sort(order[:count]), np.sort(order[count:])


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Propensities of every example, from models that did not see its membership: see `cross_fit`.

    Audit each fold on its own, at 1/k of the error probability: given the labels of the other
    folds, its propensities are fixed and its labels independent of them.

    What was learnt from, `features` and `member`, is read-only.
    """

    fold: IntArray
    """The fold of each example."""
    fits: tuple[PropensityFit, ...]
    """For each fold, the model learnt from all others."""
    features: FloatArray
    member: BoolArray
    encoding: Encoding | None = None
    """How a table of features was converted; None where they were an array."""
    unmarked: BoolArray | None = None
    """Which rows have a word or lack a value that no number tells; None where no table was."""

    __repr__ = brief

    @property
    def logistic(self) -> bool:
        """Whether all models are logistic, so that there is a confidence set instead."""
        return all(fit.logistic for fit in self.fits)

    def parts(self) -> Iterator[tuple[IntArray, PropensityFit]]:
        """Yield the rows of each fold, and the model learnt from the other folds."""
        for number, fit in enumerate(self.fits):
            yield np.flatnonzero(self.fold == number), fit


def cross_fit(
    model: object,
    X: ArrayInput,
    member: ArrayInput | HasMember,
    *,
    folds: int = 2,
    seed: int | None = None,
) -> CrossFit:
    """Fit propensities on the audit set itself, those of each fold on the other folds.

    For when there is too little data to hold any out (Zero-Run, Algorithm 4). The folds are drawn
    without a look at membership, of equal sizes up to one example.

    Parameters
    ----------
    model : LogisticPropensity, SklearnPropensity or scikit-learn classifier
        What to fit.
    X, member : array-like, shapes (m, d) and (m,)
        Features and membership of the audit set; joined where both have a pandas index. Rows of a
        table with a rare word or gap are neither learnt from nor audited.
    folds : int
        Number of folds k, at least 2. Each is audited at 1/k of the error probability.
    seed : int, optional
        Seed of the folds, and of the fits; by default a new one, which the fits record.
    """
    order = ExampleOrder()
    table = placed_features(order, X, "X")
    features = np.array(table.rows, order="C")
    labels = order.member(member, features.shape[0])
    for array in (features, labels):
        array.flags.writeable = False
    count = integer(folds, "folds", least=2, most=max(2, labels.size // 2))
    seed = seed_of(seed)
    if not isinstance(model, LogisticPropensity | SklearnPropensity):
        model = SklearnPropensity(model)
    fold = drawn_folds(Purpose.CROSS_FIT.rng(seed), labels.size, count)
    others = [np.flatnonzero(table.told & (fold != number)) for number in range(count)]
    fits = tuple(model.fit(features[rows], labels[rows], seed=seed) for rows in others)
    return CrossFit(fold, fits, features, labels, table.encoding, table.unmarked)
