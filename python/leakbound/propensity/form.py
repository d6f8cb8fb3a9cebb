"""Whether the log-odds of membership are linear in the features: tests that read no scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound._base.records import Record
from leakbound._base.streams import Purpose, seed_of
from leakbound.propensity.falsification import (
    REFUTED_BELOW,
    TREES,
    default_sceptics,
    fisher,
    rounds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from leakbound._base.types import FloatArray
    from leakbound.propensity.confidence import ConfidenceSet

_CLIPPED = 3.0
"""Standard deviations at which features are clipped before they are multiplied."""
_EXPLAINED = 1e-3
"""Share of a product's variance below which the model's own columns count as explaining it."""
_STEPS, _SETTLED = 100, 1e-9
"""Newton's steps towards a saddle point, and the squared decrement at which they end."""


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
    intercept of its own. Returned is the smallest p-value times the number of terms.

    Parameters
    ----------
    found : ConfidenceSet
        Whose rows, those of D' included, and estimate are tested.
    features : ndarray of float64, shape (m, k), optional
        Of the audited examples, each tested for a slope of its own: those that the model may lack.

    Notes
    -----
    For a term z the statistic is s = Σ zᵢ(yᵢ - πᵢ), what the columns of the model explain of z
    taken off: Rao's score test (1948). Its size is s over its standard deviation or, where that is
    less, √(2 sup (ts - K(t))), K the cumulant function of s: the leading part of the saddle-point
    formula (Daniels 1987). Where few rows decide, as in products of rare features, s is far from
    normal.
    """
    table, _, _ = found.residuals()
    return _score_tests(
        found,
        _of_products(_units(table), found.reference, features),
        "score tests of squares and products of features"
        + (", of other coefficients in D'" if found.reference else "")
        + (", of features left out" if features is not None else ""),
    )


def link_bent(found: ConfidenceSet) -> FormTest:
    """Test whether membership follows the log-odds by another curve than the logistic one.

    Stukel's terms (JASA 83, 1988) of the log-odds λ are λ² where λ > 0 and λ² where λ < 0. Their
    difference bends both tails alike, as Cauchy's link does, and their sum one against the other:
    each is tested as in `products_missing`.

    Parameters
    ----------
    found : ConfidenceSet
        Whose rows, those of D' included, and estimate are tested.
    """
    _, _, log_odds = found.residuals()
    bends = np.column_stack([log_odds * np.abs(log_odds), log_odds**2])
    return _score_tests(found, [(bends, [(), ()])], "score tests of the logistic link")


def bet_against_set(
    found: ConfidenceSet,
    *,
    sceptic: Any = None,
    features: FloatArray | None = None,
    seed: int | None = None,
) -> FormTest:
    """Let an independent model bet against every member of a confidence set, as `falsify` does.

    The p-value holds whichever member of the set is true, plus the chance that none is: each tail
    is that at the member that makes so many correct guesses likeliest.

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
    """
    seed = seed_of(seed)
    model = default_sceptics()[TREES] if sceptic is None else sceptic
    claimed = found.log_odds()
    table = np.column_stack([found.features if features is None else features, claimed])
    order = Purpose.SET_PARTS.rng(seed).permutation(claimed.size)
    made = list(rounds(model, table, claimed, found.member, order, seed))
    tails = [found.core.largest_log_tail(rows, bet.astype(np.int64)) for rows, bet in made]
    p_value = min(1.0, fisher(tails) + found.level)
    return FormTest(
        p_value=p_value,
        refuted=p_value - found.level < REFUTED_BELOW,
        test=" ".join(repr(model).split()),
        terms=sum(rows.size for rows, _ in made),
    )


def _score_tests(
    found: ConfidenceSet, blocks: Iterable[tuple[FloatArray, list[tuple[int, ...]]]], test: str
) -> FormTest:
    """Test terms, given in blocks of columns with their names."""
    _, design, log_odds = found.residuals()
    chances = expit(log_odds)
    spreads = np.sqrt(chances * expit(-log_odds))[:, None]
    left = found.labels - chances
    basis, corner = np.linalg.qr(design * spreads)
    largest, terms = 0.0, 0
    worst: tuple[int, ...] = ()
    for columns, names in blocks:
        weighted = columns * spreads
        total = (weighted**2).sum(axis=0)
        shares = basis.T @ weighted
        variance = total - (shares**2).sum(axis=0)
        is_open = variance > _EXPLAINED * total
        terms += int(is_open.sum())
        sizes = np.abs(columns.T @ left) / np.sqrt(np.where(is_open, variance, np.inf))
        for term in np.argsort(-sizes):
            if sizes[term] <= largest:
                break
            residual = columns[:, term] - design @ np.linalg.solve(corner, shares[:, term])
            size = min(float(sizes[term]), _signed_root(residual, log_odds, left))
            if size > largest:
                largest, worst = size, names[term]
    tail = 2 * float(np.exp(_core.log_normal_cdf(np.array([-largest]))[0]))
    p_value = min(1.0, tail * terms) if terms else 1.0
    return FormTest(
        p_value=p_value, refuted=p_value < REFUTED_BELOW, test=test, terms=terms, worst=worst
    )


def _signed_root(term: FloatArray, log_odds: FloatArray, left: FloatArray) -> float:
    """Return √(2 sup (ts - K(t))) of a sum s = Σ zᵢ(yᵢ - πᵢ), or a little less."""
    score, chances, steepest = float(term @ left), expit(log_odds), float(np.abs(term).max())
    tilt = 0.0
    for _ in range(_STEPS):
        tilted = log_odds + tilt * term
        slope = score - float(term @ (expit(tilted) - chances))
        curvature = max(float(term**2 @ (expit(tilted) * expit(-tilted))), 1e-200)
        if slope**2 <= _SETTLED * curvature:
            break
        # K'' grows by e^(max|z| |t|) at most, so that a step of this length never overshoots.
        tilt += np.copysign(np.log1p(steepest * abs(slope / curvature)) / steepest, slope)
    tilted = log_odds + tilt * term
    cumulant = np.logaddexp(0, tilted) - np.logaddexp(0, log_odds) - tilt * term * chances
    return float(np.sqrt(max(0.0, 2 * (tilt * score - cumulant.sum()))))


def _of_products(
    units: FloatArray, reference: int, features: FloatArray | None
) -> Iterator[tuple[FloatArray, list[tuple[int, ...]]]]:
    """Yield squares and products, other coefficients in D', and features that the model may lack.

    Block by block, since all of them together would fill the memory.
    """
    count, width = units.shape
    for one in range(width):
        yield units[:, one, None] * units[:, one:], [(one, other) for other in range(one, width)]
    if reference:
        own = np.column_stack([np.ones(count), units])
        own[reference:] = 0.0
        yield own, [(), *((column,) for column in range(width))]
    if features is not None:
        lacking = np.zeros((count, features.shape[1]))
        lacking[reference:] = _units(features)
        yield lacking, [()] * features.shape[1]


def _units(features: FloatArray) -> FloatArray:
    """Return columns in standard deviations, clipped."""
    spread = features.std(axis=0)
    steps = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    clipped: FloatArray = np.clip(steps, -_CLIPPED, _CLIPPED)
    return clipped
