"""From examples that a design has read to a result: all attacks are tested, the best reported."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np
from numpy import generic

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_length, check_scores
from leakbound._base.records import Lazy
from leakbound.audits.figures import curve, histogram_of, roc
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.biased_coins import prior_policy
from leakbound.audits.policies.f_dp import FamilyPolicy, family_policy
from leakbound.audits.policies.joint import joint_policy
from leakbound.claims import FAMILIES, AnyFamily, ApproxDP, Claim, PureDP
from leakbound.cuts import CutPolicy, Game, OutsideIn, Policy, Proof
from leakbound.cuts.policies import default_scan
from leakbound.cuts.policy import PATH_NAMES
from leakbound.errors import InputError
from leakbound.results import Assumption, AuditResult, Provenance, ScoreAudit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leakbound._base.types import ArrayInput, FloatArray, JsonValue
    from leakbound.audits.design import Request


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

        # Each attack has its share of the level; the best is reported.
        proof = self.attacks.prove(request.level, proof_of)
        policy = proof.policy
        family = policy if isinstance(policy, FamilyPolicy) else None
        return AuditResult(
            **parts(proof),
            options={**proof.options, **self.options, "design": design, "seed": request.seed},
            warnings=(*proof.warnings, *self.warnings),
            kind=policy.kind,
            claim=request.claim,
            confidence=request.confidence,
            theorem=self.theorem + policy.method,
            assumptions=self.assumptions,
            rejected=None if family is None else family.rejected(proof.bound),
            _rejectable=Lazy(
                lambda: None if family is None else family.rejected(proof.limit.value)
            ),
            _provenance=provenance(request.seed, **self.inputs),
        )


def prove(
    claim: Claim, cuts: CutPolicy | None, game: Game, prior: FloatArray | None, level: float
) -> Proof:
    """Audit one attack by the form that the claim has of the cut policy.

    `prior` has the chances of the coins, None if all are fair.
    """
    if prior is not None:
        ranks, member = game.labelled()
        policy: Policy = prior_policy(cuts, ranks, member, prior, sides=game.sides)
        return policy.audit(replace(game, break_ties=True), level)
    if isinstance(claim, PureDP):
        return (cuts or default_scan(game.sides, level)).audit(game, level)
    # Where a guarantee may fail, cuts must not depend on scores: ties are broken at random.
    game = replace(game, break_ties=True)
    if isinstance(claim, ApproxDP):
        approx, options = approx_policy(cuts, claim.delta, examples=game.examples, sides=game.sides)
        options["bound_at_delta_0"] = approx.base.audit(game, level).bound
        return approx.audit(game, level).with_options(options)
    return _family_policy(cuts, claim, game, level).audit(game, level)


def _family_policy(
    cuts: CutPolicy | None, claim: AnyFamily, game: Game, level: float
) -> FamilyPolicy:
    """Return the policy of an audit of a family: by default the number of guesses is chosen."""
    if cuts is None or isinstance(cuts, OutsideIn):
        chosen = cuts or OutsideIn()
        return joint_policy(chosen, claim, examples=game.examples, sides=game.sides, beta=level)
    return family_policy(cuts, claim, examples=game.examples, sides=game.sides)


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


def parts(proof: Proof) -> dict[str, Any]:
    """Return the fields that every record of a ranking has, on the claim's parameter."""
    ranking, best = proof.game.rated(proof.ranking), proof.best
    return {
        "bound": proof.bound,
        "reason": proof.reason,
        "m": ranking.examples,
        "members": ranking.members,
        "guesses": best.cut,
        "correct": best.successes,
        "path": PATH_NAMES[proof.order],
        "auc": ranking.auc,
        "_ceiling": proof.limit,
        "_curve": Lazy(lambda: curve(proof)),
        "_roc": Lazy(lambda: roc(ranking)),
        "_histogram": Lazy(lambda: histogram_of(proof.game.shown())),
    }


def score_audit(proof: Proof) -> ScoreAudit:
    """Return what one ranking proves as a record of its own."""
    return ScoreAudit(**parts(proof), options=proof.options, warnings=proof.warnings)


class Proved(Protocol):
    """What one attack proves."""

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter; 0 is nothing."""

    def with_options(self, more: dict[str, JsonValue]) -> Self:
        """Return the same with more options to report."""


P = TypeVar("P", bound=Proved)


@dataclass(frozen=True, eq=False)
class Attacks:
    """The scores of one attack or of several, by name; alone, an attack has an empty name."""

    scores: dict[str, FloatArray]

    @classmethod
    def read(
        cls, scores: ArrayInput | Mapping[str, ArrayInput], order: ExampleOrder | None = None
    ) -> Attacks:
        """Read one vector of scores, rows of them, or a mapping from names; ids are joined."""
        known = ExampleOrder() if order is None else order
        if isinstance(scores, Mapping):
            return cls._of(dict(scores), known)
        names = _columns(scores)
        if names:
            return cls._of({name: cast("Any", scores)[name] for name in names}, known)
        if _has_rows(scores):
            rows = {f"attack {row}": values for row, values in enumerate(cast("Any", scores))}
            return cls._of(rows, known)
        return cls({"": check_scores(known.scores(scores, "scores"))})

    @classmethod
    def _of(cls, given: dict[str, ArrayInput], order: ExampleOrder) -> Attacks:
        if not given:
            message = "scores is empty: at least one attack is needed"
            raise InputError(message)
        named = {name: (f"scores of {name!r}", raw) for name, raw in given.items()}
        read = {
            name: check_scores(order.scores(raw, words), words)
            for name, (words, raw) in named.items()
        }
        examples = next(iter(read.values())).size
        for name, values in read.items():
            check_length(values, examples, f"scores of {name!r}")
        return cls(read)

    @property
    def examples(self) -> int:
        """Number of examples."""
        return next(iter(self.scores.values())).size

    @property
    def given(self) -> FloatArray | dict[str, FloatArray]:
        """The scores in a form that `read` reads as these attacks."""
        return self.scores.get("", self.scores) if len(self.scores) == 1 else self.scores

    @property
    def digested(self) -> dict[str, FloatArray]:
        """The scores under the names of their digests."""
        return {f"scores of {name}" if name else "scores": v for name, v in self.scores.items()}

    @property
    def others(self) -> str:
        """What is assumed of attacks that are not here, but for its verb's object."""
        several = len(self.scores)
        return "no other attack was" if several == 1 else f"no attack but these {several} was"

    def prove(self, beta: float, prove: Callable[[FloatArray, float], P]) -> P:
        """Audit every attack at its share of the level and keep the best; on equality the first.

        The options of the winner name it, and what the others cost.
        """
        share = beta / len(self.scores)
        proofs = {name: prove(values, share) for name, values in self.scores.items()}
        best = max(proofs, key=lambda name: proofs[name].bound)
        winner = proofs[best]
        if len(proofs) == 1 and not best:
            return winner
        alone = prove(self.scores[best], beta) if len(proofs) > 1 else winner
        cost = max(0.0, alone.bound - winner.bound)
        return winner.with_options(
            {
                "attack": best,
                "attacks": {name: proof.bound for name, proof in proofs.items()},
                "attacks_level": share,
                "attacks_cost": cost,
            }
        )


def _columns(scores: object) -> list[str]:
    """Return the names of the columns of a frame: one of pandas or polars, or a table of Arrow."""
    names = getattr(scores, "column_names", None)  # Arrow's columns are arrays
    names = getattr(scores, "columns", None) if names is None else names
    if names is None or not hasattr(scores, "__getitem__"):
        return []
    listed = list(names)
    strange = [name for name in listed if not isinstance(name, str) or listed.count(name) > 1]
    if strange:
        message = f"columns of scores must have different names in text, got {strange[0]!r}"
        raise InputError(message)
    return listed


def _has_rows(scores: Any) -> bool:
    """Return whether scores are rows; a single column is no such thing."""
    if isinstance(scores, list | tuple):
        return len(scores) > 0 and isinstance(scores[0], list | tuple | np.ndarray)
    shape: tuple[int, ...] = getattr(scores, "shape", ())
    return len(shape) == 2 and shape[1] != 1


def provenance(seed: int, **inputs: NDArray[np.generic]) -> Lazy[Provenance]:
    """Return where a result comes from, its digests left until asked for."""
    return Lazy(
        lambda: Provenance(
            leakbound=_core.__version__,
            python=platform.python_version(),
            numpy=np.__version__,
            seed=seed,
            sha256={name: _sha256(values) for name, values in inputs.items()},
        )
    )


def _sha256(values: NDArray[np.generic]) -> str:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return hashlib.sha256(little.data).hexdigest()


def family_assumption(claim: Claim) -> tuple[Assumption, ...]:
    """Return what a bound on a family of trade-off functions assumes; nothing for other claims."""
    if not isinstance(claim, FAMILIES):
        return ()
    return (
        Assumption(
            "family of trade-off functions",
            "The trade-off function of training is a curve of the claimed family, "
            f"{claim.name}. The bound holds within it: for a procedure of another curve, the ε "
            "converted from the rejected one may be above the truth.",
            "declared",
        ),
    )


def delta_warnings(delta: float, examples: int) -> tuple[str, ...]:
    """Say that a δ is no small one for so many examples."""
    if delta < 1 / examples:
        return ()
    note = (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that gives one "
        "example away entirely satisfies the claim, and large ε are hard to refute"
    )
    return (note,)
