"""JSON that was tampered with is refused as such, or is a result that makes sense."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import FormatError
from mutations import LONG, QUICK, assaulted, mutants, replaced

rng = np.random.default_rng(9)
M = 60
MEMBER = rng.random(M) < 0.5
SCORE = rng.normal(size=M) + 2 * MEMBER
CHANCE = np.full(M, 0.4)

RESULTS: dict[str, Any] = {
    "one run": lb.audit(SCORE, lb.Coins(MEMBER)),
    "GDP": lb.audit(SCORE, lb.Coins(MEMBER), claim=lb.GaussianDP()),
    "Laplace": lb.audit(SCORE, lb.Coins(MEMBER), claim=lb.LaplaceDP()),
    "PANORAMIA": lb.audit(SCORE, lb.Panoramia(MEMBER, baseline=SCORE[::-1])),
    "Zero-Run": lb.audit(SCORE, lb.ZeroRun(MEMBER, CHANCE)),
    "checked": lb.audit(SCORE, lb.Coins(MEMBER)).with_check(epsilon=1.0),
}


def check(result: Any) -> None:
    """What any result that can be read keeps to."""
    assert 0 < result.confidence < 1
    assert 0 <= result.correct <= result.guesses <= result.m
    assert result.bound >= 0
    if getattr(result, "bootstrap", None) is None:
        assert result.bound <= result.ceiling * (1 + 1e-8) < math.inf
    assert type(result).from_json(result.to_json()) == result
    assert repr(result)
    assert result.summary().headline
    assert all(map(math.isfinite, result.summary().numbers.values()))


@pytest.mark.parametrize(
    "count", [QUICK // 4, pytest.param(LONG, marks=pytest.mark.validity)], ids=["quick", "long"]
)
@pytest.mark.parametrize("name", RESULTS)
def test_tampered_results(name: str, count: int) -> None:
    kind, text = type(RESULTS[name]), RESULTS[name].to_json()

    def texts() -> Iterator[str]:
        drawn = np.random.default_rng(count)
        for mutant in mutants([text.encode()], count // 2, seed=count):
            yield "{" + mutant.decode(errors="surrogateescape").lstrip()[1:]
        for _ in range(count - count // 2):
            data = json.loads(text)
            for _ in range(drawn.integers(1, 3)):
                data = replaced(data, drawn)
            yield json.dumps(data)

    def read(source: str) -> None:
        check(kind.from_json(source))

    read_well, refused = assaulted(texts(), read, (FormatError,))
    assert read_well + refused == count
    assert refused > count // 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": NaN}', "NaN is not JSON"),
        ('{"schema": 1, "schema": 1}', "occurs twice"),
        ('{"schema": 1e999}', "too large for a double"),
        ('{"schema": ' + "9" * 5000 + "}", "not JSON of this package"),
        ('{"schema": ' + "[" * 50 + "]" * 50 + "}", "nested more than 40 deep"),
        ('{"schema": ' + "[" * 100_000, "not JSON of this package"),
        ("{", "not JSON of this package"),
        ("a\0b", "nor a text file"),
    ],
    ids=["NaN", "twice", "1e999", "digits", "deep", "bottomless", "half", "NUL"],
)
def test_json_that_no_result_is(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        lb.AuditResult.from_json(text)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("bound", 99.0, "bound is 99, outside"),
        ("bound", "inf", "bound is inf, outside"),
        ("bound", 10**400, "valid number"),
        ("correct", 61, "correct .* <= guesses"),
        ("m", 1, "do not hold"),
        ("members", -1, "do not hold"),
        ("m", 2**128, r"AuditResult\.m: Input should be less than"),
        ("m", 10**400, "Input should be less than"),
        ("auc", 1.5, "auc is 1.5"),
        ("confidence", 1.0, r"confidence is 1, outside \(0, 1\)"),
        ("kind", "proof", "kind: Input should be"),
    ],
)
def test_parts_that_cannot_go_together(field: str, value: Any, words: str) -> None:
    data = RESULTS["one run"].to_dict() | {field: value}
    with pytest.raises(FormatError, match=words):
        lb.AuditResult.from_dict(data)


def test_the_longest_seed_is_read_back() -> None:
    result = lb.audit(SCORE, lb.Coins(MEMBER), seed=2**128 - 1)
    assert lb.AuditResult.from_json(result.to_json()) == result


@pytest.mark.parametrize("schema", [True, 1.0, "1", None, 2])
def test_the_number_of_the_layout_is_a_number(schema: Any) -> None:
    data = RESULTS["one run"].to_dict() | {"schema": schema}
    with pytest.raises(FormatError, match="schema must be 1"):
        lb.AuditResult.from_dict(data)


def test_names_that_utf8_cannot_hold() -> None:
    data: Any = RESULTS["GDP"].to_dict()
    parameters = data["rejected"]["parameters"]
    parameters["\udc80"] = parameters.pop("mu")
    with pytest.raises(FormatError, match="UTF-8 cannot encode"):
        lb.AuditResult.from_dict(data)
