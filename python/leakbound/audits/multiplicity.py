"""Several attacks audited together: each at its share of the level, and the best wins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.types import ArrayInput, FloatArray, JsonValue
from leakbound._base.validation import check_length, check_scores
from leakbound.audits.policies.f_dp import FamilyPolicy
from leakbound.errors import ShapeError
from leakbound.results import ScoreAudit

__all__ = ["Attacks", "Proof", "Proved"]


class Proved(Protocol):
    """What one attack proves."""

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter."""

    @property
    def strength(self) -> float:
        """What proofs are compared by: larger is more, 0 is nothing."""

    def told(self, more: dict[str, JsonValue]) -> Self:
        """Return the same with more to say in the options."""


P = TypeVar("P", bound=Proved)


@dataclass(frozen=True)
class Proof:
    """What one attack proves, and how.

    Parameters
    ----------
    audit : ScoreAudit
        The bound and where it comes from.
    kind, method : str
        What the bound is, and how it is valid.
    options : dict
        What is to be said of the choice of policy.
    family : FamilyPolicy or None
        What bounded a family of trade-off functions; bounds are then strengths.
    """

    audit: ScoreAudit
    kind: Any
    method: str
    options: dict[str, JsonValue]
    family: FamilyPolicy | None = None

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter."""
        return (
            self.strength if self.family is None else self.family.claim.at_strength(self.strength)
        )

    @property
    def strength(self) -> float:
        """What proofs are compared by."""
        return self.audit.bound

    def told(self, more: dict[str, JsonValue]) -> "Proof":
        """Return the same with more to say in the options."""
        return replace(self, options=self.options | more)


@dataclass(frozen=True, eq=False)
class Attacks:
    """The scores of one attack or of several, by name.

    Parameters
    ----------
    scores : dict of str to ndarray of float64, each of shape (m,)
        Validated scores, all in one order; the name of an attack that is alone is empty.
    """

    scores: dict[str, FloatArray]

    @classmethod
    def read(
        cls, scores: ArrayInput | Mapping[str, ArrayInput], order: ExampleOrder | None = None
    ) -> "Attacks":
        """Read one vector of scores, rows of them, or a mapping from names.

        Parameters
        ----------
        scores : array-like of shape (m,) or (A, m), or mapping
            Real numbers, higher for likelier members.
        order : ExampleOrder, optional
            What is known of the ids; scores that carry their own are joined.

        Returns
        -------
        Attacks
            Scores by name.

        Raises
        ------
        ArrayTypeError, ShapeError, NaNScoresError, LengthMismatchError
            If scores cannot be read, or are not all about the same examples.
        UnmatchedIdsError, DuplicateIdsError
            If scores have different ids.
        """
        known = ExampleOrder() if order is None else order
        if isinstance(scores, Mapping):
            return cls._of(dict(scores), known)
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

        Parameters
        ----------
        beta : float
            Probability of error of all together.
        prove : callable
            Audits scores at a level.

        Returns
        -------
        Proof
            The winner; its options tell which it is and what the others cost.
        """
        share = beta / len(self.scores)
        proofs = {name: prove(values, share) for name, values in self.scores.items()}
        best = max(proofs, key=lambda name: proofs[name].strength)
        winner = proofs[best]
        if len(proofs) == 1 and not best:
            return winner
        alone = prove(self.scores[best], beta)
        cost = abs(alone.bound - winner.bound) if alone.strength > winner.strength else 0.0
        return winner.told(
            {
                "attack": best,
                "attacks": {name: proof.bound for name, proof in proofs.items()},
                "attacks_level": share,
                "attacks_cost": cost,
            }
        )


def _has_rows(scores: Any) -> bool:
    """Return whether scores are rows; a single column is no such thing, and refused as it is."""
    if isinstance(scores, list | tuple):
        return len(scores) > 0 and isinstance(scores[0], list | tuple | np.ndarray)
    shape: tuple[int, ...] = getattr(scores, "shape", ())
    return len(shape) == 2 and shape[1] != 1
