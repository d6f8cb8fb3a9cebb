"""Trade-off functions of DP-SGD: from below by dp-accounting, and from above by tests of losses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import leakbound._core as _core
from leakbound._base.imports import needs
from leakbound._base.types import FloatArray, Relation, Sides
from leakbound.claims.tradeoff import TradeOff, convex_hull

# Losses are rounded up to multiples of this, so that their mean is kept: connect the dots
_STEP = 1e-3
# Least distance of ε on the grid is a hundredth, and there are no more points on each side
_POINTS = 1000
# What the Fourier transform of dp-accounting, and sums, may take from a δ
_NOISE = 1e-13
# Within the ±700 that a profile takes
_FARTHEST = 600.0
# Points of the lattice in a standard deviation of one step's loss
_FINENESS = 64
# The most points of the lattice for one step's loss
_MOST = 2**18
# The most points of the lattice in a standard deviation of the sum
_LONGEST = 2**17
# Noise of one step so far out, at 1e-23, counts as what is nearer
_DEVIATIONS = 10.0
# ln of the probability that a sum lies outside of the window, by Chernoff's inequality
_LN_OUTSIDE = -37.0
# Thresholds for the sum at which power and level are taken
_THRESHOLDS = 4000
# ln dQ/dP of sums beyond which a level is near 1, and taken from the law under Q alone
_STEEP = 30.0
# What a power of a Fourier transform loses in one step, in sums of probabilities
_PER_STEP = 16 * 2.0**-52


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
        from dp_accounting import NeighboringRelation as Neighbours
        from dp_accounting.pld import privacy_loss_distribution as pld
    neighbours = Neighbours.ADD_OR_REMOVE_ONE
    orders = ["remove"]
    if relation == "replace":
        neighbours = Neighbours.REPLACE_ONE
    elif sides != "member":
        orders.append("add")
    # The law of the privacy loss of all steps, rounded so that more is allowed.
    loss_of_one_step = pld.from_gaussian_mechanism(
        noise_multiplier,
        value_discretization_interval=_STEP,
        sampling_prob=sampling_rate,
        neighboring_relation=neighbours,
    )
    return allowed(loss_of_one_step.self_compose(steps), orders)


def allowed(loss: object, orders: Sequence[str]) -> TradeOff:
    """Return the curve of a composed privacy loss, by the largest δ of some orders.

    δ is on a grid of ε, finer where losses are small; between points lines allow more. Where it
    ends is where noise begins, so rounded up: last bits of a transform move no point.
    """
    epsilon = _epsilon_grid(loss)
    delta = _largest_delta(loss, epsilon, orders)
    rounded_up = np.clip(delta + _NOISE, 0.0, 1.0)
    return TradeOff.profile(epsilon, rounded_up)


def attained_of(loss: object, orders: Sequence[str], rounded: float) -> TradeOff:
    """Return a curve that allows less, of a loss that is rounded up by at most some number.

    δ at each ε is that at the next one of the grid, and farther by this number, so that lines
    between points allow less too. Where the grid ends it is 0.
    """
    epsilon = _epsilon_grid(loss)
    delta = _largest_delta(loss, epsilon + rounded, orders)
    delta_of_next_point = np.append(delta[1:], 0.0)
    # A mechanism that ignores its data has δ(ε) = 1 - e^ε where ε < 0.
    least_delta_of_all = np.maximum(0.0, -np.expm1(epsilon))
    rounded_down = np.maximum(delta_of_next_point - _NOISE, least_delta_of_all)
    return TradeOff.profile(epsilon, np.clip(rounded_down, 0.0, 1.0))


def _epsilon_grid(loss: Any) -> FloatArray:
    """Return values of ε at which curves of a loss are computed, as many below 0 as above."""
    largest_epsilon = max(_STEP, float(loss.get_epsilon_for_delta(_NOISE)))
    # Powers of 2^(1/4), so that last bits of the transform do not move the grid
    quarter_powers = math.ceil(4 * math.log2(largest_epsilon))
    farthest = min(_FARTHEST, 2.0 ** (quarter_powers / 4))
    points = min(_POINTS, max(2, round(100 * farthest)))
    positive_half = np.linspace(0, farthest, points + 1)
    negative_half = -positive_half[:0:-1]
    return np.concatenate([negative_half, positive_half])


def _largest_delta(loss: object, epsilon: FloatArray, orders: Sequence[str]) -> FloatArray:
    """Return the largest δ(ε) of some orders."""
    delta_of_orders = [_delta(loss, epsilon=epsilon, order=order) for order in orders]
    largest: FloatArray = np.max(delta_of_orders, axis=0)
    return largest


def _delta(loss: object, epsilon: FloatArray, order: str) -> FloatArray:
    """Return δ(ε) with the example on the side of the power, or of the level.

    δ(ε) = Σ P(l) (1 - e^{ε - l}) over losses l above ε, certain ones included. The reason to read
    private attributes is speed: `get_delta_for_epsilon` takes seconds for a grid of ε, more than
    the composition itself, and these sums a thousandth of that. It also has no order: its value is
    the larger of both. A test compares the two, and versions of dp-accounting are capped.
    """
    privacy_loss_law = getattr(loss, f"_pmf_{order}").to_dense_pmf()
    fields = vars(privacy_loss_law)
    probabilities: FloatArray = np.maximum(fields["_probs"], 0.0)
    lattice_points = fields["_lower_loss"] + np.arange(probabilities.size)
    losses = lattice_points * fields["_discretization"]
    # Sums of P(l), and of P(l) e^-l, over all losses from each one on, and over none
    upper_tails = np.append(_upper_tails(probabilities), 0.0)
    weighted_tails = np.append(_upper_tails(probabilities * np.exp(-losses)), 0.0)
    first_above = np.searchsorted(losses, epsilon, side="right")
    delta = upper_tails[first_above] - np.exp(epsilon) * weighted_tails[first_above]
    with_certain_losses: FloatArray = fields["_infinity_mass"] + np.maximum(delta, 0.0)
    return with_certain_losses


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
        replaced=relation == "replace",
    )
    losses, under_p, under_q = _lattice(one_step, steps)
    spacing = _spacing(losses)
    tilted = under_q * np.exp(losses)
    scale = float(tilted.sum())
    tilted_law = tilted / scale
    # 2. A window that holds the sum of all steps but for a chance of e^-37.
    start, size = _window(losses, steps, under_p, under_q, tilted_law)
    shift = steps * round(losses[0] / spacing) - start
    sums = spacing * (start + np.arange(size))
    # 3. Power and level beyond each threshold, roundings taken off the one and put on the other.
    rounding = _NOISE + steps * _PER_STEP
    power = _upper_tails(_law_of_sum(under_p, steps, size, shift)) - rounding
    level = _upper_tails(_law_of_sum(under_q, steps, size, shift)) + rounding
    # Small levels come from the tilted law, weighted back: there the other one is noise.
    exponent = steps * math.log(scale) - sums
    weights = np.exp(np.minimum(exponent, _STEEP))
    small_level = _upper_tails(_law_of_sum(tilted_law, steps, size, shift) * weights)
    small_level += 2 * rounding * weights
    level = np.where(exponent < _STEEP, np.minimum(level, small_level), level)
    curve = _curve_through(level, power)
    if sides == "member":
        return curve
    return curve.symmetrized()


def _law_of_sum(law: FloatArray, steps: int, size: int, shift: int) -> FloatArray:
    """Return the law of the sum of all steps in a window, by the power of its Fourier transform."""
    places = np.arange(law.size) % size
    folded_law = np.bincount(places, weights=law, minlength=size)
    transform = np.fft.rfft(folded_law)
    probabilities = np.fft.irfft(transform**steps, size)
    return np.roll(probabilities, shift)


def _curve_through(level: FloatArray, power: FloatArray) -> TradeOff:
    """Return the curve through tests: lines between them are tests that choose at random."""
    is_useful = (power > level) & (level > 0) & (power < 1)
    useful = np.flatnonzero(is_useful)
    thinned = useful[:: max(1, useful.size // _THRESHOLDS)]
    alpha = np.concatenate([[0.0], level[thinned], [1.0]])
    missed = np.concatenate([[1.0], 1.0 - power[thinned], [0.0]])
    return TradeOff.table(*convex_hull(alpha, missed))


@dataclass(frozen=True)
class _Step:
    """One step of DP-SGD, seen through the gradient of one example, under P and Q.

    P is N(0, σ²), shifted by 1 where the example is sampled. Where it is there or not, Q is
    N(0, σ²); where it is replaced by one whose gradient is the opposite, Q mirrors P.
    """

    noise_multiplier: float
    sampling_rate: float
    replaced: bool

    def loss(self, x: FloatArray) -> FloatArray:
        """Return ln dP/dQ at x."""
        loss_of_adding = privacy_loss(x, self.noise_multiplier, self.sampling_rate)
        if not self.replaced:
            return loss_of_adding
        loss_of_opposite = privacy_loss(-x, self.noise_multiplier, self.sampling_rate)
        return loss_of_adding - loss_of_opposite

    def edges(self, losses: FloatArray) -> FloatArray:
        """Return where the loss takes some values."""
        variance = self.noise_multiplier**2
        rate = self.sampling_rate
        if self.replaced:
            # The root of a quadratic equation in e^(x/σ²)
            scale = (1 - rate) / rate * math.exp(0.5 / variance)
            half_losses = 0.5 * losses
            return variance * (half_losses + np.arcsinh(scale * np.sinh(half_losses)))
        with np.errstate(divide="ignore", invalid="ignore"):
            density_ratio = np.expm1(losses) / rate + 1.0
            return 0.5 + variance * np.log(np.maximum(density_ratio, 0.0))

    def laws(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of cells under P and Q."""
        not_sampled = normal_cells(edges / self.noise_multiplier)
        under_p = self._mixture(edges, not_sampled, mean=1.0)
        if self.replaced:
            return under_p, self._mixture(edges, not_sampled, mean=-1.0)
        return under_p, not_sampled

    def _mixture(self, edges: FloatArray, not_sampled: FloatArray, mean: float) -> FloatArray:
        """Return the probabilities of cells where a gradient of this size may be sampled."""
        sampled = normal_cells((edges - mean) / self.noise_multiplier)
        rate = self.sampling_rate
        mixture: FloatArray = (1 - rate) * not_sampled + rate * sampled
        return mixture


def _lattice(one_step: _Step, steps: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rounded losses of one step, and their probabilities under P and Q."""
    # 1. The exact loss wherever noise reaches, and its standard deviation under Q and P.
    reach = _DEVIATIONS * one_step.noise_multiplier
    lowest_mean = 0
    if one_step.replaced:
        lowest_mean = -1
    x = np.linspace(lowest_mean - reach, 1 + reach, 4001)
    density = np.exp(-0.5 * (x / one_step.noise_multiplier) ** 2)
    exact_losses = one_step.loss(x)
    deviation = math.inf
    for weights in (density, density * np.exp(exact_losses)):
        mean = np.average(exact_losses, weights=weights)
        variance = np.average((exact_losses - mean) ** 2, weights=weights)
        deviation = min(deviation, math.sqrt(variance))
    # 2. A lattice that is fine for one step, and not too long for one or for all.
    lowest_loss = exact_losses[0]
    highest_loss = exact_losses[-1]
    shortest_for_one = float(highest_loss - lowest_loss) / _MOST
    shortest_for_all = deviation * math.sqrt(steps) / _LONGEST
    spacing = max(deviation / _FINENESS, shortest_for_one, shortest_for_all)
    points = np.arange(round(lowest_loss / spacing), round(highest_loss / spacing) + 1)
    # 3. Each cell ends halfway between two points.
    ends_of_cells = (points[1:] - 0.5) * spacing
    under_p, under_q = one_step.laws(one_step.edges(ends_of_cells))
    return points * spacing, under_p, under_q


def privacy_loss(x: FloatArray, noise_multiplier: float, sampling_rate: float) -> FloatArray:
    """Return ln(1 - q + q e^((2x - 1)/(2σ²))), which increases with x."""
    log_not_sampled = -math.inf
    if sampling_rate < 1:
        log_not_sampled = math.log1p(-sampling_rate)
    log_density_ratio = (x - 0.5) / noise_multiplier**2
    log_sampled = math.log(sampling_rate) + log_density_ratio
    return np.logaddexp(log_not_sampled, log_sampled)


def normal_cells(edges: FloatArray) -> FloatArray:
    """Return the standard normal probabilities of the cells between edges, ends included."""
    below = np.concatenate([[0.0], _core.normal_cdf(edges), [1.0]])
    above = np.concatenate([[1.0], _core.normal_cdf(-edges), [0.0]])
    # Differences of the smaller tail, which lose no digits
    is_left = below[1:] < 0.5
    cells: FloatArray = np.where(is_left, np.diff(below), -np.diff(above))
    return cells


def _window(losses: FloatArray, steps: int, *laws: FloatArray) -> tuple[int, int]:
    """Return the first point of the lattice, and the number, that hold sums under some laws."""
    spacing = _spacing(losses)
    lowest_sum = math.inf
    highest_sum = -math.inf
    for law in laws:
        mean = float(law @ losses)
        variance = float(law @ (losses - mean) ** 2)
        deviation_of_sum = math.sqrt(max(variance, spacing**2)) * math.sqrt(steps)
        rates = np.geomspace(1e-2, 1e2, 24) / deviation_of_sum
        for sign in (-1.0, 1.0):
            centred_losses = sign * (losses - mean)
            farthest = _farthest_sum(law, centred_losses, steps, rates)
            end = steps * mean + sign * farthest
            lowest_sum = min(lowest_sum, end)
            highest_sum = max(highest_sum, end)
    start = math.floor(lowest_sum / spacing) - 1
    stop = math.ceil(highest_sum / spacing) + 1
    next_power_of_two = 1 << (stop - start).bit_length()
    return start, next_power_of_two


def _farthest_sum(
    law: FloatArray, centred_losses: FloatArray, steps: int, rates: FloatArray
) -> float:
    """Return how far above its mean a sum may be, by Chernoff's bound at the best of some rates."""
    cumulants = [_cumulant(law, rate * centred_losses) for rate in rates]
    bounds = (steps * np.array(cumulants) - _LN_OUTSIDE) / rates
    largest_sum = steps * float(centred_losses.max())
    return min(float(np.min(bounds)), largest_sum)


def _spacing(losses: FloatArray) -> float:
    """Return the distance between points of a lattice; 1 if there is one point."""
    if losses.size > 1:
        return float(losses[1] - losses[0])
    return 1.0


def _cumulant(law: FloatArray, exponents: FloatArray) -> float:
    """Return ln of the mean of e^exponent."""
    largest = float(exponents.max())
    mean_of_scaled = float(law @ np.exp(exponents - largest))
    return largest + math.log(mean_of_scaled)
