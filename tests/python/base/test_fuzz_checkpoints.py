"""Checkpoints and plans that were tampered with are refused; nothing stale is ever reused."""

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.files import Checkpoints
from leakbound.errors import FormatError
from mutations import LONG, QUICK, assaulted, mutants

MADE_OF = {"members": "a", "seed": "1"}
OUTCOME = {"x": np.arange(6.0).reshape(2, 3), "names": np.array(["a", "bc"])}
BLOCK = np.arange(8.0).reshape(4, 2)
COUNTS = pytest.mark.parametrize(
    "count", [QUICK, pytest.param(LONG, marks=pytest.mark.validity)], ids=["quick", "long"]
)


def redo() -> Any:
    raise AssertionError("the phase was to be read, not repeated")


def assault(file: Path, read: Callable[[], object], count: int, *more: bytes) -> None:
    """Read mutants of a file, or of other valid contents: most are refused as such."""

    def attempt(content: bytes) -> None:
        file.write_bytes(content)
        read()

    refusals = (FormatError, FormatError)
    cases = mutants([file.read_bytes(), *more], count, seed=count)
    read_well, refused = assaulted(cases, attempt, refusals)
    assert read_well + refused == count
    assert refused > count // 2


@COUNTS
def test_tampered_phases(count: int, tmp_path: Path) -> None:
    phases = Checkpoints(tmp_path, MADE_OF)
    phases.phase("target", lambda: OUTCOME)

    def read() -> None:
        found = phases.phase("target", redo)
        assert list(found) == list(OUTCOME)
        for name, values in OUTCOME.items():
            np.testing.assert_array_equal(found[name], values)

    assault(tmp_path / "target.npz", read, count)


@COUNTS
def test_tampered_records(count: int, tmp_path: Path) -> None:
    Checkpoints(tmp_path, MADE_OF)
    assault(tmp_path / "made-of.json", lambda: Checkpoints(tmp_path, MADE_OF), count)


@COUNTS
def test_tampered_plans(count: int, tmp_path: Path) -> None:
    file = tmp_path / "plan.npz"
    lb.InclusionPlan([True, False], ids=["a", "b"]).save(file)
    named = file.read_bytes()
    lb.InclusionPlan.create(40, seed=3).save(file)

    def read() -> None:
        found = lb.InclusionPlan.load(file)
        assert found.member.size == found.ids.size > 0

    assault(file, read, count, named)


def test_phases_without_a_record_are_refused_and_named(tmp_path: Path) -> None:
    Checkpoints(tmp_path, MADE_OF).phase("trained", lambda: OUTCOME)
    (tmp_path / "made-of.json").unlink()
    with pytest.raises(FormatError, match=r"has trained\.npz but no record"):
        Checkpoints(tmp_path, MADE_OF | {"members": "b"})


def test_stray_files_harm_nobody(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    phases = Checkpoints(tmp_path, MADE_OF)
    (tmp_path / "notes.md").mkdir()
    phases.phase("trained", lambda: OUTCOME)
    assert list(Checkpoints(tmp_path, MADE_OF).phase("trained", redo)) == list(OUTCOME)
    (tmp_path / "00000000-4.npy").write_bytes(b"of an older version")
    assert phases.load("00000000-4") is None


def test_a_block_that_is_not_as_it_was_stored(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path, MADE_OF)
    checkpoint.save("0-4", {"block": BLOCK})
    (file,) = tmp_path.glob("*.npz")
    with np.load(file) as content:
        seal = content["sha256"]
    np.savez(file, block=BLOCK + 1, sha256=seal)
    with pytest.raises(FormatError, match="not the outcome '0-4'"):
        checkpoint.load("0-4")


def test_an_outcome_does_not_move(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path / "one", MADE_OF)
    checkpoint.save("0-4", {"block": BLOCK})
    content = (tmp_path / "one" / "0-4.npz").read_bytes()
    (tmp_path / "one" / "4-4.npz").write_bytes(content)
    with pytest.raises(FormatError, match="not the outcome '4-4'"):
        checkpoint.load("4-4")
    other = Checkpoints(tmp_path / "other", MADE_OF | {"seed": "2"})
    (tmp_path / "other" / "0-4.npz").write_bytes(content)
    with pytest.raises(FormatError, match="not the outcome '0-4'"):
        other.load("0-4")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("made-of.json", '{"members": "a", "seed": "1"}', "from another version of leakbound"),
        ("made-of.json", "[]", "not a record of checkpoints"),
        ("0-4.npz", "", r"has 0-4\.npz but no record"),
    ],
    ids=["scheme", "record", "block"],
)
def test_folders_of_other_files_are_refused(
    name: str, content: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=words):
        Checkpoints(tmp_path, MADE_OF)


def test_other_runs_are_named(tmp_path: Path) -> None:
    Checkpoints(tmp_path, MADE_OF)
    with pytest.raises(FormatError, match="are from another members and another seed; choose"):
        Checkpoints(tmp_path, {"members": "b", "seed": "2"})


PHASES = 20


def numbers(k: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(k).normal(size=2000)}


def run_whole(folder: Path) -> list[Any]:
    """Do all phases that are not kept yet, each with numbers of its own."""
    phases = Checkpoints(folder, MADE_OF)
    return [phases.phase(f"phase-{k}", partial(numbers, k)) for k in range(PHASES)]


def killed_after(seconds: float, folder: Path) -> bool:
    """Run in a child that is killed after some time; return whether it was not done by then."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run_whole(folder)
            code = 0
        finally:
            os._exit(code)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_outcomes(tmp_path: Path) -> None:
    """What PANORAMIA, its papers and the validity suite keep."""
    expected = run_whole(tmp_path / "whole")
    folder = tmp_path / "killed"
    rng = np.random.default_rng(0)
    kills = 0
    while killed_after(rng.uniform(0.001, 0.02) + 0.002 * kills, folder):
        kills += 1
    assert kills >= 3
    for one, other in zip(run_whole(folder), expected, strict=True):
        np.testing.assert_array_equal(one["x"], other["x"])
