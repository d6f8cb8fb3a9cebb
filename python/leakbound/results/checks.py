"""What results of all kinds check and say in the same way."""

from collections.abc import Callable
from typing import Any, get_args

from leakbound._base.checks import real, shown
from leakbound._base.types import Design, Kind, Relation, Verdict
from leakbound.claims import Claim
from leakbound.errors import IncompatibleOptionsError
from leakbound.report.contents import KINDS


def named(**given: str) -> dict[str, str]:
    """Return what stands below the title of a page: words by their names, if there are any."""
    return {name.capitalize(): text for name, text in given.items() if text}


def judged(
    kind: Kind, *, refuted: bool, refutable: Callable[[], bool], withheld: bool = False
) -> Verdict:
    """Return the verdict on a claim: what is refuted, what could have been."""
    if withheld or kind == "exploratory_lower_bound":
        return "inconclusive"
    if refuted:
        return "refuted"
    return "not refuted" if refutable() else "inconclusive"


def check_delta(delta: float, claim: Claim) -> None:
    """Check that a bound on the claim refers to a δ."""
    if real(delta, "delta", least=0, below=1) > claim.delta:
        limit = f"at most {claim.delta:g}" if claim.delta else "only delta = 0"
        message = f"a bound on {claim.name} says nothing about delta = {delta:g}: {limit}"
        raise IncompatibleOptionsError(message)


def sign_of(kind: Kind) -> str:
    """Return what stands between ε and a number of a kind."""
    return ">=" if KINDS[kind].proves else "~"


def flaw_of_options(options: dict[str, Any]) -> str:
    """Return which options of a result cannot be; empty if all can."""
    design = options.get("design", "coins")
    if options.get("relation", "replace") not in get_args(Relation):
        return f"options.relation is {shown(options['relation'])}, which is no relation"
    if design not in get_args(Design):
        return f"options.design is {shown(design)}, which is no design"
    return ""
