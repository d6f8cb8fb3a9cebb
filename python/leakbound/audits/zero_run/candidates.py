"""The examples that a Zero-Run audit is about, and the result of auditing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leakbound._base.alignment import ExampleOrder
from leakbound._base.records import Lazy, encode
from leakbound._base.validation import check_ids
from leakbound.audits.engine.evidence import delta_warnings, family_assumption, histogram
from leakbound.audits.multiplicity import Attacks
from leakbound.audits.one_run.audit import audit_coins
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.claims import FAMILIES
from leakbound.results.one_run import as_epsilon
from leakbound.results.zero_run import ZeroRunResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leakbound._base.types import (
        Adversary,
        ArrayInput,
        BoolArray,
        Correction,
        FloatArray,
        HasMember,
        JsonValue,
        Sides,
    )
    from leakbound.audits.zero_run.request import ZeroRunRequest
    from leakbound.claims import Claim
    from leakbound.claims.tradeoff import TradeOff
    from leakbound.results import Assumption, ScoreAudit

WITHHELD = (
    "the propensity model was refuted, so the bound is withheld: fit a richer one, or ask for the "
    "bound with release_refuted=True"
)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Scores and membership in one order, and the options of their audit."""

    attacks: Attacks
    member: BoolArray
    order: ExampleOrder
    request: ZeroRunRequest

    @classmethod
    def read(
        cls,
        scores: ArrayInput | Mapping[str, ArrayInput],
        member: ArrayInput | HasMember,
        request: ZeroRunRequest,
    ) -> Candidates:
        """Check scores and membership, and join what carries ids."""
        order = ExampleOrder(request.ids)
        attacks = Attacks.read(scores, order)
        included = order.member(member, attacks.examples)
        if request.ids is not None:
            check_ids(request.ids, included)
        return cls(attacks, included, order, request)

    def features(self) -> ArrayInput | None:
        """Return the features in the order of the scores, if there are any."""
        given = self.request.features
        return None if given is None else self.order.placed(given, "features")

    def naive(self, claim: Claim, confidence: float) -> float:
        """Return the ε claimed by an audit that takes every membership for a fair coin."""
        uncorrected = audit_coins(
            self.attacks.given,
            self.member,
            OneRunRequest(
                claim=claim,
                confidence=confidence,
                sides=self.request.sides,
                seed=self.request.seed,
            ),
        )
        return as_epsilon(uncorrected.claim, uncorrected.bound, uncorrected.rejected)

    def result(
        self,
        audit: ScoreAudit,
        rows: tuple[FloatArray, BoolArray],
        *,
        claim: Claim,
        confidence: float,
        bound: float,
        correction: Correction,
        adversary: Adversary,
        level: float,
        assumptions: tuple[Assumption, ...],
        options: dict[str, JsonValue],
        warnings: tuple[str, ...],
        **own: Any,
    ) -> ZeroRunResult:
        """Return the result of one claim; `rows` are the scores and membership that were audited.

        `own` are fields of `ZeroRunResult` that depend on how log-odds are known. What is withheld
        has no warnings about the size of a bound.
        """
        request = self.request
        scores, member = rows
        return ZeroRunResult(
            claim=claim,
            confidence=float(confidence),
            bound=bound,
            m=scores.size,
            members=int(member.sum()),
            guesses=audit.guesses,
            correct=audit.correct,
            path=audit.path,
            auc=audit.auc,
            assumptions=(*assumptions, *family_assumption(claim)),
            options=audit.options
            | {
                "correction": correction,
                "sides": request.sides,
                "adversary": adversary,
                "variant": request.variant,
                "max_log_odds": request.max_log_odds,
                "level": level,
                "seed": request.seed,
                "claim": encode(claim),
            }
            | options,
            warnings=(() if own["withheld"] else audit.warnings)
            + warnings
            + delta_warnings(claim.delta, scores.size),
            rejected=_curve(claim, bound, request.sides),
            correction=correction,
            _rejectable=Lazy(lambda: _curve(claim, audit.ceiling, request.sides)),
            _ceiling=Lazy(lambda: audit.ceiling),
            _curve=Lazy(lambda: audit.curve),
            _roc=Lazy(lambda: audit.roc),
            _histogram=Lazy(lambda: histogram(scores, member)),
            _naive=Lazy(lambda: self.naive(claim, confidence)),
            **own,
        )


def _curve(claim: Claim, bound: float, sides: Sides) -> TradeOff | None:
    """Return the curve of a family at a bound; None if nothing is bounded, or no family."""
    if not isinstance(claim, FAMILIES) or bound == claim.nothing:
        return None
    return claim.attained(bound, sides)
