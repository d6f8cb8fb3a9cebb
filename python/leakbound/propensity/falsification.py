"""Tests of propensities that do not use scores: bets against them, and tests of the model."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_scores, seed_of, vector
from leakbound._base.console import track
from leakbound._base.features import FeatureTable, placed_features
from leakbound._base.imports import needs
from leakbound._base.odds import expit
from leakbound._base.records import Record
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    FloatArray,
    HasMember,
    IntArray,
)
from leakbound.errors import InputError, InputTypeError
from leakbound.propensity.confidence import ConfidenceSet
from leakbound.propensity.scaling import standardised
from leakbound.stats.binomial import poisson_binomial_tail_offsets

_TREES = "gradient-boosted trees"
# The three tests of an audit then withhold a correct model in 3 of 100 audits.
Term: TypeAlias = tuple[int, ...]
REFUTED_BELOW = 0.01
"""p-value below which propensities count as refuted."""
# Parts of the examples: a sceptic bets on each but the first.
_PARTS = 5
# Absolute log-odds beyond which nothing is guessed: their odds overflow.
_LARGEST = 300.0
# Standard deviations at which features are clipped, so that no few rows decide a product.
_CLIPPED = 3.0
# Share of a product's variance below which the model's columns explain it.
_EXPLAINED = 1e-3
# Newton's steps towards a saddle point.
_STEPS = 100
# The squared decrement at which they end.
_SETTLED = 1e-9


@dataclass(frozen=True, eq=False)
class Falsification(Record):
    """The result of a test of propensities.

    `refuted` is whether the p-value is below 0.01.
    """

    p_value: float
    """Upper bound on the probability of as many correct guesses if the propensities are correct."""
    refuted: bool
    guesses: int
    """How often the sceptic bet against the propensities, and below, was right."""
    correct: int
    expected: float
    """Expected number of correct guesses if the propensities are correct."""
    sceptic: str
    """Description of the model that bet; of two the one with the smaller p-value."""
    seed: int
    """Of the sceptic and of the order of the examples."""

    def _flaw(self) -> str:
        if not (0 <= self.p_value <= 1 and 0 <= self.correct <= self.guesses):
            return f"p_value is {self.p_value:g}, correct {self.correct} of {self.guesses}"
        below = self.p_value < REFUTED_BELOW
        if self.refuted == below:
            return ""
        return f"refuted does not follow from {self.p_value:g}"


@dataclass(frozen=True, eq=False)
class FormTest(Record):
    """The result of a test of the form of a logistic model.

    `refuted` is whether the p-value is below 0.01.
    """

    p_value: float
    """Upper bound on the probability of the observation if log-odds are linear in the features."""
    refuted: bool
    test: str
    """Description of the test."""
    terms: int
    """Number of products or bets."""
    worst: Term = ()
    """The features of the product that the model lacks most; one for a slope of D'; else none."""


def falsify(
    log_odds: ArrayInput, X: ArrayInput, member: ArrayInput | HasMember, *, seed: int | None = None
) -> Falsification:
    """Test whether P(member | x) are the given propensities, by betting against them.

    The examples are put in random order and cut into five parts. From the second on, two sceptics,
    a logistic regression and gradient-boosted trees, are trained on the *earlier* parts, with the
    claimed log-odds as one more feature. Each guesses "member" if it considers membership likelier
    than claimed, "non-member" if less likely, and bets on the examples that maximise its expected
    evidence. If the propensities are correct, then given all earlier labels the guesses of a part
    are correct independently of one another, with probabilities σ(Tλ) (Theorem C.1 of the
    Zero-Run paper at ε = 0). Their Poisson-binomial tail P_k is then at least as large as a uniform
    variable, given the past; so -Σ ln P_k is at most a Gamma(4) variable in distribution (Fisher's
    combination, 1932). The p-value is twice the smaller one of the two.

    Estimated propensities always have some sampling error, which this test refutes if there are
    many examples. This is not a false alarm: scores that correlate with the error would be taken
    for leakage. Mild misspecification, and shift along features not in `X`, are not detected.

    Parameters
    ----------
    log_odds : array-like, shape (m,)
        Claimed log-odds of membership, from data other than these. Examples beyond ±300 are left
        out, and rows of a table of which a model predicts NaN.
    X, member : array-like, shapes (m, d) and (m,)
        Features and membership.
    seed : int, optional
        Seed of the sceptic and of the order of the examples; by default a new one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(2000, 1))
    >>> member = rng.random(2000) < 1 / (1 + np.exp(-2 * features[:, 0]))
    >>> falsify(np.zeros(2000), features, member).refuted
    True
    """
    order = ExampleOrder()
    given = placed_features(order, X, "X")
    features = given.rows
    claimed = _claimed(order.placed(log_odds, "log_odds"), given)
    if features.shape[0] != claimed.size:
        raise InputError(f"X has {features.shape[0]} rows and there are {claimed.size} log-odds")
    labels = order.member(member, claimed.size)
    seed = seed_of(seed)
    tested = np.flatnonzero(np.abs(claimed) <= _LARGEST)
    shuffled = Purpose.SCEPTIC_PARTS.rng(seed).permutation(tested)
    table = np.column_stack([features, claimed])
    tried = [
        _tried(name, model, table, claimed, labels, shuffled, seed)
        for name, model in default_sceptics().items()
    ]
    strongest = min(tried, key=lambda one: one.p_value)
    p_value = min(1.0, shares.SCEPTICS.price(len(tried)) * strongest.p_value)
    return replace(strongest, p_value=p_value, refuted=p_value < REFUTED_BELOW)


def _claimed(log_odds: ArrayInput, table: FeatureTable) -> FloatArray:
    """Read claimed log-odds; those of which a model of a table says nothing are infinite."""
    values: AnyArray = vector(log_odds, "log_odds")
    if table.encoding is not None and values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.inf, values)
    return check_scores(values, "log_odds")


def _tried(
    name: str,
    model: object,
    table: FloatArray,
    claimed: FloatArray,
    labels: BoolArray,
    order: IntArray,
    seed: int,
) -> Falsification:
    """Let one sceptic bet, as if there were no other."""
    log_tails = list[float]()
    guesses = 0
    correct = 0
    expected = 0.0
    for rows, bet in _rounds(model, table, claimed, labels, order, seed):
        right = int((labels[rows] == (bet > 0)).sum())
        offsets = bet * claimed[rows]
        log_tail = 0.0
        if rows.size:
            log_tail = float(poisson_binomial_tail_offsets(right, offsets, 0.0, log=True))
        log_tails.append(log_tail)
        guesses += rows.size
        correct += right
        expected += float(expit(offsets).sum())
    p_value = fisher(log_tails)
    refuted = p_value < REFUTED_BELOW
    return Falsification(
        p_value=p_value,
        refuted=refuted,
        guesses=guesses,
        correct=correct,
        expected=expected,
        sceptic=name,
        seed=seed,
    )


def bet_against_set(
    confidence_set: ConfidenceSet, *, features: FloatArray | None = None, seed: int | None = None
) -> FormTest:
    """Let gradient-boosted trees bet against all members of a confidence set, as in `falsify`.

    The p-value holds whichever member of the set is true, plus the chance that none is: each tail
    is that at the member that makes so many correct guesses likeliest.

    Parameters
    ----------
    confidence_set : ConfidenceSet
        The trees bet on its audited rows.
    features : ndarray of float64, shape (m, k), optional
        Features of these that the trees use; those of the set if None.
    seed : int, optional
        Seed of the trees and of the order of the examples; by default a new one.
    """
    seed = seed_of(seed)
    model = default_sceptics()[_TREES]
    claimed = confidence_set.log_odds()
    seen = confidence_set.features
    if features is not None:
        seen = features
    order = Purpose.SET_PARTS.rng(seed).permutation(claimed.size)
    table = np.column_stack([seen, claimed])
    made = list(_rounds(model, table, claimed, confidence_set.member, order, seed))
    tails = [confidence_set.core.largest_log_tail(rows, bet.astype(np.int64)) for rows, bet in made]
    p_value = min(1.0, fisher(tails) + confidence_set.level)
    return FormTest(
        p_value=p_value,
        refuted=p_value - confidence_set.level < REFUTED_BELOW,
        test=in_a_line(model),
        terms=sum(rows.size for rows, _ in made),
    )


def products_missing(
    confidence_set: ConfidenceSet, *, features: FloatArray | None = None
) -> FormTest:
    """Test whether the model lacks a product of features, or D' follows another one.

    One score test for each square and each product, and where there is D', for each slope and an
    intercept of its own. Returned is the smallest p-value times the number of terms.

    Parameters
    ----------
    confidence_set : ConfidenceSet
        Its rows, those of D' included, and its estimate are tested.
    features : ndarray of float64, shape (m, k), optional
        Features of the audited examples that the model may lack, each tested for a slope.

    Notes
    -----
    For a term z the statistic is s = Σ zᵢ(yᵢ - πᵢ), less what the columns of the model explain of
    z: Rao's score test (1948). Its size is s over its standard deviation or, where that is less,
    √(2 sup (ts - K(t))), K the cumulant function of s: the leading part of the saddle-point formula
    (Daniels 1987). Where few rows decide, s is far from normal.
    """
    units = standardised(confidence_set.residuals()[0], _CLIPPED)
    reference = confidence_set.reference
    test = "score tests of squares and products of features"
    if reference:
        test += ", of other coefficients in D'"
    if features is not None:
        test += ", of features left out"
    return _score_tests(confidence_set, _of_products(units, reference, features), test)


def link_bent(confidence_set: ConfidenceSet) -> FormTest:
    """Test whether membership depends on the log-odds by another curve than the logistic one.

    Stukel's terms (JASA 83, 1988) of the log-odds λ are λ² where λ > 0 and λ² where λ < 0. Their
    difference bends both tails alike, as Cauchy's link does, and their sum one against the other:
    each is tested as in `products_missing`.

    Parameters
    ----------
    confidence_set : ConfidenceSet
        Its rows and its estimate are tested.
    """
    log_odds = confidence_set.residuals()[2]
    bends = np.column_stack([log_odds * np.abs(log_odds), log_odds**2])
    return _score_tests(confidence_set, [(bends, [(), ()])], "score tests of the logistic link")


def _rounds(
    model: object,
    table: FloatArray,
    claimed: FloatArray,
    labels: BoolArray,
    order: IntArray,
    seed: int,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield rows bet on and guesses: each part but the first, from models of earlier parts."""
    parts = np.array_split(order, _PARTS)
    for k in track(range(1, _PARTS), "Testing the propensities", total=_PARTS - 1):
        past = np.concatenate(parts[:k])
        rows = parts[k]
        believed = beliefs(model, table, labels, past, rows, seed, k)
        if believed is not None:
            chosen, guesses = bets(claimed[rows], believed)
            yield rows[chosen], guesses


def beliefs(
    model: object,
    table: FloatArray,
    labels: BoolArray,
    past: IntArray,
    rows: IntArray,
    *numbers: int,
) -> FloatArray | None:
    """Return a sceptic's log-odds of some rows, fitted on others."""
    if rows.size == 0 or np.unique(labels[past]).size < 2:
        return None
    from sklearn.base import clone

    fitted = seeded(clone(model), Purpose.SCEPTIC, *numbers).fit(table[past], labels[past])
    return probability_log_odds(fitted, table[rows])


def bets(claimed: FloatArray, believed: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the bets of a sceptic: rows where claim and belief differ most, and guesses."""
    excess = np.where(believed == claimed, 0.0, expit(believed) - expit(claimed))
    # The larger of two variances: a claim near 0 or 1 does not make the sceptic certain.
    variance = np.maximum(_bernoulli_variance(claimed), _bernoulli_variance(believed))
    variance = np.maximum(variance, 1e-300)
    ranked = np.argsort(-np.abs(excess) / variance, kind="stable")
    ranked = ranked[excess[ranked] != 0]
    if ranked.size == 0:
        return ranked, np.empty(0)
    gained = np.cumsum(np.abs(excess[ranked]))
    deviation = np.sqrt(np.cumsum(variance[ranked]))
    most_evidence = int(np.argmax(gained / deviation))
    chosen = ranked[: most_evidence + 1]
    return chosen, np.where(excess[chosen] > 0, 1.0, -1.0)


def _bernoulli_variance(log_odds: FloatArray) -> FloatArray:
    """Return π(1 - π) for each logit π."""
    return expit(log_odds) * expit(-log_odds)


def fisher(log_tails: list[float]) -> float:
    """Return P(Gamma(k) ≥ −Σ ln P), rounded up by 1e-9 of itself and never 0."""
    x = -sum(log_tails)
    terms = range(len(log_tails))
    series = sum(x**j / math.factorial(j) for j in terms)
    return max(math.exp(-x) * series * (1 + 1e-9), math.ulp(0.0))


@cache
def ensembles() -> Any:
    """Return scikit-learn's gradient-boosted trees, imported once."""
    with needs("ml", "testing propensities"):
        from sklearn import ensemble
    return ensemble


def default_sceptics() -> dict[str, object]:
    """Return the default sceptics by name."""
    trees = ensembles().HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, learning_rate=0.1, early_stopping=False
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {"logistic regression": linear, _TREES: trees}


def in_a_line(classifier: object) -> str:
    """Return the description of a scikit-learn classifier, which must predict probabilities."""
    if not all(hasattr(classifier, name) for name in ("fit", "predict_proba", "get_params")):
        raise InputTypeError(
            f"pass a scikit-learn classifier with predict_proba, got {classifier!r}"
        )
    return " ".join(repr(classifier).split())


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
        logs = np.log(probabilities)
        values: FloatArray = logs[:, member] - logs[:, 1 - member]
    return values


def _score_tests(
    confidence_set: ConfidenceSet, blocks: Iterable[tuple[FloatArray, list[Term]]], test: str
) -> FormTest:
    """Test terms, given in blocks of columns with their names."""
    _, design, log_odds = confidence_set.residuals()
    deviations = np.sqrt(_bernoulli_variance(log_odds))[:, None]
    residuals = confidence_set.labels - expit(log_odds)
    basis, corner = np.linalg.qr(design * deviations)
    largest = 0.0
    terms = 0
    worst: Term = ()
    for columns, names in blocks:
        weighted = columns * deviations
        explained = basis.T @ weighted
        total = (weighted**2).sum(axis=0)
        variance = total - (explained**2).sum(axis=0)
        is_open = variance > _EXPLAINED * total
        terms += int(is_open.sum())
        scores = columns.T @ residuals
        sizes = np.abs(scores) / np.sqrt(np.where(is_open, variance, np.inf))
        for number in np.argsort(-sizes):
            if sizes[number] <= largest:
                break
            coefficients = np.linalg.solve(corner, explained[:, number])
            term = columns[:, number] - design @ coefficients
            size = min(float(sizes[number]), _signed_root(term, log_odds, residuals))
            if size > largest:
                largest = size
                worst = names[number]
    p_value = 1.0
    if terms:
        (log_tail,) = _core.log_normal_cdf(np.array([-largest]))
        tail = float(np.exp(log_tail))
        price = shares.SIGNS.price(2) * shares.TERMS.price(terms)
        p_value = min(1.0, price * tail)
    refuted = p_value < REFUTED_BELOW
    return FormTest(p_value=p_value, refuted=refuted, test=test, terms=terms, worst=worst)


def _signed_root(term: FloatArray, log_odds: FloatArray, residuals: FloatArray) -> float:
    """Return √(2 sup (ts - K(t))) of a sum s = Σ zᵢ(yᵢ - πᵢ), or a little less."""
    score = float(term @ residuals)
    chances = expit(log_odds)
    steepest = float(np.abs(term).max())
    tilt = 0.0
    for _ in range(_STEPS):
        tilted = log_odds + tilt * term
        slope = score - float(term @ (expit(tilted) - chances))
        curvature = float(term**2 @ _bernoulli_variance(tilted))
        curvature = max(curvature, 1e-200)
        if slope**2 <= _SETTLED * curvature:
            break
        # K'' grows by e^(max|z| |t|) at most, so that a step of this length never overshoots.
        newton = abs(slope / curvature)
        tilt += np.copysign(np.log1p(steepest * newton) / steepest, slope)
    tilted = log_odds + tilt * term
    growth = np.logaddexp(0, tilted) - np.logaddexp(0, log_odds)
    cumulant = growth - tilt * term * chances
    # The signed root of twice the log-likelihood ratio
    log_ratio = tilt * score - cumulant.sum()
    return float(np.sqrt(max(0.0, 2 * log_ratio)))


def _of_products(
    units: FloatArray, reference: int, features: FloatArray | None
) -> Iterator[tuple[FloatArray, list[Term]]]:
    """Yield squares and products, other coefficients in D', and features that the model may lack.

    They come block by block, since all of them together would fill the memory.
    """
    count, width = units.shape
    for one in range(width):
        products = units[:, one, None] * units[:, one:]
        yield products, [(one, other) for other in range(one, width)]
    if reference:
        own = np.column_stack([np.ones(count), units])
        own[reference:] = 0.0
        yield own, [(), *((column,) for column in range(width))]
    if features is not None:
        lacking = np.zeros((count, features.shape[1]))
        lacking[reference:] = standardised(features, _CLIPPED)
        yield lacking, [()] * features.shape[1]
