"""Files of the working folder take the place of no package; a named module there is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import PROGRAM, csv_text

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
# The console script searches the folder it lies in, `python -m` the working folder.
SCRIPT = [sys.executable, "-P", *PROGRAM[1:]]
MODULE = [sys.executable, "-m", "leakbound"]


def run(program: list[str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(HOSTILE, encoding="utf-8")
    (tmp_path / "beside.py").write_text("SLOPE = 2.0\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "attack.py").write_text(ATTACK, encoding="utf-8")
    kind = '{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}'
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(kind, encoding="utf-8")
    features = [0.5, -0.5, 1.0, -1.0]
    data = csv_text(id=range(4), text=list("abcd"), features=features, label=[0] * 4)
    (tmp_path / "data.csv").write_text(data, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["script", "module"])
def test_no_package_comes_from_the_working_folder(program: list[str], folder: Path) -> None:
    refused = run(program, folder, "score", "model", "data.csv", "--out", "shards")
    assert not (folder / "RAN").exists()
    assert refused.returncode == 2, refused.stderr
    assert "model 'model' cannot be loaded" in refused.stderr
    assert run(program, folder, "plan", "--target", "2").returncode == 0
    assert not (folder / "RAN").exists()


@pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["script", "module"])
def test_a_module_that_is_named_is_imported(program: list[str], folder: Path) -> None:
    words = ["score", "mine:Model", "data.csv", "--inputs", "features", "--out", "shards"]
    scored = run(program, folder, *words)
    assert scored.returncode == 0, scored.stderr
    words = ["benchmark", "null", "-m", "60", "--seeds", "2", "--bound", "fixed:20"]
    compared = run(program, folder, *words, "--attack", "attack:honest")
    assert compared.returncode == 0, compared.stderr
    parted = run(program, folder, *words, "--attack", "attack:honest", "--workers", "2")
    assert parted.returncode == 0, parted.stderr
    assert "error:" not in parted.stdout
    assert not (folder / "RAN").exists()


def test_code_that_comes_with_a_model_is_not_run(folder: Path) -> None:
    """Nobody is asked about it: the answer would be read from a pipe of data."""
    own = (
        '{"architectures": ["OwnLMHeadModel"], "model_type": "own", "auto_map": '
        '{"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}}'
    )
    (folder / "model" / "config.json").write_text(own, encoding="utf-8")
    (folder / "model" / "own.py").write_text(HOSTILE, encoding="utf-8")
    words = ["score", "model", "data.csv", "--out", "shards"]
    asked = subprocess.run(
        [*SCRIPT, *words], cwd=folder, input="y\ny\n", capture_output=True, text=True, check=False
    )
    assert asked.returncode == 2, asked.stderr
    assert not (folder / "RAN").exists()
