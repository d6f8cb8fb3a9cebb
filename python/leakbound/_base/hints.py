"""What to write in place of an argument that a call does not take."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., object])
# How alike two names are, of which one was meant for the other.
_NEAR = 0.7

_TESTED = "the result tests it, result.check({}=…)"
OF_CLAIMS = {
    "delta": "δ is part of the claim, claim=lb.ApproxDP(delta=…)",
    "epsilon": f"ε is what is bounded: {_TESTED.format('epsilon')}",
    "eps": f"ε is what is bounded: {_TESTED.format('epsilon')}",
    "mu": f"μ is bounded with claim=lb.GaussianDP(): {_TESTED.format('parameter')}",
    "rho": "rho is bounded with claim=lb.claims.ZeroConcentratedDP(): "
    f"{_TESTED.format('parameter')}",
    "noise_multiplier": "its inverse is bounded with claim=lb.SubsampledGaussianDP("
    f"sampling_rate=…, steps=…): {_TESTED.format('parameter')}",
    "family": "the family is the claim, such as claim=lb.GaussianDP()",
}
"""Hints for audits and plans that are given a part of a claim."""
OF_DESIGNS = {
    "member": "membership belongs to the design: lb.Coins(member), lb.RandomSplit(member), …",
    "groups": "groups belong to the design: lb.Coins(member, groups=…)",
    "strata": "strata belong to the design: lb.RandomSplit(member, strata=…)",
    "features": "features belong to the design: lb.RandomSplit(member, features=…), lb.ZeroRun(…)",
    "prior": "the prior belongs to the design: lb.Coins(member, prior=…)",
    "copies": "copies belong to the design: lb.Coins(member, copies=…)",
    "unit": "the unit belongs to the design: lb.Coins(member, unit=…)",
    "aggregate": "it belongs to the design, with groups: lb.Coins(member, groups=…, aggregate=…)",
    "attacks": "name attacks by their scores: lb.audit({'one': scores, 'other': …}, design)",
    "design": "say how members were chosen: lb.Coins(member), lb.RandomSplit(member), …",
}
"""Hints for an audit that is given a part of its design, or none."""
OF_AUDITS = {
    name: f"it belongs to lb.audit: lb.audit(scores, design, {name}=…)"
    for name in ("by", "claim", "confidence", "cuts", "ids", "seed", "sides")
} | {
    "delta": "δ is part of the claim: lb.audit(scores, design, claim=lb.ApproxDP(delta=…))",
    "epsilon": "ε is what is bounded: lb.audit(scores, design).check(epsilon=…)",
    "scores": "scores belong to lb.audit: lb.audit(scores, design)",
    "features": "they belong to lb.RandomSplit, lb.ZeroRun and lb.Panoramia",
    "strata": "they belong to lb.RandomSplit(member, strata=…)",
    "groups": "they belong to lb.Coins and lb.RandomSplit",
    "prior": "it belongs to lb.Coins(member, prior=…)",
    "propensity": "it belongs to lb.ZeroRun(member, propensity)",
    "baseline": "it belongs to lb.Panoramia(member, baseline=…)",
}
"""Hints for designs that are given a part of the audit, or of another design."""
OF_FAMILIES = {
    "epsilon": "a claim has no ε, which is what is bounded: result.check(epsilon=…) tests one",
    "mu": "a claim has no μ, which is what is bounded: result.check(parameter=μ) tests one",
    "rho": "a claim has no rho, which is what is bounded: result.check(parameter=rho) tests one",
    "noise_multiplier": "a claim has no noise multiplier, whose inverse is what is bounded: "
    "result.check(parameter=1 / noise_multiplier) tests one",
    "delta": "write lb.ApproxDP(delta=…)",
}
"""Hints for claims that are given the parameter, which the audit bounds."""
OF_PARAMETERS = {
    "mu": "μ is the parameter of lb.GaussianDP(): audit with that claim, then check(parameter=μ)",
    "rho": "rho is the parameter of lb.claims.ZeroConcentratedDP(): audit with that claim, then "
    "check(parameter=rho)",
    "noise_multiplier": "its inverse is the parameter of lb.SubsampledGaussianDP(…): audit with "
    "that claim, then check(parameter=1 / noise_multiplier)",
    "claim": "a result has one claim: audit again with a different one",
    "confidence": "a result has one confidence: audit again with a different one",
}
"""Hints for checks that are given a parameter of another claim."""
# Other words for options, where a call has them.
_SYNONYMS = {
    "alpha": "confidence=1 - alpha",
    "level": "confidence=1 - level",
    "significance": "confidence=1 - significance",
    "eps": "epsilon",
    "random_state": "seed",
    "rng": "seed",
    "stratify": "strata",
    "threshold": "cuts",
    "thresholds": "cuts",
    "subgroups": "by",
    "users": "groups",
    "weights": "prior",
    "probability": "prior",
}


def hinted(*, positional: str = "", **elsewhere: str) -> Callable[[C], C]:
    """Say what to write where a function, or a class, is called with arguments that it lacks.

    Python's own error is raised, with a hint after its message: what `elsewhere` has for a keyword
    that belongs to another object, or is missing, else an option of a close name, or all options.
    `positional` is for values that need a name. Signatures stay as they are.
    """

    def decorate(called: C) -> C:
        if not isinstance(called, type):
            return _telling(called, elsewhere, positional)
        made: Callable[..., None] = vars(called)["__init__"]
        setattr(called, "__init__", _telling(made, elsewhere, positional))  # noqa: B010 (of a class)
        return called

    return decorate


def _telling(called: C, elsewhere: Mapping[str, str], positional: str) -> C:
    """Return a function whose errors of arguments say what to write."""

    @wraps(called)
    def asked(*values: object, **options: object) -> object:
        try:
            return called(*values, **options)
        except TypeError as error:
            hint = _hint(called, values, options, elsewhere, positional)
            if hint:
                error.args = (f"{error}: {hint}",)
            raise

    made: Any = asked
    told: C = made
    return told


def _hint(
    called: Callable[..., object],
    values: tuple[object, ...],
    options: Mapping[str, object],
    elsewhere: Mapping[str, str],
    positional: str,
) -> str:
    """Say what to write in place of these arguments; nothing where the call takes them."""
    shape = signature(called)
    names = [
        name
        for name, one in shape.parameters.items()
        if name != "self" and one.kind in {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    ]
    try:
        given = shape.bind_partial(*values, **options).arguments
    except TypeError:
        wrong = [name for name in options if name not in names]
        if not wrong:
            return positional or f"give options by name: {_listed(names)}"
        return elsewhere.get(wrong[0]) or _of_names(wrong[0], names, elsewhere)
    # What is missing; if nothing is, the error came from within.
    for name in names:
        if name not in given and shape.parameters[name].default is Parameter.empty:
            return elsewhere.get(name, "")
    return ""


def _of_names(wrong: str, names: list[str], elsewhere: Mapping[str, str]) -> str:
    """Say which option was meant, or which there are."""
    written = _SYNONYMS.get(wrong, "")
    if written.partition("=")[0] in names:
        if "=" not in written:
            written += "=…"
        return f"write {written}"
    near = get_close_matches(wrong, [*names, *elsewhere], n=1, cutoff=_NEAR)
    if not near:
        return f"its options are {_listed(names)}"
    meant = near[0]
    if meant in names:
        return f"did you mean {meant}=…?"
    return f"if {meant} is meant, {elsewhere[meant]}"


def _listed(names: list[str]) -> str:
    """Return options as a message lists them."""
    return ", ".join(f"{name}=" for name in names)
