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


def check_group_claim(copies: int, claim: Claim, examples: int) -> None:
    """Refuse claims without a conversion, and more copies than examples."""
    is_gaussian = isinstance(claim, GaussianDP) and not claim.delta
    if not is_gaussian and not isinstance(claim, PureDP | ApproxDP):
        message = (
            "a bound on {claim} for {copies} copies of a record has no conversion to one: claim "
            "{PureDP()}, {ApproxDP(delta=…)} or {GaussianDP()}, or insert each record once"
        )
        raise OptionError(Message(message, claim=claim.name, copies=copies))
    check_copies(copies, examples)


def bound_of_one_record(bound: float, copies: int) -> float:
    """Return a bound on all copies at once as one on a single record, rounded down."""
    if copies == 1:
        return bound
    equal_share = bound / copies
    if equal_share * copies <= bound:
        return equal_share
    return math.nextafter(equal_share, 0.0)


def fields_of_one_record(group_fields: Named, copies: int, sides: Sides) -> Named:
    """Return the fields of a result about all copies at once that differ for one record."""
    claim: Claim = group_fields["claim"]
    record_bound = bound_of_one_record(group_fields["bound"], copies)
    group_ceiling: Lazy[float] = group_fields["_ceiling"]
    group_curve: Lazy[Curve] = group_fields["_curve"]
    record_ceiling = Lazy(lambda: bound_of_one_record(group_ceiling.value, copies))
    warnings = list[str]()
    for warning in group_fields["warnings"]:
        warning_with_copies = warning
        if "perfect attack" in warning:  # a warning that names a bound
            warning_with_copies = f"{warning} (of {copies} copies at once)"
        warnings.append(warning_with_copies)
    return {
        "bound": record_bound,
        "options": _options_of_one_record(group_fields["options"], copies),
        "warnings": tuple(warnings),
        "theorem": _group_privacy_theorem(claim, copies) + group_fields["theorem"],
        "rejected": claim.rejected(record_bound, sides),
        "_ceiling": record_ceiling,
        "_curve": Lazy(lambda: _curve_of_one_record(group_curve.value, copies)),
        "_rejectable": Lazy(lambda: claim.rejected(record_ceiling.value, sides)),
    }


def _curve_of_one_record(group_curve: Curve, copies: int) -> Curve:
    """Return a curve of bounds on all copies at once as one of bounds on a single record."""
    equal_shares = group_curve.bound / copies
    is_rounded_up = equal_shares * copies > group_curve.bound
    rounded_down = equal_shares * (1 - 2**-52)
    return replace(group_curve, bound=np.where(is_rounded_up, rounded_down, equal_shares))


def _options_of_one_record(group_options: Mapping[str, JsonValue], copies: int) -> JsonObject:
    """Return options of a proof, the bounds among them for a single record, and the copies."""
    record_options: Named = {**group_options, "copies": copies}
    if "attacks" in record_options:
        bounds_of_attacks = dict[str, float]()
        for attack, group_bound in record_options["attacks"].items():
            bounds_of_attacks[attack] = bound_of_one_record(group_bound, copies)
        record_options["attacks"] = bounds_of_attacks
        record_options["attacks_cost"] = bound_of_one_record(record_options["attacks_cost"], copies)
    return record_options


def _group_privacy_theorem(claim: Claim, copies: int) -> str:
    """Return how the bound on all copies is converted."""
    group_parameter = f"{copies} ε"
    if isinstance(claim, GaussianDP):
        group_parameter = f"{copies} μ"
    elif isinstance(claim, ApproxDP):
        group_parameter = f"{copies} ε at δ (e^({copies} ε) - 1) / (e^ε - 1)"
    return (
        f"Each record was inserted {copies} times. What holds for one record holds for {copies} at "
        f"once with {group_parameter} (group privacy), which is what was tested. "
    )


def sentences_on_copies_and_delta(copies: int, unit_name: str, delta: float) -> str:
    """Return what is assumed of copies and δ, to be put behind the change that is assumed."""
    sentences = ""
    of_all_copies = ""
    if copies > 1:
        sentences = _sentence_on_copies(copies, unit_name)
        of_all_copies = " for all of them"
    if delta:
        sentences += f" δ is {delta:g}{of_all_copies}."
    return sentences


def _sentence_on_copies(copies: int, unit_name: str) -> str:
    """Return what is assumed of several copies."""
    return (
        f" Each {unit_name} that was trained on was in the training data at most {copies} times, "
        f"and the bound on {copies} at once is converted to one by group privacy."
    )
