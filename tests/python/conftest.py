"""What all tests share: reproducible property tests and inputs with a known shape."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from command_line import BASELINE, MEMBER, SCORE, csv_text

settings.register_profile("leakbound", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("leakbound")

Game = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture(autouse=True)
def _entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test that passes no seed draw the same seeds in every run, each another one."""
    fresh = count()
    monkeypatch.setattr("leakbound._base.streams.secrets.randbits", lambda _bits: next(fresh))


@pytest.fixture
def golden() -> Path:
    """The folder of reference values."""
    return Path(__file__).parents[1] / "golden"


@pytest.fixture
def game() -> Game:
    """Scores and membership of 600 examples that leak visibly."""
    rng = np.random.default_rng(20230515)
    member = rng.random(600) < 0.5
    return rng.normal(size=600) + 1.5 * member, member


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """A file of scores, membership and baseline scores of 300 examples."""
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(score=SCORE, member=MEMBER.astype(int), baseline_score=BASELINE))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes a file of some content."""

    def write(content: str | bytes, name: str = "scores.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
