"""Log-odds, robust scaling, and searches that halve a bracket."""

import math
from collections.abc import Callable
from typing import overload

import numpy as np

from leakbound._base.types import FloatArray, GenericArray, IntArray


def expit(log_odds: FloatArray) -> FloatArray:
    """Return 1/(1 + e^-λ) of log-odds λ; 0 and 1 of infinite ones."""
    with np.errstate(over="ignore"):
        probabilities: FloatArray = 1.0 / (1.0 + np.exp(-log_odds))
    return probabilities


@overload
def logit(p: float) -> float: ...
@overload
def logit(p: GenericArray) -> FloatArray: ...
def logit(p: float | GenericArray) -> float | FloatArray:
    """Return ln(p/(1 - p)) of probabilities; infinite for 0 and 1 in an array."""
    if isinstance(p, float):
        return math.log(p) - math.log1p(-p)
    float_probabilities = p.astype(np.float64)
    with np.errstate(divide="ignore"):
        log_odds: FloatArray = np.log(float_probabilities) - np.log1p(-float_probabilities)
    return log_odds


def log_choose(size: int, count: int) -> float:
    """Return the logarithm of the binomial coefficient, the ways to choose `count` of `size`."""
    log_factorial_of_size = math.lgamma(size + 1)
    log_factorial_of_count = math.lgamma(count + 1)
    return log_factorial_of_size - log_factorial_of_count - math.lgamma(size - count + 1)


# The standard deviation of a normal law over the median distance from its median.
_DEVIATION_OF_NORMAL = 1.4826


def robust_scale(values: FloatArray, *, in_place: bool = False) -> tuple[float, float]:
    """Return the median of at least one value, and 1.4826 times the median distance from it.

    The second estimates a standard deviation, and is 0 where more than half of the values are
    equal. With `in_place` nothing is copied, and the array has the distances afterwards, in any
    order. Source: the median absolute deviation, Hampel (1974).
    """
    distances = values
    if not in_place:
        distances = values.copy()
    median = float(np.median(distances, overwrite_input=True))
    distances -= median
    np.abs(distances, out=distances)
    median_distance = float(np.median(distances, overwrite_input=True))
    return median, _DEVIATION_OF_NORMAL * median_distance


def robust_scale_of_counts(values: FloatArray, counts: IntArray) -> tuple[float, float]:
    """Return `robust_scale` of values that occur so often, by lower medians."""
    lower_median = _lower_median(values, counts)
    distances_from_median = np.abs(values - lower_median)
    median_distance = _lower_median(distances_from_median, counts)
    return lower_median, _DEVIATION_OF_NORMAL * median_distance


def _lower_median(values: FloatArray, counts: IntArray) -> float:
    """Return the median of values that occur so often, of two middle ones the lower."""
    places_by_value = np.argsort(values, kind="stable")
    counts_up_to_value = np.cumsum(counts[places_by_value])
    rank_of_lower_median = (counts_up_to_value[-1] + 1) // 2
    values_below_median = np.searchsorted(counts_up_to_value, rank_of_lower_median)
    return float(values[places_by_value[values_below_median]])


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
