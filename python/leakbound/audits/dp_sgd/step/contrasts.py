"""The noise of a step from runs with many seeds on one batch, and limits of μ that follow.

With K seeds there are K - 1 Helmert contrasts: independent, of the noise's law, and free of what
the batch contributes. docs/theory/dp-sgd.md proves the three limits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakbound._base import shares
from leakbound._base.numerics import halved
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.dp_sgd.step.contributions import Contribution
from leakbound.audits.dp_sgd.step.runs import Released, as_floats

# Rates of Chernoff's bound that are tried
_CHERNOFF_RATES = np.linspace(0.02, 0.98, 97)
# Halvings of a logarithm that lies within 40 of another one
_HALVINGS = 100
_FARTHEST_LOGARITHM = 40.0
# Values of all tensors together that assumptions are tested on, and of each at least
_TESTED_VALUES = 1 << 18
_FEWEST_TESTED_VALUES = 64


@dataclass
class Noise:
    """Noise of one batch with several seeds."""

    sums_of_squares: dict[str, float]
    """Sum of squares of the contrasts of each tensor."""
    degrees_of_freedom: dict[str, int]
    """How many these are: values with noise times contrasts."""
    contrasts: dict[str, FloatArray]
    """Contrasts of some values with noise of each tensor, of shape (contrasts, values)."""
    contrasts_along_direction: FloatArray
    """Contrasts of the inner products with one direction."""

    @property
    def noisy_tensors(self) -> list[str]:
        """The names of the tensors that have noise."""
        tensor_names = []
        for tensor_name, degrees_of_freedom in self.degrees_of_freedom.items():
            if degrees_of_freedom and self.sums_of_squares[tensor_name] > 0:
                tensor_names.append(tensor_name)
        return tensor_names

    def deviation(self, tensor_name: str) -> float:
        """Return the estimate of σ of a tensor; 0 without noise."""
        if not self.degrees_of_freedom[tensor_name]:
            return 0.0
        return math.sqrt(self.sums_of_squares[tensor_name] / self.degrees_of_freedom[tensor_name])


def helmert_contrasts(run_values: FloatArray) -> FloatArray:
    """Return Helmert contrasts: one row less, independent, with the same covariance and mean 0."""
    number_of_rows_before = np.arange(1, len(run_values))[:, None]
    means_of_rows_before = np.cumsum(run_values, axis=0)[:-1] / number_of_rows_before
    scales_of_contrasts = np.sqrt(number_of_rows_before / (number_of_rows_before + 1))
    contrasts: FloatArray = (run_values[1:] - means_of_rows_before) * scales_of_contrasts
    return contrasts


def choose_tested_positions(
    noiseless: dict[str, BoolArray], rng: np.random.Generator
) -> dict[str, NDArray[np.intp]]:
    """Return which values of each tensor the tests of assumptions look at, those with noise."""
    tensors = max(1, len(noiseless))
    most_positions = max(_FEWEST_TESTED_VALUES, _TESTED_VALUES // tensors)
    tested_positions = {}
    for tensor_name, without_noise in noiseless.items():
        noisy_positions = np.flatnonzero(~without_noise)
        if noisy_positions.size > most_positions:
            drawn_positions = rng.choice(noisy_positions, size=most_positions, replace=False)
            noisy_positions = np.sort(drawn_positions)
        tested_positions[tensor_name] = noisy_positions
    return tested_positions


def measured_noise(
    run_with_fresh_seed: Callable[[], Released],
    runs: int,
    noiseless: dict[str, BoolArray],
    tested_positions: dict[str, NDArray[np.intp]],
    direction: Released,
) -> Noise:
    """Run a batch with fresh seeds and return its noise; one run is held in memory at a time."""
    mean_values = {
        tensor_name: np.zeros(without_noise.size)
        for tensor_name, without_noise in noiseless.items()
    }
    sums_of_squares = dict.fromkeys(noiseless, 0.0)
    tested_values: dict[str, list[FloatArray]] = {tensor_name: [] for tensor_name in noiseless}
    inner_products = []
    for runs_before in range(runs):
        released = run_with_fresh_seed()
        inner_product = 0.0
        for tensor_name, tensor in released.items():
            released_values = as_floats(tensor)
            tested_values[tensor_name].append(released_values[tested_positions[tensor_name]])
            inner_product += float(released_values @ as_floats(direction[tensor_name]))
            # Welford's update: these squares are those of the Helmert contrasts
            deviations_from_mean = released_values - mean_values[tensor_name]
            squared_deviations = float(deviations_from_mean @ deviations_from_mean)
            sums_of_squares[tensor_name] += squared_deviations * runs_before / (runs_before + 1)
            mean_values[tensor_name] += deviations_from_mean / (runs_before + 1)
        inner_products.append(inner_product)
    degrees_of_freedom = {}
    for tensor_name, without_noise in noiseless.items():
        number_of_noisy_values = without_noise.size - int(np.count_nonzero(without_noise))
        degrees_of_freedom[tensor_name] = number_of_noisy_values * (runs - 1)
    contrasts = {
        tensor_name: helmert_contrasts(np.stack(tested_values_of_runs))
        for tensor_name, tested_values_of_runs in tested_values.items()
    }
    contrasts_along_direction = helmert_contrasts(np.array(inner_products)[:, None])
    return Noise(
        sums_of_squares=sums_of_squares,
        degrees_of_freedom=degrees_of_freedom,
        contrasts=contrasts,
        contrasts_along_direction=contrasts_along_direction[:, 0],
    )


def tensor_deviation_limits(
    sums_of_squares: FloatArray, degrees_of_freedom: IntArray, level: float
) -> FloatArray:
    """Return upper limits of σ of all tensors at once: a union over tensors.

    SS_l/σ_l² is χ² with as many degrees of freedom as there are values in SS_l.
    """
    from scipy.stats import chi2

    level_of_tensor = shares.STEP_TENSORS.of(level, len(degrees_of_freedom))
    quantiles = chi2.ppf(level_of_tensor, degrees_of_freedom)
    limits: FloatArray = np.sqrt(sums_of_squares / quantiles)
    return limits


def direction_deviation_limit(contrasts_along_direction: FloatArray, level: float) -> float:
    """Return the upper limit of σ of the noise along one direction, whatever its covariance."""
    from scipy.stats import chi2

    level_of_direction = shares.STEP_DIRECTION.of(level)
    quantile = float(chi2.ppf(level_of_direction, contrasts_along_direction.size))
    sum_of_squares = float(contrasts_along_direction @ contrasts_along_direction)
    return math.sqrt(sum_of_squares / quantile)


def joint_chernoff_threshold(degrees_of_freedom: IntArray, level: float) -> float:
    """Return t such that the sum of h(X_l) reaches it with the share of the level at most.

    X_l is χ² with n_l degrees of freedom, h(x) = (x - n - n ln(x/n))/2 below n and 0 above:
    Chernoff's bound, of which the moment generating function is an incomplete gamma function.
    """
    from scipy.special import gammainc, gammaincc, gammaln

    n = degrees_of_freedom.astype(np.float64)
    log_level = math.log(shares.STEP_JOINT.of(level))

    def log_moment(chernoff_rate: float) -> float:
        """Return ln E exp(rate Σ h(X_l))."""
        shape = n * (1 - chernoff_rate) / 2
        log_moment_below_n = (
            gammaln(shape)
            - gammaln(n / 2)
            - shape * np.log1p(-chernoff_rate)
            - chernoff_rate * n / 2 * np.log(2)
            + chernoff_rate * n / 2 * (np.log(n) - 1)
            + np.log(gammainc(shape, shape))
        )
        probability_above_n = gammaincc(n / 2, n / 2)
        log_moments_of_tensors = np.log(probability_above_n + np.exp(log_moment_below_n))
        return float(log_moments_of_tensors.sum())

    thresholds = [
        (log_moment(chernoff_rate) - log_level) / chernoff_rate
        for chernoff_rate in _CHERNOFF_RATES.tolist()
    ]
    return float(min(thresholds))


def least_joint_sum(
    squared_length_ratios: FloatArray, degrees_of_freedom: IntArray, threshold: float
) -> float:
    """Return the least Σ d_l x_l where Σ h(x_l) is below a threshold: at x_l = n_l a/(a + d_l).

    The d_l are the ratios, and the n_l the degrees of freedom.
    """
    if not squared_length_ratios.any():
        return 0.0
    n = degrees_of_freedom.astype(np.float64)
    log_largest_ratio = math.log(float(squared_length_ratios.max()))

    def is_above(log_a: float) -> bool:
        x_over_n = 1 / (1 + squared_length_ratios * math.exp(-log_a))
        h_doubled = n * (x_over_n - 1 - np.log(x_over_n))
        return float(h_doubled.sum()) / 2 > threshold

    _, log_a = halved(
        log_largest_ratio - _FARTHEST_LOGARITHM,
        log_largest_ratio + _FARTHEST_LOGARITHM,
        is_above,
        most=_HALVINGS,
    )
    ratio_denominators = 1 + squared_length_ratios * math.exp(-log_a)
    return float((squared_length_ratios * n / ratio_denominators).sum())


class MuLimits:
    """Lower limits of μ of any pair: the regions of the noise do not depend on contributions."""

    def __init__(self, noise: Noise, level: float) -> None:
        self.noise = noise
        self.noisy_tensors = noise.noisy_tensors
        self.upper_deviations: dict[str, float] = dict.fromkeys(noise.degrees_of_freedom, 0.0)
        sums_of_squares = []
        degrees_of_freedom = []
        for tensor_name in self.noisy_tensors:
            sums_of_squares.append(noise.sums_of_squares[tensor_name])
            degrees_of_freedom.append(noise.degrees_of_freedom[tensor_name])
        self._sums_of_squares = np.array(sums_of_squares)
        self._degrees_of_freedom = np.array(degrees_of_freedom, dtype=np.int64)
        self._joint_threshold = 0.0
        if not self.noisy_tensors:
            return
        upper_deviations = tensor_deviation_limits(
            self._sums_of_squares, self._degrees_of_freedom, level
        )
        named_deviations = zip(self.noisy_tensors, upper_deviations.tolist(), strict=True)
        self.upper_deviations.update(named_deviations)
        self._joint_threshold = joint_chernoff_threshold(self._degrees_of_freedom, level)

    def lower_limit(self, contribution: Contribution) -> float:
        """Return the larger one of two lower limits of μ: by tensors, and of all together."""
        if not contribution.finite or contribution.one_sided or contribution.noiseless_length:
            return math.inf
        if not contribution.coupled or not contribution.noise_factor:
            return 0.0  # its noise is of another law, which was not measured
        lengths_in_units_of_noise = {}
        for tensor_name, length in contribution.lengths.items():
            lengths_in_units_of_noise[tensor_name] = length / contribution.noise_factor
            if lengths_in_units_of_noise[tensor_name] and tensor_name not in self.noisy_tensors:
                return math.inf
        noisy_lengths = np.array(
            [lengths_in_units_of_noise[tensor_name] for tensor_name in self.noisy_tensors]
        )
        upper_deviations = np.array(
            [self.upper_deviations[tensor_name] for tensor_name in self.noisy_tensors]
        )
        squared_limit_by_tensors = float(((noisy_lengths / upper_deviations) ** 2).sum())
        jointly = least_joint_sum(
            noisy_lengths**2 / self._sums_of_squares,
            self._degrees_of_freedom,
            self._joint_threshold,
        )
        return math.sqrt(max(squared_limit_by_tensors, jointly))
