"""Zero-Run on the audit set of PANORAMIA: a lower bound on ε that holds if propensities do.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from leakbound.audits import audit_zero_run
from leakbound.claims import PureDP
from leakbound.propensity import LogisticPropensity
from leakbound.results import Assumption

if TYPE_CHECKING:
    from leakbound._typing import FloatArray
    from leakbound._zero_run_result import ZeroRunResult
    from leakbound.panoramia._checkpoints import Arrays

__all__ = ["CORRECTIONS", "Conditional", "audit_conditionally"]

Conditional: TypeAlias = Literal["Zero-Run, match", "Zero-Run, Poisson-binomial"]

CORRECTIONS: dict[Conditional, Literal["match", "poisson_binomial"]] = {
    "Zero-Run, match": "match",
    "Zero-Run, Poisson-binomial": "poisson_binomial",
}
"""Rows of the table, and how each takes out what examples give away by themselves."""
REFITS = 400
"""Resamples that show how uncertain the propensities are."""
WIDEST = 3.0
"""Standard deviations at which the baseline's score ends, so that no propensity is 0 or 1."""
PROPENSITY = "logistic regression on the baseline's score, fitted to the validation part"


def audit_conditionally(
    game: Arrays,
    target: str,
    features: FloatArray,
    correction: Conditional,
    *,
    confidence: float,
    seed: int,
) -> ZeroRunResult:
    """Bound ε from below, given the probability that an example is real and not generated.

    Parameters
    ----------
    game : dict of str to ndarray
        Coins and scores of the test part, and the baseline's scores of the validation part.
    target : str
        The target that is audited.
    features : ndarray of float64, shape (m, d)
        What is known of the examples shown without the target; a sceptic may use all of it.
    correction : {"Zero-Run, match", "Zero-Run, Poisson-binomial"}
        How shift is taken out.
    confidence : float
        Probability that the bound is not above the truth.
    seed : int
        Of refits and of what is kept.

    Returns
    -------
    ZeroRunResult
        Of kind "conditional_lower_bound", for replacing one example.

    Notes
    -----
    The propensity is P(member | baseline's score). Without leakage (ε = 0) the coins are
    independent of the target given the example, but the attack looks at the whole example: the
    bound holds if the baseline's score says all that the example says of its coin.
    """
    known = game["baseline-validation"]
    fit = LogisticPropensity(calibration=None).fit(
        _feature(known, known), np.repeat([True, False], known.size // 2), seed=seed
    )
    log_odds = fit.bootstrap(_feature(game["baseline"], known), K=REFITS, seed=seed, progress=False)
    result = audit_zero_run(
        game[f"attack-{target}"],
        game["coins"],
        1 / (1 + np.exp(-log_odds)),
        claim=PureDP(),
        correction=CORRECTIONS[correction],
        confidence=confidence,
        features=np.column_stack([game["baseline"], features]),
        seed=seed,
    )
    return replace(
        result,
        assumptions=tuple(map(_of_pairs, result.assumptions)),
        options=result.options | {"propensity": PROPENSITY},
    )


def _feature(scores: FloatArray, known: FloatArray) -> FloatArray:
    """Return scores in standard deviations of the known ones, as a column."""
    spread = max(float(known.std()), np.finfo(np.float64).tiny)
    feature: FloatArray = np.clip((scores - known.mean()) / spread, -WIDEST, WIDEST)[:, None]
    return feature


def _of_pairs(assumption: Assumption) -> Assumption:
    """Say of pairs what is otherwise said of examples that joined training or not."""
    if assumption.name == "propensities":
        statement = (
            f"{assumption.statement} The model is a {PROPENSITY}: that score must say all that an "
            "example says of its coin."
        )
        return replace(assumption, statement=statement)
    if assumption.name == "add or remove one example":
        return Assumption(
            "replace one example",
            "The hidden member of a pair stays in the training set, so ε is that of replacing one "
            "example; training that is ε-DP under adding or removing one may reach 2ε here.",
            "declared",
        )
    return assumption
