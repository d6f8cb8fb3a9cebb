"""Wrong arguments of public names: Python's error says what to write, and signatures stay."""

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import claims, mechanisms, planning
from leakbound._base.messages import hinted

RNG = np.random.default_rng(0)
MEMBER = RNG.random(200) < 0.5
SCORES = RNG.normal(size=200) + 2 * MEMBER
COINS = lb.Coins(MEMBER)
PURE = lb.audit(SCORES, COINS, seed=0)
GAUSSIAN = lb.audit(SCORES, COINS, claim=lb.GaussianDP(), seed=0)
PARTS: dict[str, Any] = {"train": (SCORES, MEMBER), "test": (SCORES, MEMBER)}
ANY: Any = lb
"""The package, of which any argument may be asked."""


def run(_: object, rng: np.random.Generator) -> float:
    return float(rng.normal())


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: ANY.audit(SCORES, COINS, delta=1e-5), "claim=lb.ApproxDP(delta=…)"),
    (lambda: ANY.audit(SCORES, COINS, epsilon=1), "result.check(epsilon=…)"),
    (lambda: ANY.audit(SCORES, COINS, alpha=0.05), "write confidence=1 - alpha"),
    (lambda: ANY.audit(SCORES, COINS, random_state=1), "write seed=…"),
    (lambda: ANY.audit(SCORES, COINS, thresholds=3), "write cuts=…"),
    (lambda: ANY.audit(SCORES, member=MEMBER), "lb.Coins(member)"),
    (lambda: ANY.audit(SCORES, COINS, groups=MEMBER), "lb.Coins(member, groups=…)"),
    (lambda: ANY.audit(SCORES), "'design': say how members were chosen: lb.Coins(member)"),
    (lambda: ANY.audit(SCORES, COINS, unlike=1), "its options are scores=, design=, claim=, "),
    (lambda: ANY.ApproxDP(2, 1e-5), "write lb.ApproxDP(delta=…): ε is what is bounded"),
    (lambda: ANY.ApproxDP(epsilon=2, delta=1e-5), "result.check(epsilon=…) tests one"),
    (ANY.ApproxDP, "write lb.ApproxDP(delta=…)"),
    (lambda: ANY.PureDP(1.0), "write lb.PureDP()"),
    (lambda: ANY.GaussianDP(mu=1), "result.check(parameter=μ) tests one"),
    (lambda: ANY.GaussianDP(0.5), "write lb.GaussianDP(): μ is what is bounded"),
    (lambda: ANY.claims.ZeroConcentratedDP(0.5), "write lb.claims.ZeroConcentratedDP()"),
    (lambda: ANY.LaplaceDP(1), "write lb.LaplaceDP()"),
    (lambda: ANY.claims.ZeroConcentratedDP(rho=1), "result.check(parameter=rho)"),
    (lambda: ANY.SubsampledGaussianDP(0.1, 9), "lb.SubsampledGaussianDP(sampling_rate=…, steps=…)"),
    (lambda: ANY.SubsampledGaussianDP(noise_multiplier=1), "parameter=1 / noise_multiplier"),
    (lambda: ANY.Coins(MEMBER, feature=SCORES), "they belong to lb.RandomSplit, lb.ZeroRun and"),
    (lambda: ANY.Coins(MEMBER, strata=SCORES), "lb.RandomSplit(member, strata=…)"),
    (lambda: ANY.Coins(MEMBER, delta=1e-5), "claim=lb.ApproxDP(delta=…))"),
    (lambda: ANY.RandomSplit(MEMBER, feature=SCORES), "did you mean features=…?"),
    (lambda: ANY.RandomSplit(MEMBER, stratify=SCORES), "write strata=…"),
    (lambda: ANY.RandomSplit(MEMBER, seed=1), "lb.audit(scores, design, seed=…)"),
    (lambda: ANY.ZeroRun(MEMBER, feature=SCORES), "did you mean features=…?"),
    (lambda: ANY.Choices(MEMBER, 2, prior=0.4), "lb.Coins(member, prior=…)"),
    (lambda: ANY.Trials(MEMBER, groups=SCORES), "they belong to lb.Coins and lb.RandomSplit"),
    (lambda: ANY.Panoramia(MEMBER, SCORES), "give options by name: member=, baseline="),
    (lambda: ANY.Stream(PURE), "write lb.Stream(claim=…)"),
    (lambda: ANY.audit_model(None, (1, 2), (3, 4)), "train=(X, y), test=(X_test, y_test)"),
    (lambda: ANY.audit_model(None, **PARTS, groups=1), "score first: lb.audit("),
    (lambda: ANY.audit_model(None, X_train=1), "write train=(X_train, y_train)"),
    (lambda: ANY.audit_synthetic(train=1), "write members=…, the training records"),
    (lambda: ANY.audit_synthetic(1, 2, 3, groups="id"), "columns={'person': 'group'}"),
    (lambda: ANY.mechanisms.audit_mechanism(run, 0, 1, epsilon=1), "parameter=ε"),
    (
        lambda: ANY.mechanisms.audit_mechanism(run, 0, 1),
        "'claim': write what is claimed, such as lb.PureDP()",
    ),
    (lambda: ANY.planning.power(100), "the ε that you assume the model leaks, such as truth=3"),
    (lambda: ANY.planning.power(100, epsilon=2), "write truth=ε"),
    (lambda: ANY.planning.ceiling(100, delta=1e-5), "claim=lb.ApproxDP(delta=…)"),
    (lambda: ANY.AuditResult.check(PURE, mu=1), "lb.GaussianDP(): audit with that claim"),
    (lambda: ANY.AuditResult.check(GAUSSIAN, rho=1), "lb.claims.ZeroConcentratedDP()"),
    (lambda: ANY.AuditResult.check(PURE, eps=1), "write epsilon=…"),
    (lambda: ANY.AuditResult.check(PURE, 1), "write check(epsilon=…)"),
    (lambda: ANY.AuditResult.against(PURE, 3), "write against(epsilon=…, delta=…, relation=…)"),
]


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_a_wrong_argument_says_what_to_write(place: int) -> None:
    call, words = CALLS[place]
    with pytest.raises(TypeError) as caught:
        call()
    told = str(caught.value)
    assert words in told
    assert "argument" in told.partition(":")[0]  # what Python says comes first


TOLD: list[Any] = [
    *(lb.audit, lb.audit_model, lb.audit_synthetic, mechanisms.audit_mechanism),
    *(lb.Coins, lb.RandomSplit, lb.Choices, lb.Trials, lb.ZeroRun, lb.Panoramia, lb.Stream),
    *(lb.PureDP, lb.ApproxDP, lb.GaussianDP, lb.LaplaceDP, lb.SubsampledGaussianDP),
    *(claims.ZeroConcentratedDP, planning.power, planning.ceiling, planning.canaries_needed),
    *(lb.AuditResult.check, lb.PanoramiaResult.check, lb.ZeroRunResult.check),
    *(lb.DPSGDAudit.check, lb.watch_dp_sgd, lb.probe_dp_step),
]


@pytest.mark.parametrize("place", range(len(TOLD)))
def test_signatures_stay_as_they_are(place: int) -> None:
    """None of them takes any keyword, and each of them says which ones it takes."""
    called = TOLD[place]
    kinds = {one.kind for one in inspect.signature(called).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert called.__doc__
    with pytest.raises(TypeError, match=r"its options are |did you mean "):
        called(unheard_of=1)


CLAIMS: list[Any] = [
    *(lb.PureDP, lb.ApproxDP, lb.GaussianDP, lb.LaplaceDP, lb.SubsampledGaussianDP),
    *(claims.ZeroConcentratedDP, claims.EventFamily, lb.TradeOffFamily),
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_claim_reads_a_number_without_its_name(claim: Any) -> None:
    """A bare number is meant as the parameter, which is bounded: it must not be read as a δ."""
    with pytest.raises(TypeError, match="positional argument"):
        claim(0.5)


def test_what_fails_inside_is_left_alone() -> None:
    @hinted(wrong="a hint")
    def outer(*, right: int) -> int:
        return inner(right)

    def inner(value: int) -> int:
        message = f"of another call: {value}"
        raise TypeError(message) from None

    with pytest.raises(TypeError, match=r"\Aof another call: 1\Z"):
        outer(right=1)


def test_what_lands_in_another_place_is_told_where_it_goes(tmp_path: Any) -> None:
    features = np.column_stack([SCORES, 40 + SCORES])
    with pytest.raises(lb.errors.OptionError, match=r"ZeroRun\(member, features=X\)"):
        lb.audit(SCORES, lb.ZeroRun(MEMBER, features))
    with pytest.raises(lb.errors.OptionError, match="print it to PDF in a browser"):
        PURE.report(tmp_path / "report.PDF")
    assert not any(tmp_path.iterdir())


def test_functions_and_designs_are_the_same_objects() -> None:
    for one in (lb.audit, planning.power, lb.Coins):
        assert pickle.loads(pickle.dumps(one)) is one
    assert repr(pickle.loads(pickle.dumps(lb.PureDP()))) == "PureDP()"


def test_names_of_other_packages_say_where_they_are() -> None:
    said = "module 'leakbound' has no attribute 'audit_mechanism': it is leakbound.mechanisms.audit"
    with pytest.raises(AttributeError, match=said):
        _ = ANY.audit_mechanism
    with pytest.raises(AttributeError, match=r"it is leakbound\.cuts\.SecondLook"):
        _ = ANY.SecondLook
    with pytest.raises(AttributeError, match=r"no attribute 'unheard_of'\Z"):
        _ = ANY.unheard_of
    assert not hasattr(lb, "_private")
