"""Fitted propensity models: their rows, predictions, bootstrap refits and overlap."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import (
    MOST_REPLICATES,
    check_features,
    check_ids,
    integer,
    real,
    seed_of,
    vector,
)
from leakbound._base.features import Encoding, FeatureTable, placed_features, read_features
from leakbound._base.numerics import expit
from leakbound._base.records import Record
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.report.style import draw_classes, house_style, name_axes, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bins of the histograms: as fine as a figure shows.
_HISTOGRAM_BINS = 40


@dataclass(frozen=True, eq=False)
class Overlap(Record):
    """The distribution of the propensities π of an audit set, by class.

    Of `m` examples, `members` are members. A histogram has the `edges` of its bins in π, and counts
    of each class.
    """

    m: int
    members: int
    m_eff: float
    """Σ 2 min(πᵢ, 1 - πᵢ), which matching keeps on average: m if every π is ½, 0 if features
    determine membership."""
    edges: FloatArray
    member_counts: IntArray
    nonmember_counts: IntArray

    def _flaw(self) -> str:
        bins = self.edges.size - 1
        if not bins == self.member_counts.size == self.nonmember_counts.size:
            return "edges and counts differ in length"
        if not 0 <= self.members <= self.m:
            return f"members ({self.members}) <= m ({self.m}) does not hold"
        return ""

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the propensities of members and of non-members, in axes or in a new figure.

        Where the two overlap, correct guesses are evidence about the model. Elsewhere, the features
        alone reveal membership.
        """
        with house_style():
            ax = new_axes(ax)
            draw_classes(ax, self.edges, self.member_counts, self.nonmember_counts)
            ax.set_xlim(0.0, 1.0)
            title = f"Overlap: worth {self.m_eff:,.0f} of {self.m:,} examples"
            name_axes(ax, title, "propensity: P(member | features)", "examples per bin")
            ax.set_title(title, pad=20)
        return ax

    def __repr__(self) -> str:
        return f"Overlap(m={self.m}, members={self.members}, m_eff={self.m_eff:.0f})"


def overlap(log_odds: FloatArray, member: BoolArray) -> Overlap:
    """Summarise the propensities of an audit set."""
    smaller_probabilities = expit(-np.abs(log_odds))
    propensities = np.where(log_odds > 0, 1.0 - smaller_probabilities, smaller_probabilities)
    edges = np.linspace(0.0, 1.0, _HISTOGRAM_BINS + 1)
    member_counts, _ = np.histogram(propensities[member], edges)
    nonmember_counts, _ = np.histogram(propensities[~member], edges)
    return Overlap(
        m=log_odds.size,
        members=int(member.sum()),
        m_eff=float(2.0 * smaller_probabilities.sum()),
        edges=edges,
        member_counts=member_counts.astype(np.int64),
        nonmember_counts=nonmember_counts.astype(np.int64),
    )


ReferenceShare: TypeAlias = Literal["as audited", "declared", "counted", "unknown"]
"""What is known of the share of members in D' by its design."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, classes, folds and ids of D', read-only."""

    features: FloatArray
    member: BoolArray
    folds: NDArray[np.uint8] | None
    ids: AnyArray | None
    encoding: Encoding | None = None
    """How a table of D' was converted; None where it was an array."""

    @classmethod
    def read(
        cls,
        features: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None,
        folds: int,
        seed: int,
    ) -> "Rows":
        """Check the arguments of a fit."""
        order = ExampleOrder()
        feature_table = placed_features(order, features, "X")
        feature_rows = np.array(feature_table.rows, order="C")
        labels = np.array(order.member(member, feature_rows.shape[0]))
        example_ids = order.distinct_ids
        if ids is not None:
            check_ids(ids, labels)
            example_ids = vector(ids, "ids", kinds="biufSUOT")
        if example_ids is not None:
            example_ids = np.array(example_ids)
        if feature_table.unmarked is not None:  # of which features do not tell all
            feature_rows = feature_rows[feature_table.told]
            labels = labels[feature_table.told]
            if example_ids is not None:
                example_ids = example_ids[feature_table.told]
        _check_both_classes(labels)
        fold_of_row = None
        if folds:
            fold_of_row = _stratified_folds(labels, folds, seed)
        for array in (feature_rows, labels, example_ids, fold_of_row):
            if array is not None:
                array.flags.writeable = False
        return cls(
            features=feature_rows,
            member=labels,
            folds=fold_of_row,
            ids=example_ids,
            encoding=feature_table.encoding,
        )

    @classmethod
    def of(cls, features: FloatArray, member: BoolArray) -> "Rows":
        """Return rows that were read before, without folds and ids."""
        _check_both_classes(member)
        return cls(features, member, folds=None, ids=None)

    def check_disjoint(self, ids: ArrayInput) -> None:
        """Check that none of `ids` is an id of these rows."""
        if self.ids is None:
            return
        audited_ids = vector(ids, "ids", kinds="biufSUOT")
        try:
            shared_ids, rows, _ = np.intersect1d(audited_ids, self.ids, return_indices=True)
        except TypeError:
            raise InputTypeError(
                "ids of the audit and of D' cannot be compared: give both as numbers or both as "
                "strings"
            ) from None
        if shared_ids.size:
            row = int(rows.min())
            raise InputError(
                f"{shared_ids.size} ids of the audit are also in D', first {audited_ids[row]!s} at "
                f"row {row}: a propensity model must not be fitted on audited examples; use "
                "hold_out or cross_fit; if these are different examples with the same pandas "
                "index, give them different ids"
            )


def _check_both_classes(member: BoolArray) -> None:
    """Refuse rows of members alone, or of non-members alone."""
    for included, name in ((True, "members"), (False, "non-members")):
        if not (member == included).any():
            raise InputError(f"D' has no {name}: a model of membership needs both classes")


def _stratified_folds(member: BoolArray, folds: int, seed: int) -> NDArray[np.uint8]:
    """Assign each row to a fold at random, the members as evenly as the non-members."""
    rng = Purpose.CALIBRATION.rng(seed, folds)
    fold_of_row = np.empty(member.size, dtype=np.uint8)
    for included in (True, False):
        rows_of_class = np.flatnonzero(member == included)
        shuffled_rows = rng.permutation(rows_of_class)
        fold_of_row[shuffled_rows] = np.arange(shuffled_rows.size) % folds
    return fold_of_row


class Model(ABC):
    """A kind of model of P(member | features), without data: small, frozen and picklable."""

    _linear: ClassVar[bool]
    """Whether its log-odds are linear in the features."""

    @property
    @abstractmethod
    def _name(self) -> str:
        """The model, in words."""

    @property
    def _folds(self) -> int:
        """Folds of its calibration; 0 if there is none."""
        return 0

    @abstractmethod
    def _learn(self, rows: Rows, seed: int, /) -> object:
        """Fit all rows and return what `_log_odds` needs."""

    @abstractmethod
    def _log_odds(self, state: Any, features: FloatArray, /) -> FloatArray:
        """Return the log-odds of each row of features, shape (m,)."""

    @abstractmethod
    def _refits(self, rows: Rows, features: FloatArray, count: int, seed: int, /) -> FloatArray:
        """Return log-odds of features under `count` bootstrap refits, a row for each."""

    def fit(
        self,
        X: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None = None,
        seed: int | None = None,
    ) -> "PropensityFit":
        """Fit P(member | features) on D'.

        Parameters
        ----------
        X, member : array-like, shapes (m', d) and (m',)
            Features of D', finite, and membership; both classes occur, outside of each fold too.
            A data frame may have words, dates and missing values, as `features` of `ZeroRun`; the
            audited features are then a frame with these columns, and are converted alike.
        ids : array-like, shape (m',), optional
            A different id for each row, by which an audit finds out that it audits none of them; by
            default the index of a pandas table, unless that only counts the rows.
        seed : int, optional
            Seed of the folds and of a classifier; by default a new one, which the fit records.
        """
        seed = seed_of(seed)
        rows = Rows.read(X, member, ids=ids, folds=self._folds, seed=seed)
        return self.fit_rows(rows, seed)

    def fit_rows(self, rows: Rows, seed: int) -> "PropensityFit":
        """Fit P(member | features) on rows that were read, as `fit` does."""
        state = self._learn(rows, seed)
        return PropensityFit(self._name, rows, seed=seed, _model=self, _state=state)


@dataclass(frozen=True, eq=False, repr=False)
class PropensityFit:
    """A model of P(member | features), learnt from D' and refitted on resamples of it.

    Made by the `fit` of a model such as `LogisticPropensity`. It keeps D', from which the bootstrap
    resamples; it can be pickled.
    """

    name: str
    """The model, in words."""
    rows: Rows
    """D': features, classes, folds and ids, read-only."""
    offset: float = 0.0
    """Constant added to all log-odds if the audit set has another share of members than D'."""
    share_of_reference: ReferenceShare = "as audited"
    """What is known of the share of members in D' by design: see `with_member_share`."""
    seed: int = field(kw_only=True)
    """Of the fit."""
    _declared: float | None = field(default=None, kw_only=True)
    _model: Model = field(kw_only=True)
    _state: object = field(kw_only=True)

    @property
    def logistic(self) -> bool:
        """Whether its log-odds are linear in the features, so that there is a confidence set."""
        return self._model._linear  # noqa: SLF001 (one room)

    def log_odds(self, X: ArrayInput) -> FloatArray:
        """Return λ = logit P(member | x) for rows of features, shape (m,); ±inf at P = 0 and 1.

        It is NaN in rows of a table with a rare word, or a value missing in few rows: the model
        was fitted without such rows, and nothing is known of them.
        """
        feature_table = self._feature_table(X)
        log_odds = self._model._log_odds(self._state, feature_table.rows) + self.offset  # noqa: SLF001
        return np.where(feature_table.told, log_odds, np.nan)

    def predict(self, X: ArrayInput) -> FloatArray:
        """Return the propensities P(member | x): see `log_odds`."""
        return expit(self.log_odds(X))

    def bootstrap(self, X: ArrayInput, *, K: int = 600, seed: int | None = None) -> FloatArray:
        """Return log-odds under refits on K resamples of D', a row for each.

        A resample draws as many rows as D' has, with replacement; one that lacks a class outside of
        a fold is drawn again. Every refit repeats the whole procedure, and copies of a row are held
        out of the calibration together. Resample k depends on the seed (by default a new one) and k
        alone. `X` has features of other examples than those of D', shape (m, d). Where `log_odds`
        is NaN, refits are NaN.
        """
        feature_table = self._feature_table(X)
        replicates = integer(K, "K", least=1, most=MOST_REPLICATES)
        seed_of_resamples = seed_of(seed)
        log_odds_of_refits = self._model._refits(  # noqa: SLF001
            self.rows, feature_table.rows, replicates, seed_of_resamples
        )
        log_odds_of_refits += self.offset
        log_odds_of_refits[:, ~feature_table.told] = np.nan
        return log_odds_of_refits

    @property
    def own_intercept(self) -> bool:
        """Whether D' needs an intercept of its own in a confidence set.

        A share counted from labels of D' is no known part of log-odds where these labels count.
        """
        return self.share_of_reference in {"counted", "unknown"}

    def with_member_share(
        self, share: float | None, *, of_reference: float | None = None
    ) -> "PropensityFit":
        """Return the same model for an audit set with another share of members than D'.

        If D' and the audit set were drawn with different shares of members and are alike within
        each class, the log-odds differ by a constant: logit(share) minus logit of the share in D'.

        Parameters
        ----------
        share : float or None
            P(member) in the audit set *by its design*, in (0, 1): not counted afterwards, or
            propensities would depend on the memberships that they are to explain. None if it is
            unknown: then only a confidence set of a logistic model will do, in which D' has an
            intercept of its own.
        of_reference : float, optional
            P(member) in D' by its design, in (0, 1). If None, it is counted, and over a confidence
            set, which rests on the very labels that are counted, D' has an intercept of its own.
        """
        reference_share = float(self.rows.member.mean())
        source: ReferenceShare = "counted"
        if of_reference is not None:
            reference_share = real(of_reference, "of_reference", above=0, below=1)
            source = "declared"
        if share is None:
            if of_reference is not None:
                raise OptionError("of_reference needs the share of the audit set: pass share")
            return replace(self, offset=0.0, share_of_reference="unknown", _declared=None)
        audited_share = real(share, "share", above=0, below=1)
        odds_ratio = audited_share / (1 - audited_share) * (1 - reference_share) / reference_share
        return replace(
            self,
            offset=float(np.log(odds_ratio)),
            share_of_reference=source,
            _declared=audited_share,
        )

    @property
    def member_share(self) -> float:
        """P(member) where the log-odds hold: that of D', or what `with_member_share` declared."""
        if self._declared is None:
            return float(self.rows.member.mean())
        return self._declared

    def overlap(self, X: ArrayInput, member: ArrayInput | HasMember) -> Overlap:
        """Return how far members and non-members of an audit set can be compared.

        Rows of which `log_odds` is NaN are left out.
        """
        order = ExampleOrder()
        feature_table = placed_features(order, X, "X", self.rows.encoding)
        log_odds = self.log_odds(feature_table.rows)
        labels = order.member(member, log_odds.size)
        return overlap(log_odds[feature_table.told], labels[feature_table.told])

    def _feature_table(self, X: ArrayInput) -> FeatureTable:
        table = read_features(X, "X", self.rows.encoding)
        check_features(table.rows, "X", columns=self.rows.features.shape[1])
        return table

    def __repr__(self) -> str:
        members = int(self.rows.member.sum())
        shift = ""
        if self.share_of_reference == "unknown":
            shift = "; up to a constant"
        elif self.offset:
            shift = f"; log-odds shifted by {self.offset:+.3g}"
        return (
            f"PropensityFit({self.name}; {members} members and "
            f"{self.rows.member.size - members} non-members{shift})"
        )
