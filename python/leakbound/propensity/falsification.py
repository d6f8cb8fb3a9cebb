"""Trying to refute propensities: an independent model bets against them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_scores
from leakbound._base.odds import expit
from leakbound._base.records import Record
from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.errors import InputError, InputTypeError, MissingExtraError
from leakbound.propensity.data import check_features
from leakbound.propensity.engines import probability_log_odds, seeded
from leakbound.stats.poisson_binomial import poisson_binomial_tail_offsets

TREES = "gradient-boosted trees"
REFUTED_BELOW = 0.01
"""p-value below which propensities count as refuted."""
_PARTS = 5
"""Parts of the examples: on each but the first a sceptic bets."""
_LARGEST = 300.0
"""Log-odds, in absolute value, beyond which nothing is guessed."""


@dataclass(frozen=True, eq=False)
class Falsification(Record):
    """What came of an attempt to refute propensities.

    Attributes
    ----------
    p_value : float
        At most this is the chance of so many correct guesses if the propensities are right.
    refuted : bool
        Whether it is below 0.01.
    guesses, correct : int
        How often the sceptic bet against the propensities, and was right.
    expected : float
        How often it would be right on average if the propensities were.
    sceptic : str
        The model that bet, in words; of several the one that found most.
    seed : int
        Seed of the sceptic and of the order of the examples.
    """

    p_value: float
    refuted: bool
    guesses: int
    correct: int
    expected: float
    sceptic: str
    seed: int

    def _flaw(self) -> str:
        if not (0 <= self.p_value <= 1 and 0 <= self.correct <= self.guesses):
            return f"p_value is {self.p_value:g}, correct {self.correct} of {self.guesses}"
        below = self.p_value < REFUTED_BELOW
        return "" if self.refuted == below else f"refuted does not follow from {self.p_value:g}"

    def __repr__(self) -> str:
        verdict = "refuted" if self.refuted else "not refuted"
        return (
            f"Falsification({verdict}, p={self.p_value:.2g}: {self.correct} of {self.guesses} "
            f"guesses right, {self.expected:.1f} expected)"
        )


def falsify(
    log_odds: ArrayInput,
    X: ArrayInput,
    member: ArrayInput | HasMember,
    *,
    sceptic: Any = None,
    seed: int | None = None,
) -> Falsification:
    r"""Test whether P(member | x) are the given propensities, by betting against them.

    The examples are put in random order and cut into five parts. From the second on, a sceptic is
    trained on the *earlier* parts, with the claimed log-odds as one more feature, and guesses
    "member" where it finds membership likelier than claimed, "non-member" where less likely; it
    bets on those examples that make its expected evidence largest. If the propensities are right,
    then given all earlier labels the guesses of a part are right independently of one another, with
    probabilities σ(Tλ): the signed form of the tampered audit at ε = 0 (Theorem C.1 of the Zero-Run
    paper). Its Poisson-binomial tail P_k is therefore, given the past, at least as large as a
    uniform variable, whatever the past; so -Σ ln P_k is at most a Gamma(4) variable in
    distribution, which gives the p-value (Fisher's combination, 1932).

    The claim is that the propensities are right as numbers, which estimates never quite are: with
    about as many examples to test them on as to learn them from, their sampling error is refuted.
    That is no false alarm: scores that point along this error would be taken for leakage. Not
    refuted does not mean right: mild misspecification, and shift along features that `X` does not
    hold, pass.

    Parameters
    ----------
    log_odds : array-like, shape (m,)
        Claimed log-odds of membership, from data other than these. Examples beyond ±300 are left
        out.
    X, member : array-like, shapes (m, d) and (m,)
        Features and membership.
    sceptic : scikit-learn classifier, optional
        With `predict_proba`. By default a logistic regression and gradient-boosted trees bet
        separately, and the p-value is twice the smaller one. A `random_state` that is None is set
        from `seed`.
    seed : int, optional
        Seed of the sceptic and of the order of the examples; by default a new one, which the result
        records.

    Returns
    -------
    Falsification
        The p-value, rounded up, and whether it is below 0.01.

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
        message = f"X has {features.shape[0]} rows and there are {claimed.size} log-odds"
        raise InputError(message)
    labels = order.member(member, claimed.size)
    seed = seed_of(seed)
    sceptics = default_sceptics() if sceptic is None else _given(sceptic)
    tested = np.flatnonzero(np.abs(claimed) <= _LARGEST)
    shuffled = Purpose.SCEPTIC_PARTS.rng(seed).permutation(tested)
    table = np.column_stack([features, claimed])
    tried = {
        name: list(rounds(model, table, claimed, labels, shuffled, seed))
        for name, model in sceptics.items()
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
    p_value = min(1.0, len(tried) * p_values[strongest])
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


def rounds(
    model: Any,
    table: FloatArray,
    claimed: FloatArray,
    labels: BoolArray,
    order: IntArray,
    seed: int,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield rows bet on and guesses: each part but the first, by what earlier ones teach."""
    parts = np.array_split(order, _PARTS)
    for k in range(1, _PARTS):
        past, rows = np.concatenate(parts[:k]), parts[k]
        believed = beliefs(model, table, labels, past, rows, seed, k)
        if believed is not None:
            chosen, guesses = bets(claimed[rows], believed)
            yield rows[chosen], guesses


def beliefs(
    model: Any,
    table: FloatArray,
    labels: BoolArray,
    past: IntArray,
    rows: IntArray,
    *numbers: int,
) -> FloatArray | None:
    """Return a sceptic's log-odds of some rows, learnt from others."""
    if rows.size == 0 or np.unique(labels[past]).size < 2:
        return None
    from sklearn.base import clone

    fitted = seeded(clone(model), Purpose.SCEPTIC, *numbers).fit(table[past], labels[past])
    return probability_log_odds(fitted, table[rows])


def bets(claimed: FloatArray, believed: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return where a sceptic bets, and on what: where claim and belief differ most."""
    chance = expit(claimed)
    excess = np.where(believed == claimed, 0.0, expit(believed) - chance)
    # What is expected is expected by the sceptic: a claim near 0 or 1 does not make it certain.
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


def default_sceptics() -> dict[str, Any]:
    """Return the sceptics that bet where none is given, by name."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        message = (
            "the sceptics are scikit-learn models, which need the extra ml: "
            "pip install 'leakbound[ml]'"
        )
        raise MissingExtraError(message) from error
    trees = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, learning_rate=0.1, early_stopping=False
    )
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {"logistic regression": linear, TREES: trees}


def _given(sceptic: Any) -> dict[str, Any]:
    if not all(hasattr(sceptic, name) for name in ("fit", "predict_proba", "get_params")):
        message = f"sceptic must be a scikit-learn classifier with predict_proba, got {sceptic!r}"
        raise InputTypeError(message)
    return {" ".join(repr(sceptic).split()): sceptic}
