"""Files of the working folder take the place of no package; a named module there is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import csv_text

MODULES = ("transformers", "torch", "scipy", "sklearn", "pyarrow", "narwhals", "matplotlib")
HOSTILE = "open('RAN', 'w').close()\nraise SystemExit('code of the working folder ran')\n"
MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from beside import SLOPE  # also when the model is made
        self.w = torch.nn.Parameter(torch.tensor(SLOPE))
    def forward(self, x):
        return torch.stack([self.w * x, -self.w * x], 1)
"""
ATTACK = """
def honest(member, seed):
    return member * 1.0
"""
COMMANDS = """
import os, sys
from leakbound.cli import run
for line in sys.argv[1:]:
    print(run(line.split()), os.path.exists("RAN"), flush=True)
"""
"""Several commands of one process, and for each its code and whether a hostile file ran.

Like the console script, with `-P`, which searches the folder it lies in and no working folder.
"""
MODULE = [sys.executable, "-m", "leakbound"]
"""`python -m` searches the working folder."""
SCORED = "score mine:Model data.csv --inputs features --out shards"
COMPARED = "benchmark null -m 60 --seeds 2 --bound fixed:20 --attack attack:honest"


def run(program: list[str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program that somebody answers with yes, whatever it asks."""
    return subprocess.run(
        [*program, *words], cwd=folder, input="y\n" * 9, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(HOSTILE, encoding="utf-8")
    (tmp_path / "beside.py").write_text("SLOPE = 2.0\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "attack.py").write_text(ATTACK, encoding="utf-8")
    kind = '{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}'
    own = (
        '{"architectures": ["OwnLMHeadModel"], "model_type": "own", "auto_map": '
        '{"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}}'
    )
    for name, config in {"model": kind, "own": own}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "own" / "own.py").write_text(HOSTILE, encoding="utf-8")
    features = [0.5, -0.5, 1.0, -1.0]
    data = csv_text(id=range(4), text=list("abcd"), features=features, label=[0] * 4)
    (tmp_path / "data.csv").write_text(data, encoding="utf-8")
    return tmp_path


def test_no_package_comes_from_the_working_folder_and_a_module_that_is_named_does(
    folder: Path,
) -> None:
    """Nor is code run that comes with a model: nobody is asked, as the answer may be data."""
    found = run(
        [sys.executable, "-P", "-c", COMMANDS],
        folder,
        "plan --target 2",
        "score model data.csv --out refused",
        "score own data.csv --out refused",
        SCORED,
        COMPARED,
    )
    lines = found.stdout.splitlines()
    ends = [line for line in lines if line.endswith(("True", "False"))]
    assert ends == ["0 False", "2 False", "2 False", "0 False", "0 False"], found.stderr
    assert "model 'model' cannot be loaded" in found.stderr
    assert "model 'own' cannot be loaded" in found.stderr
    assert "error:" not in found.stdout


def test_neither_does_one_where_the_program_is_called_as_a_module(folder: Path) -> None:
    compared = run(MODULE, folder, *COMPARED.split(), "--workers", "2")
    assert compared.returncode == 0, compared.stderr
    assert "error:" not in compared.stdout
    assert not (folder / "RAN").exists()


@pytest.mark.validity
@pytest.mark.parametrize(
    ("line", "code"), [("score model data.csv --out refused", 2), (SCORED, 0)], ids=str
)
def test_nor_does_one_that_loads_models(line: str, code: int, folder: Path) -> None:
    scored = run(MODULE, folder, *line.split())
    assert scored.returncode == code, scored.stderr
    assert not (folder / "RAN").exists()
