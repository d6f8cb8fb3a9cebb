"""At a δ at which a family has no ε, every ε would be refuted: no door answers the question."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import errors
from leakbound.claims import (
    AnyFamily,
    GaussianDP,
    LaplaceDP,
    SubsampledGaussianDP,
    TradeOffFamily,
)
from leakbound.claims.tradeoff import TradeOff, least_delta
from leakbound.planning.protocol import checked_protocol
from leakbound.testing import assert_not_refuted

LEAST = math.nextafter(0.0, 1.0)
GRID = np.linspace(-8, 8, 201)


def own(tradeoff: Callable[[float], TradeOff], least: float = 0.0) -> TradeOffFamily:
    return TradeOffFamily(parameter="strength", tradeoff=tradeoff, bracket=(least, 0.9))


def told(share: float) -> TradeOff:
    """The curve of a mechanism that tells of a share of members, and of no others."""
    return TradeOff.table([0, 1], [1 - share, 0])


def others_told(share: float) -> TradeOff:
    """The mirror image: of a share of others, and of no members."""
    return TradeOff.table([0, 1 - share, 1], [1, 0, 0]) if share else TradeOff.gaussian(0)


FAMILIES: dict[str, tuple[AnyFamily, float]] = {
    "gaussian": (GaussianDP(), LEAST),
    "gaussian with failures": (GaussianDP(delta=0.01), math.nextafter(0.01, 1)),
    "laplace": (LaplaceDP(), 0.0),
    "dp-sgd": (SubsampledGaussianDP(sampling_rate=0.1, steps=10), LEAST),
    "one's own gaussian": (own(TradeOff.gaussian, 0.02), LEAST),
    "from no leakage at all": (own(TradeOff.gaussian), LEAST),
    "failures of all": (own(lambda theta: TradeOff.approx(theta, 0.003)), 0.003),
    "tables with failures": (own(lambda _: TradeOff.table([0, 1], [0.75, 0]), 0.1), 0.25),
    "pure": (own(TradeOff.approx), 0.0),
    "ended losses": (own(lambda _: TradeOff.table([0, 0.1, 1], [1, 0.5, 0]), 0.1), 0.0),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_least_delta_is_that_of_the_curves(name: str) -> None:
    family, expected = FAMILIES[name]
    for sides in ("both", "member"):
        found = family.least_delta(sides)
        assert found == expected or 0 < expected - found < 1e-14  # a table is rounded


@pytest.mark.parametrize("failures", [0.0, 1e-300, 1e-9, 0.1, 0.3, 1 - 2**-30])
def test_the_least_delta_of_a_curve_is_exact(failures: float) -> None:
    assert least_delta(TradeOff.approx(1.0, failures)) == failures
    assert least_delta(TradeOff.gaussian(1.0, failures)) == math.nextafter(failures, 1)


def test_failures_that_grow_with_the_parameter_leave_a_delta_to_ask_at() -> None:
    """Beyond the most private curve they are as small as you like, on the side that has any."""
    assert 0 < own(told).least_delta("member") < 1e-11
    assert 0.4 < own(told, 0.4).least_delta("member") < 0.4 + 1e-11
    assert own(others_told).least_delta("member") == 0.0
    assert 0 < own(others_told).least_delta("both") < 1e-11
    profile = own(lambda theta: TradeOff.profile(GRID, TradeOff.gaussian(theta).delta(GRID)), 0.5)
    assert 0 < profile.least_delta("member") < 1e-40


M = 200
rng = np.random.default_rng(3)
COINS = rng.random(M) < 0.5
SPLIT = rng.permutation(M) < M // 2
NOISE = rng.normal(size=M)


def streamed(claim: AnyFamily) -> lb.AuditResult:
    stream = lb.Stream(claim=claim)
    stream.update(NOISE + 3 * COINS, COINS)
    return stream.result()


def chosen(claim: AnyFamily) -> lb.AuditResult:
    drawn = rng.integers(3, size=M)
    scores = rng.normal(size=(M, 3)) + 4 * (drawn[:, None] == np.arange(3))
    result: lb.AuditResult = lb.audit(scores, lb.Choices(drawn, k=3), claim=claim)
    return result


DESIGNS: dict[str, Callable[[AnyFamily], Any]] = {
    "coins": lambda claim: lb.audit(NOISE + 3 * COINS, lb.Coins(COINS), claim=claim),
    "nothing proved": lambda claim: lb.audit(NOISE, lb.Coins(COINS), claim=claim),
    "members only": lambda claim: lb.audit(
        NOISE + 3 * COINS, lb.Coins(COINS), claim=claim, sides="member"
    ),
    "trials": lambda claim: lb.audit(NOISE + 3 * COINS, lb.Trials(COINS), claim=claim),
    "split": lambda claim: lb.audit(NOISE + 4 * SPLIT, lb.RandomSplit(SPLIT), claim=claim),
    "choices": chosen,
    "stream": streamed,
    "zero-run": lambda claim: lb.audit(
        NOISE + 3 * COINS, lb.ZeroRun(COINS, np.full(M, 0.5)), claim=claim
    ),
}


@pytest.mark.parametrize("failures", [0.0, 0.01])
@pytest.mark.parametrize("design", DESIGNS)
def test_every_door_refuses(design: str, failures: float) -> None:
    result = DESIGNS[design](GaussianDP(delta=failures))
    compared = {"relation": "replace"} if result.relation == "replace" else {}
    message = rf"has no ε without a δ{' above 0.01' * bool(failures)}: at delta = "
    for delta in {0.0, failures, failures / 10}:
        claimed: dict[str, Any] = {"epsilon": 1000.0, "delta": delta, **compared}
        with pytest.raises(errors.OptionError, match=message):
            result.check(**claimed)
        with pytest.raises(errors.OptionError, match=message):
            result.with_check(**claimed)
        with pytest.raises(errors.OptionError, match=message):
            result.epsilon(delta)
        with pytest.raises(errors.OptionError, match=message):
            assert_not_refuted(result, **claimed)
        accounted = {"relation": "add_remove", **claimed}
        with pytest.raises(errors.OptionError, match=message):
            result.against(**accounted)
    with pytest.raises(errors.OptionError, match=message):
        result.check(epsilon=1000.0, **compared)  # δ is 0 where nobody gave one
    # The message proposes a δ, and this one is answered.
    with pytest.raises(errors.OptionError) as caught:
        result.epsilon()
    proposed = float(str(caught.value).split("delta=")[1])
    assert math.isfinite(result.epsilon(proposed))
    assert result.check(epsilon=1000.0, delta=proposed, **compared) != "refuted"
    assert result.check(parameter=1000.0, **compared) != "refuted"


def test_the_default_claim_of_a_zero_run_is_asked_at_a_delta() -> None:
    result = lb.audit(NOISE + 3 * COINS, lb.ZeroRun(COINS, np.full(M, 0.5)))
    with pytest.raises(errors.OptionError, match="such as delta=1e-05"):
        result.check(epsilon=1000.0)
    assert result.check(epsilon=0.5, delta=1e-5) == "refuted"


def test_adding_or_removing_one_is_asked_at_a_delta_too() -> None:
    result = DESIGNS["split"](GaussianDP())
    with pytest.raises(errors.OptionError, match="has no ε without a δ"):
        result.check(epsilon=1000.0, relation="add_remove")
    assert result.check(epsilon=0.1, delta=1e-5, relation="add_remove") == "refuted"


def test_dp_sgd_is_asked_at_a_delta() -> None:
    """The computed curve has an ε at δ = 0, which is its last point and not the mechanism's."""
    result = DESIGNS["coins"](SubsampledGaussianDP(sampling_rate=1.0, steps=1))
    assert result.rejected is not None
    assert math.isfinite(result.rejected.epsilon(0.0))
    with pytest.raises(errors.OptionError, match="has no ε without a δ: at delta = 0"):
        result.check(epsilon=1000.0)
    assert result.check(epsilon=1000.0, delta=1e-9) == "inconclusive"
    assert result.check(epsilon=0.5, delta=1e-5) == "refuted"


def test_what_can_be_answered_is_answered() -> None:
    """Losses of Laplace noise are limited, and failures may be what was proved."""
    laplace = DESIGNS["trials"](LaplaceDP())
    assert 0 < laplace.epsilon() < math.inf
    assert laplace.check(epsilon=laplace.bound - 0.01) == "refuted"
    assert laplace.check(epsilon=laplace.bound + 0.01) != "refuted"
    gaussian = DESIGNS["trials"](GaussianDP(delta=0.01))
    for delta in (math.nextafter(0.01, 1), 0.0101, 0.05):
        proved = gaussian.epsilon(delta)
        assert 0 < proved < math.inf
        assert gaussian.check(epsilon=0.99 * proved, delta=delta) == "refuted"
        assert gaussian.check(epsilon=1000.0, delta=delta) != "refuted"
    failing = DESIGNS["members only"](own(told))
    assert failing.bound > 0.03
    for delta in (1e-9, 0.9 * failing.bound):
        assert failing.epsilon(delta) == math.inf
        assert failing.check(epsilon=1000.0, delta=delta) == "refuted"
    assert failing.check(epsilon=0.0, delta=1.01 * failing.bound) != "refuted"


@pytest.mark.parametrize("name", FAMILIES)
def test_families_by_a_function_answer_alike_once_read(name: str) -> None:
    """Only the name of the function is stored: the least δ is stored beside it."""
    family, _ = FAMILIES[name]
    how: Any = {"sides": "member", "cuts": lb.Fixed(40)}
    result = lb.audit(NOISE + 3 * COINS, lb.Coins(COINS), claim=family, **how)
    read = lb.AuditResult.from_json(result.to_json())
    assert read == result
    least = family.least_delta("member")
    stored = json.loads(result.to_json()).get("least_delta")
    assert stored == (least if isinstance(family, TradeOffFamily) else None)
    for one in (result, read):
        assert one.check(epsilon=1000.0, delta=max(least, 1e-9)) in {"not refuted", "inconclusive"}
        if least:
            with pytest.raises(errors.OptionError, match="has no ε without a δ"):
                one.check(epsilon=1000.0, delta=math.nextafter(least, 0))


def test_words_are_at_a_delta_beyond_the_failures() -> None:
    family = own(lambda theta: TradeOff.approx(3 * theta, 0.01))
    result = DESIGNS["trials"](family)
    said, delta = result.summary(), 0.01 + 1e-5
    assert 0 < said.epsilon == result.epsilon(said.terms.delta) < math.inf
    assert said.terms.delta == pytest.approx(delta, rel=1e-9)
    assert "at δ = 0.01001" in said.headline
    assert "∞" not in str(said)
    failing = DESIGNS["members only"](own(told)).summary()
    assert failing.terms.delta == 1e-5
    assert failing.epsilon == math.inf  # more failures than that were proved


def test_a_refuted_failure_is_stored_and_read() -> None:
    result = DESIGNS["members only"](own(told)).with_check(epsilon=1000.0, delta=1e-9)
    assert lb.AuditResult.from_json(result.to_json()) == result
    # A file of before had no such number: what its curve cannot tell is not asked.
    stored: Any = DESIGNS["members only"](own(told)).to_dict()
    del stored["least_delta"]
    older = lb.AuditResult.from_dict(stored)
    with pytest.raises(errors.OptionError, match="has no ε without a δ above 0"):
        older.check(epsilon=1000.0, delta=1e-9)
    assert older.check(epsilon=0.1, delta=0.9) != "refuted"


def test_a_stored_verdict_on_what_cannot_be_asked_is_refused() -> None:
    stored: Any = DESIGNS["trials"](GaussianDP()).with_check(epsilon=0.5, delta=1e-5).to_dict()
    stored["checked"] |= {"value": 1000.0, "delta": 0.0, "verdict": "refuted"}
    with pytest.raises(errors.FormatError, match="has no ε without a δ"):
        lb.AuditResult.from_dict(stored)


PROTOCOL: dict[str, Any] = {
    "attacks": ["loss"],
    "canaries": "lines of the book",
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "both",
    "unit": "one line",
}


@pytest.mark.parametrize(
    "claim",
    [
        {"type": "GaussianDP"},
        {"type": "GaussianDP", "delta": 1e-5},
        {"type": "SubsampledGaussianDP", "sampling_rate": 0.1, "steps": 10},
    ],
)
def test_a_protocol_cannot_promise_the_question(claim: dict[str, Any]) -> None:
    asked = {"epsilon": 2.0, "delta": claim.get("delta", 0.0)}
    with pytest.raises(errors.OptionError, match=r"the protocol's .* has no ε without a δ"):
        checked_protocol(PROTOCOL | {"claim": claim, "checked": asked})
    with pytest.raises(errors.OptionError, match=r"the protocol's .* has no ε without a δ"):
        checked_protocol(PROTOCOL | {"claim": claim, "checked": {"epsilon": 2.0}})
    checked_protocol(PROTOCOL | {"claim": claim, "checked": {"epsilon": 2.0, "delta": 1e-4}})


def test_a_right_mechanism_is_never_refuted_at_an_epsilon_far_above_its_own() -> None:
    """Randomised response is (1, δ)-DP for every δ: before, (50, 1e-5) was refuted each time."""
    answers = set()
    for seed in range(10):
        random = np.random.default_rng([seed, 42])
        member = random.random(M) < 0.5
        kept = random.random(M) < 1 / (1 + math.exp(-1.0))
        scores = np.where(kept, member, ~member).astype(float)
        result = lb.audit(scores, lb.Trials(member), claim=GaussianDP(delta=1e-4))
        with pytest.raises(errors.OptionError, match=r"above 0\.0001"):
            result.check(epsilon=50.0, delta=1e-5)
        answers.add(result.check(epsilon=50.0, delta=2e-4))
    assert "refuted" not in answers
