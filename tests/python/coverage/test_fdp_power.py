"""What audits of Gaussian DP prove in the Gaussian game: the published setting, at noise 1."""

import numpy as np
import pytest

import leakbound as lb
from leakbound import simulate

DELTA = 1e-5
SEEDS = 20


def mean_epsilon(m: int, seeds: int) -> float:
    """Return the mean ε at δ = 1e-5, all options at their defaults."""
    games = (simulate.gaussian(m, 1.0, seed=seed) for seed in range(seeds))
    audits = (lb.audit_one_run(game.scores, game.member, claim=lb.GaussianDP()) for game in games)
    return float(np.mean([audit.epsilon(DELTA) for audit in audits]))


def test_a_thousand_canaries() -> None:
    assert mean_epsilon(1000, SEEDS) > 2.40


@pytest.mark.validity
@pytest.mark.parametrize(
    ("m", "least"), [(1000, 2.40), (10_000, 2.90), (100_000, 3.25), (1_000_000, 3.40)]
)
def test_more_canaries(m: int, least: float) -> None:
    proved = mean_epsilon(m, SEEDS)
    print(f"m = {m}: mean epsilon(1e-5) = {proved:.3f}")  # noqa: T201 (the figure to report)
    assert least < proved < 4.3772
