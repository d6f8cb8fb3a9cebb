"""Bounds in two decimals, rounded so that what is printed is never more than what was proved."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

__all__ = ["down", "up"]


def down(value: float) -> str:
    """Return two decimals, rounded down: what is printed is never more than what was proved.

    Parameters
    ----------
    value : float
        Not NaN.

    Returns
    -------
    str
        The digits.
    """
    return _rounded(value, ROUND_FLOOR)


def up(value: float) -> str:
    """Return two decimals, rounded up, for a bound from above.

    Parameters
    ----------
    value : float
        Not NaN.

    Returns
    -------
    str
        The digits.
    """
    return _rounded(value, ROUND_CEILING)


def _rounded(value: float, direction: str) -> str:
    if math.isinf(value):
        return "inf"
    return str(Decimal(repr(float(value))).quantize(Decimal("0.01"), rounding=direction))
