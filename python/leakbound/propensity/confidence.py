"""A confidence set of the log-odds of membership, from all labels, D' and audited."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.checks import (
    check_features,
    check_length,
    flag,
    numbers,
    real,
    seed_of,
    vector,
)
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember
from leakbound.errors import InputError, OptionError

LabelledRows: TypeAlias = tuple[FloatArray, BoolArray, FloatArray]
"""Features, membership and known parts of the log-odds of the same examples."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfidenceSet:
    r"""The coefficients of a logistic model of membership that are plausible given the labels.

    Given the features all labels are independent and P(S = 1 | x) = σ(o + θ₀ + x·θ), o a known part
    of the log-odds. The set is C = {θ : ℓ(θ) ≥ c}, ℓ the log-likelihood of all labels and c that of
    predictions of each half of the rows from the other half, less 2 ln(1/p). Whatever the numbers
    of rows and features, the true coefficients are outside of it with probability p at most.

    `features`, `member` and `offsets`, the known parts of log-odds, are those of the audited rows.
    """

    level: float
    """p."""
    coefficients: FloatArray
    """θ₀ and θ of largest likelihood; then, if D' has a separate intercept, the difference of the
    two."""
    squared_radius: float
    """Twice their log-likelihood over c: about k in a set of Wilks at level ½, three times k here.
    """
    audited: int
    reference: int
    """Rows of D'; `audited` counts the others."""
    features: FloatArray
    member: BoolArray
    offsets: FloatArray
    seed: int
    core: _core.LogOddsSet = field(repr=False)
    _all: LabelledRows = field(repr=False)

    __repr__ = brief

    @classmethod
    def fit(
        cls,
        features: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        reference: tuple[ArrayInput, ArrayInput | HasMember] | None = None,
        offsets: ArrayInput | None = None,
        reference_offsets: ArrayInput | None = None,
        own_intercept: bool = False,
        level: float = 0.01,
        seed: int | None = None,
    ) -> "ConfidenceSet":
        """Compute the set from the labels of audited examples, and of D' if there is one.

        Parameters
        ----------
        features, member : array-like, shapes (m, d) and (m,)
            Of the audited examples.
        reference : tuple of array-like, shapes (n, d) and (n,), optional
            Features and membership of D': other examples, in which membership depends on features
            in the same way, whatever the law of the features.
        offsets, reference_offsets : array-like, shapes (m,) and (n,), optional
            Known parts of the log-odds, in nats; 0 if None.
        own_intercept : bool
            Whether D' has a separate intercept, because its share of members differs by design.
        level, seed : float and int, optional
            Probability that the true coefficients are outside of the set, in (0, 1), and seed of
            the coins that halve the rows; by default a new one, which the set records.

        Notes
        -----
        Coins halve the rows, and each half is cut into four parts. A part is predicted by a fit to
        the other half and the parts before it: logistic, with ridge penalty 1 on slopes of
        standardised features. Given the other half, the likelihood ratio of a half's predictions to
        the true coefficients is an e-value, and so is that of the other half; their geometric mean
        is at most their mean. So is the mean over four draws of the coins, and Markov's inequality
        bounds the probability that it exceeds 1/p (Wasserman, Ramdas and Balakrishnan, "Universal
        inference", 2020). FitError says why there is no such set: too few labels, classes
        that features separate, or columns that depend on one another.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 3))
        >>> labels = rng.random(2000) < 1 / (1 + np.exp(-x[:, 0]))
        >>> likely = ConfidenceSet.fit(x, labels)
        >>> likely.contains([0.0, 1.0, 0.0, 0.0]), likely.contains([0.0, 0.0, 0.0, 0.0])
        (True, False)
        """
        has_own_intercept = flag(own_intercept, "own_intercept")
        error_probability = real(level, "level", above=0, below=1)
        seed = seed_of(seed)
        audited_rows = _labelled_rows(features, member, offsets, ("features", "offsets"))
        reference_rows = None
        if reference is not None:
            names = ("reference[0]", "reference_offsets")
            reference_rows = _labelled_rows(*reference, reference_offsets, names)
            reference_width = reference_rows[0].shape[1]
            audited_width = audited_rows[0].shape[1]
            if reference_width != audited_width:
                raise InputError(
                    f"reference has {reference_width} features and the audited examples have "
                    f"{audited_width}"
                )
        elif has_own_intercept or reference_offsets is not None:
            raise OptionError("own_intercept and reference_offsets describe D': pass reference too")
        return set_of_rows(
            audited_rows,
            reference_rows,
            own_intercept=has_own_intercept,
            level=error_probability,
            seed=seed,
        )

    def contains(self, coefficients: ArrayInput) -> bool:
        """Return whether coefficients, in the order of `coefficients`, are in the set."""
        size = self.coefficients.size
        return self.core.contains(_vector_of_size(coefficients, "coefficients", size))

    def log_odds(self, coefficients: ArrayInput | None = None) -> FloatArray:
        """Return the log-odds of the audited examples, at the best coefficients if None."""
        evaluated_coefficients = self.coefficients
        if coefficients is not None:
            evaluated_coefficients = _vector_of_size(
                coefficients, "coefficients", evaluated_coefficients.size
            )
        intercept_and_slopes = evaluated_coefficients[None, : self.features.shape[1] + 1]
        (linear_part,) = _core.linear_log_odds(
            np.ascontiguousarray(intercept_and_slopes), self.features
        )
        log_odds: FloatArray = linear_part + self.offsets
        return log_odds

    def residuals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return features, columns of the model and log-odds at the best coefficients, of all rows.

        Those of D' come first.
        """
        features, member, offsets = self._all
        columns_before_own_intercept = features.shape[1] + 1
        model_columns = np.ones((member.size, self.coefficients.size))
        model_columns[:, 1:columns_before_own_intercept] = features
        # The intercept that D' has in addition, if it has one.
        model_columns[self.reference :, columns_before_own_intercept:] = 0.0
        return features, model_columns, model_columns @ self.coefficients + offsets

    @property
    def labels(self) -> BoolArray:
        """Membership of all rows, those of D' first."""
        return self._all[1]


def set_of_rows(
    audited: LabelledRows,
    reference: LabelledRows | None,
    *,
    own_intercept: bool,
    level: float,
    seed: int,
) -> ConfidenceSet:
    """Compute a confidence set from rows and options that were read before.

    Parameters
    ----------
    audited, reference : tuple of ndarray, shapes (m, d), (m,) and (m,)
        Features, finite and in rows of memory, membership, and known parts of the log-odds in
        nats, of the audited examples and of D' if there is one.
    own_intercept, level, seed : bool, float and int
        As for `ConfidenceSet.fit`.
    """
    audited_features, audited_labels, audited_offsets = audited
    all_rows = audited
    reference_count = 0
    if reference is not None:
        reference_features, reference_labels, reference_offsets = reference
        reference_count = reference_labels.size
        all_rows = (
            np.vstack([reference_features, audited_features]),
            np.concatenate([reference_labels, audited_labels]),
            np.concatenate([reference_offsets, audited_offsets]),
        )
    core = _core.LogOddsSet(
        *all_rows,
        reference=reference_count,
        own_intercept=own_intercept,
        level=shares.HALVES.of(level),
        seed=Purpose.SET_HALVES.derived(seed),
    )
    return ConfidenceSet(
        level=level,
        coefficients=core.estimate(),
        squared_radius=core.squared_radius,
        audited=audited_labels.size,
        reference=reference_count,
        features=audited_features,
        member=audited_labels,
        offsets=audited_offsets,
        seed=seed,
        core=core,
        _all=all_rows,
    )


def _labelled_rows(
    features: ArrayInput,
    member: ArrayInput | HasMember,
    offsets: ArrayInput | None,
    names: tuple[str, str],
) -> LabelledRows:
    """Read features, membership and offsets of the same examples, in the order of the first.

    `names` are those of features and of offsets in messages.
    """
    features_name, offsets_name = names
    order = ExampleOrder()
    feature_rows = check_features(order.placed(features, features_name), features_name)
    if offsets is not None:
        offsets = order.placed(offsets, offsets_name)
    labels = order.member(member, feature_rows.shape[0])
    known_log_odds = np.zeros(labels.size)
    if offsets is not None:
        known_log_odds = _vector_of_size(offsets, offsets_name, labels.size)
    return feature_rows, labels, known_log_odds


def _vector_of_size(values: ArrayInput, name: str, size: int) -> FloatArray:
    """Read so many numbers, none of them NaN."""
    checked_numbers = numbers(vector(values, name), name)
    check_length(checked_numbers, size, name)
    return np.ascontiguousarray(checked_numbers, dtype=np.float64)
