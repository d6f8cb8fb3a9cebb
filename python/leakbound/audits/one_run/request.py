"""What is asked of an audit of one run: its options, checked once."""

from dataclasses import dataclass, field

from leakbound._base.types import ApproxBound, ArrayInput, Design, FdpTest, Sides
from leakbound._base.validation import choice, complement, instance, integer, shown
from leakbound.claims import CLAIMS, FAMILIES, Claim
from leakbound.cuts import CUT_POLICIES, CutPolicy
from leakbound.errors import IncompatibleOptionsError

__all__ = ["OneRunRequest"]


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRunRequest:
    """The options of `audit_one_run` for one claim; `prior` and `ids` are read with the scores."""

    claim: Claim
    confidence: float
    cuts: CutPolicy | None = None
    sides: Sides = "both"
    bound: ApproxBound = "auto"
    test: FdpTest = "tight"
    prior: float | ArrayInput = 0.5
    design: Design = "coins"
    assume: str | None = None
    ids: ArrayInput | None = None
    seed: int = 0
    level: float = field(init=False)

    def __post_init__(self) -> None:
        instance(self.claim, "claim", CLAIMS)
        if self.cuts is not None:
            instance(self.cuts, "cuts", CUT_POLICIES)
        choice(self.sides, "sides", Sides)
        choice(self.bound, "bound", ApproxBound)
        choice(self.test, "test", FdpTest)
        choice(self.design, "design", Design)
        if self.assume is not None:
            message = (
                f"assume={shown(self.assume)} has no bound here: under pure DP independent guesses "
                "are what the certified bound already allows for, and under other claims a product "
                "of channels says nothing about examples that abstain; leave it out"
            )
            raise IncompatibleOptionsError(message)
        object.__setattr__(self, "level", complement(self.confidence))
        object.__setattr__(self, "confidence", float(self.confidence))
        object.__setattr__(self, "seed", integer(self.seed, "seed", least=0))
        if isinstance(self.claim, FAMILIES):
            self.check_bound()

    def check_bound(self) -> None:
        """Raise if a bound for δ > 0 is named; for claims that have none."""
        if self.bound != "auto":
            named = type(self.claim).__name__
            message = f'bound="{self.bound}" is for claims with delta > 0: leave it out for {named}'
            raise IncompatibleOptionsError(message)
