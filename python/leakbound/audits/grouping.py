"""Several copies of each record: a bound on all of them at once, as one on a single record.

If training is ε-DP for one record, it is Rε-DP for R of them, and (ε, δ)-DP becomes
(Rε, δ (e^(Rε) - 1) / (e^ε - 1))-DP; μ-Gaussian DP becomes Rμ-Gaussian DP (Dong, Roth and Su 2022,
Theorem 2.14). An audit tests what follows for R: whatever it refutes for them refutes, for one, a
parameter R times smaller.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound._base.checks import check_copies
from leakbound._base.types import JsonObject, JsonValue
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.errors import OptionError
from leakbound.report.parts import Curve

# Options of an audit that hold bounds of all copies
_BOUNDS = ("attacks", "attacks_cost")


def check(copies: int, claim: Claim, examples: int) -> None:
    """Refuse claims without a conversion, and more copies than examples."""
    if copies == 1:
        return
    gaussian = isinstance(claim, GaussianDP) and not claim.delta
    if not gaussian and not isinstance(claim, PureDP | ApproxDP):
        raise OptionError(
            f"a bound on {claim.name} for {copies} copies of a record has no conversion to one: "
            "claim PureDP(), ApproxDP(delta=…) or GaussianDP(), or insert each record once"
        )
    check_copies(copies, examples)


def of_one(bound: float, copies: int) -> float:
    """Return a bound on all copies at once as one on a single record, rounded down."""
    if copies == 1:
        return bound
    part = bound / copies
    if part * copies <= bound:
        return part
    return math.nextafter(part, 0.0)


def curve(proved: Curve, copies: int) -> Curve:
    """Return a curve of bounds on all copies at once as one of bounds on a single record."""
    if copies == 1:
        return proved
    part = proved.bound / copies
    return replace(proved, bound=np.where(part * copies <= proved.bound, part, part * (1 - 2**-52)))


def options(proved: Mapping[str, JsonValue], copies: int) -> JsonObject:
    """Return options of a proof, the bounds among them for a single record, and the copies."""
    if copies == 1:
        return dict(proved)
    several: dict[str, Any] = {**proved, "copies": copies}
    for name in (one for one in _BOUNDS if one in proved):
        value = several[name]
        several[name] = (
            {attack: of_one(bound, copies) for attack, bound in value.items()}
            if isinstance(value, dict)
            else of_one(value, copies)
        )
    return several


def warnings(told: tuple[str, ...], copies: int) -> tuple[str, ...]:
    """Return warnings of a proof; those with bounds say that they are of all copies at once."""
    if copies == 1:
        return told
    said = f" (of {copies} copies at once)"
    return tuple(text + said if "perfect attack" in text else text for text in told)


def theorem(claim: Claim, copies: int) -> str:
    """Return how the bound on all copies is converted; empty for one."""
    if copies == 1:
        return ""
    follows = f"{copies} ε"
    if isinstance(claim, GaussianDP):
        follows = f"{copies} μ"
    elif isinstance(claim, ApproxDP):
        follows = f"{copies} ε at δ (e^({copies} ε) - 1) / (e^ε - 1)"
    return (
        f"Each record was inserted {copies} times. What holds for one record holds for {copies} at "
        f"once with {follows} (group privacy), which is what was tested. "
    )


def assumed(copies: int, what: str) -> str:
    """Return what is assumed of copies, to be put behind the change that is assumed."""
    if copies == 1:
        return ""
    return (
        f" Each {what} that was trained on was in the training data at most {copies} times, and "
        f"the bound on {copies} at once is converted to one by group privacy."
    )
