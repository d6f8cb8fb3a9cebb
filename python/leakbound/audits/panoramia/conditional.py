"""Zero-Run on the audit set of PANORAMIA: a lower bound on ε under a logistic model.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.road import Attacks
from leakbound.audits.zero_run.audit import ZeroRunAudit
from leakbound.audits.zero_run.learning import Learning
from leakbound.audits.zero_run.request import Candidates, ZeroRunRequest
from leakbound.claims import ApproxDP, PureDP
from leakbound.report.parts import Assumption
from leakbound.results.zero_run import ZeroRunResult

# How what examples give away by themselves is taken out.
PairCorrection: TypeAlias = Literal["poisson_binomial", "match"]

# Standard deviations beyond which a column goes on as a logarithm: no propensity is 0 or 1.
WIDE = 3.0
# What flipping a coin of PANORAMIA does.
REPLACED = Assumption(
    "replace one example",
    "The hidden member of a pair stays in the training set, so ε refers to replacing one example. "
    "Training that is ε-DP for adding or removing one may reach 2ε here.",
    "declared",
)
_MODEL = "logistic regression on the baseline's score and the features"
_LEARNT = "the coins of the audited examples themselves"


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What is known of the examples that the coins show, without the model.

    `learning` has what log-odds that each is a member are linear in, and other coins to learn them
    from; `model` and `learnt_from` say so in words.
    """

    learning: Learning
    model: str
    learnt_from: str

    @classmethod
    def of_audited(cls, baseline: FloatArray, features: FloatArray) -> "Shown":
        """Learn from the audited coins, given the baseline's scores and features."""
        finite = baseline[np.isfinite(baseline)]
        low, high = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
        table = columns(np.column_stack([np.clip(baseline, low, high), features]))
        return cls(learning=Learning(features=table, seen=table), model=_MODEL, learnt_from=_LEARNT)


def columns(values: FloatArray, known: FloatArray | None = None) -> FloatArray:
    """Return columns in standard deviations, far values drawn in."""
    table = values.reshape(len(values), -1)
    like = table if known is None else known.reshape(len(known), -1)
    spread = np.maximum(like.std(axis=0), np.finfo(np.float64).tiny)
    steps = (table - like.mean(axis=0)) / spread
    size = np.abs(steps)
    drawn: FloatArray = np.sign(steps) * (
        np.minimum(size, WIDE) + np.log1p(np.maximum(size - WIDE, 0.0))
    )
    return drawn


@dataclass(frozen=True, eq=False)
class PairAudit:
    """Bounds ε from below, given the probability that an example is real and not generated.

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

    prepared: ZeroRunAudit
    shown: Shown

    @classmethod
    def prepare(
        cls, scores: FloatArray, member: BoolArray, shown: Shown, *, confidence: float, seed: int
    ) -> "PairAudit":
        """Find the log-odds that the coins do not rule out, once for every correction."""
        request = ZeroRunRequest(confidence=confidence, seed=seed)
        candidates = Candidates(request, ExampleOrder(), Attacks({"": scores}), member)
        return cls(ZeroRunAudit.prepare(candidates, shown.learning), shown)

    def bound(self, claim: PureDP | ApproxDP, correction: PairCorrection) -> ZeroRunResult:
        """Return a bound of kind "conditional_lower_bound", for replacing one example."""
        prepared, shown = self.prepared, self.shown
        request = replace(prepared.candidates.request, claim=claim, correction=correction)
        result = prepared(request)
        return replace(
            result,
            assumptions=tuple(_of_pairs(one, shown) for one in result.assumptions),
            options=result.options
            | {"propensity": f"{shown.model}, learnt from {shown.learnt_from}"},
        )


def _of_pairs(assumption: Assumption, shown: Shown) -> Assumption:
    """Word for pairs what is otherwise about examples that joined training or not."""
    words = {
        "propensities": (
            f"{assumption.statement} The model is a {shown.model}: its inputs must contain "
            "everything about an example that predicts its coin, in this form."
        ),
        "independent memberships": (
            "Members are independent draws from one population, non-members from the generator, "
            "and each coin is fair and separate: given what is shown, coins are independent of "
            "each other and of the rest of training."
        ),
        "propensities learned from labels only": (
            f"The propensities were learnt from {shown.learnt_from}, which the confidence set "
            "allows for. The audited model was not used."
        ),
        "add or remove one example": REPLACED.statement,
    }
    name = "replace one example" if assumption.name.startswith("add or") else assumption.name
    return replace(
        assumption, name=name, statement=words.get(assumption.name, assumption.statement)
    )
