"""Checks of options that are one number, word, flag or object: the doorway is `_validate`."""

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import TypeVar, get_args

import numpy as np

from leakbound.errors import OptionError, OptionTypeError

T = TypeVar("T")

MOST_EXAMPLES = 10**8
"""Examples that are drawn at most: games and plans are held in memory, at tens of bytes each."""
MOST_REPLICATES = 10**6
"""Bootstrap replicates at most: each is a row of as many numbers as there are examples."""
_BITS = 128
"""Of the longest integers: seeds from the system's entropy have so many."""
_WORDS = 80
"""Characters of a wrong value that a message shows."""


def real(
    value: object,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Check that an option is a real number within limits, `least` and `most` included."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        message = f"{name} must be a real number, got {shown(value)}"
        raise OptionTypeError(message)
    try:
        number = float(value)
    except OverflowError:
        message = f"{name} is too large for a float: give a number below 1.8e308 either way"
        raise OptionError(message) from None
    within = (
        not math.isnan(number)
        and (above is None or number > above)
        and (least is None or number >= least)
        and (most is None or number <= most)
        and (below is None or number < below)
    )
    if not within:
        limits = {"above": above, "at least": least, "at most": most, "below": below}
        stated = " and ".join(f"{word} {x:g}" for word, x in limits.items() if x is not None)
        message = f"{name} must be {stated or 'a number'}, got {number:g}"
        raise OptionError(message)
    return number


def integer(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """Check that an option is an integer within limits, both included."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        message = f"{name} must be an integer, got {shown(value)}"
        raise OptionTypeError(message)
    number = int(value)
    if number.bit_length() > _BITS:
        message = f"{name} must have at most {_BITS} bits, got an integer of {number.bit_length()}"
        raise OptionError(message)
    if number < least or (most is not None and number > most):
        limits = f"at least {least}" + (f" and at most {most}" if most is not None else "")
        message = f"{name} must be {limits}, got {number}"
        raise OptionError(message)
    return number


def flag(value: object, name: str) -> bool:
    """Check that an option is a boolean, and nothing else that Python takes for one."""
    if not isinstance(value, bool | np.bool_):
        message = f"{name} must be True or False, got {shown(value)}"
        raise OptionTypeError(message)
    return bool(value)


def choice(value: object, name: str, allowed: object) -> None:
    """Check that an option is one of the values of a `Literal`."""
    values = get_args(allowed)
    if not isinstance(value, str) or value not in values:
        listed = ", ".join(map(repr, values))
        message = f"{name} must be one of {listed}, got {shown(value)}"
        raise OptionError(message)


def instance(value: object, name: str, types: type[T] | Sequence[type[T]]) -> None:
    """Check that an option is an object of one of some types."""
    classes = (types,) if isinstance(types, type) else tuple(types)
    if not isinstance(value, classes):
        listed = ", ".join(f"{one.__name__}(...)" for one in classes)
        hint = ": call it" if isinstance(value, type) else ""
        message = f"{name} must be one of {listed}, got {shown(value)}{hint}"
        raise OptionTypeError(message)


def complement(confidence: float) -> float:
    """Check a confidence and return one minus it, exact in decimals."""
    return float(1 - Decimal(repr(real(confidence, "confidence", above=0, below=1))))


def shown(value: object) -> str:
    """Return a value as messages show it, whatever its repr does."""
    try:
        shown = repr(value)
    except Exception:  # a repr is anybody's code, and refuses integers of 5,000 digits
        return f"an object of type {type(value).__name__}"
    return shown if len(shown) <= _WORDS else shown[: _WORDS - 1] + "…"
