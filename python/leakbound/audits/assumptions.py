"""What designs assume of scores, options and claims, and what a small δ is."""

from typing import Any

from leakbound._base.types import Strings
from leakbound.audits.road import AnyAttacks
from leakbound.claims import FAMILIES, Claim
from leakbound.report.parts import Assumptions
from leakbound.results import Assumption


def assumed(
    claim: Claim,
    attacks: AnyAttacks[Any],
    output: str,
    units: str,
    order: str,
    of: str = "training",
) -> Assumptions:
    """Return what is assumed of scores of such an output, of options, and of the order."""
    return (
        Assumption(
            "scores without membership",
            f"The scores come from the {output} and the {units} only. Which of these {units} were "
            "members was not used to compute or choose a score.",
            "declared",
        ),
        Assumption(
            "options chosen in advance",
            "Policy, sides and confidence were chosen before anybody looked at membership, and "
            f"{attacks.others} tried on it.",
            "declared",
        ),
        Assumption("guesses ordered by scores only", order, "checked"),
        *family_assumption(claim, of),
    )


def family_assumption(claim: Claim, of: str = "training") -> Assumptions:
    """Return what a bound on a family of trade-off functions assumes; nothing for other claims."""
    if not isinstance(claim, FAMILIES):
        return ()
    return (
        Assumption(
            "family of trade-off functions",
            f"The trade-off function of {of} is a curve of the claimed family, {claim.name}. The "
            f"bound holds within this family: if {of} has another curve, the ε converted from the "
            "rejected curve may be above the truth.",
            "declared",
        ),
    )


def delta_warnings(delta: float, examples: int) -> Strings:
    """Say that a δ is no small one for so many examples."""
    if delta < 1 / examples:
        return ()
    note = (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that publishes one "
        "whole example can satisfy the claim, and large ε are hard to refute"
    )
    return (note,)
