"""Several copies of each record: a bound on all of them at once, as one on a single record.

If training is ε-DP for one record, it is Rε-DP for R of them, and (ε, δ)-DP becomes
(Rε, δ (e^(Rε) - 1) / (e^ε - 1))-DP; μ-Gaussian DP becomes Rμ-Gaussian DP (Dong, Roth and Su 2022,
Theorem 2.14). An audit tests what follows for R: whatever it refutes for them refutes, for one, a
parameter R times smaller.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from leakbound._base.drawn import check_copies
from leakbound._base.messages import Message
from leakbound._base.records import Lazy
from leakbound._base.types import JsonObject, JsonValue, Named, Sides
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.errors import OptionError
from leakbound.report.parts import Curve


def check(copies: int, claim: Claim, examples: int) -> None:
    """Refuse claims without a conversion, and more copies than examples."""
    gaussian = isinstance(claim, GaussianDP) and not claim.delta
    if not gaussian and not isinstance(claim, PureDP | ApproxDP):
        message = (
            "a bound on {claim} for {copies} copies of a record has no conversion to one: claim "
            "{PureDP()}, {ApproxDP(delta=…)} or {GaussianDP()}, or insert each record once"
        )
        raise OptionError(Message(message, claim=claim.name, copies=copies))
    check_copies(copies, examples)


def of_one(bound: float, copies: int) -> float:
    """Return a bound on all copies at once as one on a single record, rounded down."""
    if copies == 1:
        return bound
    part = bound / copies
    if part * copies <= bound:
        return part
    return math.nextafter(part, 0.0)


def for_one(fields: Named, copies: int, sides: Sides) -> Named:
    """Return the fields of a result about all copies at once that differ for one record."""
    claim: Claim = fields["claim"]
    bound = of_one(fields["bound"], copies)
    of_all: Lazy[float] = fields["_ceiling"]
    curve_of_all: Lazy[Curve] = fields["_curve"]
    ceiling = Lazy(lambda: of_one(of_all.value, copies))
    # Warnings with bounds say that these are of all copies at once.
    told = f" (of {copies} copies at once)"
    warnings = list[str]()
    for text in fields["warnings"]:
        warnings.append(text + told * ("perfect attack" in text))
    return {
        "bound": bound,
        "options": _options(fields["options"], copies),
        "warnings": tuple(warnings),
        "theorem": _theorem(claim, copies) + fields["theorem"],
        "rejected": claim.rejected(bound, sides),
        "_ceiling": ceiling,
        "_curve": Lazy(lambda: _curve(curve_of_all.value, copies)),
        "_rejectable": Lazy(lambda: claim.rejected(ceiling.value, sides)),
    }


def _curve(proved: Curve, copies: int) -> Curve:
    """Return a curve of bounds on all copies at once as one of bounds on a single record."""
    part = proved.bound / copies
    is_above = part * copies > proved.bound
    return replace(proved, bound=np.where(is_above, part * (1 - 2**-52), part))


def _options(proved: Mapping[str, JsonValue], copies: int) -> JsonObject:
    """Return options of a proof, the bounds among them for a single record, and the copies."""
    several: Named = {**proved, "copies": copies}
    if "attacks" in proved:
        bounds = several["attacks"].items()
        several["attacks"] = {attack: of_one(bound, copies) for attack, bound in bounds}
        several["attacks_cost"] = of_one(several["attacks_cost"], copies)
    return several


def _theorem(claim: Claim, copies: int) -> str:
    """Return how the bound on all copies is converted."""
    follows = f"{copies} ε"
    if isinstance(claim, GaussianDP):
        follows = f"{copies} μ"
    elif isinstance(claim, ApproxDP):
        follows = f"{copies} ε at δ (e^({copies} ε) - 1) / (e^ε - 1)"
    return (
        f"Each record was inserted {copies} times. What holds for one record holds for {copies} at "
        f"once with {follows} (group privacy), which is what was tested. "
    )


def assumed(copies: int, what: str, delta: float) -> str:
    """Return what is assumed of copies and δ, to be put behind the change that is assumed."""
    said = ""
    of = ""
    if copies > 1:
        said = _of_several(copies, what)
        of = " for all of them"
    if delta:
        said += f" δ is {delta:g}{of}."
    return said


def _of_several(copies: int, what: str) -> str:
    """Return what is assumed of several copies."""
    return (
        f" Each {what} that was trained on was in the training data at most {copies} times, and "
        f"the bound on {copies} at once is converted to one by group privacy."
    )
