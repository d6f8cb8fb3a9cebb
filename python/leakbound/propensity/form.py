"""Whether the log-odds of membership are linear in the features: two tests that read no scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import leakbound._core as _core
from leakbound._base.records import Record
from leakbound._base.streams import Purpose, seed_of
from leakbound.propensity.falsification import (
    REFUTED_BELOW,
    TREES,
    beliefs,
    bets,
    default_sceptics,
    fisher,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leakbound._base.types import FloatArray
    from leakbound.propensity.confidence import ConfidenceSet

__all__ = ["FormTest", "bet_against_set", "products_missing"]

_CLIPPED = 3.0
"""Standard deviations at which features are clipped before they are multiplied."""
_BLOCK = 2048
"""Rows whose products are added up in one go."""
_EXPLAINED = 1e-3
"""Share of a product's variance below which the model's own columns count as explaining it."""
_PARTS = 5


@dataclass(frozen=True, eq=False)
class FormTest(Record):
    """What came of a test of the form of a logistic model.

    Attributes
    ----------
    p_value : float
        At most this is the chance of what was seen, if the log-odds are linear in the features.
    refuted : bool
        Whether it is below 0.01.
    test : str
        What was tested, in words.
    terms : int
        Products or bets that were looked at.
    worst : tuple of int
        The two features, the same one twice for a square, whose product the model lacks most; one
        feature if it is a slope of its own for D'; none for an intercept of its own, for features
        that it lacks, and for bets.
    """

    p_value: float
    refuted: bool
    test: str
    terms: int
    worst: tuple[int, ...] = ()


def products_missing(found: ConfidenceSet, *, features: FloatArray | None = None) -> FormTest:
    """Test whether the model lacks a product of features, or D' follows another one.

    One score test for each square and each product, and where there is D', for each slope and an
    intercept of its own.

    Parameters
    ----------
    found : ConfidenceSet
        Whose rows, those of D' included, and estimate are tested.
    features : ndarray of float64, shape (m, k), optional
        Of the audited examples, each tested for a slope of its own: those that the model may lack.

    Returns
    -------
    FormTest
        The smallest p-value times the number of terms. Normal limits, which hold in large samples.

    Notes
    -----
    For a term z the statistic is Σ zᵢ(yᵢ - πᵢ) over its standard deviation, what the columns of the
    model explain of it taken off: Rao's score test. Features are standardised and clipped at three
    standard deviations before they are multiplied, so that no row decides alone.

    References
    ----------
    C. R. Rao, "Large sample tests of statistical hypotheses concerning several parameters", 1948.
    """
    table, design, chances = found.residuals()
    variances = chances * (1 - chances)
    left = found.labels - chances
    units = _units(table)
    information = (design * variances[:, None]).T @ design
    largest, terms = 0.0, 0
    worst: tuple[int, ...] = ()
    for sums in (
        _of_products(units, design, variances, left),
        *_of_others(units, design, variances, left, found.reference, features),
    ):
        explained = (sums.both * np.linalg.solve(information, sums.both)).sum(axis=0)
        variance = sums.total - explained
        open_terms = np.flatnonzero(variance > _EXPLAINED * sums.total)
        terms += open_terms.size
        if not open_terms.size:
            continue
        sizes = np.abs(sums.score[open_terms]) / np.sqrt(variance[open_terms])
        top = int(np.argmax(sizes))
        if sizes[top] > largest:
            largest, worst = float(sizes[top]), sums.names[open_terms[top]]
    tail = 2 * float(np.exp(_core.log_normal_cdf(np.array([-largest]))[0]))
    p_value = min(1.0, tail * terms) if terms else 1.0
    return FormTest(
        p_value=p_value,
        refuted=p_value < REFUTED_BELOW,
        test="score tests of squares and products of features"
        + (", of other coefficients in D'" if found.reference else "")
        + (", of features left out" if features is not None else ""),
        terms=terms,
        worst=worst,
    )


def bet_against_set(
    found: ConfidenceSet,
    *,
    sceptic: Any = None,
    features: FloatArray | None = None,
    seed: int | None = None,
) -> FormTest:
    """Let an independent model bet against every member of a confidence set.

    Parameters
    ----------
    found : ConfidenceSet
        Whose audited rows are bet on.
    sceptic : scikit-learn classifier, optional
        With `predict_proba`; gradient-boosted trees by default.
    features : ndarray of float64, shape (m, k), optional
        What it sees of the audited examples; the features of the set if None.
    seed : int, optional
        Seed of the sceptic and of the order of the examples; by default a new one.

    Returns
    -------
    FormTest
        The p-value holds whichever member of the set is true, plus the chance that none is: each
        tail is that at the member that makes so many correct guesses likeliest.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.

    Notes
    -----
    Otherwise as `falsify`, which tests log-odds that are claimed to be right as numbers.
    """
    seed = seed_of(seed)
    model = default_sceptics()[TREES] if sceptic is None else sceptic
    claimed = found.log_odds()
    table = np.column_stack([found.features if features is None else features, claimed])
    order = Purpose.SET_PARTS.rng(seed).permutation(claimed.size)
    parts = np.array_split(order, _PARTS)
    tails, number = [], 0
    for k in range(1, _PARTS):
        past, rows = np.concatenate(parts[:k]), parts[k]
        believed = beliefs(model, table, found.member, past, rows, seed, k)
        if believed is None:
            continue
        chosen, guesses = bets(claimed[rows], believed)
        number += chosen.size
        tails.append(found.core.largest_log_tail(rows[chosen], guesses.astype(np.int64)))
    p_value = min(1.0, fisher(tails) + found.level)
    return FormTest(
        p_value=p_value,
        refuted=p_value - found.level < REFUTED_BELOW,
        test=" ".join(repr(model).split()),
        terms=number,
    )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of terms z: Σ vzx over rows with columns x of the model, Σ vz², Σ z(y - π), v = π(1 - π)."""

    both: FloatArray
    total: FloatArray
    score: FloatArray
    names: list[tuple[int, ...]]


def _of_products(
    units: FloatArray, design: FloatArray, variances: FloatArray, left: FloatArray
) -> _Sums:
    """Return the sums of all squares and products, none of which is ever written down."""
    count, width = units.shape
    one, other = np.triu_indices(width)
    squares = units**2
    both = np.zeros((design.shape[1], one.size))
    for start in range(0, count, _BLOCK):
        here = slice(start, start + _BLOCK)
        weighted = design[here] * variances[here, None]
        first = 0
        for column in range(width):
            pairs = slice(first, first + width - column)
            both[:, pairs] += (weighted * units[here, column, None]).T @ units[here, column:]
            first = pairs.stop
    names: list[tuple[int, ...]] = list(zip(one.tolist(), other.tolist(), strict=True))
    return _Sums(
        both=both,
        total=((squares * variances[:, None]).T @ squares)[one, other],
        score=((units * left[:, None]).T @ units)[one, other],
        names=names,
    )


def _of_others(
    units: FloatArray,
    design: FloatArray,
    variances: FloatArray,
    left: FloatArray,
    reference: int,
    features: FloatArray | None,
) -> Iterator[_Sums]:
    """Yield the sums of other coefficients in D', and of features that the model may lack."""

    def sums(rows: slice, columns: FloatArray, names: list[tuple[int, ...]]) -> _Sums:
        weighted = columns * variances[rows, None]
        return _Sums(
            both=design[rows].T @ weighted,
            total=(columns * weighted).sum(axis=0),
            score=columns.T @ left[rows],
            names=names,
        )

    if reference:
        apart = slice(reference)
        own: list[tuple[int, ...]] = [(), *((column,) for column in range(units.shape[1]))]
        yield sums(apart, np.column_stack([np.ones(reference), units[apart]]), own)
    if features is not None:
        yield sums(slice(reference, None), _units(features), [()] * features.shape[1])


def _units(features: FloatArray) -> FloatArray:
    """Return columns in standard deviations, clipped."""
    spread = features.std(axis=0)
    steps = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    clipped: FloatArray = np.clip(steps, -_CLIPPED, _CLIPPED)
    return clipped
