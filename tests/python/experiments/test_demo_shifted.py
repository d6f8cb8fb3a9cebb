"""The shifted demo: the naive audit is visibly wrong, and the corrected one is not."""

import csv
import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leakbound import audit_zero_run
from leakbound.cli import app
from leakbound.experiments.demos import shifted


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[shifted.ShiftedReport, Path]:
    out = tmp_path_factory.mktemp("shifted")
    return shifted.run(out, seed=0, epochs=(60,)), out


def test_what_the_audits_prove(found: tuple[shifted.ShiftedReport, Path]) -> None:
    stranger, overfit = found[0].rows
    assert stranger.result.naive > 0.3
    assert stranger.result.bound == 0.0
    assert overfit.result.bound > 0.1
    assert overfit.auc > stranger.auc
    for row in (stranger, overfit):
        assert row.result.kind == "conditional_lower_bound"
        assert row.result.tested is not None
        assert not row.result.refuted


def test_the_scores_on_disk_are_those_audited(
    found: tuple[shifted.ShiftedReport, Path],
) -> None:
    report, out = found
    with (out / "scores" / "60-epochs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [float(row[name]) for row in rows] for name in rows[0]}
    again = audit_zero_run(columns["score"], columns["member"], columns["propensity"])
    assert again.m == report.people
    result = report.rows[1].result
    assert result.learnt is not None
    assert result.bound <= result.learnt.at_estimate
    # propensities taken as right, at the full level, not the least favourable of a set
    assert again.bound > result.bound


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shifted, "run", partial(shifted.run, epochs=(2,)))
    answer = CliRunner().invoke(app, ["demo", "shifted", "--out", str(tmp_path)])
    assert answer.exit_code == 0
    assert "never saw the members" in answer.stdout
    assert "Naive" in answer.stdout
    stored = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert stored["rows"][0]["result"]["type"] == "ZeroRunResult"
    assert "naive audit" in (tmp_path / "report.html").read_text(encoding="utf-8")
