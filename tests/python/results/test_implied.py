"""Bounds on advantage, TPR at low FPR and posterior: what refuted curves imply, and how often."""

import math
from collections.abc import Callable

import pytest
from scipy.stats import norm

import leakbound as lb
from leakbound import simulate
from leakbound.results.base import Implied, implied_by

M = 300
NAMES = ("advantage", "tpr_at_fpr_0_001", "tpr_at_fpr_0_01", "posterior")
NOTHING = Implied(0.0, 0.001, 0.01, 0.5)


def told(advantage: float, power: Callable[[float], float]) -> Implied:
    low = power(0.001)
    return Implied(advantage, low, power(0.01), low / (low + 0.001))


def response(epsilon: float) -> Implied:
    """Of randomised response, in closed form."""
    return told(
        math.tanh(epsilon / 2),
        lambda rate: min(math.exp(epsilon) * rate, 1 - math.exp(-epsilon) * (1 - rate)),
    )


def gaussian(mu: float) -> Implied:
    """Of N(0, 1) against N(μ, 1), in closed form."""
    return told(2 * float(norm.cdf(mu / 2)) - 1, lambda rate: float(norm.sf(norm.isf(rate) - mu)))


@pytest.mark.parametrize("theta", [0.01, 0.5, 1.0, 3.0, 6.0, 12.0])
def test_closed_forms_from_below(theta: float) -> None:
    for curve, expected in (
        (lb.TradeOff.approx(theta), response(theta)),
        (lb.TradeOff.gaussian(theta), gaussian(theta)),
    ):
        found = implied_by(curve)
        for name in NAMES:
            value, truth = getattr(found, name), getattr(expected, name)
            assert value <= truth
            assert value == pytest.approx(truth, rel=1e-8, abs=1e-10)


def test_numbers_grow_with_the_bound_and_never_below_guessing() -> None:
    for make in (lb.TradeOff.approx, lb.TradeOff.gaussian, lb.TradeOff.laplace):
        before = NOTHING
        for theta in (0.0, 1e-9, 0.1, 0.2, 1.0, 2.0, 5.0, 40.0):
            now = implied_by(make(theta))
            assert all(getattr(now, name) >= getattr(before, name) for name in NAMES)
            before = now
        assert before.advantage <= 1
        assert before.posterior < 1
    assert implied_by(None) == NOTHING


def test_which_results_imply_something() -> None:
    game = simulate.gaussian(M, 2.0, seed=1)
    scores, member = game.scores, game.member
    pure = lb.audit(scores, lb.Coins(member))
    assert pure.implied() == implied_by(lb.TradeOff.approx(pure.bound))
    failing = lb.audit(scores, lb.Coins(member), claim=lb.ApproxDP(delta=1e-3))
    assert failing.implied() == implied_by(lb.TradeOff.approx(failing.bound))  # without failures
    chance = lb.audit(scores, lb.Coins(member), claim=lb.GaussianDP(delta=1e-3))
    assert chance.implied() == implied_by(lb.TradeOff.gaussian(chance.bound))
    assert lb.audit(-scores, lb.Coins(member)).implied() == NOTHING
    assert lb.audit(-scores, lb.Coins(member), claim=lb.GaussianDP()).implied() == NOTHING
    assert lb.audit(scores, lb.Panoramia(member, baseline=-scores)).implied() is None
    split = lb.audit(scores, lb.RandomSplit(member))  # on two examples, and not on membership
    assert split.bound > 0
    assert split.implied() is None
    for known in ({"c_upper": 0.1}, {"real_nonmembers": True}):
        certified = lb.audit(scores, lb.Panoramia(member, baseline=-scores, **known))
        assert certified.kind == "lower_bound"
        assert certified.bound > 0
        assert certified.implied() is None  # of replacing one, too


def test_of_a_curve_that_is_not_its_mirror_image_the_order_of_members_counts() -> None:
    """The hull of both orders allows more at one rate than either of them does."""

    def one_way(theta: float) -> lb.TradeOff:
        power = 1 - math.exp(-theta)
        return lb.TradeOff.table([0.0, 0.2, 1.0], [1.0, 0.8 * (1 - power), 0.0])

    family = lb.TradeOffFamily(parameter="strength", tradeoff=one_way, bracket=(0.0, 9.0))
    game = simulate.gaussian(M, 3.0, seed=2)
    result = lb.audit(game.scores, lb.Coins(game.member), claim=family)
    assert result.bound > 0
    found = result.implied()
    assert found == implied_by(one_way(result.bound))
    assert result.rejected is not None
    assert found != implied_by(result.rejected)
