"""Tests of propensities that do not use scores: bets against them, and tests of the model."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_features, check_scores, seed_of
from leakbound._base.console import track
from leakbound._base.imports import needs
from leakbound._base.odds import expit
from leakbound._base.records import Record
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.errors import InputError, InputTypeError
from leakbound.propensity.confidence import ConfidenceSet
from leakbound.stats.binomial import poisson_binomial_tail_offsets

_TREES = "gradient-boosted trees"
# The three tests of an audit then withhold a correct model in 3 of 100 audits.
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
# Newton's steps towards a saddle point, and the squared decrement at which they end.
_STEPS, _SETTLED = 100, 1e-9


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
        return "" if self.refuted == below else f"refuted does not follow from {self.p_value:g}"


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
    worst: tuple[int, ...] = ()
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
        out.
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
    features = check_features(order.placed(X, "X"), "X")
    claimed = check_scores(order.placed(log_odds, "log_odds"), "log_odds")
    if features.shape[0] != claimed.size:
        raise InputError(f"X has {features.shape[0]} rows and there are {claimed.size} log-odds")
    labels = order.member(member, claimed.size)
    seed = seed_of(seed)
    tested = np.flatnonzero(np.abs(claimed) <= _LARGEST)
    shuffled = Purpose.SCEPTIC_PARTS.rng(seed).permutation(tested)
    table = np.column_stack([features, claimed])
    tried = {
        name: list(_rounds(model, table, claimed, labels, shuffled, seed))
        for name, model in default_sceptics().items()
    }

    def right(rows: IntArray, guesses: FloatArray) -> int:
        return int((labels[rows] == (guesses > 0)).sum())

    def log_tail(rows: IntArray, guesses: FloatArray) -> float:
        if not rows.size:
            return 0.0
        offsets = guesses * claimed[rows]
        return float(poisson_binomial_tail_offsets(right(rows, guesses), offsets, 0.0, log=True))

    p_values = {name: fisher([log_tail(*bet) for bet in made]) for name, made in tried.items()}
    strongest = min(p_values, key=lambda name: p_values[name])
    p_value = min(1.0, shares.SCEPTICS.price(len(tried)) * p_values[strongest])
    won = tried[strongest]
    return Falsification(
        p_value=p_value,
        refuted=p_value < REFUTED_BELOW,
        guesses=sum(rows.size for rows, _ in won),
        correct=sum(right(*bet) for bet in won),
        expected=sum(float(expit(guesses * claimed[rows]).sum()) for rows, guesses in won),
        sceptic=strongest,
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
    seed, model = seed_of(seed), default_sceptics()[_TREES]
    claimed = confidence_set.log_odds()
    seen = confidence_set.features if features is None else features
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
    units, reference = _units(confidence_set.residuals()[0]), confidence_set.reference
    return _score_tests(
        confidence_set,
        _of_products(units, reference, features),
        "score tests of squares and products of features"
        + (", of other coefficients in D'" if reference else "")
        + (", of features left out" if features is not None else ""),
    )


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
    model: Any,
    table: FloatArray,
    claimed: FloatArray,
    labels: BoolArray,
    order: IntArray,
    seed: int,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield rows bet on and guesses: each part but the first, from models of earlier parts."""
    parts = np.array_split(order, _PARTS)
    for k in track(range(1, _PARTS), "Testing the propensities", total=_PARTS - 1):
        past, rows = np.concatenate(parts[:k]), parts[k]
        believed = beliefs(model, table, labels, past, rows, seed, k)
        if believed is not None:
            chosen, guesses = bets(claimed[rows], believed)
            yield rows[chosen], guesses


def beliefs(
    model: Any, table: FloatArray, labels: BoolArray, past: IntArray, rows: IntArray, *numbers: int
) -> FloatArray | None:
    """Return a sceptic's log-odds of some rows, fitted on others."""
    if rows.size == 0 or np.unique(labels[past]).size < 2:
        return None
    from sklearn.base import clone

    fitted = seeded(clone(model), Purpose.SCEPTIC, *numbers).fit(table[past], labels[past])
    return probability_log_odds(fitted, table[rows])


def bets(claimed: FloatArray, believed: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the bets of a sceptic: rows where claim and belief differ most, and guesses."""
    chance = expit(claimed)
    excess = np.where(believed == claimed, 0.0, expit(believed) - chance)
    # The larger of two variances: a claim near 0 or 1 does not make the sceptic certain.
    variance = np.maximum(
        chance * expit(-claimed), np.maximum(expit(believed) * expit(-believed), 1e-300)
    )
    ranked = np.argsort(-np.abs(excess) / variance, kind="stable")
    ranked = ranked[excess[ranked] != 0]
    if ranked.size == 0:
        return ranked, np.empty(0)
    evidence = np.cumsum(np.abs(excess[ranked])) / np.sqrt(np.cumsum(variance[ranked]))
    chosen = ranked[: int(np.argmax(evidence)) + 1]
    return chosen, np.where(excess[chosen] > 0, 1.0, -1.0)


def fisher(log_tails: list[float]) -> float:
    """Return P(Gamma(k) ≥ −Σ ln P), rounded up by 1e-9 of itself and never 0."""
    x = -sum(log_tails)
    series = sum(x**j / math.factorial(j) for j in range(len(log_tails)))
    return max(math.exp(-x) * series * (1 + 1e-9), math.ulp(0.0))


@cache
def ensembles() -> Any:
    """Return scikit-learn's gradient-boosted trees, imported once."""
    with needs("ml", "testing propensities"):
        from sklearn import ensemble
    return ensemble


def default_sceptics() -> dict[str, Any]:
    """Return the default sceptics by name."""
    trees = ensembles().HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, learning_rate=0.1, early_stopping=False
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {"logistic regression": linear, _TREES: trees}


def in_a_line(classifier: Any) -> str:
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
        values: FloatArray = np.log(probabilities[:, member]) - np.log(probabilities[:, 1 - member])
    return values


def _score_tests(
    confidence_set: ConfidenceSet,
    blocks: Iterable[tuple[FloatArray, list[tuple[int, ...]]]],
    test: str,
) -> FormTest:
    """Test terms, given in blocks of columns with their names."""
    _, design, log_odds = confidence_set.residuals()
    chances = expit(log_odds)
    spreads = np.sqrt(chances * expit(-log_odds))[:, None]
    left = confidence_set.labels - chances
    basis, corner = np.linalg.qr(design * spreads)
    largest, terms = 0.0, 0
    worst: tuple[int, ...] = ()
    for columns, names in blocks:
        weighted = columns * spreads
        total = (weighted**2).sum(axis=0)
        explained = basis.T @ weighted
        variance = total - (explained**2).sum(axis=0)
        is_open = variance > _EXPLAINED * total
        terms += int(is_open.sum())
        sizes = np.abs(columns.T @ left) / np.sqrt(np.where(is_open, variance, np.inf))
        for term in np.argsort(-sizes):
            if sizes[term] <= largest:
                break
            residual = columns[:, term] - design @ np.linalg.solve(corner, explained[:, term])
            size = min(float(sizes[term]), _signed_root(residual, log_odds, left))
            if size > largest:
                largest, worst = size, names[term]
    tail = float(np.exp(_core.log_normal_cdf(np.array([-largest]))[0]))
    price = shares.SIGNS.price(2) * shares.TERMS.price(terms)
    p_value = min(1.0, price * tail) if terms else 1.0
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

    They come block by block, since all of them together would fill the memory.
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
