"""Zero-Run with log-odds that are taken as they are, within limits, or under replicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.checks import complement
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound.audits.engine.evidence import provenance
from leakbound.audits.zero_run.assumptions import (
    FROM_OTHER_EXAMPLES,
    conditions,
    given_propensities,
    shift_warnings,
)
from leakbound.audits.zero_run.candidates import WITHHELD
from leakbound.audits.zero_run.proof import ShiftedProof
from leakbound.audits.zero_run.propensities import check_certain, in_order, member_count, read_shift
from leakbound.audits.zero_run.study import Study
from leakbound.audits.zero_run.subset import audited_rows
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts import Fixed
from leakbound.errors import IncompatibleOptionsError
from leakbound.propensity import falsify
from leakbound.propensity.overlap import overlap

if TYPE_CHECKING:
    from leakbound._base.types import Adversary, Correction, FloatArray, IntArray
    from leakbound.audits.engine.coins import MemberCount
    from leakbound.audits.zero_run.candidates import Candidates
    from leakbound.audits.zero_run.propensities import Shift
    from leakbound.audits.zero_run.request import ZeroRunRequest
    from leakbound.claims import Claim
    from leakbound.propensity import Falsification
    from leakbound.results.zero_run import ZeroRunResult

_ADVERSARIES: dict[Correction, Adversary] = {
    "match": "residual",
    "poisson_binomial": "residual",
    "tamper": "residual",
    "composition": "raw",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftAudit:
    """Audits one claim after the other with the same log-odds."""

    candidates: Candidates
    shift: Shift
    count: MemberCount
    rows: IntArray
    refutation: Falsification | None

    @classmethod
    def prepare(cls, candidates: Candidates, propensity: Any) -> ShiftAudit:
        """Read the propensities, choose what is audited, and try to refute them."""
        request, member = candidates.request, candidates.member
        features = candidates.features()
        shift = read_shift(
            in_order(propensity, candidates.order),
            member,
            request,
            features=features,
            ids=candidates.order.distinct_ids,
        )
        limit = request.max_log_odds
        check_certain(shift, limit)
        count = member_count(shift, member, limit)
        if not shift.learnt:
            count.refuse()
        scores = candidates.attacks.scores.values()
        rows = audited_rows(scores, shift.largest, limit, request.seed)
        if isinstance(request.cuts, Fixed):
            request.cuts.check(rows.size)
        refutation = None
        if request.falsify and features is not None and not shift.limited:
            refutation = falsify(shift.log_odds, features, member, seed=request.seed)
        return cls(
            candidates=candidates, shift=shift, count=count, rows=rows, refutation=refutation
        )

    def __call__(self, claim: Claim, confidence: float) -> ZeroRunResult:
        """Audit a claim."""
        request, shift, count = self.candidates.request, self.shift, self.count
        kind = _correction(request, claim, limited=shift.limited)
        proof = self._proof(claim, kind, complement(confidence))
        study, corrected, audit = proof.study, proof.corrected, proof.corrected.audit
        refuted = count.impossible or (self.refutation is not None and self.refutation.refuted)
        withheld = refuted and not request.release_refuted
        beyond = shift.largest > (np.inf if request.max_log_odds is None else request.max_log_odds)

        def tampered() -> float | None:
            return None if withheld or kind != "match" else proof.by_tampering()

        return self.candidates.result(
            audit,
            (study.scores, study.member),
            claim=claim,
            confidence=confidence,
            kind="exploratory_lower_bound" if shift.learnt else "conditional_lower_bound",
            bound=claim.nothing if withheld else proof.bound,
            reason=WITHHELD if withheld else proof.reason,
            theorem=corrected.theorem,
            assumptions=conditions(
                given_propensities(shift, count, self.refutation),
                FROM_OTHER_EXAMPLES,
                request,
                self.candidates.attacks.others,
            ),
            correction=kind,
            adversary=study.adversary,
            level=study.level,
            options=proof.options | {"uncertainty": shift.uncertainty},
            warnings=study.warnings()
            + shift.warnings
            + count.warnings()
            + shift_warnings(corrected, shift, self.refutation, self.rows.size),
            kept=corrected.kept,
            m_eff=corrected.m_eff,
            abstained=int(beyond.sum()),
            bootstrap=proof.replicates,
            falsification=self.refutation,
            withheld=withheld,
            _overlap=Lazy(lambda: overlap(shift.log_odds, self.candidates.member)),
            _by_tampering=Lazy(tampered),
            _provenance=provenance(
                request.seed,
                **self.candidates.attacks.digested,
                member=self.candidates.member,
                log_odds=shift.log_odds,
            ),
        )

    def _proof(self, claim: Claim, kind: Correction, beta: float) -> ShiftedProof:
        """Return what the best attack proves, every attack audited at its share of the level."""
        request, rows = self.candidates.request, self.rows
        member, shift = self.candidates.member[rows], self.shift.rows(rows)
        uniforms = Purpose.MATCHING.rng(request.seed).random(rows.size)

        def prove(values: FloatArray, beta: float) -> ShiftedProof:
            level = beta if shift.draws is None else beta / 2
            study = Study(
                scores=values[rows],
                member=member,
                shift=shift,
                uniforms=uniforms,
                claim=claim,
                cuts=request.cuts,
                sides=request.sides,
                adversary=request.adversary or _ADVERSARIES[kind],
                variant=request.variant,
                level=level,
                seed=request.seed,
            )
            return ShiftedProof.of(study, kind, p=level)

        return self.candidates.attacks.prove(beta, prove)


def _correction(request: ZeroRunRequest, claim: Claim, *, limited: bool) -> Correction:
    correction = request.correction
    if request.variant == "untampered":
        if isinstance(claim, ApproxDP) and correction in {"conditional", "poisson_binomial"}:
            return "poisson_binomial"
        message = (
            f'variant="untampered" is for ApproxDP(δ) by correction="poisson_binomial", got '
            f"{claim!r} by {correction!r}: take another variant"
        )
        raise IncompatibleOptionsError(message)
    if correction != "conditional":
        return correction
    if isinstance(claim, PureDP):
        return "poisson_binomial"
    return "tamper" if limited else "match"
