"""PANORAMIA on text: the mechanics of the demo on tiny runs, and its claims in the long suite."""

import json
from functools import partial
from pathlib import Path
from pydoc_data import topics
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from leakbound.cli import app
from leakbound.errors import OptionError
from leakbound.experiments.demos import text, text_panoramia
from leakbound.experiments.demos.text_panoramia import LanguageReport, run

TINY: dict[str, Any] = {"epochs": (1,), "private_epochs": 1, "members": 500, "seeds": 1}
AUDITS = ("PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)")


@pytest.fixture(scope="module")
def tiny() -> LanguageReport:
    calls: list[float] = []
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    made = run(**TINY, seed=3, progress=lambda _, share: calls.append(share))
    assert calls == sorted(calls)
    assert 0 < calls[0] < calls[-1] <= 1
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    return made


def test_every_target_is_audited_in_four_ways(tiny: LanguageReport) -> None:
    names = ["1 epoch", "DP-SGD, ε = 8"]
    assert [(row.target, row.audit) for row in tiny.found.rows] == [
        (name, audit) for name in names for audit in AUDITS
    ]
    for target in tiny.targets:
        assert 2.5 < target.train_loss < 5.5
        assert target.test_loss == pytest.approx(target.train_loss, abs=0.2)
    content = json.loads(json.dumps(tiny.to_dict()))
    assert content["targets"][1]["epsilon"] == 8
    sizes = {"generator": 200, "train": 100, "validation": 40, "test": 160}
    assert content["found"]["sizes"] == sizes


def test_the_command_prints_the_table_and_writes_the_report(
    tiny: LanguageReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def trained(**options: Any) -> LanguageReport:
        given.update(options)
        return tiny

    monkeypatch.setattr(text_panoramia, "run", trained)
    command = ["demo", "text", "--audit", "panoramia", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, [*command, "--seeds", "2", "--seed", "7"])
    assert answer.exit_code == 0
    assert answer.stderr == ""
    assert (given["seeds"], given["seed"]) == (2, 7)
    assert "1 epoch, loss of unseen text" in answer.stdout
    assert "not a lower bound" in answer.stdout
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "trained on 500 chunks of 64 bytes" in html
    assert "learnt from 200 of them" in html
    stored = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert [row["audit"] for row in stored["found"]["rows"]] == [*AUDITS, *AUDITS]


def test_the_default_audit_is_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(text.run, epochs=(1,), epsilons=(), chunks=200)
    monkeypatch.setattr(text, "run", short)
    command = ["demo", "text", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(answer.stdout)["chunks"] == 200
    answer = CliRunner().invoke(app, [*command, "--seeds", "2"])
    assert answer.exit_code == 2
    assert "--audit panoramia" in answer.stderr


def test_members_and_non_members_are_different_chunks_in_the_order_of_the_text() -> None:
    material = text_panoramia._draw(3000, 1)
    inside, outside = np.asarray(material.members), np.asarray(material.nonmembers)
    assert inside.shape == outside.shape == (3000, 64)
    assert len(np.unique(np.concatenate([inside, outside]), axis=0)) == 6000
    everything = "\0".join(topics.topics.values()).encode()
    places = [everything.find(bytes(chunk.tolist())) for chunk in inside]
    assert min(places) >= 0
    assert np.mean(np.diff(places) > 0) > 0.95  # some chunks are in two places, at other offsets
    other = np.asarray(text_panoramia._draw(3000, 2).members)
    assert not np.array_equal(inside, other)
    assert len(text_panoramia._draw(5000, 1).nonmembers) > 1500  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": 5001}, "members must be at least 500 and at most 5000"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"epochs": (0,)}, "epochs must be at least 1"),
    ],
)
def test_bad_options(options: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        run(**(TINY | options))


@pytest.mark.validity
def test_what_is_estimated_grows_with_epochs_and_is_nothing_under_dp_sgd() -> None:
    made = run()

    def middle(target: str) -> float:
        return float(np.median([r.bound for r in made.found.row(target).results]))

    *sweep, private = [middle(target.name) for target in made.targets]
    assert sweep[0] < sweep[1] < sweep[2] < sweep[3] + 0.2
    assert sweep[-1] > sweep[0] + 0.5
    assert private == 0
    check_certified(made)
    c_lb = made.found.row("3 epochs").c_lb
    assert c_lb is not None
    assert 2 < c_lb.mean < 4.5


def check_certified(made: LanguageReport) -> None:
    """Against real non-members the longest training leaks, and DP-SGD does not."""
    real = {target.name: made.found.row(target.name, "RM;RN").epsilon for target in made.targets}
    longest, private = made.targets[-2].name, made.targets[-1].name
    assert real[longest] is not None
    assert real[longest].mean > 0.3  # type: ignore[union-attr]
    assert real[private].mean < 0.1  # type: ignore[union-attr]
