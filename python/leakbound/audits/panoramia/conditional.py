"""Zero-Run on the audit set of PANORAMIA: a lower bound on ε under a logistic model.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.features import FeatureTable
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.road import AlignedScores, Attacks, Request
from leakbound.audits.zero_run.audit import CORRECTIONS, bound
from leakbound.audits.zero_run.game import drawn_in
from leakbound.audits.zero_run.learning import Learning, learnt
from leakbound.audits.zero_run.options import ZeroRunOptions
from leakbound.claims import PureDP
from leakbound.propensity.likeness import standardised
from leakbound.report.parts import Assumption
from leakbound.results.zero_run import ZeroRunResult

# How what examples give away by themselves is taken out.
PairCorrection: TypeAlias = Literal["poisson_binomial", "match"]
_LEARNT = ZeroRunOptions()
_CORRECTED: dict[PairCorrection, ZeroRunOptions] = {
    "poisson_binomial": ZeroRunOptions(correction="poisson_binomial"),
    "match": ZeroRunOptions(correction="match"),
}

# Standard deviations beyond which a column goes on as a logarithm: no propensity is 0 or 1.
WIDE = 3.0
# What flipping a coin of PANORAMIA does.
REPLACED = Assumption(
    "replace one example",
    "The hidden member of a pair stays in the training set, so ε refers to replacing one example. "
    "Training that is ε-DP for adding or removing one may reach 2ε here.",
    "declared",
)
_PAIRED = (
    Assumption(
        "independent memberships",
        "Members are independent draws from one population, non-members from the generator, and "
        "each coin is fair and separate: given what is shown, coins are independent of each other "
        "and of the rest of training.",
        "declared",
    ),
    REPLACED,
)


def with_model_words(learning: Learning, *, model: str, learnt_from: str) -> Learning:
    """Name the model of what the coins show without the audited one, and what it is learnt from."""
    return replace(
        learning,
        model=f"{model}, learnt from {learnt_from}",
        form=f"{learning.form} The model is a {model}: its inputs must contain everything about an "
        "example that predicts its coin, in this form.",
        source=f"The propensities were learnt from {learnt_from}, which the confidence set allows "
        "for. The audited model was not used",
    )


def of_audited(baseline: FloatArray, features: FeatureTable) -> Learning:
    """Learn from the audited coins, given the baseline's scores and features."""
    if not np.isfinite(baseline).all():
        baseline = _clipped_to_finite(baseline)
    columns = np.column_stack([baseline, features.rows])
    columns_in_range = drawn_in(standardised(columns, np.inf), WIDE)
    names = ("baseline", *features.names)
    learning = Learning.of_table(replace(features, rows=columns_in_range, names=names))
    return with_model_words(
        learning,
        model="logistic regression on the baseline's score and the features",
        learnt_from="the coins of the audited examples",
    )


def _clipped_to_finite(scores: FloatArray) -> FloatArray:
    """Return scores with the largest finite ones in the place of infinite ones."""
    finite_scores = scores[np.isfinite(scores)]
    if not finite_scores.size:
        return np.sign(scores)
    return np.clip(scores, finite_scores.min(), finite_scores.max())


def bounds_of_pairs(
    scores: FloatArray,
    member: BoolArray,
    learning: Learning,
    request: Request,
    corrections: Iterable[PairCorrection],
) -> Iterator[ZeroRunResult]:
    """Bound ε from below, given the probability that an example is real and not generated.

    Each correction gives a bound of kind "conditional_lower_bound", for replacing one example, over
    the same confidence set of log-odds.

    Notes
    -----
    Members are independent draws from the population of the training data, non-members from the
    generator, and the coins are fair. So, given all examples shown, the coins are independent with
    P(member | x) = π(x). Where the coin hid the member, training had that member in the place of
    the example shown; it is a draw that is independent of what is shown. To flip a coin is thus to
    replace one example, and under ε-DP the odds of a coin, given the model, all other coins and
    what is shown, are within a factor of exp(±ε) of π/(1 - π): what Zero-Run supposes, for ε of
    replacement. The proof is in `docs/theory/panoramia.md`.
    """
    examples = AlignedScores(ExampleOrder(), Attacks({"": scores}), member)
    odds = learnt(examples, learning, _LEARNT, request)
    for name in corrections:
        correction = CORRECTIONS[name](claim=request.claim)
        yield bound(examples, odds, correction, _CORRECTED[name], request, drawn=_PAIRED)


def conditional_bounds(
    baseline: FloatArray,
    attack: FloatArray,
    member: BoolArray,
    features: FeatureTable,
    request: Request,
) -> tuple[ZeroRunResult, ZeroRunResult | None]:
    """Return a bound given features; for pure DP by propensities, and another after matching."""
    learning = of_audited(baseline, features)
    corrections: tuple[PairCorrection, ...] = ("match",)
    if isinstance(request.claim, PureDP):
        corrections = ("poisson_binomial", "match")
    without_cuts = replace(request, cuts=None)
    bounds = bounds_of_pairs(attack, member, learning, without_cuts, corrections)
    return next(bounds), next(bounds, None)
