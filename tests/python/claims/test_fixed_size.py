"""DP-SGD on batches of a fixed size: against sums over all batches, and closed forms."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import leakbound as lb
from leakbound import errors, simulate
from leakbound.claims.subsets import of_fixed_size

POWERS = np.linspace(0.01, 0.99, 50)
STEP = 0.01
GRID = 5e-6
"""Distance of points of laws, and what sums over them may be off by: its square times a slope."""
EPSILONS = np.array([-3.0, -1.0, -0.3, 0.0, 0.2, 1.0, 2.0, 4.0])


def fixed(rate: float, steps: int) -> lb.SubsampledGaussianDP:
    return lb.SubsampledGaussianDP(sampling_rate=rate, steps=steps, sampling="fixed_size")


def excess(epsilon: float, first: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """δ(ε) of two laws on a fine grid."""
    return float(np.maximum(first - np.exp(epsilon) * other, 0.0).sum())


def of_data(gradients: Sequence[float], batch: int, noise: float) -> NDArray[np.float64]:
    """The law of the noisy sum over a uniform batch, by all batches."""
    x = np.arange(-10.0, 10.0, STEP)
    sums = [sum(one) for one in itertools.combinations(gradients, batch)]
    law: NDArray[np.float64] = np.mean([norm.pdf(x, total, noise) for total in sums], axis=0)
    return STEP * law


@pytest.mark.parametrize("noise", [0.6, 1.5])
@pytest.mark.parametrize(("rest", "batch"), [((1, 1, 1), 2), ((1, -1, 0.5), 2), ((0, 0), 1)])
def test_no_data_are_told_apart_better_than_the_curve_allows(
    noise: float, rest: Any, batch: int
) -> None:
    """All batches of data that differ in one example, in both orders."""
    curve = of_fixed_size(noise, batch / (len(rest) + 1), 1)
    for one, other in itertools.permutations((-1.0, -0.4, 0.3, 1.0), 2):
        first, second = (of_data((*rest, own), batch, noise) for own in (one, other))
        for epsilon in EPSILONS:
            assert excess(epsilon, first, second) <= curve.delta(epsilon) + GRID


@pytest.mark.parametrize("noise", [0.6, 1.5])
@pytest.mark.parametrize(("others", "batch"), [(3, 2), (4, 1)])
def test_what_tests_attain_is_that_of_an_example_among_others_that_are_alike(
    noise: float, others: int, batch: int
) -> None:
    rate = batch / (others + 1)
    alike, changed = (of_data([1.0] * others + [own], batch, noise) for own in (1.0, -1.0))
    below = fixed(rate, 1).attained(1 / noise, "pairs")
    above = fixed(rate, 1).curve(1 / noise, "pairs")
    for epsilon in EPSILONS[EPSILONS >= 0]:
        exact = max(excess(epsilon, alike, changed), excess(epsilon, changed, alike))
        assert exact - 2e-4 <= below.delta(epsilon) <= exact + GRID
        assert above.delta(epsilon) >= exact - GRID


def test_one_step_is_the_closed_form() -> None:
    """δ(ln(1 + q (e^a - 1))) = q δ(a) of N(0, 1) against N(2/σ, 1), and its mirror image."""
    noise, rate = 0.8, 0.05
    a = np.array([0.0, 0.5, 2.0, 5.0, 9.0])
    epsilon = np.log1p(rate * np.expm1(a))
    delta = rate * np.asarray(lb.TradeOff.gaussian(2 / noise).delta(a))
    mirrored = -np.expm1(-epsilon) + np.exp(-epsilon) * delta
    curve = of_fixed_size(noise, rate, 1)
    for found, exact in ((curve.delta(epsilon), delta), (curve.delta(-epsilon), mirrored)):
        assert np.all(found >= exact - 1e-15)
        np.testing.assert_allclose(found, exact, atol=1e-4)


def test_two_steps_are_those_of_two_laws_with_the_deltas_of_one() -> None:
    """The pair has losses ln(1 + q (e^a - 1)), their mirror images, and 0: convolved directly."""
    noise, rate = 1.0, 0.3
    mu = 2 / noise
    a = np.arange(0.01, 16, 0.02)
    under_q = 0.02 * norm.pdf(a, -mu * mu / 2, mu)
    losses = np.log1p(rate * np.expm1(a))
    under_p = np.exp(losses) * under_q
    values = np.concatenate([-losses, [0.0], losses])
    zero = 1 - under_p.sum() - under_q.sum()
    first = np.concatenate([under_q, [zero], under_p])
    sums, masses = values[:, None] + values, first[:, None] * first
    curve = of_fixed_size(noise, rate, 2)
    for epsilon in (-1.0, 0.0, 0.5, 2.0):
        exact = float((masses * np.maximum(0, -np.expm1(epsilon - sums))).sum())
        assert curve.delta(epsilon) == pytest.approx(exact, abs=3e-4)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1), (3.0, 25)])
def test_batches_of_all_examples_are_gaussian(noise: float, steps: int) -> None:
    exact = lb.TradeOff.gaussian(2 * math.sqrt(steps) / noise)
    allowed = fixed(1.0, steps).curve(1 / noise, "pairs")
    found = fixed(1.0, steps).attained(1 / noise, "pairs")
    assert np.all(allowed.f(POWERS) <= exact.f(POWERS) + 1e-12)
    assert np.all(found.f(POWERS) >= exact.f(POWERS) - 1e-12)
    for delta in (1e-2, 1e-5):
        assert 0 <= allowed.epsilon(delta) - exact.epsilon(delta) < 0.02
        assert 0 <= exact.epsilon(delta) - found.epsilon(delta) < 0.02


def test_epsilon_by_how_batches_are_made() -> None:
    """1,200 examples, batches of 60, 400 steps, noise 0.8 of the clipping norm, δ = 1e-5."""
    family = fixed(0.05, 400)
    poisson = lb.SubsampledGaussianDP(sampling_rate=0.05, steps=400)
    assert poisson.curve(1.25, "both").epsilon(1e-5) == pytest.approx(10.73, abs=0.01)
    assert family.curve(1.25, "pairs").epsilon(1e-5) == pytest.approx(72.5, abs=0.05)
    assert family.attained(1.25, "pairs").epsilon(1e-5) == pytest.approx(64.7, abs=0.2)
    for steps in (1, 20):
        allowed, found = (
            fixed(0.1, steps).curve(1.0, "pairs"),
            fixed(0.1, steps).attained(1.0, "pairs"),
        )
        assert np.all(found.f(POWERS) >= allowed.f(POWERS) - 1e-12)


def test_it_is_about_replacing_one_of_examples_whose_number_stays() -> None:
    claim = fixed(0.1, 10)
    assert claim.relation == "replace"
    assert "fixed size" in claim.name
    game = simulate.gaussian(400, 3.0, seed=0)
    with pytest.raises(errors.OptionError, match="RandomSplit"):
        lb.audit(game.scores, lb.Coins(game.member), claim=claim)
    with pytest.raises(errors.OptionError, match="sampling must be one of"):
        lb.SubsampledGaussianDP(sampling_rate=0.1, steps=5, sampling="epochs")  # type: ignore[arg-type]
    result = lb.audit(game.scores, lb.RandomSplit(game.member), claim=claim, seed=0)
    assert result.bound > 0.2
    assert lb.AuditResult.from_json(result.to_json()).claim == claim
    assert "batches of fixed size" in str(result)
    with pytest.raises(errors.OptionError, match="sampling_rate must be"):
        fixed(1.5, 10)
