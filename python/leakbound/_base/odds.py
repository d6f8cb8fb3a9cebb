"""Probabilities and log-odds, the ends of both included, and numbers of ways in logarithms."""

import math
from typing import overload

import numpy as np

from leakbound._base.types import FloatArray, GenericArray


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
