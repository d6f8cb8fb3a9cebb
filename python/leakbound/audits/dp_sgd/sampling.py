"""Are batches Poisson samples at the rate that is claimed? Their sizes say so."""

import numpy as np

from leakbound._base.streams import Purpose
from leakbound._base.types import IntArray
from leakbound._base.validation import complement
from leakbound.audits.dp_sgd.canaries import Observed
from leakbound.results.dp_sgd import SamplingResult
from leakbound.stats import binomial_tail, clopper_pearson

__all__ = ["audit_batch_sizes", "rate_limits"]

_GAMES = 1999
"""Sets of sizes drawn to compare the variance with: the smallest p-value is 1/1000."""
_MOST_BATCHES = 2000
"""Batches whose variance is compared, at most."""
_MOST_ROWS = 10**9
"""Examples times batches of that comparison, at most: a limit of NumPy's generator."""


def audit_batch_sizes(
    observed: Observed, examples: tuple[int, int] | None, confidence: float
) -> SamplingResult:
    """Test the mean of the sizes against N q, and their variance given their mean.

    Under Poisson sampling at rate q the T sizes are independent and binomial, so that their sum is
    binomial with N T trials: an exact test, at the N that suits the sizes best where N is known
    between limits only. Given the sum, sizes are multivariate hypergeometric whatever the rate:
    their variance is compared with that of draws from this law, an exact Monte Carlo test.
    """
    sizes, rate = observed.batch_sizes, observed.design.sampling_rate
    reason = _untestable(observed, examples)
    least, most = examples if examples is not None and not reason else (0, 0)
    mean, limits, p_mean, p_variance = float(sizes.mean()), (0.0, 1.0), 1.0, 1.0
    if not reason and sizes.max() > most:
        p_mean = 0.0  # which no sampling without repetition gives
    elif not reason:
        total, batches = int(sizes.sum()), sizes.size
        limits = rate_limits(sizes, (least, most), confidence)
        fewer = float(binomial_tail(least * batches - total, least * batches, 1 - rate))
        more = float(binomial_tail(total, most * batches, rate))
        p_mean = min(1.0, 2 * min(fewer, more))
        p_variance = _variance_test(sizes, most, observed.design.seed)
    return SamplingResult(
        sampling_rate=rate,
        batches=sizes.size,
        least_examples=least,
        most_examples=most,
        largest=int(sizes.max()),
        mean=mean,
        variance=float(sizes.var()),
        expected_variance=mean * max(0.0, 1 - (mean / most if most else rate)),
        p_mean=p_mean,
        p_variance=p_variance,
        lower_rate=limits[0],
        upper_rate=limits[1],
        confidence=float(confidence),
        reason=reason,
    )


def rate_limits(
    sizes: IntArray, examples: tuple[int, int], confidence: float
) -> tuple[float, float]:
    """Return exact limits of the rate under Poisson sampling, each at half of the error."""
    level, total = complement(confidence) / 2, int(sizes.sum())
    least, most = (count * sizes.size for count in examples)
    lower = float(clopper_pearson(min(total, most), most, beta=level))
    upper = 1 - float(clopper_pearson(max(0, least - total), least, beta=level))
    return lower, upper


def _untestable(observed: Observed, examples: tuple[int, int] | None) -> str:
    if observed.accumulated > 1:
        return (
            f"up to {observed.accumulated} batches of the loader were accumulated in a step, and "
            "together they are no Poisson sample"
        )
    if examples is None:
        return (
            "the number of training examples is not known: pass examples to watch_dp_sgd, or an "
            "optimizer that divides by an expected batch size"
        )
    return ""


def _variance_test(sizes: IntArray, examples: int, seed: int) -> float:
    """Return a two-sided Monte Carlo p-value of the variance, given the sum."""
    most = min(sizes.size, _MOST_BATCHES, _MOST_ROWS // examples)
    if most < 2:
        return 1.0
    kept = sizes[np.linspace(0, sizes.size - 1, most).round().astype(int)]
    drawn = Purpose.DP_SGD_BATCHES.rng(seed).multivariate_hypergeometric(
        np.full(most, examples), int(kept.sum()), size=_GAMES, method="marginals"
    )
    squares, seen = np.einsum("ij,ij->i", drawn, drawn), int(kept @ kept)
    low = 1 + np.count_nonzero(squares <= seen)
    high = 1 + np.count_nonzero(squares >= seen)
    return float(min(1.0, 2 * min(low, high) / (_GAMES + 1)))
