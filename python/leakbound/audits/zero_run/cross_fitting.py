"""Zero-Run where propensities are learnt from the audit set itself, each fold's from the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.records import Lazy
from leakbound._base.validation import check_length, complement
from leakbound.audits.engine.evidence import provenance
from leakbound.audits.zero_run.by_shift import ShiftAudit
from leakbound.audits.zero_run.candidates import Candidates
from leakbound.errors import IncompatibleOptionsError, UnmatchedIdsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leakbound._base.types import JsonValue
    from leakbound.claims import Claim
    from leakbound.propensity import CrossFit
    from leakbound.results.zero_run import ZeroRunResult


@dataclass(frozen=True, eq=False)
class Folds:
    """The folds of an audit set, and their models."""

    crossed: CrossFit
    candidates: Candidates

    def check(self) -> None:
        """Check that the folds are those of the audited examples."""
        if self.candidates.request.features is not None:
            message = "a CrossFit has the features of the audited examples: leave out features"
            raise IncompatibleOptionsError(message)
        check_length(self.crossed.fold, self.candidates.attacks.examples, "the folds of propensity")
        other = np.flatnonzero(self.crossed.member != self.candidates.member)
        if other.size:
            message = (
                "propensity was cross-fitted with another membership, or with the examples in "
                f"another order than the scores ({other.size} rows differ, the first being row "
                f"{other[0]}): cross-fit in the order of the scores"
            )
            raise UnmatchedIdsError(message)

    def audits(self) -> Iterator[ShiftAudit]:
        """Yield the audit of each fold, with the model that did not see it."""
        attacks, request = self.candidates.attacks, self.candidates.request
        for rows, model in self.crossed.parts():
            scores = {name: values[rows] for name, values in attacks.scores.items()}
            own = replace(
                request,
                features=self.crossed.features[rows],
                ids=None if request.ids is None else np.asarray(request.ids)[rows],
            )
            part = replace(attacks, scores=scores).given
            yield ShiftAudit.prepare(
                Candidates.read(part, self.candidates.member[rows], own), model
            )


@dataclass(frozen=True, eq=False)
class FoldsAudit:
    """Audits every fold at its share of the error probability; the best counts.

    Given the memberships of the other folds, the propensities of a fold are fixed and its own
    memberships independent of them. If the propensities of any fold were refuted, its result is
    returned in place of the best, since all models are of one kind.
    """

    folds: Folds
    audits: tuple[ShiftAudit, ...]

    @classmethod
    def prepare(cls, candidates: Candidates, crossed: CrossFit) -> FoldsAudit:
        """Refit the model of every fold."""
        folds = Folds(crossed, candidates)
        folds.check()
        return cls(folds, tuple(folds.audits()))

    def __call__(self, claim: Claim, confidence: float) -> ZeroRunResult:
        """Audit a claim; the options tell which fold won, and what the others proved."""
        candidates = self.folds.candidates
        level = complement(confidence) / len(self.audits)
        results = [audit(claim, 1 - level) for audit in self.audits]
        refuted = [number for number, result in enumerate(results) if result.withheld]
        sign = 1 if claim.order == "increasing" else -1
        chosen = max(range(len(results)), key=lambda number: sign * results[number].bound)
        if refuted:
            chosen = refuted[0]
        winner = results[chosen]
        told: dict[str, JsonValue] = {
            "fold": chosen,
            "folds": [result.bound for result in results],
            "folds_level": level,
        }
        return replace(
            winner,
            options=winner.options | told,
            confidence=float(confidence),
            _naive=Lazy(lambda: candidates.naive(claim, confidence)),
            _provenance=provenance(
                candidates.request.seed,
                **candidates.attacks.digested,
                member=candidates.member,
                features=self.folds.crossed.features,
            ),
        )
