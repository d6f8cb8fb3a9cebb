"""A bound on replacing one example, and claims about replacing or adding one."""

import math
import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import leakbound as lb
from leakbound import errors
from leakbound.audits.designs import audit_of
from leakbound.claims import SubsampledGaussianDP, replacing
from leakbound.testing import RefutedError, assert_not_refuted


def audit(claim: Any, design: Any = "random_split") -> lb.AuditResult:
    rng = np.random.default_rng(0)
    member = rng.permutation(2000) < 1000
    result: lb.AuditResult = audit_of(
        design, rng.normal(size=2000) + 1.5 * member, member=member, claim=claim
    )
    return result


def test_pure_claims_are_doubled_and_the_bound_is_not() -> None:
    result = audit(lb.PureDP())
    half = result.bound / 2
    assert result.check(epsilon=half - 0.01, relation="add_remove") == "refuted"
    assert result.check(epsilon=half + 0.01, relation="add_remove") == "not refuted"
    assert result.check(epsilon=result.bound - 0.01, relation="replace") == "refuted"
    assert result.check(epsilon=result.bound + 0.01, relation="replace") == "not refuted"
    assert result.check(epsilon=result.ceiling, relation="add_remove") == "inconclusive"


def test_approximate_claims_need_the_delta_that_they_become() -> None:
    result = audit(lb.ApproxDP(delta=1e-4))
    epsilon = result.bound / 2 - 0.01
    delta = 1e-4 / (1 + math.exp(epsilon)) * (1 - 1e-9)
    assert result.check(epsilon=epsilon, delta=delta, relation="add_remove") == "refuted"
    with pytest.raises(errors.OptionError, match="says nothing about delta"):
        result.check(epsilon=epsilon, delta=1e-4, relation="add_remove")
    assert result.check(epsilon=800, delta=0.5, relation="add_remove") == "inconclusive"


def test_gaussian_claims_are_doubled_in_mu_and_not_in_epsilon() -> None:
    result = audit(lb.GaussianDP())
    half = result.bound / 2
    assert result.check(parameter=half * 0.99, relation="add_remove") == "refuted"
    assert result.check(parameter=half * 1.01, relation="add_remove") != "refuted"
    at_half = float(lb.TradeOff.gaussian(half).epsilon(1e-5))
    assert at_half < result.epsilon(1e-5) / 2
    for factor, refuted in ((0.99, True), (1.01, False)):
        verdict = result.check(epsilon=at_half * factor, delta=1e-5, relation="add_remove")
        assert (verdict == "refuted") == refuted


def choices() -> lb.AuditResult:
    """Secrets of four candidates, each told by randomised response."""
    rng = np.random.default_rng(1)
    drawn = rng.integers(4, size=1500)
    kept = rng.random(1500) < math.exp(2.0) / (math.exp(2.0) + 3)
    told = np.where(kept, drawn, (drawn + rng.integers(1, 4, 1500)) % 4)
    result: lb.AuditResult = lb.audit(np.eye(4)[told], lb.Choices(drawn, k=4))
    return result


def synthetic() -> lb.AuditResult:
    """A generator that publishes two of three training records."""
    values = np.random.default_rng(2).normal(size=(350, 2))
    made = np.concatenate([values[:100], values[300:]])
    return lb.audit_synthetic(values[:150], values[150:300], made, seed=0)


@pytest.mark.parametrize(
    "result",
    [audit(lb.PureDP()), choices(), synthetic(), audit(lb.GaussianDP())],
    ids=["split", "choices", "synthetic", "gaussian"],
)
def test_a_parameter_goes_the_way_of_an_epsilon(result: lb.AuditResult) -> None:
    """By check, with_check, stored and read back, and as an assertion, half of the bound counts."""
    half = result.bound / 2
    assert half > 0
    for factor, refuted in ((0.99, True), (1.01, False)):
        claimed: dict[str, Any] = {"parameter": half * factor, "relation": "add_remove"}
        assert (result.check(**claimed) == "refuted") == refuted
        checked = result.with_check(**claimed)
        assert checked.checked is not None
        assert (checked.checked.verdict == "refuted") == refuted
        assert type(result).from_json(checked.to_json()) == checked
        with pytest.raises(RefutedError) if refuted else nullcontext():
            assert_not_refuted(result, **claimed)
    assert result.check(parameter=1.9 * half, relation="replace") == "refuted"


def test_a_right_system_is_not_refuted_by_its_parameter() -> None:
    """Randomised response of each record, 1-DP for adding or removing one, and 2-DP for replacing.

    Undoubled, every one of these audits refutes it.
    """
    false = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        member = rng.permutation(2000) < 1000
        kept = rng.random(2000) < 1 / (1 + math.exp(-1.0))
        scores = np.where(kept, member, ~member) + 1e-3 * rng.random(2000)
        result = lb.audit(scores, lb.RandomSplit(member))
        false += result.check(parameter=1.0, relation="add_remove") == "refuted"
    assert false <= int(binom.ppf(1 - 1e-4, 40, 0.05))


def test_a_parameter_of_approximate_dp_is_claimed_by_epsilon_and_delta() -> None:
    result = audit(lb.ApproxDP(delta=1e-4))
    claimed = result.bound / 2 - 0.01
    with pytest.raises(errors.OptionError, match=r"check\(epsilon=.*, delta=.*\)") as caught:
        result.check(parameter=claimed, relation="add_remove")
    shown = re.search(r"check\((.*)\)", str(caught.value))
    assert shown is not None
    assert eval(f"result.check({shown[1]})") == "refuted"
    with pytest.raises(errors.OptionError, match=r"check\(epsilon="):
        assert_not_refuted(result, parameter=900.0, relation="add_remove")
    assert result.check(parameter=claimed, relation="replace") == "refuted"


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.5, 0.7, 0.71, 0.9])
@pytest.mark.parametrize("delta", [1e-4, 1e-5, 0.01, 3e-3])
def test_the_largest_delta_of_a_claim_is_answered(epsilon: float, delta: float) -> None:
    """δ / (1 + e^ε) rounded, and converted back, may be above δ by a bit or two."""
    result = audit(lb.ApproxDP(delta=delta))
    most = delta / (1 + math.exp(epsilon))
    for at in (most, math.nextafter(most, 1), math.nextafter(most, 0)):
        verdict = result.check(epsilon=epsilon, delta=at, relation="add_remove")
        assert (verdict == "refuted") == (2 * epsilon < result.bound)
    with pytest.raises(errors.OptionError, match="says nothing about delta") as caught:
        result.check(epsilon=epsilon, delta=1.001 * most, relation="add_remove")
    smaller = float(str(caught.value).split("claim delta=")[1].split()[0])
    assert result.check(epsilon=epsilon, delta=smaller, relation="add_remove") in {
        "refuted",
        "not refuted",
    }


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(errors.OptionError, match="say what the claim is about"):
        audit(lb.PureDP()).check(epsilon=1.0)
    with pytest.raises(errors.OptionError, match="audit a random split"):
        audit(lb.PureDP(), "coins").check(epsilon=1.0, relation="replace")
    with pytest.raises(errors.OptionError, match="has no curve of this family"):
        audit(lb.LaplaceDP()).check(parameter=1.0, relation="add_remove")
    with pytest.raises(errors.OptionError, match="relation must be one of"):
        audit(lb.PureDP()).check(epsilon=1.0, relation="both")  # type: ignore[arg-type]
    assert audit(lb.PureDP(), "coins").check(epsilon=0.1, relation="add_remove") == "refuted"
    with pytest.raises(errors.OptionError, match="is for RandomSplit"):
        audit(SubsampledGaussianDP(sampling_rate=0.1, steps=10, relation="replace"), "coins")


def test_conversions() -> None:
    assert replacing(0.7) == (1.4, 0.0)
    assert replacing(1.0, 1e-5)[1] == pytest.approx((1 + math.e) * 1e-5)
    assert replacing(1e4, 1e-5)[1] > 1
    # Gaussian noise: the profile of replacing one is below what follows from adding one
    for mu, delta in ((0.5, 1e-5), (1.0, 1e-3)):
        epsilon, failure = replacing(float(lb.TradeOff.gaussian(mu).epsilon(delta)), delta)
        assert lb.TradeOff.gaussian(2 * mu).delta(epsilon) <= failure
