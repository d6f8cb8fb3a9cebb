"""Command-line words to objects: cut policies and claims."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from leakbound.claims import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PureDP,
    SubsampledGaussianDP,
    replacing,
)
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, UnionBound, Weighted
from leakbound.errors import IncompatibleOptionsError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leakbound.claims import Claim

CUTS = "auto, kl, union, geometric, fixed:R, outside-in, weighted"
FAMILIES = "pure, approx:D, gaussian, gaussian:D, laplace, dp-sgd:Q,T"
CLAIM_OF = ("eps", "delta", "mu", "noise")
"""What a claim about one model may name."""
_CLAIM_KEYS = {
    **dict.fromkeys(("eps", "epsilon", "ε"), "eps"),
    **dict.fromkeys(("delta", "δ"), "delta"),
    **dict.fromkeys(("mu", "μ"), "mu"),
    **dict.fromkeys(("noise", "sigma"), "noise"),
    "c": "c",
}


def parse_cuts(text: str, *, offered: str = CUTS) -> CutPolicy | None:
    """Return the cut policy of a word such as kl or fixed:120.

    Examples
    --------
    >>> parse_cuts("fixed:120")
    Fixed(guesses=120)
    """
    try:
        return _policy(text, offered)
    except OptionError as error:
        message = str(error) if "--cuts" in str(error) else f"--cuts {text}: {error}"
        raise OptionError(message) from error


def _policy(text: str, offered: str) -> CutPolicy | None:
    name, _, value = text.strip().lower().partition(":")
    if name == "fixed" and value.isdecimal():
        return Fixed(guesses=int(value))
    if name == "outside-in":
        levels = value.split(",") if value else []
        if all(level.strip().isdecimal() for level in levels):
            return OutsideIn([int(level) for level in levels] or None)
    plain: dict[str, CutPolicy | None] = {
        "auto": None,
        "kl": KLScan(),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
        "weighted": Weighted(),
    }
    if name in plain and not value:
        return plain[name]
    message = f"--cuts must be one of {offered}; got {text!r}"
    raise OptionError(message)


def parse_claim(text: str, allowed: tuple[str, ...]) -> dict[str, float]:
    """Return the numbers of a claim such as eps=2 or c=1.5,eps=2.

    Examples
    --------
    >>> parse_claim("eps=2, delta=0", ("eps", "delta"))
    {'eps': 2.0, 'delta': 0.0}
    """
    claim: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        key = _CLAIM_KEYS.get(name.strip().lower(), "")
        if key not in allowed or key in claim:
            message = f"--claim {text!r} {_misnamed(part, twice=key in claim)}; {_form(allowed)}"
            raise OptionError(message)
        claim[key] = _number(value, text, "--claim")
    for alone in ("mu", "noise"):
        if alone in claim and len(claim) > 1:
            message = f"--claim {text!r} mixes {alone} with others; give {alone}=… alone"
            raise OptionError(message)
    if claim.get("noise") == 0:
        message = f"--claim {text!r}: without noise there is no privacy to claim"
        raise OptionError(message)
    if not claim.keys() & {"eps", "mu", "noise"}:
        message = f"--claim {text!r} lacks eps; {_form(allowed)}"
        raise OptionError(message)
    return claim


def parse_family(text: str) -> Claim:
    """Return the guarantees that a word stands for, such as laplace or dp-sgd:0.01,1000.

    Examples
    --------
    >>> parse_family("dp-sgd:0.01,1000").name
    'DP-SGD with sampling rate 0.01 and 1000 steps'
    """
    name, _, value = text.strip().lower().partition(":")
    given = [part.strip() for part in value.split(",")] if value else []
    try:
        found = _family(name, given, text)
    except OptionError as error:
        message = str(error) if "--family" in str(error) else f"--family {text}: {error}"
        raise OptionError(message) from error
    if found is None:
        message = f"--family must be one of {FAMILIES}; got {text!r}"
        raise OptionError(message)
    return found


def _family(name: str, given: list[str], text: str) -> Claim | None:
    """Return the guarantees of a name and what follows it, None if there are none."""
    if name in {"approx", "gaussian"} and len(given) == 1:
        delta = _number(given[0], text, "--family")
        return ApproxDP(delta=delta) if name == "approx" else GaussianDP(delta=delta)
    if name == "dp-sgd" and len(given) == 2 and given[1].isdecimal():
        rate = _number(given[0], text, "--family")
        return SubsampledGaussianDP(sampling_rate=rate, steps=int(given[1]))
    plain: dict[str, Claim] = {"pure": PureDP(), "gaussian": GaussianDP(), "laplace": LaplaceDP()}
    return None if given else plain.get(name)


def guarantee_of(goal: Mapping[str, float], family: str = "") -> Claim:
    """Return what is audited: the family that was named, or what the claim is about.

    Examples
    --------
    >>> guarantee_of({"eps": 1.0, "delta": 1e-5})
    ApproxDP(delta=1e-05)
    """
    if family:
        named = parse_family(family)
        check_claim(goal, named)
        return named
    if "noise" in goal:
        message = "--claim noise=… is of DP-SGD: name its rate and steps by --family dp-sgd:Q,T"
        raise IncompatibleOptionsError(message)
    if "mu" in goal:
        return GaussianDP()
    delta = goal.get("delta", 0.0)
    return ApproxDP(delta=delta) if delta else PureDP()


def check_claim(goal: Mapping[str, float], named: Claim) -> None:
    """Raise where a claim is in numbers of another family, or within this one says nothing."""
    own = {"mu": GaussianDP, "noise": SubsampledGaussianDP}
    for key, family in own.items():
        if key in goal and not isinstance(named, family):
            message = (
                f"--claim {key}=… is not about {named.name}: name eps in the claim, or another "
                "--family"
            )
            raise IncompatibleOptionsError(message)
    unlimited = isinstance(named, GaussianDP | SubsampledGaussianDP)
    if unlimited and "eps" in goal and goal.get("delta", 0.0) <= named.delta:
        key = "mu" if isinstance(named, GaussianDP) else "noise"
        above = f" above {named.delta:g}" if named.delta else ""
        message = (
            f"within {named.name} no ε holds without a δ{above}: name eps and delta in --claim, or "
            f"{key} alone"
        )
        raise IncompatibleOptionsError(message)


def for_replacing(goal: Mapping[str, float]) -> Mapping[str, float]:
    """Return a claim about adding or removing one example as one about replacing one.

    Examples
    --------
    >>> for_replacing({"eps": 1.0})
    {'eps': 2.0}
    """
    if not goal or "noise" in goal:  # noise is noise, whatever is compared
        return goal
    if "mu" in goal:
        return {"mu": 2 * goal["mu"]}
    epsilon, delta = replacing(goal["eps"], goal.get("delta", 0.0))
    return {"eps": epsilon, "delta": delta} if delta else {"eps": epsilon}


def parse_columns(text: str, option: str) -> list[str]:
    """Return the names of columns, separated by commas, that an option has.

    Examples
    --------
    >>> parse_columns("loss, margin", "--attacks")
    ['loss', 'margin']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        message = f"{option} must name different columns, such as one,other; got {text!r}"
        raise OptionError(message)
    return names


def parse_prior(text: str) -> float | str:
    """Return a prior probability, or the name of the column that holds one for each example.

    Examples
    --------
    >>> parse_prior("0.1"), parse_prior("chance")
    (0.1, 'chance')
    """
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _misnamed(part: str, *, twice: bool) -> str:
    """Return what is wrong with the name in a part of a claim."""
    name, sign, _ = (piece.strip() for piece in part.partition("="))
    if not sign and re.fullmatch(r"[\d.]+", name):
        return f"does not say what is {name}: an ε is eps={name}"
    return f"names {name!r} {'twice' if twice else 'which is not known here'}"


def _form(allowed: tuple[str, ...]) -> str:
    """Return what a claim may be made of."""
    forms = {
        "eps": "eps=…",
        "delta": "eps=…,delta=…",
        "c": "c=…,eps=…",
        "mu": "mu=…",
        "noise": "noise=…",
    }
    return "give " + " or ".join(f"--claim {forms[name]}" for name in forms if name in allowed)


def _number(value: str, text: str, option: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        message = f"{option} {text!r} needs a number of at least 0 after its sign, got {value!r}"
        raise OptionError(message)
    return number
