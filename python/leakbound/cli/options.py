"""Command-line words to objects: cut policies and claims."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from leakbound.claims import replacing
from leakbound.cuts import (
    CutPolicy,
    EqualLevelScan,
    Fixed,
    KLScan,
    OutsideIn,
    ScoreAdaptive,
    Split,
    Uncorrected,
    UnionBound,
    VilleMixture,
    Weighted,
)
from leakbound.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

CUTS = (
    "auto, kl, equal-level, union, geometric, fixed:R, outside-in, adaptive:R,R, split:F, "
    "ville, weighted, uncorrected"
)
_CLAIM_KEYS = {
    **dict.fromkeys(("eps", "epsilon", "ε"), "eps"),
    **dict.fromkeys(("delta", "δ"), "delta"),
    **dict.fromkeys(("mu", "μ"), "mu"),
    "c": "c",
}


def parse_cuts(text: str, *, offered: str = CUTS) -> CutPolicy | None:
    """Return the cut policy of a word such as kl, fixed:120 or split:0.25.

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
    if name == "adaptive" and all(level.strip().isdecimal() for level in value.split(",")):
        return ScoreAdaptive([int(level) for level in value.split(",")])
    if name == "outside-in":
        levels = value.split(",") if value else []
        if all(level.strip().isdecimal() for level in levels):
            return OutsideIn([int(level) for level in levels] or None)
    if name == "split":
        return Split(fraction=_number(value, text, "--cuts split")) if value else Split()
    plain: dict[str, CutPolicy | None] = {
        "auto": None,
        "kl": KLScan(),
        "equal-level": EqualLevelScan(),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
        "ville": VilleMixture(),
        "weighted": Weighted(),
        "uncorrected": Uncorrected(),
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
            problem = "twice" if key in claim else "which is not known here"
            message = f"--claim {text!r} names {name.strip()!r} {problem}; give {_form(allowed)}"
            raise OptionError(message)
        claim[key] = _number(value, text, "--claim")
    if "mu" in claim and len(claim) > 1:
        message = f"--claim {text!r} mixes mu with others; give mu=… alone"
        raise OptionError(message)
    if not claim.keys() & {"eps", "mu"}:
        message = f"--claim {text!r} lacks eps; give {_form(allowed)}"
        raise OptionError(message)
    return claim


def for_replacing(goal: Mapping[str, float]) -> Mapping[str, float]:
    """Return a claim about adding or removing one example as one about replacing one.

    Examples
    --------
    >>> for_replacing({"eps": 1.0})
    {'eps': 2.0}
    """
    if not goal:
        return goal
    if "mu" in goal:
        return {"mu": 2 * goal["mu"]}
    epsilon, delta = replacing(goal["eps"], goal.get("delta", 0.0))
    return {"eps": epsilon, "delta": delta} if delta else {"eps": epsilon}


def parse_columns(text: str) -> list[str]:
    """Return the names of columns, separated by commas.

    Examples
    --------
    >>> parse_columns("loss, margin")
    ['loss', 'margin']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        message = f"--attacks must name different columns, such as loss,margin; got {text!r}"
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


def _form(allowed: tuple[str, ...]) -> str:
    return ",".join(f"{name}=…" for name in allowed)


def _number(value: str, text: str, option: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        message = f"{option} {text!r} needs a number of at least 0 after its sign, got {value!r}"
        raise OptionError(message)
    return number
