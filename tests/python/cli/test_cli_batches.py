"""`leakbound batches`: files of both kinds, exit codes, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import leakbound
from leakbound.dp_sgd import audit_batches

N = 200
RNG = np.random.default_rng(0)
POISSON = [np.flatnonzero(RNG.random(N) < 0.05).tolist() for _ in range(60)]
EPOCHS = RNG.permutation(np.tile(np.arange(N), 3)[:N]).reshape(-1, 10).tolist() * 3


def stored(path: Path, batches: list[list[int]]) -> Path:
    """Write batches as a list of lists, or as a table."""
    if path.suffix == ".json":
        path.write_text(json.dumps(batches), encoding="utf-8")
        return path
    rows = [f"{k},{index}" for k, one in enumerate(batches) for index in one]
    path.write_text("\n".join(["batch,index", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["batches.json", "batches.csv"])
def test_batches_are_read_and_tested(tmp_path: Path, name: str) -> None:
    path = stored(tmp_path / name, POISSON)
    answer = leakbound("batches", path, "--examples", N, "--seed", 1)
    assert answer.code == 0
    assert "Nothing contradicts that 60 batches" in answer.out
    found = json.loads(leakbound("batches", path, "--examples", N, "--seed", 1, "--json").out)
    assert found["p_values"] == audit_batches(POISSON, examples=N, seed=1).p_values
    assert leakbound("batches", stored(path, EPOCHS), "--examples", N).code == 1
    assert leakbound("batches", stored(path, POISSON[:3]), "--examples", N).code == 3


def test_other_batches_are_stated(tmp_path: Path) -> None:
    path = stored(tmp_path / "batches.json", EPOCHS)
    epochs = ("--examples", N, "--sampling", "epochs", "--batches-per-epoch")
    answer = leakbound("batches", path, *epochs, 20)
    assert answer.code == 0
    assert "are epochs that have each example once at most." in answer.out
    assert leakbound("batches", path, *epochs, 21).code == 1
    assert leakbound("batches", stored(path, EPOCHS[:19]), *epochs, 20).code == 3
    path = stored(path, EPOCHS)
    assert leakbound("batches", path, "--examples", N, "--sampling", "fixed_size").code == 1
    found = json.loads(leakbound("batches", path, *epochs, 20, "--json").out)
    assert found["p_values"] == {"epochs": 1.0}
    assert "batches-per-epoch" in leakbound("batches", path, *epochs[:4]).refusal


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "batches.json"
    for text, words in (
        ("{}", "list of lists"),
        ("[1]", "list of lists"),
        ("[[300]]", "index 300"),
    ):
        path.write_text(text, encoding="utf-8")
        assert words in leakbound("batches", path, "--examples", N).refusal
    table = tmp_path / "batches.csv"
    for text, words in (
        ("batch,index\n0,1.5\n", "must hold integers"),
        ("batch,index\n-1,2\n", "numbered 0, 1"),
        ("batch,index\n0,1\ninf,2\n", "numbered 0, 1"),
        ("step,index\n0,1\n", "batch"),
    ):
        table.write_text(text, encoding="utf-8")
        assert words in leakbound("batches", table, "--examples", N).refusal
