"""The default: outside-in, and beside it a second look that needs no order of confidence."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import leakbound._core as _core
from leakbound._base.types import JsonValue, PathOrder, Sides
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.f_dp import OutsideInFamily
from leakbound.claims import AnyFamily, ApproxDP, Claim, PureDP
from leakbound.cuts import KLScan, OutsideIn, SecondLook
from leakbound.cuts.look import Look, Part, Parts
from leakbound.cuts.outside_in import LadderPolicy
from leakbound.cuts.policies import default_scan

# The look of a family weighs numbers of guesses as the plan weighs those so many times smaller.
_TIMES_SMALLER = 4.0


@dataclass(frozen=True, kw_only=True)
class _ScanBeside(KLScan):
    """`KLScan` that is not calibrated where it is sure to prove less than other tests did.

    The claim is pure DP, whose ε is the log-odds of a guess.
    """

    least: float = -math.inf

    def above(self, least: float) -> Self:
        """See `Policy.above`."""
        return replace(self, least=least)

    def described(self, level: float, /) -> JsonValue:
        """See `PathPolicy.described`: to results it is a scan, as `least` changes no bound."""
        return {"type": KLScan.__name__, **self._options(level)}

    def bound(
        self, path: _core.Path, _order: PathOrder, level: float, failures: float = 0.0, /
    ) -> _core.Bound:
        """See `PathPolicy.bound`."""
        options = self._options(level)
        return _core.kl_scan(path, beta=level, failures=failures, least=self.least, **options)


DEFAULT = SecondLook()
"""The policy where none is given; what it and its tests are made of is checked once."""
_LADDER = OutsideIn()
_SCAN_BESIDE = _ScanBeside()


def second_look(
    cuts: SecondLook, claim: Claim, *, examples: int, sides: Sides, level: float, k: int = 2
) -> Parts:
    """Return the tests of a claim, with shares that claim and sides fix."""
    if not isinstance(claim, PureDP):
        ladder = _planned_outside_in(claim, examples=examples, sides=sides, level=level, k=k)
        return _parts_with_look(cuts, Part("outside-in", ladder, 1 - cuts.look), ladder)
    if sides != "auto":
        return _scan_beside_look(cuts, sides, level)
    first = Part("outside-in", _LADDER, 1 - cuts.look - cuts.scan)
    return _parts_with_look(cuts, first, _LADDER, Part("scan", _SCAN_BESIDE, cuts.scan))


def _scan_beside_look(cuts: SecondLook, sides: Sides, level: float) -> Parts:
    """Return a scan and the look beside it, for pure DP where the sides are fixed."""
    share = 1 - cuts.look
    scan = Part("scan", default_scan(sides, share * level), share)
    return _parts_with_look(cuts, scan, _LADDER)


def _parts_with_look(cuts: SecondLook, first: Part, ladder: LadderPolicy, *more: Part) -> Parts:
    """Return a first test and the look beside it, which has the numbers of guesses of a ladder."""
    look = Part("look", _look_at_ladder(ladder), cuts.look)
    return Parts(base=cuts, parts=(first, look, *more))


def _look_at_ladder(ladder: LadderPolicy) -> Look:
    """Return the look whose numbers of guesses are those of a ladder."""
    if isinstance(ladder, OutsideInFamily):
        # What the look is for is noise at few ranks, where fewer guesses prove nothing.
        ladder = replace(ladder, larger=_TIMES_SMALLER)
    return Look(ladder=ladder)


def first_cuts(claim: Claim, sides: Sides, level: float) -> KLScan | OutsideIn:
    """Return the first test of the default, which is the default where there is no second one."""
    if isinstance(claim, PureDP) and sides != "auto":
        return default_scan(sides, level)
    return _LADDER


def _planned_outside_in(
    claim: ApproxDP | AnyFamily, *, examples: int, sides: Sides, level: float, k: int
) -> LadderPolicy:
    """Return the form that a claim has of `OutsideIn`: both tests have one plan for the level."""
    if not isinstance(claim, ApproxDP):
        return OutsideInFamily(
            base=_LADDER, claim=claim, examples=examples, sides=sides, k=k, planned=level
        )
    policy: Any = approx_policy(_LADDER, claim.delta, examples=examples, sides=sides, k=k)
    planned: LadderPolicy = replace(policy, planned=level)
    return planned
