"""The options that an audit has whatever the design: checked once, and designs build on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

from leakbound._base.checks import choice, complement, instance
from leakbound._base.streams import seed_of
from leakbound._base.tally import Tally
from leakbound._base.types import ArrayInput, SidesChoice
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.cuts import CUT_POLICIES, CutPolicy
from leakbound.errors import IncompatibleOptionsError

if TYPE_CHECKING:
    from leakbound.results.base import Result

Scores: TypeAlias = ArrayInput | Mapping[str, ArrayInput] | Tally
"""Scores of one attack or of several, or counts of them."""
R_co = TypeVar("R_co", bound="Result", covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """What is tested, and how surely: the options of `leakbound.audit`."""

    claim: Claim = PureDP()  # noqa: RUF009 (frozen)
    confidence: float = 0.95
    cuts: CutPolicy | None = None
    sides: SidesChoice = "both"
    ids: ArrayInput | None = None
    seed: int

    def __post_init__(self) -> None:
        instance(self.claim, "claim", CLAIMS)
        if self.cuts is not None:
            instance(self.cuts, "cuts", CUT_POLICIES)
        choice(self.sides, "sides", SidesChoice)
        complement(self.confidence)
        object.__setattr__(self, "confidence", float(self.confidence))

    @property
    def level(self) -> float:
        """The probability of error."""
        return complement(self.confidence)


class Design(ABC, Generic[R_co]):
    """What was random, and so what a right guess proves: where an audit's own options live."""

    name: ClassVar[str]
    """How results and the command line call it."""
    claim: ClassVar[Claim] = PureDP()
    """What is tested if nothing else is claimed."""
    has_sides: ClassVar[bool] = True
    """Whether guesses of "member" alone can be asked for."""

    @abstractmethod
    def audit(self, scores: Scores, request: Request, /) -> R_co:
        """Bound the claim's parameter from below."""

    def request(
        self,
        claim: Claim | None,
        confidence: float,
        cuts: CutPolicy | None,
        sides: SidesChoice,
        ids: ArrayInput | None,
        seed: int | None,
    ) -> Request:
        """Check the options that all designs share."""
        asked = Request(
            claim=self.claim if claim is None else claim,
            confidence=confidence,
            cuts=cuts,
            sides=sides,
            ids=ids,
            seed=seed_of(seed),
        )
        if not self.has_sides and sides != "both":
            message = f'sides="{sides}" has no meaning for {type(self).__name__}: leave it out'
            raise IncompatibleOptionsError(message)
        return asked
