"""What is asked of an audit of one run: its options, checked once."""

from dataclasses import dataclass, field, replace

from leakbound._base.types import (
    Aggregate,
    ApproxBound,
    ArrayInput,
    Design,
    FdpTest,
    SidesChoice,
)
from leakbound._base.validation import choice, complement, instance, integer, shown
from leakbound.claims import CLAIMS, FAMILIES, Claim, SubsampledGaussianDP
from leakbound.cuts import CUT_POLICIES, CutPolicy
from leakbound.errors import IncompatibleOptionsError

__all__ = ["OneRunRequest"]

_HALF = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRunRequest:
    """The options of `audit_one_run` for one claim; `prior` and `ids` are read with the scores."""

    claim: Claim
    confidence: float
    seed: int
    cuts: CutPolicy | None = None
    sides: SidesChoice = "both"
    bound: ApproxBound = "auto"
    test: FdpTest = "tight"
    prior: float | ArrayInput = 0.5
    design: Design = "coins"
    strata: ArrayInput | None = None
    groups: ArrayInput | None = None
    aggregate: Aggregate = "mean"
    features: ArrayInput | None = None
    assume: str | None = None
    ids: ArrayInput | None = None
    level: float = field(init=False)

    def __post_init__(self) -> None:
        instance(self.claim, "claim", CLAIMS)
        if self.cuts is not None:
            instance(self.cuts, "cuts", CUT_POLICIES)
        choice(self.sides, "sides", SidesChoice)
        choice(self.bound, "bound", ApproxBound)
        choice(self.test, "test", FdpTest)
        choice(self.design, "design", Design)
        if self.design == "fixed_size":
            object.__setattr__(self, "design", "random_split")
        choice(self.aggregate, "aggregate", Aggregate)
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
        self._check_design()

    def _check_design(self) -> None:
        """Raise where an option has no meaning under the design."""
        sampled = self.claim if isinstance(self.claim, SubsampledGaussianDP) else None
        if self.design != "random_split":
            if sampled is not None and sampled.relation == "replace":
                message = (
                    'relation="replace" is for design="random_split": coins decide whether an '
                    "example is there, which is to add or remove one"
                )
                raise IncompatibleOptionsError(message)
            options = ("strata", "groups", "features")
            named = [name for name in options if getattr(self, name) is not None]
            if named:
                message = f'{named[0]}= is for design="random_split": leave it out'
                raise IncompatibleOptionsError(message)
            return
        if sampled is not None:
            object.__setattr__(self, "claim", replace(sampled, relation="replace"))
        if self.sides != "both":
            message = (
                'sides="member" has no meaning under design="random_split": a guess there is which '
                "of a pair is the member"
            )
            raise IncompatibleOptionsError(message)
        if not (isinstance(self.prior, float | int) and self.prior == _HALF):
            message = (
                'prior= has no meaning under design="random_split": which of a pair is the member '
                "is a fair coin, whatever the shares of the split"
            )
            raise IncompatibleOptionsError(message)

    def check_bound(self) -> None:
        """Raise if a bound for δ > 0 is named; for claims that have none."""
        if self.bound != "auto":
            named = type(self.claim).__name__
            message = f'bound="{self.bound}" is for claims with delta > 0: leave it out for {named}'
            raise IncompatibleOptionsError(message)
