"""What is asked of an audit of one run: its options, checked once."""

from dataclasses import dataclass, field, replace

from leakbound._base.checks import choice, complement, instance, integer
from leakbound._base.types import Aggregate, ArrayInput, Design, SidesChoice
from leakbound.claims import CLAIMS, Claim, SubsampledGaussianDP
from leakbound.cuts import CUT_POLICIES, CutPolicy
from leakbound.errors import IncompatibleOptionsError

_HALF = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRunRequest:
    """The options of `audit_one_run` for one claim; `prior` and `ids` are read with the scores."""

    claim: Claim
    confidence: float
    cuts: CutPolicy | None = None
    sides: SidesChoice = "both"
    prior: float | ArrayInput = 0.5
    design: Design = "coins"
    strata: ArrayInput | None = None
    groups: ArrayInput | None = None
    aggregate: Aggregate = "mean"
    features: ArrayInput | None = None
    ids: ArrayInput | None = None
    seed: int
    level: float = field(init=False)

    def __post_init__(self) -> None:
        instance(self.claim, "claim", CLAIMS)
        if self.cuts is not None:
            instance(self.cuts, "cuts", CUT_POLICIES)
        choice(self.sides, "sides", SidesChoice)
        choice(self.design, "design", Design)
        choice(self.aggregate, "aggregate", Aggregate)
        object.__setattr__(self, "level", complement(self.confidence))
        object.__setattr__(self, "confidence", float(self.confidence))
        object.__setattr__(self, "seed", integer(self.seed, "seed", least=0))
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
