"""Every ε is said with its δ, and every other number with its unit."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.formatting import down, number
from leakbound.cli.output import brief
from leakbound.results import AuditResult
from oracle_calls import coins, dp_sgd, panoramia, stream, zero_run

FAILURES = [0.0, 1e-9, 1e-5, 1e-4, 0.01]
BOUND_UNITS = {
    "pure": "nats at δ = 0",
    "approx": "nats at δ = 0.001",
    "gaussian": "μ of Gaussian DP",
    "gaussian-failures": "μ of Gaussian DP with failures of chance 0.0001",
    "laplace": "ε of Laplace DP",
    "table": "theta of trade-off family in theta",
    "dp-sgd-whole": "1 / noise multiplier",
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


FAMILIES: dict[str, tuple[Callable[[], Any], str]] = {
    "coins": (lambda: coins("leaks", "gaussian"), "μ"),
    "coins, noise": (lambda: coins("noise", "gaussian"), "μ"),
    "coins, DP-SGD": (lambda: coins("leaks", "dp-sgd-whole"), "noise multiplier"),
    "coins, Laplace": (lambda: coins("leaks", "laplace"), "ε"),
    "stream": (lambda: stream("both", claim=lb.GaussianDP()), "μ"),
    "Zero-Run": (lambda: zero_run("gaussian"), "μ"),
    "Zero-Run, set": (lambda: zero_run("gaussian", given="labels", features=True), "μ"),
    "Zero-Run, exploratory": (lambda: zero_run("gaussian", given="replicates"), "μ"),
    "DP-SGD": (
        lambda: dp_sgd("gaussian", noise=0.4, stated=0.8, steps=20, step_canaries=400),
        "μ",
    ),
    "DP-SGD, its own": (
        lambda: dp_sgd("dp-sgd", noise=0.4, stated=0.8, steps=20, step_canaries=400),
        "noise multiplier",
    ),
}
"""A result for each family and design, and the name of what its bound is on."""


def without_brackets(text: str) -> str:
    """Return a text without what is in brackets."""
    return re.sub(r"\([^()]*\)", "", text)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_result_speaks_in_epsilon_with_its_own_parameter_in_brackets(name: str) -> None:
    make, parameter = FAMILIES[name]
    found = make()
    said = found.summary()
    # 1. ε comes first, and the parameter is in brackets: as a number, never by itself.
    own = re.compile(rf"\b{parameter} [≥≤≈=] ")
    texts = {
        "headline": said.headline,
        "evidence": " ".join(said.paragraphs).partition("Steps: ")[0],
        "metrics": " ".join(f"{one.name}: {one.value}, {one.note}" for one in said.metrics),
        "formula": said.formula,
        "warnings": " ".join(found.warnings),
    }
    for where, text in texts.items():
        if parameter != "ε":
            assert not own.search(without_brackets(text)), where
    if found.bound:
        assert own.search(said.headline)
        assert "ε" in without_brackets(said.headline)
    first = next(one for one in said.metrics if one.name.startswith("ε"))
    assert own.search(first.value)
    assert first.value.startswith(number(said.epsilon))
    # 2. The representation too.
    sign = ">=" if said.kind != "exploratory_lower_bound" else "~"
    shown = re.search(rf"epsilon\((?:1e-05)?\) {sign} ([\d.]+)", repr(found))
    assert shown is not None
    assert shown[1] == (number(said.epsilon) if said.epsilon else "0.00")
    inside = re.findall(r"\(([^()]*)\)", repr(found).replace(shown[0], "()"))
    code = {"μ": "mu ", "noise multiplier": "noise_multiplier ", "ε": ""}[parameter]
    assert any(one.startswith(code) for one in inside)


def test_zero_run_compares_like_with_like() -> None:
    found = zero_run("gaussian", given="labels", features=True)
    text = " ".join(found.summary().paragraphs)
    for words in ("would have claimed ε = ", "model would give ε ≥ "):
        assert words in text
    assert f"ε = {number(found.naive)} at δ = 1e-05." in text
    assert f"(μ ≥ {number(found.learnt.at_estimate)})" in text


def test_a_family_without_a_finite_epsilon_is_said_in_its_own_unit() -> None:
    found = coins("leaks", "one-way")
    said = found.summary()
    assert said.epsilon == float("inf")
    assert f"theta < {down(found.bound)} (95 % confidence; no ε at δ = 0.00101 follows)" in str(
        said
    )
    assert "∞" not in str(said) + str(said.metrics) + said.formula + " ".join(said.meaning.says)
    assert "ε < " not in str(said)
    assert repr(found).startswith("AuditResult(theta >= ")


def test_a_claimed_parameter_is_called_by_its_name() -> None:
    found = coins("leaks", "gaussian").with_check(parameter=1.5)
    assert "To test the claimed μ = 1.5 harder" in str(found.summary())


def test_pure_results_have_no_brackets() -> None:
    for found in (coins("leaks"), zero_run("pure"), panoramia(leak=3.0, real_nonmembers=True)):
        assert "(95 % confidence)" in found.summary().headline
        assert found.summary().units["bound"].startswith("nats at δ = 0")
