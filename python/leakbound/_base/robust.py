"""Robust scaling: the median of values, and how far a typical value is from it."""

import numpy as np

from leakbound._base.types import FloatArray, IntArray

# The standard deviation of a normal law over the median distance from its median.
_NORMAL = 1.4826


def robust_scale(values: FloatArray, *, in_place: bool = False) -> tuple[float, float]:
    """Return the median of at least one value, and 1.4826 times the median distance from it.

    The second estimates a standard deviation, and is 0 where more than half of the values are
    equal. With `in_place` nothing is copied, and the array has the distances afterwards, in any
    order. Source: the median absolute deviation, Hampel (1974).
    """
    distances = values
    if not in_place:
        distances = values.copy()
    centre = float(np.median(distances, overwrite_input=True))
    distances -= centre
    np.abs(distances, out=distances)
    return centre, _NORMAL * float(np.median(distances, overwrite_input=True))


def robust_scale_of_counts(values: FloatArray, counts: IntArray) -> tuple[float, float]:
    """Return `robust_scale` of values that occur so often, by lower medians."""
    centre = _lower_median(values, counts)
    return centre, _NORMAL * _lower_median(np.abs(values - centre), counts)


def _lower_median(values: FloatArray, counts: IntArray) -> float:
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(counts[order])
    half = (ends[-1] + 1) // 2
    middle = order[np.searchsorted(ends, half)]
    return float(values[middle])
