"""Checkpoints and plans that were tampered with are refused; nothing stale is ever reused."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import CheckpointError, PlanFormatError
from leakbound.panoramia.checkpoints import Checkpoints
from leakbound.propensity.blocks import Checkpoint
from mutations import LONG, QUICK, assaulted, mutants

MADE_OF = {"members": "a", "seed": "1"}
OUTCOME = {"x": np.arange(6.0).reshape(2, 3), "names": np.array(["a", "bc"])}
BLOCK = np.arange(8.0).reshape(4, 2)
COUNTS = pytest.mark.parametrize(
    "count", [QUICK, pytest.param(LONG, marks=pytest.mark.validity)], ids=["quick", "long"]
)


def redo() -> Any:
    message = "the phase was to be read, not done anew"
    raise AssertionError(message)


@COUNTS
def test_tampered_phases(count: int, tmp_path: Path) -> None:
    phases = Checkpoints(tmp_path, MADE_OF)
    phases.phase("target", lambda: OUTCOME)
    file = tmp_path / "target.npz"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        found = phases.phase("target", redo)
        assert list(found) == list(OUTCOME)
        for name, values in OUTCOME.items():
            np.testing.assert_array_equal(found[name], values)

    cases = mutants([file.read_bytes()], count, seed=count)
    read_well, refused = assaulted(cases, read, (CheckpointError,))
    assert read_well + refused == count
    assert refused > count // 2


@COUNTS
def test_tampered_records(count: int, tmp_path: Path) -> None:
    Checkpoints(tmp_path, MADE_OF)
    file = tmp_path / "made-of.json"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        Checkpoints(tmp_path, MADE_OF)

    cases = mutants([file.read_bytes()], count, seed=count)
    read_well, refused = assaulted(cases, read, (CheckpointError,))
    assert read_well + refused == count
    assert refused > count // 2


@COUNTS
def test_tampered_blocks(count: int, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "key")
    checkpoint.save(0, BLOCK)
    (file,) = tmp_path.glob("*.npz")

    def read(content: bytes) -> None:
        file.write_bytes(content)
        found = checkpoint.load(0, 4)
        assert found is not None
        np.testing.assert_array_equal(found, BLOCK)

    cases = mutants([file.read_bytes()], count, seed=count)
    read_well, refused = assaulted(cases, read, (CheckpointError,))
    assert read_well + refused == count
    assert refused > count // 2


@COUNTS
def test_tampered_plans(count: int, tmp_path: Path) -> None:
    file = tmp_path / "plan.npz"
    valid = []
    for plan in (
        lb.InclusionPlan.create(40, seed=3),
        lb.InclusionPlan([True, False], ids=["a", "b"]),
    ):
        plan.save(file)
        valid.append(file.read_bytes())

    def read(content: bytes) -> None:
        file.write_bytes(content)
        found = lb.InclusionPlan.load(file)
        assert found.member.size == found.ids.size > 0

    read_well, refused = assaulted(mutants(valid, count, seed=count), read, (PlanFormatError,))
    assert read_well + refused == count
    assert refused > count // 2


def test_phases_without_a_record_are_refused_and_named(tmp_path: Path) -> None:
    Checkpoints(tmp_path, MADE_OF).phase("trained", lambda: OUTCOME)
    (tmp_path / "made-of.json").unlink()
    with pytest.raises(CheckpointError, match=r"holds phases \(trained\.npz\) without the record"):
        Checkpoints(tmp_path, MADE_OF | {"members": "b"})


def test_a_phase_is_not_taken_for_another(tmp_path: Path) -> None:
    phases = Checkpoints(tmp_path, MADE_OF)
    phases.phase("trained", lambda: OUTCOME)
    (tmp_path / "trained.npz").rename(tmp_path / "untrained.npz")
    with pytest.raises(CheckpointError, match="not as the phase 'untrained' left it"):
        phases.phase("untrained", redo)


def test_stray_files_harm_nobody(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    phases = Checkpoints(tmp_path, MADE_OF)
    (tmp_path / "notes.md").mkdir()
    phases.phase("trained", lambda: OUTCOME)
    assert list(Checkpoints(tmp_path, MADE_OF).phase("trained", redo)) == list(OUTCOME)
    blocks = Checkpoint(tmp_path / "blocks", "key")
    (tmp_path / "blocks" / "00000000-4.npy").write_bytes(b"of an older version")
    assert blocks.load(0, 4) is None


@pytest.mark.parametrize(
    "block", [np.full((4, 2), np.nan), BLOCK[:3], BLOCK.astype(np.float32), BLOCK + 1]
)
def test_blocks_that_are_not_as_they_were_stored(block: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "key")
    checkpoint.save(0, BLOCK)
    (file,) = tmp_path.glob("*.npz")
    with np.load(file) as content:
        seal = content["sha256"]
    stream = io.BytesIO()
    np.savez(stream, block=block, sha256=seal)
    file.write_bytes(stream.getvalue())
    with pytest.raises(CheckpointError, match="not as it was stored"):
        checkpoint.load(0, 4)
    file.write_bytes(b"")
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(0, 4)


def test_a_block_does_not_move(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "key")
    checkpoint.save(0, BLOCK)
    (tmp_path / "00000000-4.npz").rename(tmp_path / "00000004-4.npz")
    with pytest.raises(CheckpointError, match="not as it was stored"):
        checkpoint.load(4, 4)
