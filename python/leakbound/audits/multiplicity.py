"""Several attacks audited together: each at its share of the level."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_length, check_scores
from leakbound._base.records import Lazy
from leakbound._base.types import ArrayInput, FloatArray, JsonValue, Kind
from leakbound.audits.policies.f_dp import FamilyPolicy, in_parameter
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import ShapeError
from leakbound.results import ScoreAudit


class Proved(Protocol):
    """What one attack proves."""

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter."""

    @property
    def strength(self) -> float:
        """What proofs are compared by: larger is more, 0 is nothing."""

    def with_options(self, more: dict[str, JsonValue]) -> Self:
        """Return the same with more options to report."""


P = TypeVar("P", bound=Proved)


@dataclass(frozen=True)
class Proof:
    """What one attack proves, and how; `family` is what bounded a family of trade-off functions."""

    strengths: ScoreAudit
    kind: Kind
    method: str
    options: dict[str, JsonValue]
    family: FamilyPolicy | None = None

    @property
    def audit(self) -> ScoreAudit:
        """The bounds, on the claim's parameter."""
        return self.strengths if self.family is None else in_parameter(self.strengths, self.family)

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter."""
        return self.audit.bound

    @property
    def strength(self) -> float:
        """What proofs are compared by."""
        return self.strengths.bound

    @property
    def rejected(self) -> TradeOff | None:
        """The curve of a family that is rejected."""
        return None if self.family is None else self.family.rejected(self.strength)

    @property
    def rejectable(self) -> Lazy[TradeOff | None]:
        """The curve that a perfect attack would have rejected."""
        family = self.family
        return Lazy(lambda: None if family is None else family.rejected(self.strengths.ceiling))

    def with_options(self, more: dict[str, JsonValue]) -> "Proof":
        """Return the same with more options to report."""
        return replace(self, options=self.options | more)


@dataclass(frozen=True, eq=False)
class Attacks:
    """The scores of one attack or of several, by name; alone, an attack has an empty name."""

    scores: dict[str, FloatArray]

    @classmethod
    def read(
        cls, scores: ArrayInput | Mapping[str, ArrayInput], order: ExampleOrder | None = None
    ) -> "Attacks":
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
    def _of(cls, given: dict[str, ArrayInput], order: ExampleOrder) -> "Attacks":
        if not given:
            message = "scores is empty: at least one attack is needed"
            raise ShapeError(message)
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
        best = max(proofs, key=lambda name: proofs[name].strength)
        winner = proofs[best]
        if len(proofs) == 1 and not best:
            return winner
        alone = prove(self.scores[best], beta) if len(proofs) > 1 else winner
        cost = abs(alone.bound - winner.bound) if alone.strength > winner.strength else 0.0
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
        raise ShapeError(message)
    return listed


def _has_rows(scores: Any) -> bool:
    """Return whether scores are rows; a single column is no such thing."""
    if isinstance(scores, list | tuple):
        return len(scores) > 0 and isinstance(scores[0], list | tuple | np.ndarray)
    shape: tuple[int, ...] = getattr(scores, "shape", ())
    return len(shape) == 2 and shape[1] != 1
