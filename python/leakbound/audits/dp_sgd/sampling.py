"""Are batches Poisson samples at the rate that is claimed? Their sizes say so."""

import math
from dataclasses import replace

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement
from leakbound._base.streams import Purpose
from leakbound._base.types import IntArray
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed
from leakbound.results.dp_sgd import SamplingResult
from leakbound.stats import binomial_tail, clopper_pearson

# Sets of sizes drawn to compare with: the smallest p-value of the variance is 1/1000.
_GAMES = 1999
# Batches that are compared, at most.
_MOST_BATCHES = 2000
# Examples times batches of that comparison, at most: a limit of NumPy's generator.
_MOST_ROWS = 10**9


def audit_batch_sizes(
    observed: Observed, examples: tuple[int, int] | None, confidence: float
) -> SamplingResult:
    """Test the mean of the sizes against N q; given it, their variance and how many are distinct.

    All are exact under Poisson sampling, given the mean at any rate (see docs/theory). If N is
    known between limits only, each p-value is the largest that any N gives: low tails are taken at
    the least N, and high ones at the most. Limits of the rate are given where N is known, and
    nowhere else: one that is inferred from the rate says nothing of it.

    Where steps accumulate several backward passes, the size is that of all together: what the
    stated mechanism samples is the example of a step. But rows of a pass may be no examples, as
    those that a GAN generates. So sampling is refuted only where the rows of no single pass could
    be the sample either; where they could, nothing is decided, and the reason says so.
    """
    if examples is None:
        return _untested(observed, confidence=confidence, reason=_UNKNOWN)
    if observed.design.sampling != "poisson":
        return _counted(observed, examples=examples, confidence=confidence)
    # Only where no reading of the rows is right are samples refuted, so the largest p-value counts.
    design = observed.design
    passes = observed.passes
    together = [_Sizes(sizes=observed.batch_sizes, design=design, examples=examples)]
    if examples[0] < examples[1] and passes > 1:
        # The batch that an optimizer expects may be that of one pass
        least, most = (passes * limit for limit in examples)
        together.append(_Sizes(sizes=observed.batch_sizes, design=design, examples=(least, most)))
    likeliest = max((one.tested(confidence) for one in together), key=lambda one: one.p_value)
    if observed.pass_sizes is None or not likeliest.refutes:
        return likeliest
    of_pass = 0
    for number, rows in enumerate(observed.pass_sizes.T, start=1):
        alone = _Sizes(sizes=rows, design=design, examples=examples)
        # Whatever else is tested, the p-value is no larger than that of the mean.
        if shares.SIZES.price(2) * alone.p_mean > likeliest.p_value:
            found = replace(alone.tested(confidence), lower_rate=None, upper_rate=None)
            if found.p_value > likeliest.p_value:
                likeliest = found
                of_pass = number
    if likeliest.refutes:
        return likeliest
    return _untested(
        observed,
        confidence=confidence,
        reason=f"a step accumulates up to {observed.passes} backward passes, whose rows together "
        f"are not a Poisson sample, while those of pass {of_pass} alone may be one. If the rows of "
        "other passes are training examples, too, and not generated ones as in a GAN, then the run "
        "is not the stated mechanism",
    )


_UNKNOWN = (
    "the number of training examples is not known: pass examples to watch_dp_sgd, or an "
    "optimizer that divides by an expected batch size"
)


def _untested(observed: Observed, confidence: float, reason: str) -> SamplingResult:
    sizes = observed.batch_sizes
    rate = observed.design.sampling_rate
    mean = float(sizes.mean())
    return SamplingResult(
        sampling_rate=rate,
        batches=sizes.size,
        least_examples=0,
        most_examples=0,
        largest=int(sizes.max()),
        mean=mean,
        variance=float(sizes.var()),
        expected_variance=mean * (1 - rate),
        p_mean=1.0,
        p_variance=1.0,
        confidence=float(confidence),
        sampling=observed.design.sampling,
        reason=reason,
    )


def _counted(observed: Observed, examples: tuple[int, int], confidence: float) -> SamplingResult:
    """Compare sizes with those of batches of a fixed size, or of epochs: both need no chance.

    A batch of a fixed size has q N examples, and an epoch has each of N examples once at most.
    """
    sizes = observed.batch_sizes
    design = observed.design
    least, most = examples
    mean = float(sizes.mean())
    if design.sampling == "fixed_size":
        constant = bool((sizes == sizes[0]).all())
        rate = design.sampling_rate
        right = least * rate - 1 < mean < most * rate + 1
    else:
        constant = True
        epoch = design.stated.epoch
        totals = np.convolve(sizes, np.ones(min(epoch, sizes.size), dtype=np.int64), mode="valid")
        right = int(totals.max()) <= most
    return SamplingResult(
        sampling=design.sampling,
        sampling_rate=design.sampling_rate,
        batches=sizes.size,
        least_examples=least,
        most_examples=most,
        largest=int(sizes.max()),
        mean=mean,
        variance=float(sizes.var()),
        expected_variance=0.0,
        p_mean=float(right),
        p_variance=float(constant),
        confidence=float(confidence),
        reason="",
    )


class _Sizes:
    """Sizes of batches, of examples whose number is known between limits."""

    def __init__(self, sizes: IntArray, design: CanaryDesign, examples: tuple[int, int]) -> None:
        self.sizes = sizes
        self.design = design
        self.given, self.most = examples
        self.largest = int(sizes.max())
        self.total = int(sizes.sum())
        self.least = max(self.given, self.largest)

    @property
    def p_mean(self) -> float:
        """The two-sided p-value of the sum, given the rate."""
        if self.largest > self.most:
            return 0.0  # which no sampling without repetition gives
        batches = self.sizes.size
        rate = self.design.sampling_rate
        absent = self.least * batches - self.total
        fewer = float(binomial_tail(absent, n=self.least * batches, p=1 - rate))
        more = float(binomial_tail(self.total, n=self.most * batches, p=rate))
        return min(1.0, shares.MEAN_SIDES.price(2) * min(fewer, more))

    def tested(self, confidence: float) -> SamplingResult:
        """Test mean and variance."""
        sizes = self.sizes
        rate = self.design.sampling_rate
        mean = float(sizes.mean())
        variance = float(sizes.var())
        lower = None
        upper = None
        p_distinct = None
        p_variance = 1.0
        least = self.given
        most = self.most
        expected = mean * (1 - rate)
        if self.largest <= most:
            if self.given == most:
                lower, upper = rate_limits(sizes, examples=most, confidence=confidence)
            least = self.least
            p_variance, p_distinct = _tests_given_the_sum(
                sizes, least=least, most=most, seed=self.design.seed
            )
            expected = min(max(variance, mean * (1 - mean / least)), mean * (1 - mean / most))
        return SamplingResult(
            sampling_rate=rate,
            batches=sizes.size,
            least_examples=least,
            most_examples=most,
            largest=self.largest,
            mean=mean,
            variance=variance,
            expected_variance=expected,
            p_mean=self.p_mean,
            p_variance=p_variance,
            p_distinct=p_distinct,
            lower_rate=lower,
            upper_rate=upper,
            confidence=float(confidence),
            reason="",
        )


def possible_examples(expected: float, rate: float) -> tuple[int, int]:
    """Return the least and the most training examples N with an expected batch size ⌊N q⌋."""
    return max(1, math.floor(expected / rate)), math.ceil((expected + 1) / rate)


def rate_limits(sizes: IntArray, examples: int, confidence: float) -> tuple[float, float]:
    """Return exact limits of the rate under Poisson sampling, each at half of the error."""
    level = shares.RATE_SIDES.of(complement(confidence), 2)
    total = int(sizes.sum())
    rows = examples * sizes.size
    lower = float(clopper_pearson(total, rows, beta=level))
    return lower, 1 - float(clopper_pearson(rows - total, rows, beta=level))


def _tests_given_the_sum(
    sizes: IntArray, least: int, most: int, seed: int
) -> tuple[float, float | None]:
    """Return Monte Carlo p-values given the sum: of the variance, and of the distinct sizes.

    That of the variance is two-sided. Few sizes are distinct where batches are of a fixed size but
    for the last of an epoch, whatever their variance is. That is compared at both limits of N.
    """
    batches = min(sizes.size, _MOST_BATCHES, _MOST_ROWS // most)
    if batches < 2:
        return 1.0, None
    kept = sizes[np.linspace(0, sizes.size - 1, batches).round().astype(int)]
    rng = Purpose.DP_SGD_BATCHES.rng(seed)

    def drawn(examples: int) -> IntArray:
        sets: IntArray = rng.multivariate_hypergeometric(
            np.full(batches, examples), int(kept.sum()), size=_GAMES, method="marginals"
        )
        return sets

    def distinct(sets: IntArray) -> IntArray:
        counted: IntArray = 1 + np.count_nonzero(np.diff(np.sort(sets, axis=1), axis=1), axis=1)
        return counted

    fewest = greatest = drawn(least)
    if least < most:
        greatest = drawn(most)
    # 1. Squares, low ones at the least number of examples and high ones at the most.
    seen = int(kept @ kept)
    low = 1 + np.count_nonzero(np.einsum("ij,ij->i", fewest, fewest) <= seen)
    high = 1 + np.count_nonzero(np.einsum("ij,ij->i", greatest, greatest) >= seen)
    # 2. How many sizes there are, at either.
    sizes_seen = np.unique(kept).size
    as_few = [1 + np.count_nonzero(distinct(sets) <= sizes_seen) for sets in (fewest, greatest)]
    games = _GAMES + 1
    two_sided = min(1.0, shares.VARIANCE_SIDES.price(2) * min(low, high) / games)
    return float(two_sided), float(max(as_few) / games)
