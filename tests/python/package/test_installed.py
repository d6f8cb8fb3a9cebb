"""What the README's install line brings is enough for what the README shows."""

import os
import subprocess
from pathlib import Path

import pytest

from installed import extras_of, linked_environment

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"


EXTRAS = extras_of(README.read_text(encoding="utf-8"))


def ran(python: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """Run the Python of an environment, without what tests import."""
    own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: text for name, text in os.environ.items() if name not in own}
    return subprocess.run(
        [python, *map(str, words)],
        env=environment | {"PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_readme_runs_with_what_its_install_line_brings(tmp_path: Path) -> None:
    python = linked_environment(tmp_path / "environment", EXTRAS)
    script = ROOT / "tests" / "distribution" / "readme_commands.py"
    work = tmp_path / "work"
    work.mkdir()
    done = ran(python, script, README, work)
    assert done.returncode == 0, done.stdout + done.stderr


def test_environments_have_only_what_they_ask_for(tmp_path: Path) -> None:
    python = linked_environment(tmp_path / "environment", EXTRAS - {"io"})
    scores = tmp_path / "scores.csv"
    scores.write_text("score,member\n1,1\n0,0\n", encoding="utf-8")
    done = ran(python, "-m", "leakbound", "coins", scores)
    assert done.returncode == 2
    assert "leakbound[io]" in " ".join(done.stderr.split())


@pytest.mark.parametrize("page", ["docs/index.md"])
def test_pages_install_what_the_readme_installs(page: str) -> None:
    shown = (ROOT / page).read_text(encoding="utf-8")
    assert extras_of(shown) == extras_of(README.read_text(encoding="utf-8"))
