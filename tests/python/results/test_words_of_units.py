"""Every ε is said with its δ, and every other number with its unit."""

import json
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.formatting import number
from leakbound.cli.output import brief
from leakbound.results import AuditResult
from oracle_calls import coins, dp_sgd

FAILURES = [0.0, 1e-9, 1e-5, 1e-4, 0.01]
BOUND_UNITS = {
    "pure": "nats at δ = 0",
    "approx": "nats at δ = 0.001",
    "gaussian": "μ of Gaussian DP",
    "gaussian-failures": "μ of Gaussian DP with failures of chance 0.0001",
    "laplace": "ε of Laplace DP",
    "table": "theta of trade-off family in theta",
    "dp-sgd": "1 / noise multiplier",
}


@pytest.mark.parametrize("failures", FAILURES)
@pytest.mark.parametrize("design", ["coins", "split", "trials", "zero-run", "choices"])
def test_an_epsilon_is_at_the_delta_that_is_said(design: str, failures: float) -> None:
    rng, claim = np.random.default_rng(0), lb.GaussianDP(delta=failures)
    member = rng.random(300) < 0.5
    scores, chosen = rng.normal(size=300) + 3 * member, rng.integers(4, size=150)
    made: dict[str, tuple[Any, Any]] = {
        "coins": (scores, lb.Coins(member)),
        "split": (scores, lb.RandomSplit(member)),
        "trials": (scores, lb.Trials(member)),
        "zero-run": (scores, lb.ZeroRun(member, np.full(300, 0.5))),
        "choices": (rng.normal(size=(150, 4)) + 4 * np.eye(4)[chosen], lb.Choices(chosen, k=4)),
    }
    found = lb.audit(*made[design], claim=claim, seed=0)
    assert isinstance(found, AuditResult)
    said = found.summary()
    delta = 1e-5 + failures
    assert said.epsilon == found.epsilon(delta)
    assert 0 < said.epsilon < float("inf")
    assert said.numbers["delta"] == delta
    at = f" at δ = {delta:g}"
    assert f"ε < {number(said.epsilon)}{at}" in said.headline
    for words in (str(said), " ".join(said.meaning.says), str(said.metrics), str(said.levels)):
        assert at in words
        assert "δ = 1e-05" not in words or f"{delta:g}" == "1e-05"
    stored = json.loads(brief(found))
    assert stored["units"].startswith(f"nats{at}")
    assert said.units["bound"].startswith("μ of Gaussian DP")
    assert stored["bound_units"] == said.units["bound"]
    claimed = found.with_check(epsilon=0.5, delta=delta, relation=found.relation).summary()
    assert claimed.claimed == 0.5  # the axis of the bar is at this δ


@pytest.mark.parametrize("claim", BOUND_UNITS)
def test_numbers_have_the_delta_of_epsilon_and_the_unit_of_the_bound(claim: str) -> None:
    found = coins("leaks", claim)
    said = found.summary()
    assert said.epsilon == found.epsilon(said.numbers["delta"])
    assert said.units["bound"] == BOUND_UNITS[claim]
    assert said.units["epsilon"] == f"nats at δ = {said.numbers['delta']:g}"


def test_numbers_of_dp_sgd_are_at_the_delta_of_the_accountant() -> None:
    run = {"noise": 0.4, "stated": 0.8, "steps": 20, "step_canaries": 400}
    for accounted, delta in (((3.0, 1e-6), 1e-6), (None, 1e-5)):
        found = dp_sgd("gaussian", accounted=accounted, **run)
        said = found.summary()
        assert said.numbers["delta"] == found.delta == delta
        assert said.numbers["epsilon"] == found.epsilon(delta)
        assert said.units["epsilon"] == f"nats at δ = {delta:g}"
        assert said.units["bound"] == "μ of Gaussian DP"
    failing = dp_sgd("gaussian-failures", **run)
    assert failing.delta == 1e-5 + 1e-4
    assert 0 < failing.epsilon() < float("inf")
