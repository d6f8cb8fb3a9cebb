"""Zero-Run on the test part of a run, with propensities from the validation part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from leakbound.audits.panoramia.conditional import PairCorrection, Shown, columns, refits
from leakbound.propensity import LogisticPropensity

if TYPE_CHECKING:
    from leakbound._base.checkpoints import Arrays
    from leakbound._base.types import FloatArray
    from leakbound.results import ZeroRunResult

__all__ = ["CORRECTIONS", "Conditional", "shown_of", "withheld_together"]

Conditional: TypeAlias = Literal["Zero-Run, match", "Zero-Run, Poisson-binomial"]

CORRECTIONS: dict[Conditional, PairCorrection] = {
    "Zero-Run, match": "match",
    "Zero-Run, Poisson-binomial": "poisson_binomial",
}
"""Rows of the table, and how each takes out what examples give away by themselves."""


_OTHER_SEED = (
    "the propensity model was refuted with another seed, and all seeds have models of one kind of "
    "one generator, so every bound is withheld"
)


def withheld_together(results: tuple[ZeroRunResult, ...]) -> tuple[ZeroRunResult, ...]:
    """Withhold the bounds of all seeds if the propensities of any were refuted.

    Parameters
    ----------
    results : tuple of ZeroRunResult
        Of one target under one audit.

    Returns
    -------
    tuple of ZeroRunResult
        As many. Withholding can only lower a bound, so that none becomes invalid.
    """
    if not any(result.withheld for result in results):
        return results
    return tuple(
        one if one.withheld else replace(one, bound=0.0, reason=_OTHER_SEED, withheld=True)
        for one in results
    )


def shown_of(game: Arrays, features: FloatArray, *, level: float, seed: int) -> Shown:
    """Learn the probability that an example is real and not generated, given the baseline's score.

    Parameters
    ----------
    game : dict of str to ndarray
        The baseline's scores of the test part and of the validation part.
    features : ndarray of float64, shape (m, d)
        What is known of the examples shown without the target; a sceptic may use all of it.
    level : float
        Error probability of the audit that they are for.
    seed : int
        Of the refits.

    Returns
    -------
    Shown
        What is known of the test part without a target, from other coins than its own.

    Notes
    -----
    The baseline has learnt from the features, with more examples than the validation part has, so
    its score stands for them. The bound holds if that score says all that an example says of its
    coin.
    """
    known = game["baseline-validation"]
    fit = LogisticPropensity(calibration=None).fit(
        columns(known), np.repeat([True, False], known.size // 2), seed=seed
    )
    baseline = game["baseline"]
    log_odds = fit.bootstrap(columns(baseline, known), K=refits(level), seed=seed, progress=False)
    return Shown(
        log_odds,
        np.column_stack([baseline, features]),
        "logistic regression on the baseline's score",
        "the validation part",
    )
