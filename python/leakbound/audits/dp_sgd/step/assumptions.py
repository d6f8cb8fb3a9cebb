"""Tests of what bounds from a probe assume: normal noise, independent, and fresh in each step.

Statistics do not change with the scale of a tensor's noise, and are compared with draws from their
law. So p-values are exact; draws end once enough of them were larger (Besag and Clifford 1991).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leakbound._base import shares
from leakbound._base.types import FloatArray, IntArray
from leakbound.audits.dp_sgd.step.contrasts import Noise
from leakbound.results.dp_step import Tested

# Larger draws after which a p-value is settled
_ENOUGH_LARGER_DRAWS = 20
# Draws at a time at first, numbers in memory at most
_FIRST_DRAWS = 64
_MOST_NUMBERS_IN_MEMORY = 2_000_000
# Draws at most; of few numbers there may be more draws, of so many numbers together
_MOST_DRAWS = 100_000
_MOST_DRAWN_NUMBERS = 50_000_000
# Contrasts and tensors that are tested for independence, at most
_MOST_CONTRASTS = 24
_MOST_TENSORS = 32
# Values that are tested for normality at most, and of one tensor by itself at least
_MOST_VALUES = 8192
_FEWEST_VALUES = 256
# Variance of the mean cube and fourth power of one standard normal number
_VARIANCE_OF_CUBES = 15.0
_VARIANCE_OF_FOURTH_POWERS = 24.0


class PValue(NamedTuple):
    """The p-value of a test by draws."""

    value: float
    smallest_possible: float = 0.0
    """The smallest that the draws could give; 0 if there was nothing to test."""


_NOTHING_TO_TEST = PValue(1.0)


def refuting_tests(p_values: dict[Tested, float], level: float) -> tuple[Tested, ...]:
    """Return which tests of the noise refute, each at its share of the level."""
    levels_of_tests: dict[Tested, float] = {
        "normal": shares.STEP_NORMAL.of(level),
        "independent": shares.STEP_INDEPENDENT.of(level),
        "steps": shares.STEP_FRESH.of(level),
    }
    refuting: list[Tested] = []
    for test, p_value in p_values.items():
        if p_value <= levels_of_tests[test]:
            refuting.append(test)
    return tuple(refuting)


def simulated_p_value(
    observed_statistic: float,
    draw_null_statistics: Callable[[int], FloatArray],
    numbers_per_draw: int,
    level: float,
) -> PValue:
    """Return the p-value of a statistic by draws from its law.

    Draws are limited, so that no p-value may be as small as the level.
    """
    most_by_numbers = max(_MOST_DRAWS, _MOST_DRAWN_NUMBERS // numbers_per_draw)
    most_draws = min(math.ceil(1 / level), most_by_numbers)
    smallest_possible = 1 / (1 + most_draws)
    most_in_memory = _MOST_NUMBERS_IN_MEMORY // numbers_per_draw
    draws = 0
    larger_draws = 0
    next_draws = _FIRST_DRAWS
    while draws < most_draws:
        next_draws = max(1, min(next_draws, most_draws - draws, most_in_memory))
        is_at_least_observed = draw_null_statistics(next_draws) >= observed_statistic
        newly_larger = int(np.count_nonzero(is_at_least_observed))
        if larger_draws + newly_larger >= _ENOUGH_LARGER_DRAWS:
            positions_of_larger = np.flatnonzero(is_at_least_observed)
            last_needed = int(positions_of_larger[_ENOUGH_LARGER_DRAWS - larger_draws - 1])
            p_value = _ENOUGH_LARGER_DRAWS / (draws + last_needed + 1)
            return PValue(p_value, smallest_possible)
        larger_draws += newly_larger
        draws += next_draws
        next_draws *= 2
    return PValue((1 + larger_draws) / (1 + draws), smallest_possible)


def independence_p_value(noise: Noise, level: float, rng: np.random.Generator) -> PValue:
    """Return the p-value of independent noise values with one σ in each tensor.

    Rows are contrasts, so products of two rows have mean 0 and a variance that grows with
    correlations of values. Of each tensor they are scaled by its own squares (John 1971; Ledoit and
    Wolf 2002); under the claim they are Wishart matrices.
    """
    tensor_contrasts = [
        noise.contrasts[name] for name in noise.noisy_tensors if name in noise.contrasts
    ]
    if len(tensor_contrasts) > _MOST_TENSORS:
        chosen_tensors = rng.choice(len(tensor_contrasts), size=_MOST_TENSORS, replace=False)
        tensor_contrasts = [tensor_contrasts[tensor_number] for tensor_number in chosen_tensors]
    if not tensor_contrasts:
        return _NOTHING_TO_TEST
    values_of_all_tensors = sum(contrasts.shape[1] for contrasts in tensor_contrasts)
    contrast_count = min(
        len(tensor_contrasts[0]), _MOST_CONTRASTS, max(2, values_of_all_tensors // 4)
    )
    if contrast_count < 2:
        return _NOTHING_TO_TEST
    # Where rounding leaves nothing of the noise, there is nothing to test
    tensor_contrasts = [
        contrasts[:contrast_count]
        for contrasts in tensor_contrasts
        if contrasts[:contrast_count].any()
    ]
    if not tensor_contrasts:
        return _NOTHING_TO_TEST
    values_of_tensors = [contrasts.shape[1] for contrasts in tensor_contrasts]
    observed_products: FloatArray = np.zeros((contrast_count, contrast_count))
    for contrasts, values_of_tensor in zip(tensor_contrasts, values_of_tensors, strict=True):
        observed_products += _with_trace(contrasts @ contrasts.T, values_of_tensor)

    def draw_null_statistics(null_draws: int) -> FloatArray:
        sum_of_products: FloatArray = np.zeros((null_draws, contrast_count, contrast_count))
        for values_of_tensor in values_of_tensors:
            wishart_matrices = _draw_wishart_matrices(
                rng, null_draws, contrast_count, values_of_tensor
            )
            sum_of_products += _with_trace(wishart_matrices, values_of_tensor)
        return _off_diagonal_ratio(sum_of_products)

    return simulated_p_value(
        float(_off_diagonal_ratio(observed_products)),
        draw_null_statistics,
        numbers_per_draw=contrast_count * contrast_count,
        level=shares.STEP_INDEPENDENT.of(level),
    )


def _with_trace(product_matrices: FloatArray, trace: int) -> FloatArray:
    """Scale matrices to a trace, in the memory that they have."""
    traces = np.einsum("...ii->...", product_matrices)
    product_matrices /= traces[..., None, None]
    product_matrices *= trace
    return product_matrices


def _off_diagonal_ratio(product_matrices: FloatArray) -> FloatArray:
    """Return the squares off the diagonal of each matrix, over the squared mean on it."""
    diagonals = np.einsum("...ii->...i", product_matrices)
    squared_norms = np.einsum("...ij,...ij->...", product_matrices, product_matrices)
    on_diagonal = (diagonals**2).sum(axis=-1)
    squared_means = diagonals.mean(axis=-1) ** 2
    ratio: FloatArray = (squared_norms - on_diagonal) / squared_means
    return ratio


def _draw_wishart_matrices(
    rng: np.random.Generator, null_draws: int, contrast_count: int, degrees_of_freedom: int
) -> FloatArray:
    """Draw products of normal vectors with one another (Bartlett's decomposition)."""
    if degrees_of_freedom < 2 * contrast_count:
        vectors = rng.normal(size=(null_draws, contrast_count, degrees_of_freedom))
        return vectors @ vectors.transpose(0, 2, 1)
    # No name for the normal values, which are as large: they are gone once the half is taken.
    cholesky_factors = np.tril(rng.normal(size=(null_draws, contrast_count, contrast_count)), -1)
    diagonal = np.arange(contrast_count)
    chi_squares = rng.chisquare(degrees_of_freedom - diagonal, size=(null_draws, contrast_count))
    cholesky_factors[:, diagonal, diagonal] = np.sqrt(chi_squares)
    return cholesky_factors @ cholesky_factors.transpose(0, 2, 1)


def normality_p_value(noise: Noise, level: float, rng: np.random.Generator) -> PValue:
    """Return the p-value of skewness and kurtosis of the noise (Jarque and Bera 1980).

    The statistic is the largest one of all values together and of each tensor with many values.
    """
    noisy_tensors = noise.noisy_tensors
    values_of_each = max(8, _MOST_VALUES // max(1, len(noisy_tensors)))
    tested_values = []
    for tensor_name in noisy_tensors:
        contrasts = noise.contrasts[tensor_name]
        tensor_values = contrasts.ravel()[:values_of_each]
        # Where rounding leaves nothing of the noise, there is nothing to test
        if tensor_values.size > 1 and tensor_values.any():
            tested_values.append(tensor_values)
    if not tested_values:
        return _NOTHING_TO_TEST
    tested_sizes = np.array([tensor_values.size for tensor_values in tested_values])
    tested_count = int(tested_sizes.sum())

    def draw_null_statistics(null_draws: int) -> FloatArray:
        normal_values = rng.normal(size=(null_draws, tested_count))
        return _skewness_kurtosis_statistic(normal_values, tested_sizes)

    observed_values = np.concatenate(tested_values)[None]
    observed_statistics = _skewness_kurtosis_statistic(observed_values, tested_sizes)
    return simulated_p_value(
        float(observed_statistics[0]),
        draw_null_statistics,
        numbers_per_draw=tested_count,
        level=shares.STEP_NORMAL.of(level),
    )


def _skewness_kurtosis_statistic(noise_values: FloatArray, tensor_sizes: IntArray) -> FloatArray:
    """Return how far third and fourth powers are from those of normal numbers, row by row.

    Powers are made in the memory of the values, which are many and not needed afterwards.
    """
    tensor_starts = np.cumsum(tensor_sizes) - tensor_sizes
    squares = noise_values**2
    variances = np.add.reduceat(squares, tensor_starts, axis=1) / tensor_sizes
    noise_values *= squares
    cubes = np.add.reduceat(noise_values, tensor_starts, axis=1)
    squares *= squares
    fourth_powers = np.add.reduceat(squares, tensor_starts, axis=1)
    # Skewness and excess kurtosis of each tensor, times its size
    skewness_sums = cubes / variances**1.5
    kurtosis_sums = fourth_powers / variances**2 - 3 * tensor_sizes

    def jarque_bera(skewness_sums: FloatArray, kurtosis_sums: FloatArray) -> FloatArray:
        skewness_terms: FloatArray = skewness_sums**2 / _VARIANCE_OF_CUBES
        kurtosis_terms: FloatArray = kurtosis_sums**2 / _VARIANCE_OF_FOURTH_POWERS
        return skewness_terms + kurtosis_terms

    statistics_of_tensors = jarque_bera(skewness_sums, kurtosis_sums) / tensor_sizes
    statistic_of_all_values = jarque_bera(skewness_sums.sum(axis=1), kurtosis_sums.sum(axis=1))
    is_large = tensor_sizes >= _FEWEST_VALUES
    largest_of_tensors = statistics_of_tensors.max(axis=1, where=is_large, initial=0.0)
    largest_statistic: FloatArray = np.maximum(
        statistic_of_all_values / tensor_sizes.sum(), largest_of_tensors
    )
    return largest_statistic


def freshness_p_value(
    noise: Noise,
    consecutive_steps: dict[str, FloatArray],
    level: float,
    rng: np.random.Generator,
) -> PValue:
    """Return the p-value of fresh noise of one scale in steps in a row.

    Differences of steps some lag apart have twice the variance of the noise with seeds, tensor by
    tensor. `consecutive_steps` has what they released of the values tested, a row for each step.
    """
    tested_steps = {}
    for tensor_name in noise.noisy_tensors:
        if consecutive_steps[tensor_name].size:
            tested_steps[tensor_name] = consecutive_steps[tensor_name]
    if not tested_steps:
        return _NOTHING_TO_TEST
    noise_freedom = [noise.degrees_of_freedom[tensor_name] for tensor_name in tested_steps]
    noise_deviations = [noise.deviation(tensor_name) for tensor_name in tested_steps]
    step_count = max(len(tensor_steps) for tensor_steps in tested_steps.values())
    lags = range(1, step_count)
    p_values_of_lags = []
    for lag in lags:
        p_value = _lag_p_value(
            [_lagged_differences(tensor_steps, lag) for tensor_steps in tested_steps.values()],
            noise_variances=np.array(noise_deviations) ** 2,
            noise_freedom=np.array(noise_freedom, dtype=np.float64),
            level=shares.STEP_FRESH.of(level, len(lags)),
            rng=rng,
        )
        p_values_of_lags.append(p_value)
    # each lag has an equal part of the share
    smallest_p_value = min(p_value.value for p_value in p_values_of_lags)
    smallest_possible = max(p_value.smallest_possible for p_value in p_values_of_lags)
    return PValue(min(1.0, len(lags) * smallest_p_value), len(lags) * smallest_possible)


def _lagged_differences(tensor_steps: FloatArray, lag: int) -> FloatArray:
    """Return differences of steps some lag apart, in disjoint pairs."""
    step_count = len(tensor_steps)
    earlier_steps = [step for step in range(step_count - lag) if step // lag % 2 == 0]
    later_steps = [step + lag for step in earlier_steps]
    differences: FloatArray = tensor_steps[later_steps] - tensor_steps[earlier_steps]
    return differences


def _lag_p_value(
    tensor_differences: list[FloatArray],
    *,
    noise_variances: FloatArray,
    noise_freedom: FloatArray,
    level: float,
    rng: np.random.Generator,
) -> PValue:
    """Return the p-value of differences that have twice the variance of the noise."""
    tensor_count = len(tensor_differences)
    sums_of_squares = [(differences**2).sum() for differences in tensor_differences]
    difference_freedom = np.array([float(differences.size) for differences in tensor_differences])
    all_freedom = float(difference_freedom.sum())

    def draw_null_statistics(null_draws: int) -> FloatArray:
        shape = (null_draws, tensor_count)
        estimated_variances = rng.chisquare(noise_freedom, size=shape) / noise_freedom
        scaled_squares = rng.chisquare(difference_freedom, size=shape) / estimated_variances
        return _log_variance_ratio(scaled_squares.sum(axis=1), all_freedom)

    scaled_squares = np.array(sums_of_squares) / 2 / noise_variances
    return simulated_p_value(
        float(_log_variance_ratio(scaled_squares.sum(), all_freedom)),
        draw_null_statistics,
        numbers_per_draw=2 * tensor_count,
        level=level,
    )


def _log_variance_ratio(scaled_squares: FloatArray, degrees_of_freedom: float) -> FloatArray:
    """Return by what factor squares are too large or too small, as a logarithm."""
    with np.errstate(divide="ignore"):
        log_ratio = np.log(scaled_squares / degrees_of_freedom)
    distance: FloatArray = np.abs(log_ratio)
    return distance
