"""Robust scaling: the median of values, and how far a typical value is from it."""

import numpy as np

from leakbound._base.types import FloatArray, IntArray

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
    centre = float(np.median(distances, overwrite_input=True))
    distances -= centre
    np.abs(distances, out=distances)
    median_distance = float(np.median(distances, overwrite_input=True))
    return centre, _DEVIATION_OF_NORMAL * median_distance


def robust_scale_of_counts(values: FloatArray, counts: IntArray) -> tuple[float, float]:
    """Return `robust_scale` of values that occur so often, by lower medians."""
    centre = _lower_median(values, counts)
    median_distance = _lower_median(np.abs(values - centre), counts)
    return centre, _DEVIATION_OF_NORMAL * median_distance


def _lower_median(values: FloatArray, counts: IntArray) -> float:
    """Return the median of values that occur so often, of two middle ones the lower."""
    order = np.argsort(values, kind="stable")
    counts_up_to = np.cumsum(counts[order])
    rank_of_median = (counts_up_to[-1] + 1) // 2
    place_of_median = np.searchsorted(counts_up_to, rank_of_median)
    return float(values[order[place_of_median]])
