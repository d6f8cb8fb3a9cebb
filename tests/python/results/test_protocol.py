"""Every type of result offers the same, whatever was audited."""

import html
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

import leakbound as lb
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.panoramia import PanoramiaRow, Saturation
from leakbound.results.base import Result
from leakbound.testing import RefutedError, assert_not_refuted
from noisy_steps import EXAMPLES, play
from oracle_calls import coins, panoramia, synthetic, zero_run

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


MAKERS: dict[str, Callable[[], Any]] = {
    "AuditResult": lambda: coins("leaks"),
    "SyntheticResult": lambda: synthetic("copies", "pure", challenge=False),
    "ZeroRunResult": lambda: zero_run("pure"),
    "PanoramiaResult": lambda: panoramia(leak=3.0, shift=1.0),
    "PanoramiaReport": run,
    "DPSGDAudit": lambda: audit_dp_sgd(
        play(1), claim=lb.ApproxDP(delta=1e-5), examples=(EXAMPLES,) * 2
    ),
}
CLAIMS: dict[str, dict[str, Any]] = {
    "SyntheticResult": {"relation": "replace"},
    "PanoramiaResult": {"c": 0.0},
    "PanoramiaReport": {"c": 0.0},
}


@cache
def made(name: str) -> Any:
    return MAKERS[name]()


@pytest.mark.parametrize("name", MAKERS)
def test_every_type_offers_the_protocol_and_little_more(name: str) -> None:
    result = made(name)
    assert isinstance(result, Result)
    assert type(result).__name__ == name
    stored = {one.name.lstrip("_") for one in fields(result)}  # type: ignore[arg-type]
    offered = {one for one in dir(result) if not one.startswith("_")}
    assert offered >= PROTOCOL
    assert len(offered - stored - NUMBERS) <= 20


@pytest.mark.parametrize("name", MAKERS)
def test_a_claim_is_checked_stored_told_and_asserted(name: str) -> None:
    result, claimed = made(name), {"epsilon": 0.01, **CLAIMS.get(name, {})}
    checked = result.with_check(**claimed)
    assert result.checked is None
    assert checked.checked.verdict == result.check(**claimed) == "refuted"
    assert type(result).from_json(checked.to_json()) == checked
    said = checked.summary()
    assert "0.01" in said.answer
    assert said.answer in str(said)
    assert html.escape(said.headline) in said._repr_html_()
    with pytest.raises(RefutedError) as caught:
        assert_not_refuted(result, **claimed)
    assert str(caught.value) == said.answer
    assert result.plot().get_xlabel()
    plt.close("all")


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
