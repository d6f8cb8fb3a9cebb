"""What results of all kinds check in the same way."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from leakbound._base.formatting import down, up
from leakbound._base.types import Design, Kind, Relation, Unit, Verdict
from leakbound._base.validation import choice, real, shown
from leakbound.claims import Claim, replacing
from leakbound.errors import IncompatibleOptionsError
from leakbound.report.description import KINDS

COMPARED: dict[Relation, str] = {"add_remove": "adding or removing", "replace": "replacing"}
"""What a guarantee compares, as a verb."""


@dataclass(frozen=True)
class Direction:
    """On which side of a bound on a parameter the leakier values lie, and how that is written."""

    leakier: int
    claimed: Literal["<=", ">="]
    sign: str
    ascii: str
    limit: str
    refuted: str
    smallest: str
    nothing: float
    rounded: Callable[[float], str]


_UP = Direction(1, "<=", "≥", ">=", "at least", "<", "small", 0.0, down)
_DOWN = Direction(-1, ">=", "≤", "<=", "at most", ">", "large", math.inf, up)


def direction(claim: Claim) -> Direction:
    """Return where the leakier values of the claim's parameter lie."""
    return _UP if claim.order == "increasing" else _DOWN


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


def flaw_of_confidence(confidence: float) -> str:
    """Return why a confidence cannot be; empty if it can."""
    return "" if 0 < confidence < 1 else f"confidence is {confidence:g}, outside (0, 1)"


def flaw_of_options(options: dict[str, Any]) -> str:
    """Return which options of a result cannot be; empty if all can."""
    design = options.get("design", "coins")
    if options.get("relation", "replace") not in get_args(Relation):
        return f"options.relation is {shown(options['relation'])}, which is no relation"
    if design not in get_args(Design):
        return f"options.design is {shown(design)}, which is no design"
    return ""


def check_comparable(
    audited: tuple[Relation, Unit], stated: tuple[Relation, Unit], *, epsilon: float, delta: float
) -> None:
    """Raise unless bound and accountant's guarantee are about the same change of the data.

    The message says what follows from the guarantee, ε and δ.
    """
    relation, unit = stated
    choice(relation, "relation", Relation)
    choice(unit, "unit", Unit)
    if stated == audited:
        return
    if unit != audited[1]:
        advice = (
            "for a user of at most k examples follows (kε, (e^(kε) - 1)/(e^ε - 1) δ), by group "
            'privacy; pass that with unit="user"'
            if unit == "example"
            else "where each audited example is a user by itself it holds as it is; pass it with "
            'unit="example"'
        )
    elif relation == "replace":
        advice = (
            "it says nothing about adding or removing; audit a random split "
            '(design="random_split") for a bound on replacing one'
        )
    else:
        twice, failure = replacing(epsilon, delta)
        worth = f"(2ε, (1 + e^ε) δ) = ({twice:.6g}, {failure:.3g})"
        own = "have the accountant state ε for replacing one"
        advice = f"what follows for replacing is {worth}, " + (
            f"which is no guarantee; {own}"
            if failure >= 1
            else f'by leakbound.claims.replacing; pass that with relation="replace", or {own}'
        )
    message = (
        f"the bound is on {COMPARED[audited[0]]} one {audited[1]}, and the accountant's guarantee "
        f"on {COMPARED[relation]} one {unit}: {advice}"
    )
    raise IncompatibleOptionsError(message)
