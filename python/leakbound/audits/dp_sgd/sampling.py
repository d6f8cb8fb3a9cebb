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
_DRAWN_SETS = 1999
# Batches that are compared, at most.
_MOST_BATCHES = 2000
# Examples times batches of that comparison, at most: a limit of NumPy's generator.
_MOST_DRAWN_EXAMPLES = 10**9


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
        return _result_without_test(observed, confidence=confidence, reason=_UNKNOWN_EXAMPLES)
    if observed.design.sampling != "poisson":
        return _test_sizes_without_chance(observed, examples=examples, confidence=confidence)
    # Only where no reading of the rows is right are samples refuted, so the largest p-value counts.
    design = observed.design
    passes = observed.passes
    readings = [_PoissonSizes(sizes=observed.batch_sizes, design=design, examples=examples)]
    if examples[0] < examples[1] and passes > 1:
        # The batch that an optimizer expects may be that of one pass
        least, most = (passes * limit for limit in examples)
        readings.append(
            _PoissonSizes(sizes=observed.batch_sizes, design=design, examples=(least, most))
        )
    results = [reading.result(confidence) for reading in readings]
    likeliest_result = max(results, key=lambda result: result.p_value)
    if observed.pass_sizes is None or not likeliest_result.refutes:
        return likeliest_result
    likeliest_pass = 0
    for pass_number, pass_sizes in enumerate(observed.pass_sizes.T, start=1):
        sizes_of_pass = _PoissonSizes(sizes=pass_sizes, design=design, examples=examples)
        # Whatever else is tested, the p-value is no larger than that of the mean.
        if shares.SIZES.price(2) * sizes_of_pass.p_mean > likeliest_result.p_value:
            result_of_pass = replace(
                sizes_of_pass.result(confidence), lower_rate=None, upper_rate=None
            )
            if result_of_pass.p_value > likeliest_result.p_value:
                likeliest_result = result_of_pass
                likeliest_pass = pass_number
    if likeliest_result.refutes:
        return likeliest_result
    return _result_without_test(
        observed,
        confidence=confidence,
        reason=f"a step accumulates up to {observed.passes} backward passes, whose rows together "
        f"are not a Poisson sample, while those of pass {likeliest_pass} alone may be one. If the "
        "rows of other passes are training examples, too, and not generated ones as in a GAN, then "
        "the run is not the stated mechanism",
    )


_UNKNOWN_EXAMPLES = (
    "the number of training examples is not known: pass examples to watch_dp_sgd, or an "
    "optimizer that divides by an expected batch size"
)


def _result_without_test(observed: Observed, confidence: float, reason: str) -> SamplingResult:
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


def _test_sizes_without_chance(
    observed: Observed, examples: tuple[int, int], confidence: float
) -> SamplingResult:
    """Compare sizes with those of batches of a fixed size, or of epochs: both need no chance.

    A batch of a fixed size has q N examples, and an epoch has each of N examples once at most.
    """
    sizes = observed.batch_sizes
    design = observed.design
    least, most = examples
    untested_result = _result_without_test(observed, confidence=confidence, reason="")
    if design.sampling == "fixed_size":
        is_constant = bool((sizes == sizes[0]).all())
        rate = design.sampling_rate
        is_possible = least * rate - 1 < untested_result.mean < most * rate + 1
    else:
        is_constant = True
        epoch_length = design.stated.epoch
        sizes_of_epochs = np.convolve(
            sizes, np.ones(min(epoch_length, sizes.size), dtype=np.int64), mode="valid"
        )
        is_possible = int(sizes_of_epochs.max()) <= most
    return replace(
        untested_result,
        least_examples=least,
        most_examples=most,
        expected_variance=0.0,
        p_mean=float(is_possible),
        p_variance=float(is_constant),
    )


class _PoissonSizes:
    """Sizes of batches, of examples whose number is known between limits."""

    def __init__(self, sizes: IntArray, design: CanaryDesign, examples: tuple[int, int]) -> None:
        self.sizes = sizes
        self.design = design
        self.least_known, self.most_possible = examples
        self.largest = int(sizes.max())
        self.total = int(sizes.sum())
        self.least_possible = max(self.least_known, self.largest)

    @property
    def p_mean(self) -> float:
        """The two-sided p-value of the sum, given the rate."""
        if self.largest > self.most_possible:
            return 0.0  # which no sampling without repetition gives
        batches = self.sizes.size
        rate = self.design.sampling_rate
        absent_examples = self.least_possible * batches - self.total
        fewer = float(binomial_tail(absent_examples, n=self.least_possible * batches, p=1 - rate))
        more = float(binomial_tail(self.total, n=self.most_possible * batches, p=rate))
        return min(1.0, shares.MEAN_SIDES.price(2) * min(fewer, more))

    def result(self, confidence: float) -> SamplingResult:
        """Test mean and variance."""
        sizes = self.sizes
        rate = self.design.sampling_rate
        mean = float(sizes.mean())
        variance = float(sizes.var())
        lower_rate = None
        upper_rate = None
        p_distinct = None
        p_variance = 1.0
        least = self.least_known
        most = self.most_possible
        expected_variance = mean * (1 - rate)
        if self.largest <= most:
            if self.least_known == most:
                lower_rate, upper_rate = rate_limits(sizes, examples=most, confidence=confidence)
            least = self.least_possible
            p_variance, p_distinct = _p_values_given_sum(
                sizes, least=least, most=most, seed=self.design.seed
            )
            expected_variance = min(
                max(variance, mean * (1 - mean / least)), mean * (1 - mean / most)
            )
        return SamplingResult(
            sampling_rate=rate,
            batches=sizes.size,
            least_examples=least,
            most_examples=most,
            largest=self.largest,
            mean=mean,
            variance=variance,
            expected_variance=expected_variance,
            p_mean=self.p_mean,
            p_variance=p_variance,
            p_distinct=p_distinct,
            lower_rate=lower_rate,
            upper_rate=upper_rate,
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
    chances = examples * sizes.size
    lower_rate = float(clopper_pearson(total, chances, beta=level))
    return lower_rate, 1 - float(clopper_pearson(chances - total, chances, beta=level))


def _p_values_given_sum(
    sizes: IntArray, least: int, most: int, seed: int
) -> tuple[float, float | None]:
    """Return Monte Carlo p-values given the sum: of the variance, and of the distinct sizes.

    That of the variance is two-sided. Few sizes are distinct where batches are of a fixed size but
    for the last of an epoch, whatever their variance is. That is compared at both limits of N.
    """
    batches = min(sizes.size, _MOST_BATCHES, _MOST_DRAWN_EXAMPLES // most)
    if batches < 2:
        return 1.0, None
    positions = np.linspace(0, sizes.size - 1, batches).round().astype(int)
    compared_sizes = sizes[positions]
    rng = Purpose.DP_SGD_BATCHES.rng(seed)

    def draw_sizes(examples: int) -> IntArray:
        sets: IntArray = rng.multivariate_hypergeometric(
            np.full(batches, examples),
            int(compared_sizes.sum()),
            size=_DRAWN_SETS,
            method="marginals",
        )
        return sets

    def count_distinct(sets: IntArray) -> IntArray:
        differences = np.diff(np.sort(sets, axis=1), axis=1)
        counts: IntArray = 1 + np.count_nonzero(differences, axis=1)
        return counts

    def sums_of_squares(sets: IntArray) -> IntArray:
        sums: IntArray = np.einsum("ij,ij->i", sets, sets)
        return sums

    drawn_at_least = drawn_at_most = draw_sizes(least)
    if least < most:
        drawn_at_most = draw_sizes(most)
    # 1. Squares, low ones at the least number of examples and high ones at the most.
    observed_squares = int(compared_sizes @ compared_sizes)
    lower_squares = 1 + np.count_nonzero(sums_of_squares(drawn_at_least) <= observed_squares)
    higher_squares = 1 + np.count_nonzero(sums_of_squares(drawn_at_most) >= observed_squares)
    # 2. How many sizes there are, at either.
    distinct_sizes = np.unique(compared_sizes).size
    fewer_distinct = [
        1 + np.count_nonzero(count_distinct(sets) <= distinct_sizes)
        for sets in (drawn_at_least, drawn_at_most)
    ]
    all_sets = _DRAWN_SETS + 1
    p_one_sided = min(lower_squares, higher_squares) / all_sets
    p_variance = min(1.0, shares.VARIANCE_SIDES.price(2) * p_one_sided)
    return float(p_variance), float(max(fewer_distinct) / all_sets)
