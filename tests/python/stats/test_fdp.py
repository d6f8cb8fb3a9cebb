"""f-DP at one number of guesses, and its tight test against the programme whose value it bounds.

The programme maximises P(W ≥ c) over the laws of W that obey Theorem 3.1 of Mahloujifar, Melis and
Chaudhuri (2025) for every set of counts. With a_s = (s+1) p_{s+1} and b_s = (c'-s) p_s/(k-1)
these are sum (a_s - λ b_s)⁺ ≤ m δ(ln λ) for every λ. Slopes are added until none is violated.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from leakbound import errors, stats
from leakbound._base.types import FdpTest
from leakbound.claims import GaussianDP, LaplaceDP, TradeOffFamily
from leakbound.claims.tradeoff import TradeOff
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
        return stats.fdp_p_value(self.correct, self.guesses, self.m, tradeoff=self.curve, k=self.k)


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
        if stats.fdp_rejects(correct, guesses, m, tradeoff=curve, tau=tau)
    ]
    assert rejected == list(range(rejected[0], guesses + 1))
    worst, law = programme(Setting(m, guesses, rejected[0], 2, curve))
    assert law[rejected].sum() == pytest.approx(worst)
    assert worst <= tau
    # And the test has nothing to give away: one count less would be too often.
    assert programme(Setting(m, guesses, rejected[0] - 1, 2, curve))[0] > tau


def test_one_sided_guesses_count_half_the_examples() -> None:
    for claim in (GaussianDP(), LaplaceDP()):
        one_sided = stats.fdp_lower_bound(70, 80, 1000, claim=claim, one_sided=True)
        assert one_sided == stats.fdp_lower_bound(70, 80, 500, claim=claim)


ONE = TradeOff.gaussian(1.0)


@pytest.mark.parametrize(("test", "width"), [("recursion", 1e-11), ("tight", 1e-4)])
def test_the_bound_is_the_largest_rejected(test: FdpTest, width: float) -> None:
    mu = stats.fdp_lower_bound(900, 1000, 10_000, claim=GaussianDP(), test=test)
    below, above = (TradeOff.gaussian(mu * (1 + side * width)) for side in (-1, 1))
    assert stats.fdp_rejects(900, 1000, 10_000, tradeoff=below, test=test)
    assert not stats.fdp_rejects(900, 1000, 10_000, tradeoff=above, test=test)
    p = stats.fdp_p_value(900, 1000, 10_000, tradeoff=TradeOff.gaussian(mu), test=test)
    assert p == pytest.approx(0.05, rel=max(1e-6, 10 * width))


def test_a_bracket_that_is_rejected_whole_gives_its_end() -> None:
    family = TradeOffFamily(parameter="mu", tradeoff=TradeOff.gaussian, bracket=(0.0, 0.5))
    assert stats.fdp_lower_bound(100, 100, 100, claim=family) == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": 51}, "correct"),
        ({"correct": -1}, "correct"),
        ({"guesses": 0}, "guesses"),
        ({"m": 0.0}, "m must be above 0"),
        ({"tau": 0.0}, "tau must be above 0"),
        ({"tau": 1.0}, "tau"),
        ({"k": 1}, "k"),
        ({"k": 3, "one_sided": True}, "one_sided=True is for membership"),
        ({"test": "best"}, "test must be one of"),
    ],
)
def test_bad_input(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"correct": 40, "guesses": 50, "m": 100.0, "tradeoff": ONE}
    with pytest.raises(errors.OptionError, match=message):
        stats.fdp_rejects(**(arguments | change))  # type: ignore[arg-type]


def test_a_user_family_agrees_with_the_built_in_one() -> None:
    family = TradeOffFamily(parameter="mu", tradeoff=TradeOff.gaussian, bracket=(0.0, 20.0))
    for one_sided in (False, True):
        mu = stats.fdp_lower_bound(80, 100, 400, claim=GaussianDP(), one_sided=one_sided)
        found = stats.fdp_lower_bound(80, 100, 400, claim=family, one_sided=one_sided)
        assert found == pytest.approx(mu, rel=1e-5)
        assert stats.fdp_rejects(80, 100, 400, tradeoff=family.tradeoff(found), one_sided=one_sided)
