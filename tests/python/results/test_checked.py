"""A guarantee that was put to the test: in JSON, in words, on pages, not against the bound."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import FormatError
from leakbound.report import render
from leakbound.results import Checked
from pages import words_of

M = 200
rng = np.random.default_rng(2)
MEMBER = rng.random(M) < 0.5
SCORE = rng.normal(size=M) + 3 * MEMBER
COINS = lb.Coins(MEMBER)


@cache
def pure() -> Any:
    return lb.audit(SCORE, COINS)


@cache
def gaussian() -> Any:
    return lb.audit(SCORE, COINS, claim=lb.GaussianDP())


@cache
def noise() -> Any:
    return lb.audit(SCORE, COINS, claim=lb.SubsampledGaussianDP(sampling_rate=1, steps=1))


@cache
def panoramia() -> Any:
    return lb.audit(SCORE, lb.Panoramia(MEMBER, baseline=SCORE[::-1]))


@cache
def zero_run() -> Any:
    return lb.audit(SCORE, lb.ZeroRun(MEMBER, np.full(M, 0.5)), claim=lb.PureDP())


CASES: list[tuple[Callable[[], Any], dict[str, float], Checked, str]] = [
    (pure, {"epsilon": 1}, Checked("epsilon", 1.0, 0.0, "refuted"), "The claimed ε = 1 is"),
    (pure, {"epsilon": 3.9}, Checked("epsilon", 3.9, 0.0, "not refuted"), "ε = 3.9 is not"),
    (pure, {"epsilon": 99}, Checked("epsilon", 99.0, 0.0, "inconclusive"), "Inconclusive: "),
    (gaussian, {"parameter": 0.5}, Checked("mu", 0.5, None, "refuted"), "claimed μ = 0.5 is"),
    (
        gaussian,
        {"epsilon": 0.5, "delta": 1e-5},
        Checked("epsilon", 0.5, 1e-5, "refuted"),
        "ε = 0.5 with δ = 1e-05 is refuted within Gaussian DP",
    ),
    (
        noise,
        {"parameter": 2.0},
        Checked("inverse_noise", 2.0, None, "inconclusive"),
        "multiplier ≥ 0.5",
    ),
    (
        panoramia,
        {"epsilon": 1, "c": 0.5},
        Checked("epsilon", 1.0, 0.0, "refuted", 0.5),
        "c = 0.5 with ε = 1 for replacing one example is refuted",
    ),
    (
        panoramia,
        {"epsilon": 1},
        Checked("epsilon", 1.0, 0.0, "inconclusive"),
        "cannot be tested alone",
    ),
    (
        zero_run,
        {"epsilon": 0.5},
        Checked("epsilon", 0.5, 0.0, "refuted"),
        "If the propensities are right, the claimed ε = 0.5 is refuted",
    ),
]


@pytest.mark.parametrize(("audited", "claimed", "expected", "words"), CASES)
def test_the_claim_its_relation_and_the_verdict(
    audited: Callable[[], Any], claimed: dict[str, float], expected: Checked, words: str
) -> None:
    result = audited()
    checked = result.with_check(**claimed)
    assert checked.checked == expected
    assert words in checked.summary().answer
    assert words in words_of(render(checked))
    assert result.summary().answer == ""


@pytest.mark.parametrize("audited", [pure, gaussian, panoramia, zero_run])
def test_a_verdict_against_the_bound_is_refused(audited: Callable[[], Any]) -> None:
    result = audited()
    delta = 1e-5 if audited is gaussian else 0.0
    data = result.with_check(epsilon=0.25, delta=delta).to_dict()
    for verdict in {"refuted", "not refuted", "inconclusive"} - {data["checked"]["verdict"]}:
        wrong = json.loads(json.dumps(data))
        wrong["checked"]["verdict"] = verdict
        with pytest.raises(FormatError, match="and the bound gives"):
            type(result).from_dict(wrong)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": -1.0}, "epsilon must be at least 0"),
        ({"parameter": "mu"}, "and the bound gives"),
        ({"delta": 0.5}, "says nothing about delta"),
        ({"c": 1.0}, "not a claim about AuditResult: got an unexpected"),
    ],
)
def test_what_cannot_have_been_checked_is_refused(change: dict[str, Any], words: str) -> None:
    data: Any = pure().with_check(epsilon=1.0).to_dict()
    data["checked"] |= change
    with pytest.raises(FormatError, match=words):
        lb.AuditResult.from_dict(data)


def test_what_a_claim_about_a_random_split_compares_is_kept() -> None:
    split = lb.audit(SCORE, lb.RandomSplit(MEMBER))
    for relation, words in (("add_remove", "adding or removing"), ("replace", "replacing")):
        result = split.with_check(epsilon=0.2, relation=relation)
        assert json.loads(result.to_json())["checked"]["compares"] == relation
        assert f"ε = 0.2 for {words} one example" in result.summary().answer
