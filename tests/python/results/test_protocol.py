"""Every type of result offers the same, whatever was audited."""

import html
import json
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

import leakbound as lb
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.panoramia import PanoramiaRow, Saturation
from leakbound.report.description import KINDS
from leakbound.results.base import Result
from leakbound.testing import InconclusiveError, RefutedError, assert_not_refuted
from noisy_steps import EXAMPLES, play
from oracle_calls import coins, panoramia, split, stream, synthetic, tally, zero_run

NUMBERS = {"bound", "kind", "claim", "confidence", "ceiling", "assumptions", "provenance"}
"""Fields of some types, and of others properties."""
PROTOCOL = {
    *("bound", "kind", "claim", "confidence", "ceiling", "assumptions", "warnings", "check"),
    *("with_check", "verdict", "summary", "report", "plot", "to_json", "from_json"),
}


def run() -> lb.panoramia.PanoramiaReport:
    """A run of one target and seed, without any training."""
    found: Any = panoramia(leak=3.0, shift=1.0)
    rows = (PanoramiaRow(target="model", audit="PANORAMIA", results=(found,)),)
    saturation = Saturation(np.array([50, 100]), (np.array([0.1, 0.2]),))
    return lb.panoramia.PanoramiaReport(
        rows=rows, saturation=saturation, seeds=(0,), sizes={}, options={}, warnings=(), losses=()
    )


def learnt(how: Any) -> Any:
    """Zero-Run by propensities learnt of others."""
    options = {"uncertainty": how, "features": True, "falsify": False}
    return zero_run("pure", given="reference", **options)


MAKERS: dict[str, Callable[[], Any]] = {
    "AuditResult": lambda: coins("leaks"),
    "AuditResult, Gaussian DP": lambda: coins("leaks", "gaussian"),
    "AuditResult, DP-SGD": lambda: coins("few", "dp-sgd-whole"),
    "AuditResult, noise": lambda: coins("noise"),
    "AuditResult, random split": lambda: split("leaks"),
    "AuditResult, tally": lambda: tally("leaks"),
    "AuditResult, stream": lambda: stream("both"),
    "SyntheticResult": lambda: synthetic("copies", "pure", challenge=False),
    "ZeroRunResult": lambda: zero_run("pure"),
    "ZeroRunResult, matched": lambda: zero_run("gaussian", "match"),
    "ZeroRunResult, set": lambda: learnt("set"),
    "ZeroRunResult, bootstrap": lambda: learnt("bootstrap"),
    "PanoramiaResult": lambda: panoramia(leak=3.0, shift=1.0),
    "PanoramiaResult, certified": lambda: panoramia(leak=3.0, c_upper=0.3),
    "PanoramiaReport": run,
    "DPSGDAudit": lambda: audit_dp_sgd(
        play(1), claim=lb.ApproxDP(delta=1e-5), examples=(EXAMPLES,) * 2
    ),
}
"""Every kind of result that the package makes."""
CLAIMS: dict[str, dict[str, Any]] = {
    "AuditResult, random split": {"relation": "replace"},
    "SyntheticResult": {"relation": "replace"},
    "PanoramiaResult": {"c": 0.0},
    "PanoramiaResult, certified": {"c": 0.0},
    "PanoramiaReport": {"c": 0.0},
}


@cache
def made(name: str) -> Any:
    return MAKERS[name]()


def test_kinds_are_all_here() -> None:
    assert {made(name).kind for name in MAKERS} == set(KINDS)


@pytest.mark.parametrize("name", MAKERS)
def test_the_whole_protocol(name: str, tmp_path: Path) -> None:
    # 1. The record: numbers, in JSON and back, equal to itself.
    result = made(name)
    assert isinstance(result, Result)
    assert type(result).__name__ == name.split(",", maxsplit=1)[0]
    stored = {one.name.lstrip("_") for one in fields(result)}  # type: ignore[arg-type]
    offered = {one for one in dir(result) if not one.startswith("_")}
    assert offered >= PROTOCOL
    assert len(offered - stored - NUMBERS) <= 21
    assert result.bound >= 0
    assert result.bound <= result.ceiling or result.kind == "exploratory_lower_bound"
    assert 0 < result.confidence < 1
    assert all(one.statement for one in result.assumptions)
    assert all(isinstance(text, str) for text in result.warnings)
    result.to_json(tmp_path / "result.json")
    assert type(result).from_json(tmp_path / "result.json") == result
    assert lb.load(tmp_path / "result.json") == result
    assert json.loads(result.to_json())["type"] == type(result).__name__
    assert pickle.loads(pickle.dumps(result)) == result
    # 2. Words, made once: console, notebook and page say the same.
    said = result.summary()
    assert result.verdict == said.verdict
    assert said.headline in str(said)
    assert html.escape(said.headline) in said._repr_html_()
    assert said.confidence == result.confidence
    result.report(tmp_path / "report.html", title="A title of its own")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "A title of its own" in page
    # 3. Figures, each by its name.
    for figure in said.figures:
        assert result.plot(figure.name).get_xlabel()
        assert figure.title in page
    plt.close("all")
    with pytest.raises(lb.errors.OptionError, match="kind must be one of"):
        result.plot("pie")


@pytest.mark.parametrize("name", MAKERS)
def test_a_claim_is_checked_stored_told_and_asserted(name: str) -> None:
    result, family = (
        made(name),
        made(name).claim.delta == 0 and name.endswith(("DP", "SGD", "matched")),
    )
    errors: dict[str, Any] = {"refuted": RefutedError, "inconclusive": InconclusiveError}
    for epsilon in (0.01, 2.0, 500.0):
        claimed = {
            "epsilon": epsilon,
            **CLAIMS.get(name, {}),
            **({"delta": 1e-5} if family else {}),
        }
        checked = result.with_check(**claimed)
        assert result.checked is None
        verdict = checked.checked.verdict
        assert verdict == result.check(**claimed)
        assert type(result).from_json(checked.to_json()) == checked
        answer = checked.summary().answer
        assert f"{epsilon:g}" in answer
        assert answer in str(checked.summary())
        assert verdict != "refuted" or "is refuted" in answer
        if verdict not in errors:
            assert_not_refuted(result, **claimed)
            continue
        with pytest.raises(errors[verdict]) as caught:
            assert_not_refuted(result, **claimed)
        # Where a claim is refuted, the failure names the bound too.
        assert str(caught.value) in {answer, f"{answer} {checked.summary().headline}"}


def test_of_dp_sgd_nothing_need_be_claimed() -> None:
    audit = made("DPSGDAudit")
    assert audit.check() == audit.verdict == "not refuted"
    assert_not_refuted(audit)


def test_a_run_is_refuted_by_any_target_and_seed_and_says_by_which() -> None:
    weak, strong = panoramia(leak=0.0, shift=1.0), panoramia(leak=3.0, shift=1.0)
    rows = tuple(
        PanoramiaRow(target=target, audit="PANORAMIA", results=results)
        for target, results in (("first", (weak, weak)), ("second", (weak, strong)))
    )
    whole = replace(run(), rows=rows, seeds=(0, 1))
    claim = {"epsilon": 0.5, "c": strong.c_lb}
    assert [one.check(**claim) for one in (weak, strong)] == ["not refuted", "refuted"]
    assert whole.check(**claim) == "refuted"
    assert "PANORAMIA of “second”, one of 4 audits" in whole.with_check(**claim).summary().answer
    assert replace(whole, rows=rows[:1]).check(**claim) == "not refuted"
    assert whole.check(epsilon=0.5) == "inconclusive"
