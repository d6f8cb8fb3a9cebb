"""From examples that a design has read to a result: every attack is tested, the best is reported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from numpy import generic
from numpy.typing import NDArray

from leakbound._base.records import Lazy
from leakbound._base.types import FloatArray, JsonValue
from leakbound.audits.attacks import Attacks, Proof
from leakbound.audits.evidence import provenance
from leakbound.audits.policies.choice import prove
from leakbound.audits.request import Request
from leakbound.cuts import Game
from leakbound.results import Assumption, AuditResult


@dataclass(frozen=True, kw_only=True, eq=False)
class Examples:
    """What a design makes of scores: games, and why a bound from them holds.

    `game` makes the game of one attack's scores; `prior` has the probabilities of the coins,
    None where all are fair.
    """

    attacks: Attacks
    game: Callable[[FloatArray], Game]
    prior: FloatArray | None = None
    theorem: str
    assumptions: tuple[Assumption, ...]
    options: Mapping[str, JsonValue]
    warnings: tuple[str, ...]
    inputs: Mapping[str, NDArray[generic]]

    def audit(self, request: Request, design: str) -> AuditResult:
        """Return what the best attack proves."""

        def proof_of(scores: FloatArray, level: float) -> Proof:
            return prove(request.claim, request.cuts, self.game(scores), self.prior, level)

        proof = self.attacks.prove(request.level, proof_of)
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
                **self.options,
                "design": design,
                "seed": request.seed,
                **proof.options,
            },
            warnings=(*audit.warnings, *self.warnings),
            kind=proof.kind,
            claim=request.claim,
            confidence=request.confidence,
            theorem=self.theorem + proof.method,
            assumptions=self.assumptions,
            rejected=proof.rejected,
            _ceiling=Lazy(lambda: audit.ceiling),
            _curve=Lazy(lambda: audit.curve),
            _roc=Lazy(lambda: audit.roc),
            _histogram=Lazy(lambda: audit.histogram),
            _rejectable=proof.rejectable,
            _provenance=provenance(request.seed, **self.inputs),
        )


def scores_from(output: str, units: str) -> Assumption:
    """Return what every audit assumes of scores, made from such an output and such units."""
    return Assumption(
        "scores without membership",
        f"The scores come from the {output} and the {units}; no score was computed or chosen with "
        f"a look at which of these {units} were members.",
        "declared",
    )


def options_before(attempts: str) -> Assumption:
    """Return what every audit assumes of its options; `attempts` says what else was tried."""
    return Assumption(
        "options before the look",
        "Policy, sides and confidence were chosen before membership was looked at, and "
        f"{attempts} tried on it.",
        "declared",
    )
