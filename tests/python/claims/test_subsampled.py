"""DP-SGD as a family of trade-off functions, for adding and for replacing one example."""

import builtins
import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

import leakbound as lb
from leakbound import errors, simulate, stats
from leakbound.claims import dp_sgd
from leakbound.claims.dp_sgd import attained, subsampled_gaussian

CLAIM = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=50)
POWERS = np.linspace(0.01, 0.99, 50)


def loss_of_step(noise: float, rate: float, relation: str) -> Any:
    """Return the privacy loss of one step by the public function of dp-accounting."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        noise,
        value_discretization_interval=1e-3,
        sampling_prob=rate,
        neighboring_relation=NeighboringRelation[relation],
    )


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(0.8, 0.1, 50), (4.0, 1.0, 2), (1.0, 0.01, 500)]
)
@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_ONE"])
def test_deltas_are_those_of_the_public_function_of_dp_accounting(
    noise: float, rate: float, steps: int, relation: str
) -> None:
    loss = loss_of_step(noise, rate, relation).self_compose(steps)
    grid = np.linspace(-10, 10, 41)
    ours = dp_sgd._delta_of_order(loss, grid, "remove")
    if relation == "ADD_OR_REMOVE_ONE":
        ours = np.maximum(ours, dp_sgd._delta_of_order(loss, grid, "add"))
    theirs = np.asarray(loss.get_delta_for_epsilon(grid))
    # Negative masses, which are noise of a transform, count as none here
    assert np.all(ours >= theirs - 1e-15)
    np.testing.assert_allclose(ours, theirs, atol=1e-13)


@pytest.mark.parametrize(("noise", "rate"), [(0.8, 0.1), (2.0, 0.6)])
def test_each_order_of_one_step_is_the_exact_delta(noise: float, rate: float) -> None:
    """P against Q, and Q against P, by the best test of each: a threshold for the loss."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    loss = pld.from_gaussian_mechanism(
        noise, value_discretization_interval=1e-3, sampling_prob=rate
    )
    epsilon = np.linspace(0.05, 0.8 * -np.log1p(-rate), 5)

    def laws(edge: Any) -> tuple[Any, Any]:
        other = norm.cdf(edge / noise)
        return (1 - rate) * other + rate * norm.cdf((edge - 1) / noise), other

    def edge(value: Any) -> Any:
        return 0.5 + noise**2 * np.log(np.expm1(value) / rate + 1)

    member, other = laws(edge(epsilon))
    exact = {"remove": (1 - member) - np.exp(epsilon) * (1 - other)}
    member, other = laws(edge(-epsilon))
    exact["add"] = other - np.exp(epsilon) * member
    for order, delta in exact.items():
        found = dp_sgd._delta_of_order(loss, epsilon, order)
        assert np.all(found >= delta - 1e-12)
        np.testing.assert_allclose(found, delta, atol=1e-5)


@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_ONE"])
@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(0.8, 0.1, 50), (4.0, 1.0, 2), (1.3, 0.01, 500), (30.0, 0.05, 20), (2.0, 0.5, 1)],
)
def test_laws_of_one_step_and_of_all_are_those_of_dp_accounting(
    noise: float, rate: float, steps: int, relation: str
) -> None:
    """To the bit here; elsewhere a last bit of e^x is 1e-13 of a second difference of δ."""
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

    theirs = loss_of_step(noise, rate, relation)
    orders = {"_pmf_remove": "REPLACE" if relation == "REPLACE_ONE" else "REMOVE"}
    if relation == "ADD_OR_REMOVE_ONE" and rate < 1:
        orders["_pmf_add"] = "ADD"
    for order, adjacency in orders.items():
        ours = dp_sgd._loss_of_step(noise, rate, AdjacencyType[adjacency])
        of_step = getattr(theirs, order)
        assert_same_law(ours, of_step)
        assert_same_law(dp_sgd.self_composed(of_step, steps), of_step.self_compose(steps))


def assert_same_law(ours: Any, theirs: Any) -> None:
    found, expected = (vars(law.to_dense_pmf()) for law in (ours, theirs))
    assert found["_lower_loss"] == expected["_lower_loss"]
    np.testing.assert_allclose(found["_probs"], expected["_probs"], rtol=0, atol=2e-12)
    for name in ("_infinity_mass", "_discretization", "_pessimistic_estimate"):
        assert found[name] == pytest.approx(expected[name], rel=1e-12)


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
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_without_sampling_what_tests_attain_is_below_the_gaussian_curve(
    noise: float, steps: int, relation: Any
) -> None:
    """T steps at noise σ are √T/σ-GDP for adding one, 2 √T/σ for replacing."""
    claim = lb.SubsampledGaussianDP(sampling_rate=1.0, steps=steps, relation=relation)
    exact = lb.TradeOff.gaussian(math.sqrt(steps) / noise)
    every: tuple[Any, ...] = ("member", "both") if relation == "add_remove" else ("pairs",)
    noise *= 1 if relation == "add_remove" else 2
    for sides in every:
        curve = claim.attained(1 / noise, sides)
        assert np.all(claim.curve(1 / noise, sides).f(POWERS) <= exact.f(POWERS) + 1e-12)
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
    level, with_it = (norm.sf((x - shift) / noise) for shift in (0, 1))
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
    assert repr(result).startswith("AuditResult(epsilon(1e-05) >= ")
    assert " (noise_multiplier <= " in repr(result)
    assert 0.3 < result.bound < result.ceiling < 2
    assert 1 < result.epsilon(1e-5) < game.epsilon(1e-5)
    again = lb.AuditResult.from_json(result.to_json())
    assert (again, again.claim) == (result, CLAIM)
    noise = simulate.null(1000, seed=0)
    nothing = lb.audit(noise.scores, lb.Coins(noise.member), claim=CLAIM, cuts=lb.Fixed(100))
    assert (nothing.bound, nothing.epsilon(1e-5)) == (0.0, 0.0)
    assert "noise_multiplier <= no limit" in repr(nothing)
    assert nothing.reason


def exact(epsilon: float, noise: float, rate: float) -> float:
    """δ(ε) of one step: the mixture with a gradient of 1 against that with one of -1."""

    def excess(x: float) -> float:
        shared = (1 - rate) * norm.pdf(x, 0, noise)
        first = shared + rate * norm.pdf(x, 1, noise)
        other = shared + rate * norm.pdf(x, -1, noise)
        return max(0.0, float(first - np.exp(epsilon) * other))

    return float(quad(excess, -12, 13, limit=400, epsabs=1e-12)[0])


@pytest.mark.parametrize("noise", [0.4, 1.5])
@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_no_two_clipped_gradients_are_told_apart_better_than_opposite_ones(
    noise: float, rate: float
) -> None:
    """The lemma, in the plane: for lengths up to the clipping norm and angles up to π."""
    step = 0.1 * noise
    edges = np.arange(-1 - 7 * noise, 1 + 7 * noise, step)

    def around(length: float, angle: float) -> NDArray[np.float64]:
        first, second = length * np.cos(angle), length * np.sin(angle)
        found: NDArray[np.float64] = step**2 * np.outer(
            norm.pdf(edges, first, noise), norm.pdf(edges, second, noise)
        )
        return found

    shared = (1 - rate) * around(0, 0)
    epsilons = (-2.0, -0.1, 0.0, 0.1, 1.0, 3.0)
    largest = [exact(epsilon, noise, rate) for epsilon in epsilons]
    angles = np.linspace(0, np.pi, 5)
    for length, other, angle in itertools.product((0.0, 0.7, 1.0), (0.7, 1.0), angles):
        first, second = shared + rate * around(length, 0), shared + rate * around(other, angle)
        for epsilon, most in zip(epsilons, largest, strict=True):
            assert np.maximum(first - np.exp(epsilon) * second, 0).sum() <= most + 1e-3


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.5, 0.3), (2.0, 1.0)])
def test_one_step_is_between_its_two_curves(noise: float, rate: float) -> None:
    above = subsampled_gaussian(noise, rate, 1, "pairs", "replace")
    below = attained(noise, rate, 1, "pairs", "replace")
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        delta = exact(epsilon, noise, rate)
        assert below.delta(epsilon) <= delta + 1e-9
        assert above.delta(epsilon) >= delta - 1e-9
        assert above.delta(epsilon) == pytest.approx(below.delta(epsilon), rel=2e-3, abs=1e-7)


def test_what_follows_from_adding_one_is_no_smaller() -> None:
    added = subsampled_gaussian(1.0, 0.05, 20, "both")
    replaced = subsampled_gaussian(1.0, 0.05, 20, "pairs", "replace")
    for delta in (1e-3, 1e-5):
        epsilon = float(added.epsilon(delta))
        assert float(replaced.delta(2 * epsilon)) <= (1 + np.exp(epsilon)) * delta
        assert epsilon < float(replaced.epsilon(delta))
