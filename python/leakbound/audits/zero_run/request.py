"""What a Zero-Run audit is asked: options, checked once, and examples in one order."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import choice, flag, real
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    Adversary,
    ArrayInput,
    BoolArray,
    CorrectionChoice,
    FloatArray,
    IntArray,
    Uncertainty,
    ZeroRunVariant,
)
from leakbound.audits.coins import as_if_fair
from leakbound.audits.policies.second_look import first_cuts
from leakbound.audits.road import Attacks, Request
from leakbound.claims import Claim, GaussianDP
from leakbound.cuts import CutPolicy, Fixed
from leakbound.errors import AbstentionError, DesignError, OptionError
from leakbound.propensity import LogisticPropensity, PropensityFit
from leakbound.results import Assumption, AuditResult
from leakbound.results.one_run import as_epsilon


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroRunOptions:
    """The options of `ZeroRun`, checked."""

    correction: CorrectionChoice = "conditional"
    adversary: Adversary | None = None
    variant: ZeroRunVariant = "directional"
    uncertainty: Uncertainty | None = None
    features: ArrayInput | None = None
    max_log_odds: float | None = None
    falsify: bool = True
    release_refuted: bool = False

    def __post_init__(self) -> None:
        choice(self.correction, "correction", CorrectionChoice)
        choice(self.variant, "variant", ZeroRunVariant)
        if self.adversary is not None:
            choice(self.adversary, "adversary", Adversary)
        if self.uncertainty is not None:
            choice(self.uncertainty, "uncertainty", Uncertainty)
        for name in ("falsify", "release_refuted"):
            object.__setattr__(self, name, flag(getattr(self, name), name))
        if self.max_log_odds is not None:
            limit = real(self.max_log_odds, "max_log_odds", above=0)
            object.__setattr__(self, "max_log_odds", limit)

    @property
    def limit(self) -> float:
        """The largest |λ| of an example that is audited."""
        return np.inf if self.max_log_odds is None else self.max_log_odds


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroRunRequest(Request, ZeroRunOptions):
    """The options of the verb and of the design together."""

    claim: Claim = GaussianDP()  # noqa: RUF009 (frozen)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The options of an audit, and scores and membership in one order."""

    request: ZeroRunRequest
    order: ExampleOrder
    attacks: Attacks
    member: BoolArray

    def features(self) -> ArrayInput | None:
        """Return the features in the order of the scores, if there are any."""
        given = self.request.features
        return None if given is None else self.order.placed(given, "features")

    def features_for(self, model: PropensityFit | LogisticPropensity) -> ArrayInput:
        """Return the features that a model needs, of examples none of which may be in its D'."""
        features, ids = self.features(), self.order.distinct_ids
        if features is None:
            raise OptionError(
                "a propensity model needs the features of the audited examples: features="
            )
        if ids is not None and isinstance(model, PropensityFit):
            model.rows.check_disjoint(ids)
        return features

    def naive(self, request: ZeroRunRequest) -> float:
        """Return the ε claimed by an audit that takes every membership for a fair coin."""
        confidence = request.confidence
        fair = as_coins(self.attacks.scores, self.member, request, confidence=confidence)
        return as_epsilon(fair.claim, fair.bound, fair.rejected, fair.least_delta)

    def audited(self, largest: FloatArray) -> IntArray:
        """Return the rows that are audited, in an order that says nothing about membership.

        `largest` has the largest |λ| of each example: rows are chosen by features alone.
        """
        request = self.request
        allowed = np.flatnonzero(largest <= request.limit)
        if allowed.size < 2:
            size = f"{allowed.size} example{'' if allowed.size == 1 else 's'}"
            limited = request.max_log_odds is not None
            within = f" with |log-odds| of at most {request.limit:g}" if limited else ""
            why = f"there is no pair to compare among {size}{within}"
            raise no_overlap(why)
        for values in self.attacks.scores.values():
            if values[allowed].min() == values[allowed].max():
                raise AbstentionError(
                    f"all {allowed.size} scores are equal, so every example abstains: use a score "
                    "that differs between examples"
                )
        if isinstance(request.cuts, Fixed):
            request.cuts.check(allowed.size)
        return Purpose.AUDITED_ORDER.rng(request.seed).permutation(allowed)


def as_coins(
    scores: Any,
    member: BoolArray,
    request: ZeroRunRequest,
    *,
    confidence: float,
    cuts: CutPolicy | None = None,
) -> AuditResult:
    """Audit as if every membership had been a fair coin, by one test."""
    options = {name: getattr(request, name) for name in ("claim", "sides", "seed")}
    own = Request(**options, confidence=confidence, cuts=cuts)
    if cuts is None:
        own = replace(own, cuts=first_cuts(own.claim, request.sides, own.level))
    return as_if_fair(scores, member, own)


def no_overlap(why: str) -> DesignError:
    """Return the error that says why nothing can be concluded."""
    return DesignError(
        f"{why}: members and non-members do not overlap, so high scores of members may be due to "
        "their features as well as to training, and no audit can distinguish the two (Proposition "
        "3 of Cebere, Even, Bleistein and Bellet); find non-members that could have been members"
    )


def conditions(source: Assumption, request: ZeroRunRequest, others: str) -> tuple[Assumption, ...]:
    """Return what must be true, besides the propensities, for the bound to mean what it says.

    `others` is what is assumed of other attacks, but for the verb's object.
    """
    limited = f"if their log-odds are beyond {request.limit:g}, whatever their score."
    abstention = "for no reason." if request.max_log_odds is None else limited
    return (
        Assumption(
            "independent memberships",
            "Given the features, each audited example was in the training set independently of the "
            "others, with its propensity. The rest of training does not depend on which were.",
            "declared",
        ),
        Assumption(
            "add or remove one example",
            "The claim is about adding or removing one training example. Each candidate joined "
            "training independently, and the audit set was chosen without knowing which did.",
            "declared",
        ),
        source,
        Assumption(
            "scores without membership",
            "The scores come from the trained model and the examples only, and options were chosen "
            f"before anybody looked at membership; {others} tried on it.",
            "declared",
        ),
        Assumption(
            "abstention by features only",
            "Guesses and their order depend on scores and propensities only. Examples are left "
            "out " + abstention,
            "checked",
        ),
    )
