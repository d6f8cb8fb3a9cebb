"""The default: outside-in, and beside it a second look that needs no order of confidence."""

from typing import cast

from leakbound._base.types import Sides
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.f_dp import family_policy
from leakbound.claims import FAMILIES, ApproxDP, Claim, PureDP
from leakbound.cuts import KLScan, OutsideIn, Policy, SecondLook
from leakbound.cuts.look import Look, Part, Parts
from leakbound.cuts.outside_in import LadderPolicy
from leakbound.cuts.policies import default_scan


def second_look(
    cuts: SecondLook, claim: Claim, *, examples: int, sides: Sides, level: float, k: int = 2
) -> Parts:
    """Return the tests of a claim, with shares that claim and sides fix."""
    scans = isinstance(claim, PureDP) and sides == "auto"
    scan = 0.0
    if scans:
        scan = cuts.scan
    share = 1 - cuts.look - scan
    ladder = _ladder(claim, examples=examples, sides=sides, k=k)
    cuts_alone = first_cuts(claim, sides=sides, level=share * level)
    first = Part("outside-in", ladder, share)
    if isinstance(cuts_alone, KLScan):
        first = Part("scan", cuts_alone, share)
    # A plan of a family is slow: the look takes that of the first test.
    planned = 1.0
    if isinstance(claim, FAMILIES):
        planned = share / cuts.look
    look = Part("look", Look(ladder=ladder, planned=planned), cuts.look)
    parts = (first, look)
    if scans:
        return Parts(base=cuts, parts=(*parts, Part("scan", KLScan(), scan)))
    return Parts(base=cuts, parts=parts)


def first_cuts(claim: Claim, sides: Sides, level: float) -> KLScan | OutsideIn:
    """Return the first test of the default, which is the default where there is no second one."""
    if isinstance(claim, PureDP) and sides != "auto":
        return default_scan(sides, level)
    return OutsideIn()


def _ladder(claim: Claim, *, examples: int, sides: Sides, k: int) -> LadderPolicy:
    """Return the form that a claim has of `OutsideIn`."""
    ladder = OutsideIn()
    policy: Policy = ladder
    if isinstance(claim, ApproxDP):
        policy = approx_policy(ladder, claim.delta, examples=examples, sides=sides, k=k)
    elif not isinstance(claim, PureDP):
        policy = family_policy(ladder, claim, examples=examples, sides=sides, k=k)
    return cast("LadderPolicy", policy)
