"""Squares of released noise: the bound they give, and what it cannot see."""

import math

import numpy as np
import pytest

from leakbound.audits.dp_sgd.audit import audit_noise
from leakbound.audits.dp_sgd.canaries import Predictor
from noisy_steps import play

LEVEL = 0.05


def test_the_bound_is_the_least_noise_that_the_supermartingale_refutes() -> None:
    """Its value at the bound, multiplied step by step, comes to 1/level and never above it."""
    seen = play(2, steps=30, noise=0.9)
    found, size = audit_noise(seen, LEVEL), seen.design.size
    growth = math.sqrt(1 + 2 * found.penalty * found.bound**2)
    won, most = 1.0, 0.0
    for total in seen.squares:
        won *= math.exp(-found.penalty * total) * growth**size
        most = max(most, won)
    assert most == pytest.approx(1 / LEVEL, rel=1e-3)
    assert found.deviation == pytest.approx(0.9, rel=0.02)
    assert 0.9 < found.bound < 0.92


def test_squares_are_those_of_values_less_a_prediction_from_earlier_ones() -> None:
    """Against a loop over values, and coefficients of one least-squares fit to all steps before."""
    noise = np.random.default_rng(3).normal(size=(6, 5)).cumsum(axis=0)
    predictor, rows, targets = Predictor(5, 0.7), [np.sqrt(5) * 0.7 * np.eye(3)], [np.zeros(3)]
    for step, values in enumerate(noise):
        past = noise[:step] if step else np.zeros((1, 5))
        known = np.array(
            [[past[-1][j], past[:, j].mean(), values[:j].mean() if j else 0.0] for j in range(5)]
        )
        fit = np.linalg.lstsq(np.concatenate(rows), np.concatenate(targets), rcond=None)[0]
        left = np.square(values - known @ fit).sum()
        assert predictor.squares(values) == pytest.approx(left, rel=1e-9)
        rows.append(known)
        targets.append(values)


@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_noise_that_follows_other_noise_is_seen(share: float) -> None:
    """Of a step before, of all steps, or of the same step: the standard deviation is 1."""
    fresh, old = np.random.default_rng(0).normal(size=(2, 40, 300))
    own = math.sqrt(1 - share**2)
    chained = fresh.copy()
    for step in range(1, 40):
        chained[step] = share * chained[step - 1] + own * fresh[step]
    for values in (chained, own * fresh + share * old[0], own * fresh + share * old[:, :1]):
        predictor = Predictor(300, 1.0)
        left = [predictor.squares(row) for row in values]
        assert math.sqrt(np.mean(left[10:]) / 300) == pytest.approx(own, abs=0.12)


def test_far_values_prove_nothing_and_do_not_overflow() -> None:
    seen = play(1, signal=1e300, noise=1e-3)
    assert audit_noise(seen, LEVEL).bound > 1e3
    assert np.isfinite(seen.squares).all()


@pytest.mark.parametrize("scale", [1.0, 0.5, -1.0])
def test_a_release_on_another_scale_is_not_taken_for_little_noise(scale: float) -> None:
    """Canaries that are in show a scale that is too small, by which noise would be, too."""
    found = audit_noise(play(4, step_canaries=200, noise=scale, signal=scale), LEVEL)
    assert bool(found.reason) is math.isinf(found.bound) is (scale < 1)
    assert found.added == pytest.approx(scale, abs=0.1)
