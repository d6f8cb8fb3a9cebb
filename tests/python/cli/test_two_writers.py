"""One process writes a folder: a second one is refused, and what is half there is not audited."""

import gc
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from command_line import csv_text, leakbound
from leakbound._base.files import RECORD, Checkpoints
from leakbound.errors import FormatError

ROWS = 40
MODELS = """
import torch
class Model(torch.nn.Module):
    def __init__(self, sign):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(sign))
    def forward(self, x):
        return torch.stack([self.w * x, -self.w * x], 1)
def good():
    return Model(1.0)
def other():
    return Model(-1.0)
"""
HELD = """
import sys
from pathlib import Path
from leakbound._base.locks import hold
class Owner: pass
owner = Owner()
print(hold(owner, Path(sys.argv[1])) or "held", flush=True)
sys.stdin.read()
"""
"""A process that holds a file until its input ends."""


@contextmanager
def held(file: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models_of_two_writers.py").write_text(MODELS, encoding="utf-8")
    table = csv_text(
        id=range(ROWS),
        features=[row / 7 for row in range(ROWS)],
        label=[0] * ROWS,
        member=[row % 2 for row in range(ROWS)],
    )
    (tmp_path / "data.csv").write_text(table, encoding="utf-8")
    return tmp_path


def score(model: str, out: str = "shards") -> list[object]:
    words = ["score", f"models_of_two_writers:{model}", "data.csv", "--inputs", "features"]
    return [*words, "--out", out, "--shard-rows", 10, "--device", "cpu"]


def test_a_second_writer_is_refused_while_the_first_writes(folder: Path) -> None:
    assert leakbound(*score("good")).code == 0
    (folder / "shards" / "00000-00002.parquet").unlink()
    gc.collect()
    with held(folder / "shards" / RECORD) as process:
        said = leakbound(*score("good")).refusal
        assert f"shards is being written by process {process.pid}: wait" in said
        assert not (folder / "shards" / "00000-00002.parquet").exists()
        # after a kill the same command goes on
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert leakbound(*score("good")).code == 0
    assert leakbound("coins", "shards", "--seed", 0).code in {0, 3}


def test_a_record_without_shards_is_not_taken_from_its_writer(folder: Path) -> None:
    """Another job would write its own record, and shards of both would mix."""
    assert leakbound(*score("good")).code == 0
    for shard in (folder / "shards").glob("*.parquet"):
        shard.unlink()
    gc.collect()
    with held(folder / "shards" / RECORD):
        before = (folder / "shards" / RECORD).read_bytes()
        assert "is being written by process" in leakbound(*score("other")).refusal
        assert (folder / "shards" / RECORD).read_bytes() == before
    assert leakbound(*score("other")).code == 0


def test_half_a_folder_is_not_audited(folder: Path) -> None:
    assert leakbound(*score("good")).code == 0
    (folder / "shards" / "00000-00001.parquet").unlink()
    for words in (["coins", "shards"], ["tally", "shards", "--out", "t.parquet"]):
        assert "shards has 3 of 4 shards: run the same leakbound score" in leakbound(*words).refusal


def test_shards_of_two_models_are_not_audited(folder: Path) -> None:
    for model in ("good", "other"):
        assert leakbound(*score(model, model)).code == 0
    strange = folder / "good" / "00000-00001.parquet"
    (folder / "other" / strange.name).replace(strange)
    said = leakbound("coins", "good").refusal
    assert f"{Path('good') / strange.name} was not scored by the model" in said


@pytest.mark.parametrize("text", ["", "[]", "{", '{"shard_rows": "0", "rows of DATA": "5"}'])
def test_a_record_of_something_else_says_nothing_of_shards(text: str, folder: Path) -> None:
    table = pa.table({"score": [0.1, 0.2, 0.3, 0.5], "member": [True, False, True, False]})
    (folder / "shards").mkdir()
    parquet.write_table(table, folder / "shards" / "a.parquet")
    (folder / "shards" / RECORD).write_text(text, encoding="utf-8")
    assert leakbound("tally", "shards", "--out", "t.parquet").code == 0


def test_checkpoints_have_one_writer(tmp_path: Path) -> None:
    made_of = {"seed": "1"}
    first = Checkpoints(tmp_path, made_of)
    assert json.loads((tmp_path / RECORD).read_text(encoding="utf-8"))["seed"] == "1"
    again = Checkpoints(tmp_path, made_of)  # of this process, which may go on after an interrupt
    del first, again
    gc.collect()
    with (
        held(tmp_path / RECORD) as process,
        pytest.raises(FormatError, match=f"is being written by process {process.pid}"),
    ):
        Checkpoints(tmp_path, made_of)
    Checkpoints(tmp_path, made_of)
