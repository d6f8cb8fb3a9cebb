"""The published schema is that of the results, and what it does not have is refused."""

import json
import runpy
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import FormatError
from leakbound.propensity import LogisticPropensity

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8"))
M = 80
rng = np.random.default_rng(4)
MEMBER = rng.random(M) < 0.5
SCORE = rng.normal(size=M) + 2 * MEMBER

ONE_RUN = lb.audit(SCORE, lb.Coins(MEMBER), cuts=lb.UnionBound())
GAUSSIAN = lb.audit(SCORE, lb.Coins(MEMBER), claim=lb.GaussianDP())
PANORAMIA = lb.audit(SCORE, lb.Panoramia(MEMBER, baseline=SCORE[::-1]))
ZERO_RUN = lb.audit(SCORE, lb.ZeroRun(MEMBER, np.full(M, 0.4)))
FEATURES = np.random.default_rng(4).normal(size=(M + 40, 1))
FIT = LogisticPropensity().fit(FEATURES[M:], np.arange(40) % 2 == 0)
EXPLORED = lb.audit(
    SCORE, lb.ZeroRun(MEMBER, FIT, features=FEATURES[:M], uncertainty="none", falsify=False)
)
REFITS = lb.audit(SCORE, lb.ZeroRun(MEMBER, np.full((40, M), 0.4)))
RESULTS = {
    "one run": ONE_RUN,
    "GDP": GAUSSIAN,
    "PANORAMIA": PANORAMIA,
    "Zero-Run": ZERO_RUN,
    "explored": EXPLORED,
    "refits": REFITS,
}

RANKED = ("ScoreAudit", "AuditResult", "SyntheticResult", "ZeroRunResult")
LATE = {
    *("Accounted.relation", "SubsampledGaussianDP.relation", "Checked.c", "Checked.compares"),
    *("Checked.proved", "Checked.source", "DPSGDAudit.accounted", "DPSGDAudit.attainable"),
    *("DPSGDAudit.probes", "SubsampledGaussianDP.sampling", "DPStepAudit.without_power"),
    *("SamplingResult.sampling", "StepsResult.sampling", "StepsResult.relation"),
    *("SamplingResult.lower_rate", "SamplingResult.upper_rate", "SamplingResult.p_distinct"),
    *("SyntheticResult.risks", "ZeroRunResult.learnt", "BatchesAudit.sampling", "Power.copies"),
    *(f"{kind}.guessed" for kind in RANKED),
    *(f"{kind}.searched" for kind in RANKED),
    *(f"{name}.wording" for name in ("AuditResult", "SyntheticResult", "ZeroRunResult")),
    *(f"{name}.least_delta" for name in ("AuditResult", "SyntheticResult", "ZeroRunResult")),
}
"""Fields that JSON leaves out where there is nothing to say, beside `checked`."""


def test_the_schema_is_current() -> None:
    made = runpy.run_path(str(ROOT / "tests" / "golden" / "generate" / "schema.py"))
    assert made["FILE"].read_text(encoding="utf-8") == made["text"](), (
        "run `python tests/golden/generate/schema.py`; where a field that results had before "
        "changes its name or meaning, raise SCHEMA in leakbound/_base/records.py"
    )


def test_no_object_takes_other_fields_and_only_late_ones_may_be_missing() -> None:
    """The schema is made of what reads: what it states about a type holds wherever one is read."""
    late = set()
    for name, form in SCHEMA["$defs"].items():
        if form.get("type") == "object":
            assert form["additionalProperties"] is False, name
            late |= {f"{name}.{field}" for field in form["properties"].keys() - form["required"]}
    assert {one for one in late if not one.endswith((".checked", ".schema"))} == LATE


@pytest.mark.parametrize("part", [(), ("curve",), ("claim",), ("assumptions", 0)])
def test_unknown_and_missing_fields_are_refused(part: tuple[Any, ...]) -> None:
    def read() -> tuple[Any, Any]:
        data = json.loads(GAUSSIAN.to_json())
        return data, reduce(lambda inner, key: inner[key], part, data)

    data, inner = read()
    fields = inner.keys() - {"schema", "type", "guessed", "searched", "wording"}
    inner["new"] = 1
    with pytest.raises(FormatError, match=r"new: Extra inputs are not permitted$"):
        lb.AuditResult.from_dict(data)
    for field in fields:
        data, inner = read()
        del inner[field]
        with pytest.raises(FormatError, match=rf"\.{field}: Field required$"):
            lb.AuditResult.from_dict(data)


APART = "contradict each other"
CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("one run", {"kind": "family_lower_bound"}, APART),
    ("one run", {"reason": "too few"}, "reason is not that of the bound"),
    ("one run", {"rejected": GAUSSIAN.to_dict()["rejected"]}, APART),
    ("one run", {"schema": 2}, "schema must be 1"),
    ("one run", {"type": "PanoramiaResult"}, "type is PanoramiaResult, not AuditResult"),
    ("one run", {"bound": True}, r"AuditResult\.bound: .* valid number"),
    ("one run", {"m": 3.5}, r"AuditResult\.m: .* valid integer"),
    ("one run", {"warnings": [1]}, r"AuditResult\.warnings\.0: .* valid string"),
    ("one run", {"curve": None}, r"AuditResult\.curve: .* valid dictionary"),
    ("one run", {"bound": float("nan")}, r"AuditResult\.bound: .* finite number"),
    ("GDP", {"kind": "lower_bound"}, APART),
    ("GDP", {"claim": {"type": "PureDP"}}, APART),
    ("GDP", {"claim": {"type": "TightDP"}}, r"AuditResult\.claim: .* 'PureDP'"),
    (
        "GDP",
        {"claim": {"type": "GaussianDP", "delta": 2}},
        r"claim\.GaussianDP: delta",
    ),
    ("PANORAMIA", {"kind": "conditional_lower_bound"}, APART),
    ("PANORAMIA", {"c_upper": 0.0}, APART),
    ("PANORAMIA", {"epsilon_tilde": 99}, APART),
    ("Zero-Run", {"kind": "lower_bound"}, APART),
    ("Zero-Run", {"kept": M + 1}, APART),
    ("Zero-Run", {"correction": "tamper"}, APART),
    ("Zero-Run", {"withheld": True}, APART),
    ("Zero-Run", {"kind": "exploratory_lower_bound"}, APART),
    ("Zero-Run", {"options": {"uncertainty": "set"}}, APART),
    ("explored", {"kind": "conditional_lower_bound"}, APART),
    ("explored", {"options": {}}, APART),
    ("refits", {"kind": "conditional_lower_bound"}, APART),
    ("refits", {"bootstrap": None}, APART),
    ("Zero-Run", {"naive": ONE_RUN.to_dict()}, r"naive: Input should be a valid number"),
    ("Zero-Run", {"naive": -1.0}, APART),
]


@pytest.mark.parametrize(("name", "change", "words"), CONTRADICTIONS)
def test_contradictions_are_refused(name: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        type(RESULTS[name]).from_dict(RESULTS[name].to_dict() | change)


@pytest.mark.parametrize(
    ("part", "values", "words"),
    [
        ("guesses", [-1], "an array of curve"),
        ("correct", [M], "an array of curve"),
        ("correct", [2**70], r"AuditResult\.curve\.correct.*less than 9223372036854775808"),
        ("correct", [0.5], r"AuditResult\.curve\.correct\.0: .* valid integer"),
        ("precision", [1.5], "an array of curve"),
        ("recall", [None], "an array of curve"),
    ],
)
def test_arrays_that_cannot_be_are_refused(part: str, values: list[Any], words: str) -> None:
    data: Any = ONE_RUN.to_dict()
    data["curve"][part][: len(values)] = values
    with pytest.raises(FormatError, match=words):
        lb.AuditResult.from_dict(data)
