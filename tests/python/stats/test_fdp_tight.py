"""The tight count test against the linear programme whose value it bounds.

The programme maximises P(W ≥ c) over the laws of W that obey Theorem 3.1 of Mahloujifar, Melis and
Chaudhuri (2025) for every set of counts. With a_s = (s+1) p_{s+1} and b_s = (c'-s) p_s/(k-1)
these are sum (a_s - λ b_s)⁺ ≤ m δ(ln λ) for every λ. Slopes are added until none is violated.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from leakbound.claims import GaussianDP, LaplaceDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.stats import fdp_lower_bound, fdp_p_value, fdp_rejects
from programmes import best_count_law

FINE = np.linspace(-6.0, 8.0, 7001)
"""Where slopes are looked for: between two, an inequality can fail by 1e-6 of itself."""


@dataclass(frozen=True)
class Setting:
    m: float
    guesses: int
    correct: int
    k: int
    curve: TradeOff

    def p_value(self) -> float:
        return fdp_p_value(self.correct, self.guesses, self.m, tradeoff=self.curve, k=self.k)


def programme(setting: Setting) -> tuple[float, np.ndarray]:
    """Return the largest P(W ≥ c), and the law that reaches it."""
    # Slopes of straight pieces must be met exactly.
    kinks = setting.curve.parameters.get("epsilon", np.empty(0))
    slopes = np.concatenate([np.linspace(-3.0, 5.0, 15), kinks, -kinks])
    fine = setting.curve.delta(FINE)
    for _ in range(40):
        limits = setting.m * setting.curve.delta(slopes)
        value, p = best_count_law(setting.guesses, setting.correct, slopes, limits, k=setting.k)
        s = np.arange(setting.guesses)
        a = (s + 1) * p[1:]
        b = (setting.guesses - s) * p[:-1] / (setting.k - 1)
        excess = np.maximum(a - np.exp(FINE)[:, None] * b, 0.0).sum(axis=1) - setting.m * fine
        peaks = (excess > 1e-8) & (excess >= np.roll(excess, 1)) & (excess >= np.roll(excess, -1))
        if not peaks.any():
            return value, p
        slopes = np.concatenate([slopes, FINE[peaks]])
    pytest.fail("slopes are still violated")


def settings() -> list[Setting]:
    rng = np.random.default_rng(20250)
    chosen: list[Setting] = []
    while len(chosen) < 30:
        guesses = int(rng.integers(4, 17))
        k = int(rng.choice([2, 2, 3, 6]))
        curve = (
            TradeOff.gaussian(rng.uniform(0.0, 1.5)),
            TradeOff.laplace(rng.uniform(0.1, 1.5)),
            TradeOff.approx(rng.uniform(0.1, 1.5), 1e-3),
        )[len(chosen) % 3]
        setting = Setting(
            m=float(guesses * rng.choice([1.0, 1.7, 5.0, 60.0])),
            guesses=guesses,
            correct=int(rng.integers(guesses // 2, guesses + 1)),
            k=k,
            curve=curve,
        )
        if setting.p_value() < 0.6:
            chosen.append(setting)
    return chosen


@pytest.mark.parametrize("setting", settings(), ids=str)
def test_never_below_the_linear_programme_and_close_to_it(setting: Setting) -> None:
    worst, _ = programme(setting)
    ours = setting.p_value()
    assert ours >= worst * (1 - 1e-4)
    assert ours <= worst * 1.02


def test_the_worst_law_is_rejected_no_more_often_than_the_level() -> None:
    # The law under which the least rejected count is most probable.
    curve, m, guesses, tau = TradeOff.gaussian(0.3), 100.0, 16, 0.05
    rejected = [
        correct
        for correct in range(guesses + 1)
        if fdp_rejects(correct, guesses, m, tradeoff=curve, tau=tau)
    ]
    assert rejected == list(range(rejected[0], guesses + 1))
    worst, law = programme(Setting(m, guesses, rejected[0], 2, curve))
    assert law[rejected].sum() == pytest.approx(worst)
    assert worst <= tau
    # And the test has nothing to give away: one count less would be too often.
    assert programme(Setting(m, guesses, rejected[0] - 1, 2, curve))[0] > tau


def test_one_sided_guesses_count_half_the_examples() -> None:
    for claim in (GaussianDP(), LaplaceDP()):
        one_sided = fdp_lower_bound(70, 80, 1000, claim=claim, one_sided=True)
        assert one_sided == fdp_lower_bound(70, 80, 500, claim=claim)
