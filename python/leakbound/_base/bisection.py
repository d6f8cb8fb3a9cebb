"""Searches that halve a bracket: all of the package are here, or are Python's `bisect`."""

from collections.abc import Callable


def mean(low: float, high: float) -> float:
    """Return the middle of a bracket."""
    return 0.5 * (low + high)


def halved(
    low: float,
    high: float,
    holds: Callable[[float], bool],
    *,
    width: float = 0.0,
    most: int = 2000,
    middle: Callable[[float, float], float] = mean,
) -> tuple[float, float]:
    """Halve a bracket at whose low end something holds, and at whose high end it does not.

    Parameters
    ----------
    low, high : float
        The bracket: neither end is asked about.
    holds : callable
        Of a number between: True up to some number, and False above it.
    width : float
        The search ends when the bracket is at most so wide, relative to its high end; at 0, when no
        double lies between.
    most : int
        The most halvings; there are fewer than 2,000 doubles apart by powers of two.
    middle : callable
        The number to ask about next.

    Returns
    -------
    tuple of float
        The last number for which it held, and the first for which it did not.

    Examples
    --------
    >>> low, high = halved(1.0, 2.0, lambda x: x * x <= 2)
    >>> low * low <= 2 < high * high
    True
    """
    for _ in range(most):
        between = middle(low, high)
        if high - low <= width * high or not low < between < high:
            break
        if holds(between):
            low = between
        else:
            high = between
    return low, high


def doubled_and_halved(
    holds: Callable[[float], bool], *, width: float = 0.0, most: int = 2000
) -> tuple[float, float]:
    """Double a number from 1 on while something holds, and halve the bracket in which it ends.

    Parameters
    ----------
    holds : callable
        Of a positive number: True up to some number, and False above it.
    width, most
        As for `halved`.

    Returns
    -------
    tuple of float
        As of `halved`; the first is 0 if it held for no number that was asked about.
    """
    low = 0.0
    high = 1.0
    while holds(high):
        low = high
        high = 2 * high
    return halved(low, high, holds, width=width, most=most)
