"""A step that attains its claim: it is refuted, or its bound too high, as rarely as stated."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import leakbound as lb

NOISE = 1.1
SIZES = {"large": 200, "small": 20, "last": 2}
P = sum(SIZES.values())
SPREAD = np.full(P, P**-0.5)
LAST = np.eye(P)[-1]
DIRECTIONS = {"spread over all": SPREAD, "in the tensor of 2": LAST}


def step_along(direction: NDArray[np.float64]) -> Callable[[Any, int | None], Any]:
    """Return a step whose examples are signs along one direction, of the clipping norm."""
    own = np.random.default_rng(7)

    def step(examples: Any, seed: int | None) -> Any:
        rng = own if seed is None else np.random.default_rng(seed)
        total = sum(examples) * direction + NOISE * rng.normal(size=P)
        ends = np.cumsum(list(SIZES.values()))[:-1]
        return dict(zip(SIZES, np.split(total, ends), strict=True))

    return step


def audits(way: str, seeds: int, confidence: float) -> list[lb.DPStepAudit]:
    pairs = [([1.0, 1.0], [1.0, 1.0, sign]) for sign in (1.0, -1.0)]
    step = step_along(DIRECTIONS[way])
    return [
        lb.probe_dp_step(
            step,
            pairs,
            noise_multiplier=NOISE,
            runs=16,
            steps=4,
            confidence=confidence,
            seed=seed,
        )
        for seed in range(seeds)
    ]


def wrong(found: list[lb.DPStepAudit]) -> int:
    """Count bounds above the truth, and refutations of a step as claimed."""
    return sum(one.bound > one.claimed or one.refuted_by != () for one in found)


@pytest.mark.parametrize("way", DIRECTIONS)
def test_one_in_ten_is_wrong_at_most(way: str) -> None:
    """More than `most` are once in a thousand; at twice the rate four in five times."""
    seeds = 200
    most = int(stats.binom.isf(1e-3, seeds, 0.1))
    assert stats.binom.sf(most, seeds, 0.2) > 0.8
    found = audits(way, seeds, 0.9)
    assert wrong(found) <= most
    assert np.mean([one.bound for one in found]) > 0.6 / NOISE


@pytest.mark.validity
@pytest.mark.parametrize("way", DIRECTIONS)
def test_one_in_a_thousand_is_wrong_at_most(way: str) -> None:
    """Three of 600 are once in fifty times, at ten times the rate in 19 of 20."""
    seeds = 600
    most = int(stats.binom.isf(0.02, seeds, 0.001))
    assert stats.binom.sf(most, seeds, 0.01) > 0.9
    assert wrong(audits(way, seeds, 0.999)) <= most
