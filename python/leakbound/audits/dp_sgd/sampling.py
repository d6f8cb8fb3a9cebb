"""Are batches Poisson samples at the rate that is claimed? Their sizes say so."""

import math

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement
from leakbound._base.streams import Purpose
from leakbound._base.types import IntArray
from leakbound.audits.dp_sgd.canaries import Observed
from leakbound.results.dp_sgd import SamplingResult
from leakbound.stats import binomial_tail, clopper_pearson

# Sets of sizes drawn to compare the variance with: the smallest p-value is 1/1000.
_GAMES = 1999
# Batches whose variance is compared, at most.
_MOST_BATCHES = 2000
# Examples times batches of that comparison, at most: a limit of NumPy's generator.
_MOST_ROWS = 10**9


def audit_batch_sizes(
    observed: Observed, examples: tuple[int, int] | None, confidence: float
) -> SamplingResult:
    """Test the mean of the sizes against N q, and their variance given their mean.

    Both tests are exact under Poisson sampling, the second at any rate (see docs/theory). If N is
    known between limits only, each p-value is the largest that any N gives: low tails are taken at
    the least N, and high ones at the most. Limits of the rate are given where N is known, and
    nowhere else: one that is inferred from the rate says nothing of it.
    """
    sizes, rate = observed.batch_sizes, observed.design.sampling_rate
    reason = _untestable(observed, examples)
    least, most = examples if examples is not None and not reason else (0, 0)
    mean, variance, largest = float(sizes.mean()), float(sizes.var()), int(sizes.max())
    lower, upper, p_mean, p_variance = None, None, 1.0, 1.0
    expected = mean * (1 - rate)
    if not reason and largest > most:
        p_mean = 0.0  # which no sampling without repetition gives
    elif not reason:
        total, batches = int(sizes.sum()), sizes.size
        if least == most:
            lower, upper = rate_limits(sizes, most, confidence)
        least = max(least, largest)
        fewer = float(binomial_tail(least * batches - total, least * batches, 1 - rate))
        more = float(binomial_tail(total, most * batches, rate))
        p_mean = min(1.0, shares.MEAN_SIDES.price(2) * min(fewer, more))
        p_variance = _variance_test(sizes, least, most, observed.design.seed)
        expected = min(max(variance, mean * (1 - mean / least)), mean * (1 - mean / most))
    return SamplingResult(
        sampling_rate=rate,
        batches=sizes.size,
        least_examples=least,
        most_examples=most,
        largest=largest,
        mean=mean,
        variance=variance,
        expected_variance=expected,
        p_mean=p_mean,
        p_variance=p_variance,
        lower_rate=lower,
        upper_rate=upper,
        confidence=float(confidence),
        reason=reason,
    )


def possible_examples(expected: float, rate: float) -> tuple[int, int]:
    """Return the least and the most training examples N with an expected batch size ⌊N q⌋."""
    return max(1, math.floor(expected / rate)), math.ceil((expected + 1) / rate)


def rate_limits(sizes: IntArray, examples: int, confidence: float) -> tuple[float, float]:
    """Return exact limits of the rate under Poisson sampling, each at half of the error."""
    level = shares.RATE_SIDES.of(complement(confidence), 2)
    total, rows = int(sizes.sum()), examples * sizes.size
    lower = float(clopper_pearson(total, rows, beta=level))
    return lower, 1 - float(clopper_pearson(rows - total, rows, beta=level))


def _untestable(observed: Observed, examples: tuple[int, int] | None) -> str:
    if observed.accumulated > 1:
        return f"up to {observed.accumulated} accumulated batches per step are not a Poisson sample"
    if examples is None:
        return (
            "the number of training examples is not known: pass examples to watch_dp_sgd, or an "
            "optimizer that divides by an expected batch size"
        )
    return ""


def _variance_test(sizes: IntArray, least: int, most: int, seed: int) -> float:
    """Return a two-sided Monte Carlo p-value of the variance, given the sum."""
    batches = min(sizes.size, _MOST_BATCHES, _MOST_ROWS // most)
    if batches < 2:
        return 1.0
    kept = sizes[np.linspace(0, sizes.size - 1, batches).round().astype(int)]
    rng, seen = Purpose.DP_SGD_BATCHES.rng(seed), int(kept @ kept)

    def squares(examples: int) -> IntArray:
        drawn = rng.multivariate_hypergeometric(
            np.full(batches, examples), int(kept.sum()), size=_GAMES, method="marginals"
        )
        sums: IntArray = np.einsum("ij,ij->i", drawn, drawn)
        return sums

    fewest = squares(least)
    low = 1 + np.count_nonzero(fewest <= seen)
    high = 1 + np.count_nonzero((fewest if least == most else squares(most)) >= seen)
    return float(min(1.0, shares.VARIANCE_SIDES.price(2) * min(low, high) / (_GAMES + 1)))
