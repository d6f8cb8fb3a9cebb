"""What one example contributes to a step, by coupling: runs on two batches with one seed.

If a step is a function of the batch plus noise that does not depend on it, then its results on D'
and D with one seed differ by the same vector Δ whatever the seed. Where they do not, noise depends
on data.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.dp_sgd.step.runs import Released, as_floats, is_finite

# Rounding that is allowed for, in units of the precision of the summands
_ALLOWED_ULPS = 8.0
# Relative difference below which noise counts as of one scale
_SAME_SCALE_TOLERANCE = 1e-4
# Values that are treated at a time
_BLOCK_SIZE = 1 << 22


@dataclass
class Contribution:
    """What one pair of batches showed, at two seeds."""

    pair_name: str
    lengths: dict[str, float] = field(default_factory=dict)
    """|Δ_l| at least, for each tensor; rounding is taken off."""
    coupled: bool = True
    """Whether the noise of both batches is the same at both seeds."""
    noise_scale: float | None = 1.0
    """Noise of D' in units of that of D; None if it is no multiple."""
    noise_factor: float | None = 1.0
    """Noise of D in units of that of the batch where noise is measured; None if no multiple."""
    noiseless_length: float = 0.0
    """Length of Δ where there is no noise at all."""
    one_sided: bool = False
    """Whether some values have noise at one of both batches only."""
    finite: bool = True

    @property
    def length(self) -> float:
        """|Δ| at least, in units of the noise where that is measured; 0 if nothing follows."""
        if not self.coupled or not self.noise_factor:
            return 0.0
        return math.hypot(*self.lengths.values()) / self.noise_factor


@dataclass(frozen=True, kw_only=True)
class _BlockOfValues:
    """Some values of one tensor with both seeds, in double precision."""

    tensor: str
    positions: slice
    first_values: FloatArray
    second_values: FloatArray
    relative_rounding: float
    """Of sums of clipped gradients, which are as large as the largest value of the tensor."""
    largest_magnitude: float
    absolute_rounding: float
    """Below the normal range numbers have an absolute precision."""

    @property
    def noise(self) -> FloatArray:
        """The difference of both seeds, which has no contribution of data."""
        return self.first_values - self.second_values

    @property
    def possible_rounding(self) -> FloatArray:
        """What rounding may have done to each value."""
        own_magnitudes = np.abs(self.first_values) + np.abs(self.second_values)
        magnitudes: FloatArray = own_magnitudes + self.largest_magnitude
        return self.relative_rounding * magnitudes + self.absolute_rounding


@dataclass
class TwoSeedRuns:
    """What a step releases on one batch with two seeds."""

    first: Released
    second: Released
    precision: dict[str, float]
    """Relative precision of each tensor."""
    smallest_numbers: dict[str, float]
    """The smallest number above 0 of the type of each tensor."""

    def __post_init__(self) -> None:
        self._largest_magnitudes = {}
        for tensor_name, first_values in self.first.items():
            largest_of_first = np.abs(first_values).max(initial=0.0)
            largest_of_second = np.abs(self.second[tensor_name]).max(initial=0.0)
            self._largest_magnitudes[tensor_name] = max(
                float(largest_of_first), float(largest_of_second)
            )

    @property
    def are_finite(self) -> bool:
        """Whether all released numbers are finite at both seeds."""
        return is_finite(self.first) and is_finite(self.second)

    def blocks(self) -> Iterator[_BlockOfValues]:
        """Yield blocks of tensors, each small enough to be treated in double precision."""
        for tensor_name, first_tensor in self.first.items():
            second_tensor = self.second[tensor_name]
            for start in range(0, first_tensor.size, _BLOCK_SIZE):
                positions = slice(start, start + _BLOCK_SIZE)
                yield _BlockOfValues(
                    tensor=tensor_name,
                    positions=positions,
                    first_values=as_floats(first_tensor[positions]),
                    second_values=as_floats(second_tensor[positions]),
                    relative_rounding=_ALLOWED_ULPS * self.precision[tensor_name],
                    largest_magnitude=self._largest_magnitudes[tensor_name],
                    absolute_rounding=_ALLOWED_ULPS * self.smallest_numbers[tensor_name],
                )


def compare_neighbours(
    pair_name: str,
    without: TwoSeedRuns,
    with_: TwoSeedRuns,
    reference: TwoSeedRuns,
    noiseless: dict[str, BoolArray],
) -> tuple[Contribution, Released]:
    """Return what a pair shows, and Δ in single precision.

    Noise is measured on the `reference` batch, and `noiseless` is where that has none.
    """
    contribution = Contribution(pair_name)
    mean_differences: Released = {
        tensor_name: np.empty(values.size, np.float32)
        for tensor_name, values in without.first.items()
    }
    squared_lengths = dict.fromkeys(mean_differences, 0.0)
    squared_rounding_lengths = dict.fromkeys(mean_differences, 0.0)
    squared_noiseless_length = 0.0
    for block_without, block_with in zip(without.blocks(), with_.blocks(), strict=True):
        tensor_name = block_without.tensor
        positions = block_without.positions
        possible_rounding_of_both = block_without.possible_rounding + block_with.possible_rounding
        noise_change = np.abs(block_with.noise - block_without.noise)
        if (noise_change > possible_rounding_of_both).any():
            contribution.coupled = False
        # Δ with each of both seeds, and their mean
        first_differences = block_with.first_values - block_without.first_values
        second_differences = block_with.second_values - block_without.second_values
        mean_difference = (first_differences + second_differences) / 2
        squared_lengths[tensor_name] += float(mean_difference @ mean_difference)
        squared_rounding_lengths[tensor_name] += float(
            possible_rounding_of_both @ possible_rounding_of_both
        )
        is_moved = np.abs(mean_difference) > possible_rounding_of_both
        noiseless_difference = mean_difference[noiseless[tensor_name][positions] & is_moved]
        squared_noiseless_length += float(noiseless_difference @ noiseless_difference)
        mean_differences[tensor_name][positions] = mean_difference
    contribution.noise_factor = noise_ratio(without, reference)
    if not contribution.coupled:
        contribution.lengths = dict.fromkeys(mean_differences, 0.0)
        contribution.noise_scale = noise_ratio(with_, without)
        return contribution, mean_differences
    for tensor_name, squared_length in squared_lengths.items():
        rounding_length = math.sqrt(squared_rounding_lengths[tensor_name])
        certain_length = math.sqrt(squared_length) - rounding_length
        contribution.lengths[tensor_name] = max(0.0, certain_length)
    if contribution.noise_factor == 1.0:
        contribution.noiseless_length = math.sqrt(squared_noiseless_length)
    return contribution, mean_differences


def noise_ratio(numerator: TwoSeedRuns, denominator: TwoSeedRuns) -> float | None:
    """Return noise in units of other noise at the same seeds; None if it is no multiple of it."""
    # Rounding moves the estimate, so that it tells of another scale only where one scale does not
    # fit. It is no more than what is taken off lengths.
    if numerator is denominator or _is_noise_the_same(numerator, denominator):
        return 1.0
    inner_product = 0.0
    squared_denominator = 0.0
    squared_numerator = 0.0
    for numerator_block, denominator_block in zip(
        numerator.blocks(), denominator.blocks(), strict=True
    ):
        numerator_noise = numerator_block.noise
        denominator_noise = denominator_block.noise
        inner_product += float(numerator_noise @ denominator_noise)
        squared_denominator += float(denominator_noise @ denominator_noise)
        squared_numerator += float(numerator_noise @ numerator_noise)
    if not squared_denominator:
        return None if squared_numerator else 1.0
    # Least squares, without an intercept
    least_squares_ratio = inner_product / squared_denominator
    if least_squares_ratio <= 0:
        return None
    if abs(least_squares_ratio - 1) <= _SAME_SCALE_TOLERANCE:
        least_squares_ratio = 1.0
    for numerator_block, denominator_block in zip(
        numerator.blocks(), denominator.blocks(), strict=True
    ):
        numerator_noise = numerator_block.noise
        absolute_residuals = np.abs(numerator_noise - least_squares_ratio * denominator_block.noise)
        possible_rounding_of_both = (
            numerator_block.possible_rounding
            + least_squares_ratio * denominator_block.possible_rounding
        )
        allowed_residuals = 2 * possible_rounding_of_both + _SAME_SCALE_TOLERANCE * np.abs(
            numerator_noise
        )
        if (absolute_residuals > allowed_residuals).any():
            return None
    return least_squares_ratio


def _is_noise_the_same(first: TwoSeedRuns, second: TwoSeedRuns) -> bool:
    """Return whether two noises differ by rounding at most."""
    for first_block, second_block in zip(first.blocks(), second.blocks(), strict=True):
        noise_difference = np.abs(first_block.noise - second_block.noise)
        possible_rounding_of_both = first_block.possible_rounding + second_block.possible_rounding
        if (noise_difference > possible_rounding_of_both).any():
            return False
    return True


def noiseless_values(runs: list[Released]) -> dict[str, BoolArray]:
    """Return where all of several seeds gave the same value."""
    first_run = runs[0]
    noiseless = {
        tensor_name: np.ones(values_of_run.size, np.bool_)
        for tensor_name, values_of_run in first_run.items()
    }
    for run in runs[1:]:
        for tensor_name, values_of_run in run.items():
            noiseless[tensor_name] &= values_of_run == first_run[tensor_name]
    return noiseless
