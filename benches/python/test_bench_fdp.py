"""Critical μ of Gaussian DP beside steps of the loop that the paper prints.

One candidate of that loop takes as many steps as there are right guesses: divide by them too.
"""

from functools import partial

import pytest
from scipy.stats import norm

from leakbound.claims import GaussianDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.stats import fdp_lower_bound, fdp_rejects
from ratios import Compare

SIZES = [10_000, 100_000, 1_000_000, 10_000_000]
ACCURACY = 0.7
"""Near that at noise 1 with all canaries guessed."""
TAU = 0.05
STEPS = 1000
"""Steps of the printed loop that are timed; all of them would take minutes to hours."""


def printed_steps(m: int, guesses: int, correct: int, mu: float) -> tuple[float, float]:
    """Return r and h after some steps of Algorithm 3, as in the paper's appendix."""
    r = TAU * correct / m
    h = TAU * (guesses - correct) / m
    for i in range(correct - 1, correct - 1 - STEPS, -1):
        next_h = max(h, norm.cdf(norm.ppf(r) - mu))
        r += i / (guesses - i) * (next_h - h)
        h = next_h
    return float(r), float(h)


@pytest.mark.parametrize("size", SIZES)
def test_critical_mu(compare: Compare, size: int) -> None:
    correct = round(ACCURACY * size)
    bound = partial(fdp_lower_bound, correct, size, size, claim=GaussianDP(), test="recursion")
    mu = bound()
    # What it found is the limit, and the first steps of both agree on which side one is.
    rejects = partial(fdp_rejects, correct, size, size, test="recursion")
    assert rejects(tradeoff=TradeOff.gaussian(0.999 * mu))
    assert not rejects(tradeoff=TradeOff.gaussian(1.001 * mu))
    r, h = printed_steps(size, size, correct, 0.5 * mu)
    assert r + h > 1
    compare(
        f"critical mu ({correct} steps a candidate)",
        bound,
        peer="a step of the printed loop",
        run_peer=partial(printed_steps, size, size, correct, mu),
        size=size,
        rounds=9,
        peer_share=STEPS,
    )


@pytest.mark.parametrize("size", [200, 2000, 20_000])
def test_tight_critical_mu(compare: Compare, size: int) -> None:
    correct = round(0.95 * size)
    bound = partial(fdp_lower_bound, correct, size, 50 * size, claim=GaussianDP())
    recursion_bound = partial(bound, test="recursion")
    assert recursion_bound() <= bound() < 1.1 * recursion_bound()
    compare(
        "critical mu, tight test",
        bound,
        peer="the recursion",
        run_peer=recursion_bound,
        size=size,
        rounds=9,
    )
