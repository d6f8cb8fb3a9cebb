"""The result of an audit of one run, and the assumptions that every design shares."""

from collections.abc import Mapping

from numpy import generic
from numpy.typing import NDArray

from leakbound._base.records import Lazy
from leakbound._base.types import JsonValue
from leakbound.audits.engine.evidence import provenance
from leakbound.audits.multiplicity import Proof
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.results import Assumption, AuditResult


def scores_from(output: str, units: str) -> Assumption:
    """Return what every audit assumes of scores, made from such an output and such units."""
    return Assumption(
        "scores without membership",
        f"The scores come from the {output} and the {units}; no score was computed or chosen with "
        f"a look at which of these {units} were members.",
        "declared",
    )


SCORES = scores_from("trained model", "examples")
"""What audits of a model's examples assume of the scores."""


def options_before(others: str) -> Assumption:
    """Return what every audit assumes of its options; `others` is what else was tried."""
    return Assumption(
        "options before the look",
        "Policy, sides and confidence were chosen before membership was looked at, and "
        f"{others} tried on it.",
        "declared",
    )


def one_run_result(
    proof: Proof,
    request: OneRunRequest,
    *,
    theorem: str,
    assumptions: tuple[Assumption, ...],
    options: Mapping[str, JsonValue],
    warnings: tuple[str, ...],
    inputs: Mapping[str, NDArray[generic]],
) -> AuditResult:
    """Return what a proof says under a design: `theorem` and `assumptions` are the design's."""
    audit = proof.audit
    return AuditResult(
        bound=audit.bound,
        reason=audit.reason,
        m=audit.m,
        members=audit.members,
        guesses=audit.guesses,
        correct=audit.correct,
        path=audit.path,
        auc=audit.auc,
        options={
            **audit.options,
            **options,
            "design": request.design,
            "seed": request.seed,
            **proof.options,
        },
        warnings=(*audit.warnings, *warnings),
        kind=proof.kind,
        claim=request.claim,
        confidence=request.confidence,
        theorem=theorem + proof.method,
        assumptions=assumptions,
        rejected=proof.rejected,
        _ceiling=Lazy(lambda: audit.ceiling),
        _curve=Lazy(lambda: audit.curve),
        _roc=Lazy(lambda: audit.roc),
        _histogram=Lazy(lambda: audit.histogram),
        _rejectable=proof.rejectable,
        _provenance=provenance(request.seed, **inputs),
    )
