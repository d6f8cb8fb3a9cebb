"""What all tests share: reproducible property tests and inputs with a known shape."""

import gc
import os
import secrets
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from command_line import BASELINE, MEMBER, SCORE, csv_text
from leakbound.propensity import falsification, likeness

os.environ.setdefault("MPLBACKEND", "Agg")  # before matplotlib is imported: there is no screen
settings.register_profile("leakbound", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("leakbound")

AUDIT_BITS = 53
"""Of the seeds of audits; those of plans, which are secrets, have more."""


def pytest_configure(config: pytest.Config) -> None:
    """Give every audit that passes no seed the seed 0; coins of plans stay new."""
    entropy, patched = secrets.randbits, pytest.MonkeyPatch()
    patched.setattr(
        "leakbound._base.checks.secrets.randbits",
        lambda bits: 0 if bits == AUDIT_BITS else entropy(bits),
    )
    config.add_cleanup(patched.undo)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is imported out of collections of garbage, which took 6 % of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first: one at the end would leave a process waiting for the other."""
    items.sort(key=lambda item: item.path.parent.name != "validity")


Game = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that were drawn in a test, each another one, as from the system's entropy."""
    drawn: list[int] = []

    def randbits(bits: int) -> int:
        drawn.append(secrets.SystemRandom().getrandbits(bits))
        return drawn[-1]

    monkeypatch.setattr("leakbound._base.checks.secrets.randbits", randbits)
    return drawn


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let challenges ask smaller models, in tests of what they are asked and of what follows."""
    default = falsification.default_sceptics

    def smaller() -> dict[str, Any]:
        sceptics: dict[str, Any] = default()
        sceptics[falsification._TREES].set_params(max_iter=12)
        return sceptics

    monkeypatch.setattr(falsification, "default_sceptics", smaller)
    monkeypatch.setattr(likeness, "_TREES_OF_FOREST", 25)


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
