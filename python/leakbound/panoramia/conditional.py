"""Zero-Run on the test part of a run, with propensities from the validation part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from leakbound.audits.panoramia.conditional import PairCorrection, Shown, columns
from leakbound.audits.zero_run.over_set import Learning
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
    """Withhold the bounds of all seeds if the propensities of any were refuted."""
    if not any(result.withheld for result in results):
        return results
    return tuple(
        one if one.withheld else replace(one, bound=0.0, reason=_OTHER_SEED, withheld=True)
        for one in results
    )


def shown_of(game: Arrays, features: FloatArray, *, seed: int) -> Shown:
    """Say what is known of the test part of a game without a target.

    The baseline has learnt from the features, with more examples than the validation part has, so
    its score stands for them: the bound holds if that score says all that an example says of its
    coin. The validation part is D'; a sceptic may use all features.
    """
    known, baseline = game["baseline-validation"], game["baseline"]
    coins = np.repeat([True, False], known.size // 2)
    others, table = columns(known), columns(baseline, known)
    return Shown(
        learning=Learning(
            features=table,
            seen=np.column_stack([table, features]),
            reference=(others, coins),
            guide=LogisticPropensity(calibration=None)
            .fit(others, coins, seed=seed)
            .log_odds(table),
        ),
        model="logistic regression on the baseline's score",
        learnt_from="the validation part and the coins of the test part",
    )
