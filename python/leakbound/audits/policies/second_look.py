"""The default: outside-in, and beside it a second look that needs no order of confidence."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import leakbound._core as _core
from leakbound._base.types import PathOrder, Sides
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.f_dp import OutsideInFamily, family_policy
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.cuts import KLScan, OutsideIn, SecondLook
from leakbound.cuts.look import Look, Part, Parts
from leakbound.cuts.outside_in import LadderPolicy
from leakbound.cuts.policies import default_scan

# The look of a family weighs numbers of guesses as the plan weighs those so many times smaller.
_LARGER = 4.0


@dataclass(frozen=True, kw_only=True)
class _ScanBeside(KLScan):
    """`KLScan` that is not calibrated where it is sure to prove less than other tests did.

    The claim is pure DP, whose ε is the log-odds of a guess.
    """

    least: float = -math.inf

    def above(self, least: float) -> Self:
        """See `Policy.above`."""
        return replace(self, least=least)

    def bound(
        self, path: _core.Path, _order: PathOrder, level: float, failures: float = 0.0, /
    ) -> _core.Bound:
        """See `PathPolicy.bound`."""
        options = self._options(level)
        return _core.kl_scan(path, beta=level, failures=failures, least=self.least, **options)


def second_look(
    cuts: SecondLook, claim: Claim, *, examples: int, sides: Sides, level: float, k: int = 2
) -> Parts:
    """Return the tests of a claim, with shares that claim and sides fix."""
    scans = isinstance(claim, PureDP) and sides == "auto"
    scan = 0.0
    if scans:
        scan = cuts.scan
    share = 1 - cuts.look - scan
    ladder = _ladder(claim, examples=examples, sides=sides, level=level, k=k)
    cuts_alone = first_cuts(claim, sides, share * level)
    first = Part("outside-in", ladder, share)
    if isinstance(cuts_alone, KLScan):
        first = Part("scan", cuts_alone, share)
    if isinstance(ladder, OutsideInFamily):
        # What the look is for is noise at few ranks, where fewer guesses prove nothing.
        ladder = replace(ladder, larger=_LARGER)
    look = Part("look", Look(ladder=ladder), cuts.look)
    if scans:
        return Parts(base=cuts, parts=(first, look, Part("scan", _ScanBeside(), scan)))
    return Parts(base=cuts, parts=(first, look))


def first_cuts(claim: Claim, sides: Sides, level: float) -> KLScan | OutsideIn:
    """Return the first test of the default, which is the default where there is no second one."""
    if isinstance(claim, PureDP) and sides != "auto":
        return default_scan(sides, level)
    return OutsideIn()


def _ladder(claim: Claim, *, examples: int, sides: Sides, level: float, k: int) -> LadderPolicy:
    """Return the form that a claim has of `OutsideIn`: both tests have one plan for the level."""
    ladder = OutsideIn()
    if isinstance(claim, PureDP):
        return ladder
    policy: Any
    if isinstance(claim, ApproxDP):
        policy = approx_policy(ladder, claim.delta, examples=examples, sides=sides, k=k)
    else:
        policy = family_policy(ladder, claim, examples=examples, sides=sides, k=k)
    planned: LadderPolicy = replace(policy, planned=level)
    return planned
