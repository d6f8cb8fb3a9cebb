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
    # The law of the privacy loss of all steps, rounded so that more is allowed.
    replaced = relation == "replace"
    loss = pld.from_gaussian_mechanism(
        noise_multiplier,
        value_discretization_interval=_STEP,
        sampling_prob=sampling_rate,
        neighboring_relation=Neighbours.REPLACE_ONE if replaced else Neighbours.ADD_OR_REMOVE_ONE,
    ).self_compose(steps)
    orders = ["remove"]
    if sides != "member" and not replaced:
        orders.append("add")
    return allowed(loss, orders)


def allowed(loss: object, orders: Sequence[str]) -> TradeOff:
    """Return the curve of a composed privacy loss, by the largest δ of some orders.

    δ is on a grid of ε, finer where losses are small; between points lines allow more. Where it
    ends is where noise begins, so rounded up: last bits of a transform move no point.
    """
    grid = _grid(loss)
    delta = _largest(loss, grid, orders)
    return TradeOff.profile(grid, np.clip(delta + _NOISE, 0.0, 1.0))


def attained_of(loss: object, orders: Sequence[str], rounded: float) -> TradeOff:
    """Return a curve that allows less, of a loss that is rounded up by at most some number.

    δ at each ε is that at the next one of the grid, and farther by this number, so that lines
    between points allow less too. Where the grid ends it is 0.
    """
    grid = _grid(loss)
    delta = _largest(loss, grid + rounded, orders)
    least = np.maximum(0.0, -np.expm1(grid))
    below = np.maximum(np.append(delta[1:], 0.0) - _NOISE, least)
    return TradeOff.profile(grid, np.clip(below, 0.0, 1.0))


def _grid(loss: Any) -> FloatArray:
    """Return values of ε at which curves of a loss are computed."""
    end = max(_STEP, float(loss.get_epsilon_for_delta(_NOISE)))
    quarters = math.ceil(4 * math.log2(end))
    far = min(_FARTHEST, 2.0 ** (quarters / 4))
    points = min(_POINTS, max(2, round(100 * far)))
    half = np.linspace(0, far, points + 1)
    return np.concatenate([-half[:0:-1], half])


def _largest(loss: object, epsilon: FloatArray, orders: Sequence[str]) -> FloatArray:
    """Return the largest δ(ε) of some orders."""
    of_orders = [_delta(loss, epsilon=epsilon, order=order) for order in orders]
    largest: FloatArray = np.max(of_orders, axis=0)
    return largest


def _delta(loss: object, epsilon: FloatArray, order: str) -> FloatArray:
    """Return δ(ε) with the example on the side of the power, or of the level.

    δ(ε) = Σ P(l) (1 - e^{ε - l}) over losses l above ε, certain ones included. The reason to read
    private attributes is speed: `get_delta_for_epsilon` takes seconds for a grid of ε, more than
    the composition itself, and these sums a thousandth of that. It also has no order: its value is
    the larger of both. A test compares the two, and versions of dp-accounting are capped.
    """
    law = vars(getattr(loss, f"_pmf_{order}").to_dense_pmf())
    mass: FloatArray = np.maximum(law["_probs"], 0.0)
    losses = (law["_lower_loss"] + np.arange(mass.size)) * law["_discretization"]
    # Sums over all losses from each one on, and over none.
    tail = np.append(_tail(mass), 0.0)
    scaled = np.append(_tail(mass * np.exp(-losses)), 0.0)
    above = np.searchsorted(losses, epsilon, side="right")
    delta = tail[above] - np.exp(epsilon) * scaled[above]
    certain: FloatArray = law["_infinity_mass"] + np.maximum(delta, 0.0)
    return certain


def _tail(mass: FloatArray) -> FloatArray:
    """Return sums from each entry on."""
    return np.cumsum(mass[::-1])[::-1]


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
    one = _Step(noise=noise_multiplier, rate=sampling_rate, replaced=relation == "replace")
    losses, member, other = _lattice(one, steps)
    step = _step(losses)
    tilted = other * np.exp(losses)
    scale = float(tilted.sum())
    # 2. A window that holds the sum of all steps but for a chance of e^-37.
    start, size = _window(losses, steps, member, other, tilted / scale)
    first = round(losses[0] / step)
    sums = step * (start + np.arange(size))

    def of_sum(law: FloatArray) -> FloatArray:
        """Return the law of the sum of all steps, by the power of its Fourier transform."""
        folded = np.bincount(np.arange(law.size) % size, weights=law, minlength=size)
        mass = np.fft.irfft(np.fft.rfft(folded) ** steps, size)
        return np.roll(mass, steps * first - start)

    # 3. Power and level beyond each threshold, roundings taken off the one and put on the other.
    noise = _NOISE + steps * _PER_STEP
    power = _tail(of_sum(member)) - noise
    level = _tail(of_sum(other)) + noise
    # Small levels come from the tilted law, weighted back: there the other one is noise.
    exponent = steps * math.log(scale) - sums
    weights = np.exp(np.minimum(exponent, _STEEP))
    small = _tail(of_sum(tilted / scale) * weights)
    small += 2 * noise * weights
    level = np.where(exponent < _STEEP, np.minimum(level, small), level)
    curve = _through(level, power)
    if sides == "member":
        return curve
    return curve.symmetrized()


def _through(level: FloatArray, power: FloatArray) -> TradeOff:
    """Return the curve through tests: lines between them are tests that choose at random."""
    keep = np.flatnonzero((power > level) & (level > 0) & (power < 1))
    keep = keep[:: max(1, keep.size // _THRESHOLDS)]
    x = np.concatenate([[0.0], level[keep], [1.0]])
    y = np.concatenate([[1.0], 1.0 - power[keep], [0.0]])
    return TradeOff.table(*convex_hull(x, y))


@dataclass(frozen=True)
class _Step:
    """One step of DP-SGD, seen through the gradient of one example, under P and Q.

    P is N(0, σ²), shifted by 1 where the example is sampled. Where it is there or not, Q is
    N(0, σ²); where it is replaced by one whose gradient is the opposite, Q mirrors P.
    """

    noise: float
    rate: float
    replaced: bool

    def loss(self, x: FloatArray) -> FloatArray:
        """Return ln dP/dQ at x."""
        included = privacy_loss(x, noise_multiplier=self.noise, sampling_rate=self.rate)
        if self.replaced:
            return included - privacy_loss(-x, noise_multiplier=self.noise, sampling_rate=self.rate)
        return included

    def edges(self, losses: FloatArray) -> FloatArray:
        """Return where the loss takes some values."""
        if self.replaced:  # a quadratic equation in e^(x/σ²)
            variance = self.noise**2
            scale = (1 - self.rate) / self.rate * math.exp(0.5 / variance)
            half = 0.5 * losses
            return variance * (half + np.arcsinh(scale * np.sinh(half)))
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.expm1(losses) / self.rate + 1.0
            return 0.5 + self.noise**2 * np.log(np.maximum(odds, 0.0))

    def laws(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of cells under P and Q."""
        without = normal_cells(edges / self.noise)

        def mixed(shift: float) -> FloatArray:
            sampled = normal_cells((edges - shift) / self.noise)
            mixture: FloatArray = (1 - self.rate) * without + self.rate * sampled
            return mixture

        if self.replaced:
            return mixed(1.0), mixed(-1.0)
        return mixed(1.0), without


def _lattice(one: _Step, steps: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rounded losses of one step, and their probabilities under P and Q."""
    far = _DEVIATIONS * one.noise
    lowest = 0
    if one.replaced:
        lowest = -1
    x = np.linspace(lowest - far, 1 + far, 4001)
    density = np.exp(-0.5 * (x / one.noise) ** 2)
    exact = one.loss(x)
    spread = math.inf
    for weights in (density, density * np.exp(exact)):
        mean = np.average(exact, weights=weights)
        variance = np.average((exact - mean) ** 2, weights=weights)
        spread = min(spread, math.sqrt(variance))
    widest = float(exact[-1] - exact[0])
    step = max(spread / _FINENESS, widest / _MOST, spread * math.sqrt(steps) / _LONGEST)
    lowest_point = round(exact[0] / step)
    highest_point = round(exact[-1] / step)
    points = np.arange(lowest_point, highest_point + 1)
    between = (points[1:] - 0.5) * step
    member, other = one.laws(one.edges(between))
    return points * step, member, other


def privacy_loss(x: FloatArray, noise_multiplier: float, sampling_rate: float) -> FloatArray:
    """Return ln(1 - q + q e^((2x - 1)/(2σ²))), which increases with x."""
    excluded = -math.inf
    if sampling_rate < 1:
        excluded = math.log1p(-sampling_rate)
    included = math.log(sampling_rate) + (x - 0.5) / noise_multiplier**2
    return np.logaddexp(excluded, included)


def normal_cells(edges: FloatArray) -> FloatArray:
    """Return the standard normal probabilities of the cells between edges, ends included."""
    below = np.concatenate([[0.0], _core.normal_cdf(edges), [1.0]])
    above = np.concatenate([[1.0], _core.normal_cdf(-edges), [0.0]])
    cells: FloatArray = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return cells


def _window(losses: FloatArray, steps: int, *laws: FloatArray) -> tuple[int, int]:
    """Return the first point of the lattice, and the number, that hold sums under some laws."""
    step = _step(losses)
    low = math.inf
    high = -math.inf
    for law in laws:
        mean = float(law @ losses)
        variance = float(law @ (losses - mean) ** 2)
        spread = math.sqrt(max(variance, step**2))
        rates = np.geomspace(1e-2, 1e2, 24) / (spread * math.sqrt(steps))
        for sign in (-1.0, 1.0):
            # Chernoff's bound on the sum, over rates of its exponent.
            centred = sign * (losses - mean)
            cumulants = np.array([_cumulant(law, rate * centred) for rate in rates])
            bounds = (steps * cumulants - _LN_OUTSIDE) / rates
            farthest = steps * float(centred.max())
            beyond = min(float(np.min(bounds)), farthest)
            edge = steps * mean + sign * beyond
            low = min(low, edge)
            high = max(high, edge)
    start = math.floor(low / step) - 1
    stop = math.ceil(high / step) + 1
    return start, 1 << (stop - start).bit_length()


def _step(losses: FloatArray) -> float:
    """Return the distance between points of a lattice; 1 if there is one point."""
    if losses.size > 1:
        return float(losses[1] - losses[0])
    return 1.0


def _cumulant(law: FloatArray, exponents: FloatArray) -> float:
    """Return ln of the mean of e^exponent."""
    largest = float(exponents.max())
    return largest + math.log(float(law @ np.exp(exponents - largest)))
