"""Critical μ of Gaussian DP beside steps of the loop that the paper prints.

One candidate of that loop takes as many steps as there are right guesses: divide by them too.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pytest
from scipy.stats import norm

from leakbound.claims import GaussianDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.stats import fdp_lower_bound, fdp_rejects
from ratios import Ratio, measure

Record: TypeAlias = Callable[[Ratio, Callable[[], object]], None]

SIZES = [10_000, 100_000, 1_000_000, 10_000_000]
RIGHT = 0.7
"""Share of right guesses: near the one at noise 1, all canaries guessed."""
TAU = 0.05
STEPS = 1000
"""Steps of the printed loop that are timed; all of them would take minutes to hours."""


def printed_steps(m: int, guesses: int, correct: int, mu: float, steps: int) -> tuple[float, float]:
    """Return r and h after so many steps of Algorithm 3, as in the paper's appendix."""
    r = TAU * correct / m
    h = TAU * (guesses - correct) / m
    for i in range(correct - 1, correct - 1 - steps, -1):
        following = max(h, norm.cdf(norm.ppf(r) - mu))
        r += i / (guesses - i) * (following - h)
        h = following
    return float(r), float(h)


@pytest.mark.parametrize("size", SIZES)
def test_critical_mu(record: Record, size: int) -> None:
    correct = round(RIGHT * size)
    bound = partial(fdp_lower_bound, correct, size, size, claim=GaussianDP(), test="recursion")
    mu = bound()
    # What it found is the limit, and the first steps of both agree on which side one is.
    for side, rejected in ((0.999, True), (1.001, False)):
        curve = TradeOff.gaussian(side * mu)
        assert (
            fdp_rejects(correct, guesses=size, m=size, tradeoff=curve, test="recursion") is rejected
        )
    r, h = printed_steps(size, guesses=size, correct=correct, mu=0.5 * mu, steps=STEPS)
    assert r + h > 1
    found = measure(
        f"critical mu ({correct} steps a candidate)",
        bound,
        peer="a step of the printed loop",
        run_peer=lambda: printed_steps(size, guesses=size, correct=correct, mu=mu, steps=STEPS),
        size=size,
        rounds=9,
    )
    record(replace(found, ratio=STEPS * found.ratio, spread=STEPS * found.spread), bound)


@pytest.mark.parametrize("size", [200, 2000, 20_000])
def test_tight_critical_mu(record: Record, size: int) -> None:
    correct = round(0.95 * size)
    bound = partial(fdp_lower_bound, correct, size, 50 * size, claim=GaussianDP())
    quick = partial(bound, test="recursion")
    assert quick() <= bound() < 1.1 * quick()
    record(
        measure(
            "critical mu, tight test",
            bound,
            peer="the recursion",
            run_peer=quick,
            size=size,
            rounds=9,
        ),
        bound,
    )
