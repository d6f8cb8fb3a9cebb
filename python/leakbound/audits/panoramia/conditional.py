"""Zero-Run on the audit set of PANORAMIA: a lower bound on ε that holds if propensities do.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from leakbound._base.validation import complement
from leakbound.audits.multiplicity import Attacks
from leakbound.audits.zero_run.audit import audit_zero_run
from leakbound.audits.zero_run.cross_fitting import Fold, Folds
from leakbound.propensity import LogisticPropensity, cross_fit
from leakbound.report.parts import Assumption

if TYPE_CHECKING:
    from leakbound._base.types import BoolArray, FloatArray
    from leakbound.claims import ApproxDP, PureDP
    from leakbound.propensity import CrossFit
    from leakbound.results.zero_run import ZeroRunResult

__all__ = [
    "REPLACED",
    "PairCorrection",
    "Shown",
    "audit_crossed",
    "audit_shown",
    "columns",
    "cross_fitted",
    "refits",
]

PairCorrection: TypeAlias = Literal["poisson_binomial", "match"]
"""How what examples give away by themselves is taken out."""

WIDE = 3.0
"""Standard deviations beyond which a column goes on as a logarithm: no propensity is 0 or 1."""
REPLACED = Assumption(
    "replace one example",
    "The hidden member of a pair stays in the training set, so ε is that of replacing one example; "
    "training that is ε-DP under adding or removing one may reach 2ε here.",
    "declared",
)
"""What flipping a coin of PANORAMIA does."""
_REFITS = 200
"""Resamples that show how uncertain the propensities are, where that is enough."""
_CROSSED = (
    "The audited examples are cut in two halves without a look at coins or scores. Propensities of "
    "each half are learnt from the other, each half is audited at half of the probability of "
    "error, and this is the half that proved more. "
)
_MODEL = "logistic regression on the baseline's score and the features"
_LEARNT = "the coins of the other half of the audited examples"


@dataclass(frozen=True, eq=False)
class Shown:
    """What is known of the examples that the coins show, without the model.

    Parameters
    ----------
    log_odds : ndarray of float64, shape (K, m)
        Log-odds that each is a member, under K refits of a propensity model.
    features : ndarray of float64, shape (m, d)
        What a sceptic may bet on.
    model, learnt_from : str
        The propensity model, and what it was learnt from, in words.
    """

    log_odds: FloatArray
    features: FloatArray
    model: str
    learnt_from: str


def columns(values: FloatArray, known: FloatArray | None = None) -> FloatArray:
    """Return columns in standard deviations, far values drawn in.

    Parameters
    ----------
    values : ndarray of float64, shape (m,) or (m, d)
        Scores or features, finite.
    known : ndarray of float64, optional
        Those whose mean and spread count; `values` if None.

    Returns
    -------
    ndarray of float64, shape (m, d)
        Within ±3 as they are, beyond that 3 plus the logarithm of one plus the rest: values keep
        their order, so that a sceptic sees all that they say.
    """
    table = values.reshape(len(values), -1)
    like = table if known is None else known.reshape(len(known), -1)
    spread = np.maximum(like.std(axis=0), np.finfo(np.float64).tiny)
    steps = (table - like.mean(axis=0)) / spread
    size = np.abs(steps)
    drawn: FloatArray = np.sign(steps) * (
        np.minimum(size, WIDE) + np.log1p(np.maximum(size - WIDE, 0.0))
    )
    return drawn


def refits(level: float) -> int:
    """Return how many refits the lower percentile at a level needs.

    Parameters
    ----------
    level : float
        Error probability of an audit, half of which the refits take, in (0, 1).

    Returns
    -------
    int
        At least 200.
    """
    return max(_REFITS, math.ceil(4 / level))


def audit_shown(
    scores: FloatArray,
    member: BoolArray,
    shown: Shown,
    *,
    claim: PureDP | ApproxDP,
    correction: PairCorrection,
    confidence: float,
    seed: int,
) -> ZeroRunResult:
    """Bound ε from below, given the probability that an example is real and not generated.

    Parameters
    ----------
    scores : ndarray of float64, shape (m,)
        The attack's, which may depend on the model.
    member : ndarray of bool, shape (m,)
        The coins.
    shown : Shown
        What is known without the model, from other coins than these.
    claim : PureDP or ApproxDP
        The guarantees whose ε is bounded.
    correction : {"poisson_binomial", "match"}
        How what examples give away by themselves is taken out.
    confidence : float
        Probability that the bound is not above the truth.
    seed : int
        Of the order of the examples, of what is kept and of the sceptic.

    Returns
    -------
    ZeroRunResult
        Of kind "conditional_lower_bound", for replacing one example.

    Raises
    ------
    NoOverlapError
        If matching keeps fewer than two examples.
    LeakboundError
        As `audit_zero_run` does.

    Notes
    -----
    Members are independent draws from the population of the training data, non-members from the
    generator, and the coins are fair. So, given all examples shown, the coins are independent with
    P(member | x) = π(x). Where the coin hid the member, training had that member in the place of
    the example shown; it is a draw that knows nothing of what is shown. To flip a coin is thus to
    replace one example, and under ε-DP the odds of a coin, given the model, all other coins and
    what is shown, are within a factor of exp(±ε) of π/(1 - π): what Zero-Run supposes, for ε of
    replacement. The proof is in `docs/panoramia.md`.
    """
    result = audit_zero_run(
        scores,
        member,
        1 / (1 + np.exp(-shown.log_odds)),
        claim=claim,
        correction=correction,
        confidence=confidence,
        features=shown.features,
        seed=seed,
    )
    return replace(
        result,
        assumptions=tuple(_of_pairs(one, shown) for one in result.assumptions),
        options=result.options | {"propensity": f"{shown.model}, learnt from {shown.learnt_from}"},
    )


def cross_fitted(
    baseline: FloatArray, features: FloatArray, member: BoolArray, *, seed: int
) -> CrossFit:
    """Learn propensities of each half of the examples from the coins of the other half.

    Parameters
    ----------
    baseline : ndarray of float64, shape (m,)
        The baseline's scores; ±inf counts as the largest or smallest finite one.
    features : ndarray of float64, shape (m, d)
        Features of the examples.
    member : ndarray of bool, shape (m,)
        The coins.
    seed : int
        Of the halves.

    Returns
    -------
    CrossFit
        On the columns of both.

    Raises
    ------
    ClassMissingError, PropensityFitError
        If a half lacks members or non-members.
    """
    table = columns(np.column_stack([_finite(baseline), features]))
    return cross_fit(LogisticPropensity(), table, member, seed=seed)


def audit_crossed(
    scores: FloatArray,
    member: BoolArray,
    crossed: CrossFit,
    *,
    claim: PureDP | ApproxDP,
    correction: PairCorrection,
    confidence: float,
    seed: int,
) -> ZeroRunResult:
    """Audit each half at half of the error probability, and return the one that proves more.

    Parameters
    ----------
    scores, member, claim, correction, confidence, seed
        As for `audit_shown`, of both halves together.
    crossed : CrossFit
        From `cross_fitted`.

    Returns
    -------
    ZeroRunResult
        That half's result, at the confidence of both. Where the propensities of either half are
        refuted, it is that half's, and its bound is withheld.

    Raises
    ------
    NoOverlapError
        As for `audit_shown`.
    LeakboundError
        As `audit_zero_run` does.
    """

    def audit(fold: Fold, confidence: float) -> ZeroRunResult:
        table = fold.options["features"]
        replicates = refits(complement(confidence))
        log_odds = fold.model.bootstrap(table, K=replicates, seed=seed, progress=False)
        return audit_shown(
            fold.scores,
            fold.member,
            Shown(log_odds, table, _MODEL, _LEARNT),
            claim=claim,
            correction=correction,
            confidence=confidence,
            seed=seed,
        )

    folds = Folds(crossed, Attacks({"": scores}), member, None, None)
    best = folds.best(complement(confidence), audit)
    return replace(best, confidence=confidence, theorem=_CROSSED + best.theorem)


def _finite(scores: FloatArray) -> FloatArray:
    finite = scores[np.isfinite(scores)]
    low, high = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
    cut: FloatArray = np.clip(scores, low, high)
    return cut


def _of_pairs(assumption: Assumption, shown: Shown) -> Assumption:
    """Say of pairs what is otherwise said of examples that joined training or not."""
    words = {
        "propensities": (
            f"{assumption.statement} The model is a {shown.model}: what it looks at must say all "
            "that an example says of its coin, in that form."
        ),
        "independent memberships": (
            "Members are independent draws from one population, non-members from the generator, "
            "and each coin is fair and its own: given what is shown, coins are independent of one "
            "another and of the rest of training."
        ),
        "propensities from other examples": (
            f"The propensities were learnt from {shown.learnt_from}; the audited coins had no part "
            "in them, nor had the model."
        ),
        "add or remove one example": REPLACED.statement,
    }
    name = "replace one example" if assumption.name.startswith("add or") else assumption.name
    return replace(
        assumption, name=name, statement=words.get(assumption.name, assumption.statement)
    )
