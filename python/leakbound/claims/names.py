"""Claims by the names that the command line and case files have for them."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from leakbound.claims.base import ApproxDP, PureDP
from leakbound.claims.families import (
    Claim,
    GaussianDP,
    LaplaceDP,
    SubsampledGaussianDP,
    ZeroConcentratedDP,
)
from leakbound.errors import InputTypeError, OptionError

T = TypeVar("T")

CLAIM_NAMES = "pure, approx:D, gaussian, gaussian:D, laplace, zcdp, dp-sgd:Q,T"
_CLAIMS_BY_NAME: dict[str, Callable[..., Claim]] = {
    "pure": PureDP,
    "laplace": LaplaceDP,
    "zcdp": ZeroConcentratedDP,
    "gaussian": lambda delta=0.0: GaussianDP(delta=delta),
    "approx": lambda delta: ApproxDP(delta=delta),
    "dp-sgd": lambda rate, steps: SubsampledGaussianDP(sampling_rate=rate, steps=steps),
}


def claim_named(text: str) -> Claim:
    """Return the claim with a name such as ``"pure"``, ``"approx:1e-5"`` or ``"dp-sgd:0.01,1000"``.

    D is a δ, Q the sampling rate and T the number of steps.

    Examples
    --------
    >>> claim_named("approx:1e-5")
    ApproxDP(delta=1e-05)
    """
    return named(text, _CLAIMS_BY_NAME, CLAIM_NAMES)


def named(text: str, kinds: Mapping[str, Callable[..., T]], known: str) -> T:
    """Make the object that a name and its numbers describe; errors begin after what it is for."""
    kind, _, listed_numbers = text.strip().lower().partition(":")
    numbers = [number_or_text(part) for part in listed_numbers.split(",") if part]
    try:
        return kinds[kind](*numbers)
    except (OptionError, InputTypeError) as error:
        message = f"{text}: {error}"
    except (KeyError, TypeError):
        message = f"must be one of {known}; got {text!r}"
    raise OptionError(message)


def number_or_text(text: str) -> float | str:
    """Return an integer, a float, or the text itself, which is refused later."""
    try:
        number = float(text)
    except ValueError:
        return text
    if number.is_integer():
        return int(number)
    return number
