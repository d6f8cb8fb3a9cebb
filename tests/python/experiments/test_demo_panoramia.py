"""The demos of PANORAMIA: their mechanics on tiny runs, their claims on the default seed."""

import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from leakbound.cli import app
from leakbound.errors import OptionError, OptionTypeError
from leakbound.experiments.demos import census, glyphs
from leakbound.experiments.demos.panoramia import SyntheticReport

TINY: dict[str, Any] = {"epochs": (2, 1), "private_epochs": 1, "members": 600, "seeds": 1}


def estimates(made: SyntheticReport) -> dict[str, float]:
    return {
        row.target: row.epsilon_tilde.mean
        for row in made.found.rows
        if row.audit == "PANORAMIA" and row.epsilon_tilde is not None
    }


@pytest.fixture(scope="module")
def tiny() -> SyntheticReport:
    calls: list[float] = []
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    made = census.run(**TINY, seed=3, progress=lambda _, share: calls.append(share))
    assert calls == sorted(calls)
    assert 0 < calls[0] < calls[-1] <= 1
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    return made


AUDITS = (
    "PANORAMIA",
    "PANORAMIA, union",
    "Zero-Run, match",
    "Zero-Run, Poisson-binomial",
    "RM;RN",
    "O(1)",
)


def test_every_target_is_audited_in_six_ways(tiny: SyntheticReport) -> None:
    names = ["1 epoch", "2 epochs", "DP-SGD, ε = 8"]
    assert [target.name for target in tiny.targets] == names
    assert [(row.target, row.audit) for row in tiny.found.rows] == [
        (name, audit) for name in names for audit in AUDITS
    ]
    assert all(0.5 < target.test_accuracy < 1 for target in tiny.targets)
    assert json.loads(json.dumps(tiny.to_dict()))["targets"][2]["epsilon"] == 8


def test_same_seed_same_numbers(tiny: SyntheticReport) -> None:
    torch.manual_seed(1)
    again = census.run(**TINY, seed=3)
    assert [row.results[0].auc for row in again.found.rows] == [
        row.results[0].auc for row in tiny.found.rows
    ]


def test_the_command_prints_the_table_and_writes_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = partial(census.run, epsilons=(), members=600)
    monkeypatch.setattr(census, "run", short)
    command = ["demo", "census", "--out", str(tmp_path), "--seeds", "1", "--generator", "oracle"]
    command += ["--epochs", "1", "--width", "8"]
    answer = CliRunner().invoke(app, [*command, "--helper", "none"])
    assert answer.exit_code == 0
    assert answer.stderr == ""
    heading, first, *rows = answer.stdout.splitlines()
    for name in ("Target, audit", "c ≥", "c + ε ≥", "ε̃", "ε ≥"):
        assert name in heading
    assert first.startswith("1 epoch, test accuracy 0.")
    for audit, row in zip(AUDITS, rows, strict=False):
        assert row.startswith(f"  {audit} ")
    assert max(map(len, (heading, first, *rows[: len(AUDITS)]))) < 100
    assert "not a lower bound" in answer.stdout
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "A generator (oracle) learnt from 180" in html
    stored = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert stored["found"]["options"]["helper"] == "None"
    answer = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(answer.stdout)["generator"] == "oracle"


def test_the_glyphs_command_prints_the_table_and_writes_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = partial(glyphs.run, epochs=(1,), epsilons=(), members=800)
    monkeypatch.setattr(glyphs, "run", short)
    command = ["demo", "glyphs", "--out", str(tmp_path), "--seeds", "1"]
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[2].startswith("  PANORAMIA ")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "A generator (mixture) learnt from 240" in html
    files = {file.name for file in (tmp_path / "scores").iterdir()}
    assert files == {"generated-0.csv", "real-0.csv"}
    answer = CliRunner().invoke(app, ["panoramia", str(tmp_path / "scores" / "generated-0.csv")])
    assert answer.exit_code == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, OptionError, "seed must be at least 0"),
        ({"epochs": (0,)}, OptionError, "epochs must be at least 1"),
        ({"members": 10}, OptionError, "members must be at least 500"),
        ({"private_epochs": "5"}, OptionTypeError, "private_epochs must be an integer"),
        ({"epsilons": (0.0,)}, OptionError, "epsilons must be above 0"),
        ({"width": 0}, OptionError, "width must be at least 1"),
        ({"seeds": 0}, OptionError, "seeds must be at least 1"),
        ({"generator": "gan"}, OptionError, "generator must be one of 'copula'"),
        ({"helper": "other"}, OptionError, "helper must be one of 'generated'"),
    ],
)
def test_bad_options(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        census.run(**(TINY | options))


@pytest.mark.validity
@pytest.mark.parametrize("generator", ["copula", "oracle"])
def test_what_is_estimated_grows_with_epochs(generator: census.GeneratorName) -> None:
    made = census.run(generator=generator)
    found = estimates(made)
    private = found.pop("DP-SGD, ε = 8")
    assert private < 0.1
    assert found["5 epochs"] < 0.1
    assert found["160 epochs"] > 0.4
    assert found["160 epochs"] > found["40 epochs"]
    c_lb = made.found.row("5 epochs").c_lb
    assert c_lb is not None
    assert c_lb.mean <= 0.15


@pytest.mark.validity
def test_on_images_nothing_is_put_down_to_a_model_that_leaks_nothing() -> None:
    made = glyphs.run()

    def median(target: str, number: str) -> float:
        results: Any = made.found.row(target).results
        return float(np.median([getattr(result, number) for result in results]))

    assert 1.5 <= median("3 epochs", "c_lb") <= 3
    assert median("DP-SGD, ε = 8", "epsilon_tilde") == 0
    found = [median(f"{epochs} epochs", "epsilon_tilde") for epochs in (3, 15, 30, 60)]
    assert all(later > earlier - 0.3 for earlier, later in pairwise(found))
    assert found[0] < 0.5
    assert found[2] > found[0] + 0.4
    assert found[3] > found[0] + 0.8
    for target in ("3 epochs", "DP-SGD, ε = 8"):
        real = made.found.row(target, "RM;RN").epsilon
        assert real is not None
        assert real.mean < 0.1
