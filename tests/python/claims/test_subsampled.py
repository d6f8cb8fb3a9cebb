"""DP-SGD as a family of trade-off functions, through dp-accounting."""

import builtins
import math
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import errors, simulate, stats
from leakbound.claims import dp_sgd

CLAIM = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=50)
POWERS = np.linspace(0.01, 0.99, 50)


@pytest.mark.parametrize("order", ["remove", "add"])
def test_deltas_are_those_of_dp_accounting(order: str) -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    loss = pld.from_gaussian_mechanism(
        0.8, value_discretization_interval=1e-3, sampling_prob=0.1
    ).self_compose(50)
    grid = np.linspace(-10, 10, 41)
    theirs = getattr(loss, f"_pmf_{order}").get_delta_for_epsilon(grid)
    np.testing.assert_allclose(dp_sgd._delta(loss, grid, order), theirs, atol=1e-13)


def test_without_sampling_it_is_the_gaussian_curve() -> None:
    curve = lb.SubsampledGaussianDP(sampling_rate=1.0, steps=4).tradeoff(0.5)
    exact = lb.TradeOff.gaussian(1.0)
    assert np.all(curve.inverse(POWERS) <= exact.inverse(POWERS))
    np.testing.assert_allclose(curve.inverse(POWERS), exact.inverse(POWERS), atol=2e-3)
    assert 0 <= curve.epsilon(1e-5) - exact.epsilon(1e-5) < 0.02


def test_the_mixed_curve_is_the_larger_delta_at_each_epsilon() -> None:
    member, both = (CLAIM.curve(1.25, sides) for sides in ("member", "both"))
    grid = both.parameters["epsilon"]
    assert np.all(both.delta(grid) >= member.delta(grid))
    assert np.any(both.delta(grid) > member.delta(grid) + 1e-4)
    assert CLAIM.tradeoff(1.25) == both


def test_the_bound_is_the_largest_rejected_inverse_noise() -> None:
    for one_sided in (False, True):
        found = stats.fdp_lower_bound(280, 300, 1000, claim=CLAIM, one_sided=one_sided)
        sides: Any = "member" if one_sided else "both"
        rejects, keeps = (CLAIM.curve(found * side, sides) for side in (0.999, 1.002))
        options: dict[str, Any] = {"one_sided": one_sided}
        assert stats.fdp_rejects(280, 300, 1000, tradeoff=rejects, **options)
        assert not stats.fdp_rejects(280, 300, 1000, tradeoff=keeps, **options)
    assert stats.fdp_lower_bound(150, 300, 1000, claim=CLAIM) == 0.0


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1), (5.0, 25), (2.0, 100)])
def test_what_tests_attain_is_below_the_gaussian_curve(noise: float, steps: int) -> None:
    claim = lb.SubsampledGaussianDP(sampling_rate=1.0, steps=steps)
    exact = lb.TradeOff.gaussian(math.sqrt(steps) / noise)
    for sides in ("member", "both"):
        curve = claim.attained(1 / noise, sides)
        assert np.all(curve.f(POWERS) >= exact.f(POWERS) - 1e-12)
        for delta in (1e-2, 1e-5, 1e-8):
            assert exact.epsilon(delta) - 1e-3 < curve.epsilon(delta) < exact.epsilon(delta)


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(1.0, 0.01, 1000), (0.5, 0.01, 100), (0.6, 0.001, 2000), (0.3, 0.3, 2)],
)
def test_what_tests_attain_is_close_below_what_is_allowed(
    noise: float, rate: float, steps: int
) -> None:
    claim = lb.SubsampledGaussianDP(sampling_rate=rate, steps=steps)
    for sides in ("member", "both"):
        allowed, curve = claim.curve(1 / noise, sides), claim.attained(1 / noise, sides)
        assert np.all(curve.f(POWERS) >= allowed.f(POWERS) - 1e-12)
        np.testing.assert_allclose(curve.f(POWERS), allowed.f(POWERS), atol=3e-3)
        for delta in (1e-2, 1e-5, 1e-8):
            assert allowed.epsilon(delta) - 5e-3 < curve.epsilon(delta) <= allowed.epsilon(delta)


def test_one_step_is_the_exact_test() -> None:
    """Power and level of thresholds for one sample, from two normal laws."""
    rate, noise = 0.2, 0.8
    x = np.linspace(-2, 3, 41)
    level, with_it = (scipy_stats.norm.sf((x - shift) / noise) for shift in (0, 1))
    power = (1 - rate) * level + rate * with_it
    claim = lb.SubsampledGaussianDP(sampling_rate=rate, steps=1)
    missed = claim.attained(1 / noise, "member").f(level)
    assert np.all(missed >= 1 - power - 1e-12)
    np.testing.assert_allclose(missed, 1 - power, atol=1e-5)


def test_a_claim_is_refuted_only_where_it_is_false() -> None:
    """ε = 4.3773 is what noise 1 allows at δ = 1e-5: what is rejected there refutes no more."""
    claim = lb.SubsampledGaussianDP(sampling_rate=1.0, steps=1)
    rejected = claim.attained(1.0, "both").epsilon(1e-5)
    truth = lb.TradeOff.gaussian(1.0).epsilon(1e-5)
    assert claim.curve(1.0, "both").epsilon(1e-5) > truth > rejected
    game = simulate.gaussian(1000, 1.0, seed=0)
    result = lb.audit(game.scores, lb.Coins(game.member), claim=claim)
    exact = lb.TradeOff.gaussian(result.bound).epsilon(1e-5)
    assert exact - 1e-3 < result.epsilon(1e-5) < exact
    assert result.check(epsilon=exact, delta=1e-5) == "not refuted"
    assert result.check(epsilon=exact - 1e-3, delta=1e-5) == "refuted"


@pytest.mark.parametrize(
    "change", [{"sampling_rate": 0.0}, {"sampling_rate": 1.1}, {"steps": 0}], ids=str
)
def test_bad_options(change: dict[str, Any]) -> None:
    with pytest.raises(errors.OptionError, match=r"at most 1|steps must be at least 1"):
        lb.SubsampledGaussianDP(**({"sampling_rate": 0.1, "steps": 10} | change))
    with pytest.raises(errors.OptionError, match="inverse_noise"):
        CLAIM.tradeoff(0.0)
    with pytest.raises(errors.OptionError, match="relation must be one of"):
        lb.SubsampledGaussianDP(sampling_rate=0.1, steps=5, relation="swap")  # type: ignore[arg-type]


def test_without_dp_accounting_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *rest, **more)

    dp_sgd.subsampled_gaussian.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    for name in [name for name in sys.modules if name.startswith("dp_accounting")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(errors.MissingExtraError, match=r"leakbound\[dp\]"):
        CLAIM.tradeoff(1.0)


def test_audit() -> None:
    game = simulate.gaussian(1000, 1.0, seed=0)
    result = lb.audit(game.scores, lb.Coins(game.member), claim=CLAIM)
    assert repr(result).startswith("AuditResult(noise_multiplier <= ")
    assert 0.3 < result.bound < result.ceiling < 2
    assert 1 < result.epsilon(1e-5) < game.epsilon(1e-5)
    again = lb.AuditResult.from_json(result.to_json())
    assert (again, again.claim) == (result, CLAIM)
    noise = simulate.null(1000, seed=0)
    nothing = lb.audit(noise.scores, lb.Coins(noise.member), claim=CLAIM)
    assert (nothing.bound, nothing.epsilon(1e-5)) == (0.0, 0.0)
    assert "noise_multiplier <= no limit" in repr(nothing)
    assert nothing.reason
