"""Trade-off functions of DP-SGD: from below by dp-accounting, and from above by tests of losses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import leakbound._core as _core
from leakbound._base.imports import needs
from leakbound._base.types import FloatArray, Relation, Sides
from leakbound.claims.tradeoff import TradeOff, convex_hull

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

# Losses are rounded up to multiples of this, so that their mean is kept: connect the dots
_LOSS_SPACING = 1e-3
# Least distance of ε on the grid is a hundredth, and there are no more points on each side
_MOST_GRID_POINTS = 1000
# What the Fourier transform of dp-accounting, and sums, may take from a δ
_DELTA_ROUNDING = 1e-13
# What the composition may count as infinite
_TRUNCATED_MASS = 1e-15
# Rates of Chernoff's bounds on the sum of composed losses, in the inverse of their number
_CHERNOFF_ORDERS = 20
# Within the ±700 that a profile takes
_LARGEST_EPSILON = 600.0
# Points of the lattice in a standard deviation of one step's loss
_POINTS_PER_DEVIATION = 64
# The most points of the lattice for one step's loss
_MOST_POINTS_OF_STEP = 2**18
# The most points of the lattice in a standard deviation of the sum
_MOST_POINTS_PER_DEVIATION_OF_SUM = 2**17
# Noise of one step so far out, at 1e-23, counts as what is nearer
_NOISE_DEVIATIONS = 10.0
# Points at which the exact loss of one step is computed
_EXACT_LOSSES = 4001
# ln of the probability that a sum lies outside of the window, by Chernoff's inequality
_LN_OUTSIDE = -37.0
# Thresholds for the sum at which power and level are taken
_MOST_THRESHOLDS = 4000
# ln dQ/dP of sums beyond which a level is near 1, and taken from the law under Q alone
_LARGEST_TILT = 30.0
# What a power of a Fourier transform loses in one step, in sums of probabilities
_ROUNDING_PER_STEP = 16 * 2.0**-52


@lru_cache(maxsize=512)
def subsampled_gaussian(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    sides: Sides,
    relation: Relation = "add_remove",
) -> TradeOff:
    """Return the curve of so many steps of the Gaussian mechanism on Poisson samples.

    It allows at least as much as the mechanism: δ is a pessimistic estimate on a grid of ε. For
    "member" the power is that of training with the example; "both" takes the larger δ of the two.
    To replace an example has one δ, whichever of the two is on the side of the power.
    """
    with needs("dp", "SubsampledGaussianDP"):
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
        from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType
    orders = ["remove"]
    if relation == "add_remove" and sides != "member":
        orders.append("add")
    adjacency_types = [AdjacencyType.REMOVE]
    if relation == "replace":
        adjacency_types = [AdjacencyType.REPLACE]
    elif sampling_rate < 1:
        adjacency_types.append(AdjacencyType.ADD)
    # The law of the privacy loss of all steps, rounded so that more is allowed.
    composed_laws = []
    for adjacency_type in adjacency_types:
        law_of_step = _loss_of_step(noise_multiplier, sampling_rate, adjacency_type)
        composed_laws.append(self_composed(law_of_step, steps))
    return allowed(PrivacyLossDistribution(*composed_laws), orders)


def _loss_of_step(
    noise_multiplier: float, sampling_rate: float, adjacency_type: "AdjacencyType"
) -> "PLDPmf":
    """Return the law of the loss of one step on a lattice: connect the dots.

    It is what dp-accounting makes of its `GaussianPrivacyLoss`, which takes δ at thousands of
    losses one by one; the formulas are the same, and a test compares the two.
    """
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    mechanism = GaussianPrivacyLoss(
        noise_multiplier, sampling_prob=sampling_rate, adjacency_type=adjacency_type
    )
    bounds: Any = mechanism.connect_dots_bounds()
    first_point = math.floor(bounds.epsilon_lower / _LOSS_SPACING)
    last_point = math.ceil(bounds.epsilon_upper / _LOSS_SPACING)
    losses = np.arange(first_point, last_point + 1) * _LOSS_SPACING
    delta = _delta_of_step(mechanism, losses, noise_multiplier)
    return create_pmf_pessimistic_connect_dots_fixed_gap(
        _LOSS_SPACING, first_point, last_point, delta
    )


def _delta_of_step(mechanism: Any, epsilon: FloatArray, noise_multiplier: float) -> FloatArray:
    """Return δ(ε) of one step: P(x ≤ c) - e^ε Q(x ≤ c), where losses are ε or more up to c."""
    kind = mechanism.adjacency_type.name
    sampling_rate = mechanism.sampling_prob
    # Losses of adding are below -ln(1 - q) and those of removing above ln(1 - q), which have
    # the δ of no test and of the test that always rejects.
    is_possible = np.full(epsilon.shape, fill_value=True)
    delta = np.zeros(epsilon.size)
    if sampling_rate < 1 and kind == "ADD":
        is_possible = epsilon < -math.log1p(-sampling_rate)
    elif sampling_rate < 1 and kind == "REMOVE":
        is_possible = epsilon > math.log1p(-sampling_rate)
        delta = -np.expm1(epsilon)
    possible_losses = epsilon[is_possible]
    if kind == "REPLACE":
        largest_outputs = _outputs_of_replacing(possible_losses, noise_multiplier, sampling_rate)
    elif kind == "ADD":
        losses_if_sampled = -_loss_if_sampled(-possible_losses, sampling_rate)
        largest_outputs = 1 + (-0.5 - losses_if_sampled * noise_multiplier**2)
    else:
        losses_if_sampled = _loss_if_sampled(possible_losses, sampling_rate)
        largest_outputs = -0.5 - losses_if_sampled * noise_multiplier**2
    ln_level = mechanism.mu_lower_log_cdf(largest_outputs)
    power = mechanism.mu_upper_cdf(largest_outputs)
    delta[is_possible] = power - np.exp(possible_losses + ln_level)
    return np.clip(delta, 0.0, 1.0)


def _loss_if_sampled(losses: FloatArray, sampling_rate: float) -> FloatArray:
    """Return ln(1 + (e^loss - 1)/q), -∞ at the least loss, ln(1 - q)."""
    if sampling_rate == 1:
        return losses
    odds_against_sampling = 1 - 1 / sampling_rate
    ln_sampled = losses + np.log(1 / sampling_rate)
    ln_not_sampled = np.log(-odds_against_sampling)
    density_ratios = np.exp(ln_not_sampled - ln_sampled)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses_if_sampled: FloatArray = ln_sampled + np.log1p(-density_ratios)
    loss_at_zero = np.log(1 / sampling_rate + odds_against_sampling)
    losses_if_sampled[losses == 0] = loss_at_zero
    is_least = np.isclose(losses, math.log(1 - sampling_rate), rtol=1e-9, atol=0.0)
    losses_if_sampled[is_least] = -math.inf
    return losses_if_sampled


def _outputs_of_replacing(
    losses: FloatArray, noise_multiplier: float, sampling_rate: float
) -> FloatArray:
    """Return σ² (arsinh(-a sinh(loss/2)) - loss/2), with a = e^(1/(2σ²)) (1 - q)/q, by logs."""
    from dp_accounting.pld.common import log_sinh

    variance = noise_multiplier**2
    if sampling_rate == 1:
        return -losses * variance / 2
    squared_mean_over_variance = (1 / noise_multiplier) ** 2
    ln_not_sampled = math.log1p(-sampling_rate)
    ln_scale = 0.5 * squared_mean_over_variance + ln_not_sampled - math.log(sampling_rate)
    half_losses: FloatArray = np.abs(losses) / 2
    ln_sinh = [log_sinh(half_loss) for half_loss in half_losses.tolist()]
    ln_scaled_sinh = ln_scale + np.array(ln_sinh)
    # arsinh(z) = ln(√(z² + 1) + z)
    ln_root = 0.5 * np.logaddexp(0, 2 * ln_scaled_sinh)
    size_of_arsinh = np.logaddexp(ln_root, ln_scaled_sinh)
    signed_arsinh = -np.sign(losses) * size_of_arsinh
    outputs: FloatArray = variance * (signed_arsinh - losses / 2)
    return outputs


def self_composed(law_of_step: "PLDPmf", steps: int) -> "PLDPmf":
    """Return the law of the sum of so many losses, all of one law.

    It is `law_of_step.self_compose(steps)`, most of whose time goes into Chernoff bounds on where
    the sum may be. A test compares the two.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from scipy import fft

    if not isinstance(law_of_step, DensePLDPmf):
        return law_of_step.self_compose(steps, tail_mass_truncation=_TRUNCATED_MASS)
    law_fields = vars(law_of_step)
    probabilities = law_fields["_probs"]
    first_sum, last_sum = _window_of_composed(probabilities, steps)
    sums = last_sum - first_sum + 1
    points = fft.next_fast_len(max(sums, probabilities.size))
    transform = fft.fft(probabilities, points)
    folded_law = np.real(fft.ifft(transform**steps))
    sum_probabilities = np.roll(folded_law, -first_sum)[:sums]
    least_sum = law_fields["_lower_loss"] * steps
    ln_finite_mass = steps * math.log1p(-law_fields["_infinity_mass"])
    infinity_mass = _TRUNCATED_MASS - math.expm1(ln_finite_mass)
    return DensePLDPmf(
        law_fields["_discretization"],
        least_sum + first_sum,
        sum_probabilities,
        infinity_mass,
        pessimistic_estimate=True,
    )


def _window_of_composed(probabilities: FloatArray, steps: int) -> tuple[int, int]:
    """Return the first and last point, from the least sum on, that hold all but a tiny mass.

    By Chernoff's bounds, from ln E e^(k loss/n) for k = ±1, …, ±20, of n losses on a lattice.
    """
    size = probabilities.size
    first_sum = 0
    last_sum = (size - 1) * steps
    ln_chances = math.log(2 / _TRUNCATED_MASS)
    points = np.arange(size)
    for order in range(1, _CHERNOFF_ORDERS + 1):
        rate = order / size
        weights = np.exp(rate * points)
        mean_above = float(probabilities @ weights)
        mean_below = float(probabilities @ (1 / weights))
        end_above = (steps * math.log(mean_above) + ln_chances) / rate
        end_below = -(steps * math.log(mean_below) + ln_chances) / rate
        last_sum = min(last_sum, math.ceil(end_above))
        first_sum = max(first_sum, math.floor(end_below))
    return first_sum, last_sum


def allowed(privacy_loss_law: object, orders: Sequence[str]) -> TradeOff:
    """Return the curve of a composed privacy loss, by the largest δ of some orders.

    δ is on a grid of ε, finer where losses are small; between points lines allow more. Where it
    ends is where noise begins, so rounded up: last bits of a transform move no point.
    """
    epsilon = _epsilon_grid(privacy_loss_law)
    delta = _largest_delta(privacy_loss_law, epsilon, orders)
    rounded_up = np.clip(delta + _DELTA_ROUNDING, 0.0, 1.0)
    return TradeOff.profile(epsilon, rounded_up)


def attained_of(privacy_loss_law: object, orders: Sequence[str], rounded: float) -> TradeOff:
    """Return a curve that allows less, of a loss that is rounded up by at most some number.

    δ at each ε is that at the next one of the grid, and farther by this number, so that lines
    between points allow less too. Where the grid ends it is 0.
    """
    epsilon = _epsilon_grid(privacy_loss_law)
    delta = _largest_delta(privacy_loss_law, epsilon + rounded, orders)
    delta_of_next_point = np.append(delta[1:], 0.0)
    # A mechanism that ignores its data has δ(ε) = 1 - e^ε where ε < 0.
    least_delta_of_all = np.maximum(0.0, -np.expm1(epsilon))
    rounded_down = np.maximum(delta_of_next_point - _DELTA_ROUNDING, least_delta_of_all)
    return TradeOff.profile(epsilon, np.clip(rounded_down, 0.0, 1.0))


def _epsilon_grid(privacy_loss_law: Any) -> FloatArray:
    """Return values of ε at which curves of a loss are computed, as many below 0 as above."""
    largest_epsilon = float(privacy_loss_law.get_epsilon_for_delta(_DELTA_ROUNDING))
    largest_epsilon = max(_LOSS_SPACING, largest_epsilon)
    # Powers of 2^(1/4), so that last bits of the transform do not move the grid
    quarter_powers = math.ceil(4 * math.log2(largest_epsilon))
    grid_end = min(_LARGEST_EPSILON, 2.0 ** (quarter_powers / 4))
    grid_points = round(100 * grid_end)
    grid_points = min(_MOST_GRID_POINTS, max(2, grid_points))
    positive_half = np.linspace(0, grid_end, grid_points + 1)
    negative_half = -positive_half[:0:-1]
    return np.concatenate([negative_half, positive_half])


def _largest_delta(
    privacy_loss_law: object, epsilon: FloatArray, orders: Sequence[str]
) -> FloatArray:
    """Return the largest δ(ε) of some orders."""
    delta_of_orders = []
    for order in orders:
        delta_of_order = _delta_of_order(privacy_loss_law, epsilon=epsilon, order=order)
        delta_of_orders.append(delta_of_order)
    largest_delta: FloatArray = np.max(delta_of_orders, axis=0)
    return largest_delta


def _delta_of_order(privacy_loss_law: object, epsilon: FloatArray, order: str) -> FloatArray:
    """Return δ(ε) with the example on the side of the power, or of the level.

    δ(ε) = Σ P(l) (1 - e^{ε - l}) over losses l above ε, certain ones included. The reason to read
    private attributes is speed: `get_delta_for_epsilon` takes seconds for a grid of ε, more than
    the composition itself, and these sums a thousandth of that. It also has no order: its value is
    the larger of both. A test compares the two, and versions of dp-accounting are capped.
    """
    law_of_order = getattr(privacy_loss_law, f"_pmf_{order}").to_dense_pmf()
    law_fields = vars(law_of_order)
    loss_probabilities: FloatArray = np.maximum(law_fields["_probs"], 0.0)
    lattice_points = law_fields["_lower_loss"] + np.arange(loss_probabilities.size)
    losses = lattice_points * law_fields["_discretization"]
    # Sums of P(l), and of P(l) e^-l, over all losses from each one on, and over none
    weighted_probabilities = loss_probabilities * np.exp(-losses)
    upper_tails = np.append(_upper_tails(loss_probabilities), 0.0)
    weighted_tails = np.append(_upper_tails(weighted_probabilities), 0.0)
    first_above = np.searchsorted(losses, epsilon, side="right")
    delta_of_losses = upper_tails[first_above] - np.exp(epsilon) * weighted_tails[first_above]
    delta: FloatArray = law_fields["_infinity_mass"] + np.maximum(delta_of_losses, 0.0)
    return delta


def _upper_tails(probabilities: FloatArray) -> FloatArray:
    """Return sums from each entry on."""
    return np.cumsum(probabilities[::-1])[::-1]


@lru_cache(maxsize=512)
def attained(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    sides: Sides,
    relation: Relation = "add_remove",
) -> TradeOff:
    """Return a curve that tests of so many steps of DP-SGD attain: it allows less than they do.

    With P = (1-q) N(0, σ²) + q N(1, σ²) and Q = N(0, σ²), or to replace an example
    Q = (1-q) N(0, σ²) + q N(-1, σ²), the loss ln dP/dQ of one step is rounded to a lattice, and the
    sum of all steps compared with thresholds. Any function of what is seen is a test, so its power
    under P and its level under Q are points on or above f, whatever the rounding; lines between
    them are tests that choose at random. The laws of the sum are powers of Fourier transforms.
    Under Q it is that of Q e^loss, nearly P, times e^-loss, so that small levels are as exact as
    large ones.
    """
    # 1. The loss of one step on a lattice, under P, under Q, and under Q tilted towards P.
    one_step = _Step(
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        is_replaced=relation == "replace",
    )
    step_losses, probabilities_under_p, probabilities_under_q = _lattice_of_step(one_step, steps)
    spacing = _spacing(step_losses)
    tilted_masses = probabilities_under_q * np.exp(step_losses)
    tilted_mass = float(tilted_masses.sum())
    tilted_law = tilted_masses / tilted_mass
    # 2. A window that holds the sum of all steps but for a chance of e^-37.
    first_point, points = _window_of_sums(
        step_losses, steps, probabilities_under_p, probabilities_under_q, tilted_law
    )
    lowest_step_loss = round(step_losses[0] / spacing)
    shift = steps * lowest_step_loss - first_point
    sums = spacing * (first_point + np.arange(points))
    # 3. Power and level beyond each threshold, roundings taken off the one and put on the other.
    rounding = _DELTA_ROUNDING + steps * _ROUNDING_PER_STEP
    sum_probabilities_under_p = _law_of_sum(probabilities_under_p, steps, points, shift)
    sum_probabilities_under_q = _law_of_sum(probabilities_under_q, steps, points, shift)
    power = _upper_tails(sum_probabilities_under_p) - rounding
    level = _upper_tails(sum_probabilities_under_q) + rounding
    # 4. Small levels come from the tilted law, weighted back: there the other one is noise.
    ln_density_ratios = steps * math.log(tilted_mass) - sums
    density_ratios = np.exp(np.minimum(ln_density_ratios, _LARGEST_TILT))
    sum_probabilities_under_tilted = _law_of_sum(tilted_law, steps, points, shift)
    small_level = _upper_tails(sum_probabilities_under_tilted * density_ratios)
    small_level += 2 * rounding * density_ratios
    is_exact = ln_density_ratios < _LARGEST_TILT
    level = np.where(is_exact, np.minimum(level, small_level), level)
    curve = _curve_through_tests(level, power)
    if sides == "member":
        return curve
    return curve.symmetrized()


def _law_of_sum(step_law: FloatArray, steps: int, points: int, shift: int) -> FloatArray:
    """Return the law of the sum of all steps in a window, by the power of its Fourier transform."""
    places_in_window = np.arange(step_law.size) % points
    folded_law = np.bincount(places_in_window, weights=step_law, minlength=points)
    transform = np.fft.rfft(folded_law)
    probabilities = np.fft.irfft(transform**steps, points)
    return np.roll(probabilities, shift)


def _curve_through_tests(level: FloatArray, power: FloatArray) -> TradeOff:
    """Return the curve through tests: lines between them are tests that choose at random."""
    is_useful = (power > level) & (level > 0) & (power < 1)
    useful_tests = np.flatnonzero(is_useful)
    stride = max(1, useful_tests.size // _MOST_THRESHOLDS)
    thinned_tests = useful_tests[::stride]
    alpha = np.concatenate([[0.0], level[thinned_tests], [1.0]])
    miss_probability = 1.0 - power[thinned_tests]
    f = np.concatenate([[1.0], miss_probability, [0.0]])
    return TradeOff.table(*convex_hull(alpha, f))


@dataclass(frozen=True)
class _Step:
    """One step of DP-SGD, seen through the gradient of one example, under P and Q.

    P is N(0, σ²), shifted by 1 where the example is sampled. Where it is there or not, Q is
    N(0, σ²); where it is replaced by one whose gradient is the opposite, Q mirrors P.
    """

    noise_multiplier: float
    sampling_rate: float
    is_replaced: bool

    def loss(self, noisy_gradients: FloatArray) -> FloatArray:
        """Return ln dP/dQ at noisy gradients."""
        noise_multiplier = self.noise_multiplier
        loss_of_adding = privacy_loss(noisy_gradients, noise_multiplier, self.sampling_rate)
        if not self.is_replaced:
            return loss_of_adding
        loss_of_opposite = privacy_loss(-noisy_gradients, noise_multiplier, self.sampling_rate)
        return loss_of_adding - loss_of_opposite

    def edges(self, losses: FloatArray) -> FloatArray:
        """Return the noisy gradients at which the loss takes some values."""
        variance = self.noise_multiplier**2
        if self.is_replaced:
            # The root of a quadratic equation in e^(x/σ²)
            odds_against_sampling = (1 - self.sampling_rate) / self.sampling_rate
            scale = odds_against_sampling * math.exp(0.5 / variance)
            half_losses = 0.5 * losses
            return variance * (half_losses + np.arcsinh(scale * np.sinh(half_losses)))
        with np.errstate(divide="ignore", invalid="ignore"):
            density_ratio = np.expm1(losses) / self.sampling_rate + 1.0
            ln_density_ratio = np.log(np.maximum(density_ratio, 0.0))
            return 0.5 + variance * ln_density_ratio

    def laws(self, cell_edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of cells under P and Q."""
        probabilities_if_not_sampled = normal_cells(cell_edges / self.noise_multiplier)
        probabilities_under_p = self._mixture(cell_edges, probabilities_if_not_sampled, mean=1.0)
        if not self.is_replaced:
            return probabilities_under_p, probabilities_if_not_sampled
        probabilities_under_q = self._mixture(cell_edges, probabilities_if_not_sampled, mean=-1.0)
        return probabilities_under_p, probabilities_under_q

    def _mixture(
        self, cell_edges: FloatArray, probabilities_if_not_sampled: FloatArray, mean: float
    ) -> FloatArray:
        """Return the probabilities of cells where a gradient of this size may be sampled."""
        probabilities_if_sampled = normal_cells((cell_edges - mean) / self.noise_multiplier)
        not_sampled_part = (1 - self.sampling_rate) * probabilities_if_not_sampled
        sampled_part = self.sampling_rate * probabilities_if_sampled
        mixture: FloatArray = not_sampled_part + sampled_part
        return mixture


def _lattice_of_step(one_step: _Step, steps: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rounded losses of one step, and their probabilities under P and Q."""
    # 1. The exact loss wherever noise reaches, and its standard deviation under Q and P.
    reach = _NOISE_DEVIATIONS * one_step.noise_multiplier
    lowest_mean = 0
    if one_step.is_replaced:
        lowest_mean = -1
    noisy_gradients = np.linspace(lowest_mean - reach, 1 + reach, _EXACT_LOSSES)
    standardized_gradients = noisy_gradients / one_step.noise_multiplier
    density_under_q = np.exp(-0.5 * standardized_gradients**2)
    exact_losses = one_step.loss(noisy_gradients)
    density_under_p = density_under_q * np.exp(exact_losses)
    deviation_under_q = _weighted_deviation(exact_losses, density_under_q)
    deviation_under_p = _weighted_deviation(exact_losses, density_under_p)
    deviation = min(deviation_under_q, deviation_under_p)
    # 2. A lattice that is fine for one step, and not too long for one or for all.
    lowest_loss = exact_losses[0]
    highest_loss = exact_losses[-1]
    least_spacing_for_step = float(highest_loss - lowest_loss) / _MOST_POINTS_OF_STEP
    deviation_of_sum = deviation * math.sqrt(steps)
    least_spacing_for_sum = deviation_of_sum / _MOST_POINTS_PER_DEVIATION_OF_SUM
    spacing = max(deviation / _POINTS_PER_DEVIATION, least_spacing_for_step, least_spacing_for_sum)
    first_point = round(lowest_loss / spacing)
    last_point = round(highest_loss / spacing)
    lattice_points = np.arange(first_point, last_point + 1)
    # 3. Each cell ends halfway between two points.
    losses_at_edges = (lattice_points[1:] - 0.5) * spacing
    gradients_at_edges = one_step.edges(losses_at_edges)
    probabilities_under_p, probabilities_under_q = one_step.laws(gradients_at_edges)
    return lattice_points * spacing, probabilities_under_p, probabilities_under_q


def _weighted_deviation(values: FloatArray, weights: FloatArray) -> float:
    """Return the standard deviation of weighted values."""
    mean = np.average(values, weights=weights)
    variance = np.average((values - mean) ** 2, weights=weights)
    return math.sqrt(variance)


def privacy_loss(
    noisy_gradients: FloatArray, noise_multiplier: float, sampling_rate: float
) -> FloatArray:
    """Return ln(1 - q + q e^((2x - 1)/(2σ²))) at noisy gradients x, with which it increases."""
    ln_not_sampled = -math.inf
    if sampling_rate < 1:
        ln_not_sampled = math.log1p(-sampling_rate)
    ln_density_ratio = (noisy_gradients - 0.5) / noise_multiplier**2
    ln_sampled = math.log(sampling_rate) + ln_density_ratio
    return np.logaddexp(ln_not_sampled, ln_sampled)


def normal_cells(edges: FloatArray) -> FloatArray:
    """Return the standard normal probabilities of the cells between edges, ends included."""
    below = np.concatenate([[0.0], _core.normal_cdf(edges), [1.0]])
    above = np.concatenate([[1.0], _core.normal_cdf(-edges), [0.0]])
    # Differences of the smaller tail, which lose no digits
    is_left = below[1:] < 0.5
    cells: FloatArray = np.where(is_left, np.diff(below), -np.diff(above))
    return cells


def _window_of_sums(step_losses: FloatArray, steps: int, *step_laws: FloatArray) -> tuple[int, int]:
    """Return the first point of the lattice, and the number, that hold sums under some laws."""
    spacing = _spacing(step_losses)
    lowest_sum = math.inf
    highest_sum = -math.inf
    for step_law in step_laws:
        mean = float(step_law @ step_losses)
        variance = float(step_law @ (step_losses - mean) ** 2)
        deviation_of_sum = math.sqrt(max(variance, spacing**2)) * math.sqrt(steps)
        chernoff_rates = np.geomspace(1e-2, 1e2, 24) / deviation_of_sum
        for sign in (-1.0, 1.0):
            centred_losses = sign * (step_losses - mean)
            excess_of_sum = _largest_excess_of_sum(step_law, centred_losses, steps, chernoff_rates)
            end_of_sums = steps * mean + sign * excess_of_sum
            lowest_sum = min(lowest_sum, end_of_sums)
            highest_sum = max(highest_sum, end_of_sums)
    first_point = math.floor(lowest_sum / spacing) - 1
    last_point = math.ceil(highest_sum / spacing) + 1
    next_power_of_two = 1 << (last_point - first_point).bit_length()
    return first_point, next_power_of_two


def _largest_excess_of_sum(
    step_law: FloatArray, centred_losses: FloatArray, steps: int, chernoff_rates: FloatArray
) -> float:
    """Return how far above its mean a sum may be, by Chernoff's bound at the best of some rates."""
    cumulants = []
    for rate in chernoff_rates:
        cumulant = _ln_mean_exponential(step_law, rate * centred_losses)
        cumulants.append(cumulant)
    chernoff_bounds = (steps * np.array(cumulants) - _LN_OUTSIDE) / chernoff_rates
    largest_possible = steps * float(centred_losses.max())
    return min(float(np.min(chernoff_bounds)), largest_possible)


def _spacing(losses: FloatArray) -> float:
    """Return the distance between points of a lattice; 1 if there is one point."""
    if losses.size > 1:
        return float(losses[1] - losses[0])
    return 1.0


def _ln_mean_exponential(law: FloatArray, exponents: FloatArray) -> float:
    """Return ln of the mean of e^exponent."""
    largest = float(exponents.max())
    scaled_exponentials = np.exp(exponents - largest)
    scaled_mean = float(law @ scaled_exponentials)
    return largest + math.log(scaled_mean)
