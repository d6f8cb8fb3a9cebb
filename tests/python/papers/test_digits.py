"""The digits demo: its claims on the default seed, its table and its files."""

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import digits
import leakbound as lb
from command_line import leakbound
from digits import Row, largest

SHORT = partial(digits.run, epochs=(40, 1), epsilons=(1.0,), private_epochs=1)
NAMES = ["1 epoch", "40 epochs", "DP-SGD, ε = 1"]


PARTS = {"epochs": (5, 60), "epsilons": (8.0,)}
WHOLE = {"epochs": (5, 20, 50, 100, 200), "epsilons": (1.0, 8.0)}
"""What the demo trains by default, and a part of it."""


@pytest.fixture(
    scope="module",
    params=[PARTS, pytest.param(WHOLE, marks=pytest.mark.validity)],
    ids=["part", "whole"],
)
def asked(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def rows(asked: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    how: Any = asked if asked is PARTS else {}
    return digits.run(tmp_path_factory.mktemp("digits"), **how)


def test_leakage_grows_with_epochs(rows: list[Row], asked: Any) -> None:
    sweep = [row for row in rows if "epochs" in row.name]
    assert [row.name for row in sweep] == [f"{n} epochs" for n in asked["epochs"]]
    bounds = [row.result.bound for row in sweep]
    assert bounds == sorted(bounds)
    assert bounds[0] < 1
    assert bounds[-1] > (1.5 if asked is PARTS else 2)
    aucs = [row.result.auc for row in sweep]
    assert aucs == sorted(aucs)
    assert all(row.test_accuracy > 0.88 for row in sweep)


def test_private_models_are_useful_and_leak_next_to_nothing(rows: list[Row], asked: Any) -> None:
    private = rows[len(asked["epochs"]) :]
    assert [row.name for row in private] == [f"DP-SGD, ε = {e:g}" for e in asked["epsilons"]]
    assert all(0 <= row.result.bound <= 0.15 for row in private)
    assert all(row.test_accuracy > 0.85 for row in private)


def test_the_audits_are_certified_lower_bounds_on_fair_coins(rows: list[Row], asked: Any) -> None:
    plan = lb.InclusionPlan.create(300, seed=0)
    for row in rows:
        assert row.result.kind == "lower_bound"
        assert (row.result.m, row.result.confidence) == (300, 0.95)
        assert row.result.members == int(plan.member.sum())
        assert (row.result.bound > 0) == (row.result.reason == "")
    shares = [1 - row.simultaneous.confidence for row in rows]
    assert sum(shares) <= 0.05  # of all bounds that the headline is about
    assert largest(rows).name == f"{asked['epochs'][-1]} epochs"


def test_a_table_and_files_are_written_and_the_process_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does the process leave its mark: the same seed gives the same numbers again."""
    monkeypatch.setattr(digits, "run", SHORT)
    torch.manual_seed(1)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    digits.main(["--out", str(tmp_path), "--seed", "2"])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    shown, warned = capsys.readouterr()
    assert warned == ""
    heading, *lines = shown.split("\n\n")[0].splitlines()
    assert [name for name in digits.HEADINGS if name not in heading] == []
    assert [line.split("  ")[0] for line in lines] == NAMES
    assert "leaks" in lines[1]
    assert "nothing refuted" in lines[2]
    assert "The worst is “40 epochs”" in shown
    assert f"Report: {tmp_path / 'report.html'}" in shown
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 3  # of the worst; the others have a line of the table
    assert all(f">{name}</th>" in html for name in NAMES)
    stored = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in stored] == NAMES
    bounds = [row["result"]["bound"] for row in stored]
    plan = lb.InclusionPlan.load(tmp_path / "plan.npz")
    files = ["1-epoch.csv", "40-epochs.csv", "dp-sgd-epsilon-1.csv"]
    assert sorted(file.name for file in (tmp_path / "scores").iterdir()) == files
    for name, bound in zip(files, bounds, strict=True):
        with (tmp_path / "scores" / name).open(newline="") as file:
            table = list(csv.DictReader(file))
        np.testing.assert_array_equal([int(line["member"]) for line in table], plan.member)
        assert [int(line["id"]) for line in table] == plan.ids.tolist()
        assert lb.audit([float(line["score"]) for line in table], lb.Coins(plan)).bound == bound
    verified = leakbound("verify", tmp_path / "bundle")
    assert (verified.code, verified.out.splitlines()[-1]) == (0, "VALID")
    worst = json.loads((tmp_path / "bundle" / "result.json").read_bytes())
    assert worst["bound"] == max(bounds)
    torch.manual_seed(7)
    again = SHORT(tmp_path / "again", seed=2)
    for row, kept in zip(again, stored, strict=True):
        for audit in ("result", "simultaneous", "split"):
            assert json.loads(getattr(row, audit).to_json()) == kept[audit]
