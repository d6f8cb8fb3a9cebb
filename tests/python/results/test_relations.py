"""A bound on replacing one example, and claims about replacing or adding one."""

import math
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import errors
from leakbound.audits.designs import audit_of
from leakbound.claims import SubsampledGaussianDP, replacing


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
