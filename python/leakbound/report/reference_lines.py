"""What a guarantee allows: the lines that figures draw beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.odds import expit

if TYPE_CHECKING:
    from leakbound._base.types import FloatArray
    from leakbound.report.parts import Curve


def iso_bound_precision(curve: Curve, bound: float) -> FloatArray:
    """Return the precision that every cut of `curve` needs for its bound to equal `bound`.

    A cut of r guesses with precision x supports the odds limit p when r KL(x ‖ p) reaches a level
    that hardly depends on x. The level is read from the curve's own bounds, then the equation is
    solved for x at p = 1/(1 + e^-bound).
    """
    known = curve.bound > 0
    if not known.any():
        return np.full_like(curve.precision, np.nan)
    guesses = curve.guesses.astype(np.float64)
    limit = expit(curve.bound[known])
    evidence = guesses[known] * _divergence(curve.precision[known], limit)
    level = np.interp(np.log(guesses), np.log(guesses[known]), evidence) / guesses
    p = 1.0 / (1.0 + np.exp(-bound))
    low, high = np.full_like(guesses, p), np.ones_like(guesses)
    for _ in range(50):  # bisection: 2^-50 of an interval shorter than 1/2
        middle = 0.5 * (low + high)
        above = _divergence(middle, np.full_like(middle, p)) >= level
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    reachable = np.isfinite(curve.bound) & (level <= -np.log(p) * (1 + 1e-9))
    return np.where(reachable, high, np.nan)


def most_true_positives(false_positive_rate: FloatArray, epsilon: float) -> FloatArray:
    """Return the largest true-positive rate that ε-DP allows: min(e^ε x, 1 - e^-ε (1 - x)).

    Examples
    --------
    >>> most_true_positives(np.array([0.0, 1.0]), 1.0).tolist()
    [0.0, 1.0]
    """
    most: FloatArray = np.minimum(
        np.exp(epsilon) * false_positive_rate, 1.0 - np.exp(-epsilon) * (1.0 - false_positive_rate)
    )
    return most


def _divergence(x: FloatArray, p: FloatArray) -> FloatArray:
    """KL(x ‖ p) between coins, with 0 ln 0 = 0."""
    hit = np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / p), 0.0)
    miss = np.where(x < 1, (1 - x) * np.log(np.where(x < 1, 1 - x, 1.0) / (1 - p)), 0.0)
    return hit + miss
