"""Privacy profiles: the smallest δ at each ε, exactly, of the mechanisms that are simulated."""

import math
from collections.abc import Callable
from typing import TypeAlias

from leakbound.stats import log_normal_cdf

Profile: TypeAlias = Callable[[float], float]
"""From ε ≥ 0 to the smallest δ with which the mechanism is (ε, δ)-DP; non-increasing."""


def gaussian_profile(mu: float) -> Profile:
    """Return the profile of one draw from N(μ, 1) or N(0, 1)."""

    def delta(epsilon: float) -> float:
        if mu == 0:
            return 0.0
        with_it = float(log_normal_cdf(mu / 2 - epsilon / mu))
        without = epsilon + float(log_normal_cdf(-mu / 2 - epsilon / mu))
        return max(_LEAST, -math.exp(with_it) * math.expm1(min(0.0, without - with_it)))

    return delta


def response_profile(true_epsilon: float, failure: float) -> Profile:
    """Return the profile of randomised response that tells the truth outright now and then."""

    def delta(epsilon: float) -> float:
        excess = max(0.0, -math.expm1(epsilon - true_epsilon)) / (1 + math.exp(-true_epsilon))
        return failure + (1 - failure) * excess

    return delta


def smallest_epsilon(profile: Profile, delta: float) -> float:
    """Return the smallest ε at which a profile is no more than δ."""
    if profile(0.0) <= delta:
        return 0.0
    high = 1.0
    while profile(high) > delta:
        high *= 2
        if high > _LARGEST:
            return math.inf
    low = 0.0
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if profile(middle) <= delta else (middle, high)
    return high


_LARGEST = 500.0
"""Beyond this ε every probability here is 0 or out of reach of an exponent."""
_PRECISION = 1e-13
_LEAST = math.ulp(0.0)
