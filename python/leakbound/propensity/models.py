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
_MOST_FOLDS = 255


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
        integer(self.folds, "folds", least=2, most=_MOST_FOLDS)

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

    def _penalised_rows(self, rows: Rows) -> _core.PropensityRows:
        """Return rows of D' in the core, with the folds of the calibration and the penalty."""
        return _core.PropensityRows(rows.features, rows.member, folds=rows.folds, l2=self.l2)

    def _learn(self, rows: Rows, _seed: int, /) -> FloatArray:
        """Return intercept and slopes, calibrated."""
        penalised_rows = self._penalised_rows(rows)
        return penalised_rows.coefficients(penalised_rows.fit())

    def _log_odds(self, coefficients: FloatArray, features: FloatArray, /) -> FloatArray:
        log_odds: FloatArray
        (log_odds,) = _core.linear_log_odds(coefficients[None, :], features)
        return log_odds

    def _refits(self, rows: Rows, features: FloatArray, count: int, seed: int, /) -> FloatArray:
        penalised_rows = self._penalised_rows(rows)
        coefficients_of_refits = penalised_rows.bootstrap(
            penalised_rows.fit(),
            seed=Purpose.RESAMPLES.derived(seed),
            first=0,
            count=count,
        )
        return _core.linear_log_odds(np.ascontiguousarray(coefficients_of_refits), features)


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
        one_copy_each = np.ones(rows.member.size, dtype=np.uint32)
        return self._fitted_clone(rows, one_copy_each, Purpose.CLASSIFIER, seed)

    def _log_odds(self, classifier: Any, features: FloatArray, /) -> FloatArray:
        return probability_log_odds(classifier, features)

    def _refits(self, rows: Rows, features: FloatArray, count: int, seed: int, /) -> FloatArray:
        unpenalised_rows = _core.PropensityRows(rows.features, rows.member, folds=None, l2=0.0)
        seed_of_resamples = Purpose.CLASSIFIER_RESAMPLES.derived(seed)
        log_odds_of_refits = np.empty((count, len(features)))
        for replicate in range(count):
            (copies_of_rows,) = unpenalised_rows.resamples(
                seed=seed_of_resamples, first=replicate, count=1
            )
            classifier = self._fitted_clone(
                rows, copies_of_rows, Purpose.CLASSIFIER_REFITS, seed, replicate
            )
            log_odds_of_refits[replicate] = probability_log_odds(classifier, features)
        return log_odds_of_refits

    def _fitted_clone(
        self,
        rows: Rows,
        copies_of_rows: NDArray[np.uint32],
        purpose: Purpose,
        *seed_numbers: int,
    ) -> object:
        """Fit a clone of the classifier to rows of D', each repeated."""
        from sklearn.base import clone

        resampled_rows = np.repeat(np.arange(copies_of_rows.size), copies_of_rows)
        unfitted_classifier = seeded(clone(self.estimator), purpose, *seed_numbers)
        return unfitted_classifier.fit(rows.features[resampled_rows], rows.member[resampled_rows])


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
    example_ids = vector(ids, "ids", kinds="biufSUOT")
    check_ids(example_ids, np.ones(example_ids.size, dtype=np.bool_))
    size_of_reference = integer(size, "size", least=1, most=example_ids.size - 1)
    hash_seed = Purpose.HOLD_OUT.derived(seed_of(seed))
    hash_key = hash_seed.to_bytes(8, "little")
    digests_of_ids = list[bytes]()
    for example_id in example_ids.tolist():
        keyed_hash = blake2b(str(example_id).encode(), key=hash_key)
        digests_of_ids.append(keyed_hash.digest())
    rows_by_digest = sorted(range(example_ids.size), key=digests_of_ids.__getitem__)
    rows_of_reference = sorted(rows_by_digest[:size_of_reference])
    audited_rows = sorted(rows_by_digest[size_of_reference:])
    return np.array(rows_of_reference), np.array(audited_rows)


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
        for fold_number, fit_to_other_folds in enumerate(self.fits):
            yield np.flatnonzero(self.fold == fold_number), fit_to_other_folds


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
    feature_table = placed_features(order, X, "X")
    features = np.array(feature_table.rows, order="C")
    labels = order.member(member, len(features))  # read-only
    features.flags.writeable = False
    number_of_folds = integer(folds, "folds", least=2, most=max(2, labels.size // 2))
    seed = seed_of(seed)
    if not isinstance(model, LogisticPropensity | SklearnPropensity):
        model = SklearnPropensity(model)
    fold_of_row = drawn_folds(Purpose.CROSS_FIT.rng(seed), labels.size, number_of_folds)
    fits_to_other_folds = list[PropensityFit]()
    for fold_number in range(number_of_folds):
        is_in_other_folds = fold_of_row != fold_number
        fitted_rows = np.flatnonzero(feature_table.told & is_in_other_folds)
        fit_to_other_folds = model.fit(features[fitted_rows], labels[fitted_rows], seed=seed)
        fits_to_other_folds.append(fit_to_other_folds)
    return CrossFit(
        fold=fold_of_row,
        fits=tuple(fits_to_other_folds),
        features=features,
        member=labels,
        encoding=feature_table.encoding,
        unmarked=feature_table.unmarked,
    )
