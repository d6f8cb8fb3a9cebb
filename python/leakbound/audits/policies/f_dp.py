"""Cut policies under a family of trade-off functions, and their number of guesses.

Bounds are on the parameter of the family; 0 means that nothing is rejected.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

import leakbound._core as _core
from leakbound._base.types import CountOptions, FloatArray, IntArray, Kind, PathOrder, Sides
from leakbound.claims import AnyFamily
from leakbound.claims.base import counts_of, unexplained
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import CutPolicy, Fixed, UnionBound
from leakbound.cuts.policies import GridPolicy
from leakbound.cuts.policy import ORDERS, Best, CurvePoints, DerivedPolicy
from leakbound.errors import OptionError

_TEST = (
    "The count is tested against the worst law that the inequalities for all sets of counts allow, "
    "with a proof that none is worse; or by Algorithm 3 of Mahloujifar et al. (2025), where that "
    "rejects more."
)


@dataclass(frozen=True, kw_only=True)
class FamilyPolicy(DerivedPolicy[GridPolicy]):
    """A policy whose bounds are on a family of trade-off functions."""

    kind: ClassVar[Kind] = "family_lower_bound"
    claim: AnyFamily
    examples: int
    sides: Sides

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return f"{self.base.design} {_TEST}"

    @property
    def parameter(self) -> str:
        """See `PathPolicy.parameter`."""
        return self.claim.parameter

    def with_size(self, guesses: int, examples: int, /) -> Self:
        """See `PathPolicy.with_size`."""
        return replace(self, base=self.base.with_size(guesses, examples), examples=examples)

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: the one path that guesses of both sides, or of one, take."""
        return ORDERS[sides][-1:]

    def bound(self, path: _core.Path, level: float, /) -> Best:
        """See `PathPolicy.bound`."""
        guesses, correct = self._cuts(path)
        bounds = self.limits(guesses, correct, level / guesses.size)
        top = int(np.argmax(bounds))
        return Best(float(bounds[top]), int(guesses[top]), int(correct[top]))

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        """See `PathPolicy.curve`; tested cuts are among the points."""
        tested, _ = self._cuts(path)
        others, _ = path.sample(max(1, points - tested.size))
        guesses = np.union1d(tested, others)
        correct = np.array([path.count(int(cut))[1] for cut in guesses])
        bounds = np.full(guesses.size, np.nan)
        where = np.searchsorted(guesses, tested)
        for index in where:
            cut = slice(index, index + 1)
            bounds[cut] = self.limits(guesses[cut], correct[cut], level / tested.size)
        return guesses, correct, bounds

    def limits(self, guesses: IntArray, correct: IntArray, level: float, /) -> FloatArray:
        """Return the bound that each cut proves, 0 where another one rejects more."""
        found, best = np.zeros(guesses.size), 0.0
        for i, (made, right) in enumerate(zip(guesses.tolist(), correct.tolist(), strict=True)):
            counts = self._counts(made, right)
            if best and not self._rejects(best, counts, level):
                continue
            theta = self.claim.critical(counts, level, "tight")
            if theta is not None:
                found[i] = theta
                best = max(best, theta)
        return found

    def rejected(self, bound: float) -> TradeOff | None:
        """Return the curve of a bound that ε is converted from, None for 0."""
        return self.claim.attained(bound, self.sides) if bound else None

    def _rejects(self, bound: float, counts: CountOptions, level: float) -> bool:
        curve = self.claim.curve(bound, self.sides)
        return _core.fdp_rejects(counts, curve.core, level, "tight")

    def doubt(self, guesses: int, correct: int, level: float, /) -> str:
        """See `Policy.doubt`: fair coins hardly give a count that no mechanism explains."""
        if not unexplained(self._counts(guesses, correct), level):
            return ""
        return (
            f"of {guesses} guesses of “member” {correct} are right, which fair coins give with "
            f"probability below {level:g} whatever the mechanism tells: the coins are in doubt"
        )

    def _counts(self, guesses: int, correct: int) -> CountOptions:
        one_sided = self.sides == "member"
        return counts_of(correct, guesses, self.examples, one_sided=one_sided)

    def _cuts(self, path: _core.Path) -> tuple[IntArray, IntArray]:
        pairs = [path.count(cut) for cut in self.base.cuts(path.guesses)]
        guesses, correct = np.array(pairs, dtype=np.int64).T
        return guesses, correct


def family_policy(
    cuts: CutPolicy, claim: AnyFamily, *, examples: int, sides: Sides
) -> FamilyPolicy:
    """Return the policy of an audit of a family, fixed before labels are seen.

    Raise OptionError if there is no form for families.
    """
    if not isinstance(cuts, Fixed | UnionBound):
        message = (
            f"cuts={type(cuts).__name__} is not for {claim.name}: take OutsideIn, Fixed or "
            "UnionBound"
        )
        raise OptionError(message)
    if isinstance(cuts, UnionBound) and (cuts.grid == "all" or cuts.tail != "exact"):
        message = (
            'a union bound for trade-off functions needs tail="exact" and a grid: "geometric", or '
            "a few numbers of guesses"
        )
        raise OptionError(message)
    return FamilyPolicy(base=cuts, claim=claim, examples=examples, sides=sides)
