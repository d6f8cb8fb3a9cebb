"""DP-SGD for replacing one example: its curves lie on both sides of the exact one."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

import leakbound as lb
from leakbound.claims.dp_sgd import attained, subsampled_gaussian


def exact(epsilon: float, noise: float, rate: float) -> float:
    """δ(ε) of one step: the mixture with a gradient of 1 against that with one of -1."""

    def excess(x: float) -> float:
        shared = (1 - rate) * norm.pdf(x, 0, noise)
        first = shared + rate * norm.pdf(x, 1, noise)
        other = shared + rate * norm.pdf(x, -1, noise)
        return max(0.0, float(first - np.exp(epsilon) * other))

    return float(quad(excess, -12, 13, limit=400, epsabs=1e-12)[0])


@pytest.mark.parametrize("noise", [0.4, 1.5])
@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_no_two_clipped_gradients_are_told_apart_better_than_opposite_ones(
    noise: float, rate: float
) -> None:
    """The lemma, in the plane: for lengths up to the clipping norm and angles up to π."""
    step = 0.1 * noise
    edges = np.arange(-1 - 7 * noise, 1 + 7 * noise, step)

    def around(length: float, angle: float) -> NDArray[np.float64]:
        first, second = length * np.cos(angle), length * np.sin(angle)
        found: NDArray[np.float64] = step**2 * np.outer(
            norm.pdf(edges, first, noise), norm.pdf(edges, second, noise)
        )
        return found

    shared = (1 - rate) * around(0, 0)
    epsilons = (-2.0, -0.1, 0.0, 0.1, 1.0, 3.0)
    largest = [exact(epsilon, noise, rate) for epsilon in epsilons]
    angles = np.linspace(0, np.pi, 5)
    for length, other, angle in itertools.product((0.0, 0.7, 1.0), (0.7, 1.0), angles):
        first, second = shared + rate * around(length, 0), shared + rate * around(other, angle)
        for epsilon, most in zip(epsilons, largest, strict=True):
            assert np.maximum(first - np.exp(epsilon) * second, 0).sum() <= most + 1e-3


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.5, 0.3), (2.0, 1.0)])
def test_one_step_is_between_its_two_curves(noise: float, rate: float) -> None:
    above = subsampled_gaussian(noise, rate, 1, "pairs", "replace")
    below = attained(noise, rate, 1, "pairs", "replace")
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        delta = exact(epsilon, noise, rate)
        assert below.delta(epsilon) <= delta + 1e-9
        assert above.delta(epsilon) >= delta - 1e-9
        assert above.delta(epsilon) == pytest.approx(below.delta(epsilon), rel=2e-3, abs=1e-7)


def test_many_steps_on_everything_are_gaussian_of_twice_the_mu() -> None:
    """Without sampling, T steps at noise σ are √T/σ-GDP for adding one, 2 √T/σ for replacing."""
    noise, steps = 10.0, 25
    above = subsampled_gaussian(noise, 1.0, steps, "pairs", "replace")
    below = attained(noise, 1.0, steps, "pairs", "replace")
    gaussian = lb.TradeOff.gaussian(1.0)
    for epsilon in (0.0, 1.0, 3.0):
        assert below.delta(epsilon) <= gaussian.delta(epsilon) + 1e-12
        assert above.delta(epsilon) >= gaussian.delta(epsilon) - 1e-12
        assert above.delta(epsilon) == pytest.approx(gaussian.delta(epsilon), rel=5e-3)


def test_what_follows_from_adding_one_is_no_smaller() -> None:
    added = subsampled_gaussian(1.0, 0.05, 20, "both")
    replaced = subsampled_gaussian(1.0, 0.05, 20, "pairs", "replace")
    for delta in (1e-3, 1e-5):
        epsilon = float(added.epsilon(delta))
        assert float(replaced.delta(2 * epsilon)) <= (1 + np.exp(epsilon)) * delta
        assert epsilon < float(replaced.epsilon(delta))
