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
