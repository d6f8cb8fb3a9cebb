"""The demo on the command line: its table and its report."""

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from leakbound.cli.commands import app
from leakbound.demo import digits


def leakbound(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def _short_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for fewer epochs than the command does."""
    short = partial(digits.run, epochs=(1, 60), epsilons=(1.0,), private_epochs=1)
    monkeypatch.setattr(digits, "run", short)


@pytest.mark.usefixtures("_short_demo")
def test_the_demo_prints_a_table_and_writes_a_report(tmp_path: Path) -> None:
    answer = leakbound("demo", "digits", "--out", tmp_path / "demo", "--seed", 2)
    assert answer.exit_code == 0
    assert answer.stderr == ""
    heading, *rows = answer.stdout.split("\n\n")[0].splitlines()
    names = ("Model", "Test acc", "AUC", "Guesses", "Correct", "ε̂", "Ceiling", "Verdict")
    assert [name for name in names if name not in heading] == []
    assert [row.split("  ")[0] for row in rows] == ["1 epoch", "60 epochs", "DP-SGD, ε = 1"]
    assert "leaks" in rows[1]
    assert "nothing refuted" in rows[2]
    assert "The worst is “60 epochs”" in answer.stdout
    assert f"Report: {tmp_path / 'demo' / 'report.html'}" in answer.stdout
    html = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 3  # of the worst; the others have a line of the table
    assert all(f">{row.split('  ')[0]}</th>" in html for row in rows)
    stored = json.loads((tmp_path / "demo" / "result.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in stored["rows"]] == ["1 epoch", "60 epochs", "DP-SGD, ε = 1"]
    scores = sorted(path.name for path in (tmp_path / "demo" / "scores").iterdir())
    again = leakbound("coins", tmp_path / "demo" / "scores" / scores[1], "--json-full", "--seed", 2)
    bounds = [row["result"]["bound"] for row in stored["rows"]]
    assert json.loads(again.stdout)["bound"] in bounds
    verified = leakbound("verify", tmp_path / "demo" / "bundle")
    assert (verified.exit_code, verified.stdout.splitlines()[-1]) == (0, "VALID")
    worst = json.loads((tmp_path / "demo" / "bundle" / "result.json").read_bytes())
    assert worst["bound"] == max(bounds)
