"""The command line: what it reads, prints, writes and returns, and how it refuses."""

import datetime as dt
import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from command_line import BASELINE, MEMBER, SCORE, csv_text, leakbound, spawn
from leakbound.cli.options import parse_cuts

ONE_RUN = lb.audit(SCORE, lb.Coins(MEMBER))
PANORAMIA = lb.audit(SCORE, lb.Panoramia(MEMBER, baseline=BASELINE))


def test_panoramia_takes_columns_of_any_name(scores: Path, table: Callable[[str], Path]) -> None:
    assert (
        lb.PanoramiaResult.from_json(leakbound("panoramia", scores, "--json-full").out) == PANORAMIA
    )
    other = table(csv_text(attack=SCORE, before=BASELINE, member=MEMBER))
    named = ("--score-col", "attack", "--baseline-col", "before", "--json-full")
    assert lb.PanoramiaResult.from_json(leakbound("panoramia", other, *named).out) == PANORAMIA


# --- options --------------------------------------------------------------------------------------


def test_every_policy_has_a_word() -> None:
    words: dict[str, lb.cuts.CutPolicy | None] = {
        "auto": None,
        "kl": lb.KLScan(),
        "union": lb.UnionBound(),
        "fixed:9": lb.Fixed(9),
        "geometric": lb.UnionBound(grid="geometric"),
        "weighted": lb.Weighted(),
        "outside-in": lb.OutsideIn(),
        "outside-in:3,5": lb.OutsideIn([3, 5]),
    }
    assert {word: parse_cuts(word) for word in words} == words


@pytest.mark.parametrize("sides", ["member", "both"])
def test_options_reach_the_one_run_audit(scores: Path, sides: Any) -> None:
    options = ("--confidence", 0.9, "--sides", sides, "--seed", 5)
    expected = lb.audit(SCORE, lb.Coins(MEMBER), confidence=0.9, sides=sides, seed=5)
    answer = leakbound("coins", scores, *options, "--json-full")
    assert lb.AuditResult.from_json(answer.out) == expected


def test_options_and_features_reach_the_panoramia_audit(table: Callable[[str], Path]) -> None:
    age, size = np.random.default_rng(7).normal(size=(2, MEMBER.size))
    columns = {"member": MEMBER, "baseline_score": BASELINE, "score": SCORE, "age": age}
    file = table(csv_text(**columns, size=size))
    union: dict[str, Any] = {"cuts": lb.UnionBound(tail="hoeffding"), "c_upper": 0.5}
    told = np.column_stack([age, size])
    expected = flat.panoramia(
        BASELINE, SCORE, MEMBER, confidence=0.9, features=told, seed=2, **union
    )
    assert expected.conditional is not None
    options = ("--confidence", 0.9, "--cuts", "hoeffding", "--c-upper", 0.5)
    named = ("--features", "age, size", "--seed", "2", "--json-full")
    answer = leakbound("panoramia", file, *options, *named)
    assert lb.PanoramiaResult.from_json(answer.out) == expected
    assert "has no column 'height'" in leakbound("panoramia", file, "--features", "height").refusal


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--claim", "c=0,eps=0.5"), 1),
        (("--claim", "eps=0.5,c=0"), 1),
        (("--claim", f"c=1,eps={PANORAMIA.c_plus_epsilon_lb}"), 0),
        (("--claim", "c=1,eps=60"), 0),
        (("--claim", "c=60,eps=60"), 3),
        (("--claim", "eps=0.01"), 3),
        (("--claim", "eps=0.01", "--real-nonmembers"), 1),
        (("--claim", "eps=0.01", "--c-upper", "0.2"), 1),
    ],
)
def test_panoramia_refutes_only_what_it_can(
    options: tuple[str, ...], code: int, scores: Path
) -> None:
    assert leakbound("panoramia", scores, *options).code == code


# --- what comes out -------------------------------------------------------------------------------


def test_relaxations_reach_the_panoramia_audit(scores: Path) -> None:
    expected = lb.audit(
        SCORE,
        lb.Panoramia(MEMBER, baseline=BASELINE, gamma=1e-4, max_recall=0.6),
        claim=lb.ApproxDP(delta=1e-5),
    )
    relaxed = ("--gamma", 1e-4, "--delta", 1e-5, "--max-recall", 0.6, "--json-full")
    answer = lb.PanoramiaResult.from_json(leakbound("panoramia", scores, *relaxed).out)
    assert answer == expected


def test_several_attacks_and_their_coins(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    member = rng.random(200) < 0.3
    columns = {"loss": member + rng.normal(size=200), "margin": rng.normal(size=200)}
    file = tmp_path / "scores.npz"
    np.savez(file, member=member, chance=np.full(200, 0.3), **columns)  # type: ignore[arg-type]
    expected = lb.audit(columns, lb.Coins(member, prior=0.3))
    for prior in ("0.3", "chance"):
        options = ("--attacks", "margin,loss", "--prior", prior, "--json-full")
        answer = json.loads(leakbound("coins", file, *options).out)
        assert answer["bound"] == expected.bound
        assert answer["options"]["attack"] == "loss"
        assert answer["options"]["prior"] == 0.3
    bad = ("--prior", "other", "--attacks", "loss")
    assert "has no column 'other'" in leakbound("coins", file, *bad).refusal
    assert "55 of 200" in leakbound("coins", file, "--attacks", "loss").refusal


def test_json_is_all_there_is_on_standard_output(scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    answer = spawn("coins", scores, "--json", "--out", out)
    assert answer.code == 0
    said = ONE_RUN.summary()
    stored = json.loads(answer.out)
    assert list(stored)[:5] == ["headline", "verdict", "epsilon", "units", "bound_units"]
    nats = "nats at δ = 0"
    assert list(stored.values())[:5] == [said.headline, "leaks", ONE_RUN.bound, nats, nats]
    assert stored["type"] == "AuditResult"
    assert not {"curve", "roc", "histogram"} & set(stored)
    assert answer.out.count("\n") == 1
    assert answer.err == f"Report: {out / 'report.html'}\n"


def test_a_report_has_names_that_are_escaped(scores: Path, tmp_path: Path) -> None:
    named = ("--model", "net <b>7</b>", "--auditor", "A. N. Other")
    answer = leakbound("coins", scores, "--out", tmp_path, *named)
    page = tmp_path / "report.html"
    assert f"Report: {page}\n" in answer.out
    html = page.read_text(encoding="utf-8")
    assert "net <b>7</b>" not in html
    for text in (escape("net <b>7</b>"), "A. N. Other", str(dt.date.today())):
        assert text in html
    assert "add --out DIR" in leakbound("coins", scores, *named).refusal


def test_the_bundle_is_complete_and_nothing_else_is_left(scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "bundle"
    for _ in range(2):  # the second run replaces the first
        answer = leakbound("coins", scores, "--out", out, "--claim", "eps=0.5")
    assert answer.code == 1
    assert f"Report: {out / 'report.html'}" in answer.out
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    figures = {f"figures/{kind}.svg" for kind in ("precision_recall", "roc", "histogram")}
    assert files == {"result.json", "report.html"} | figures
    assert lb.AuditResult.from_json(out / "result.json") == ONE_RUN.with_check(epsilon=0.5)
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "Privacy audit of scores.csv" in html
    assert "is refuted" in html
    assert (out / "figures/roc.svg").read_text(encoding="utf-8").startswith("<?xml")
