"""What a written file or folder takes the place of: its kind, links, permissions, and its loss."""

import errno
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.files import recover_folder, replacing_folder, write_text
from leakbound.errors import OptionError
from leakbound.evidence import verify_bundle

PLAN = lb.InclusionPlan.create(60, seed=1)
SCORES = np.random.default_rng(0).normal(size=60) + PLAN.drawn
RESULT = lb.audit(SCORES, lb.Coins(PLAN), seed=0)
PROTOCOL: dict[str, Any] = {
    "claim": {"type": "PureDP"},
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "auto",
    "attacks": ["loss"],
    "unit": "x",
    "canaries": "y",
}
WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_text(path, "new"),
    "result": RESULT.to_json,
    "plan": PLAN.save,
    "tally": lambda path: lb.Tally.of(SCORES, PLAN.drawn).to_parquet(path),
    "commitment": PLAN.commit(PROTOCOL).commitment.to_json,
}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_permissions() -> Any:
    before = os.umask(0o022)
    yield
    os.umask(before)


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Let files of this process have so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_said_by_the_name_of_the_file_and_takes_nothing(
    write: Callable[[Path], object], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with full_after(2), pytest.raises(OSError, match="File too large") as full:
        write(file)
    assert full.value.filename == str(file)
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]


def test_a_file_of_a_folder_that_is_replaced_has_its_name_in_errors(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with (
        full_after(2),
        pytest.raises(OSError, match="File too large") as full,
        replacing_folder(folder) as new,
    ):
        write_text(new / "file", "new")
    assert full.value.filename == str(folder / "file")
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the new file that its writer could not make there."""

    def refuse(file: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(PermissionError) as refused:
        write_text(tmp_path / "file", "new")
    assert refused.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_is_no_file_is_not_replaced(write: Callable[[Path], object], tmp_path: Path) -> None:
    pipe, folder, plug = tmp_path / "pipe", tmp_path / "folder", tmp_path / "plug"
    os.mkfifo(pipe)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(plug))
        for path, kind in ((pipe, "a device or a pipe"), (plug, "a device"), (folder, "a folder")):
            before = path.stat()
            with pytest.raises(OptionError, match=f"is {kind}.*choose another name"):
                write(path)
            assert path.stat().st_ino == before.st_ino
    assert {one.name for one in tmp_path.iterdir()} == {"pipe", "folder", "plug"}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_links_lead_to_what_is_replaced(write: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name in ("there", "new"):
        (tmp_path / name).symlink_to(tmp_path / "real" / name)
    (tmp_path / "real" / "there").write_text("old", encoding="utf-8")
    for name in ("there", "new"):
        write(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "real" / name).stat().st_size > 0
        assert (tmp_path / name).read_bytes() != b"old"
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(OptionError, match="is a loop of links"):
        write(tmp_path / "one")


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    RESULT.to_json(path)
    assert mode(path) == 0o644
    for kept in (0o600, 0o640, 0o664):
        path.chmod(kept)
        RESULT.to_json(path)
        assert mode(path) == kept
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
        RESULT.to_json(path)
        assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (12, 34, 0o664)


def test_half_of_a_private_file_is_private(tmp_path: Path) -> None:
    path, seen = tmp_path / "p.npz", list[int]()

    class Seen(lb.InclusionPlan):
        def write(self, file: Any) -> None:
            seen.extend(mode(one) for one in tmp_path.iterdir())
            super().write(file)

    Seen(PLAN.drawn).save(path)
    Seen(PLAN.drawn).save(path)
    assert seen == [0o600] * 3


# --- secrets --------------------------------------------------------------------------------------


def test_secrets_are_read_by_their_owner_only(tmp_path: Path) -> None:
    opening = PLAN.commit(PROTOCOL)
    new, empty, shared = tmp_path / "new", tmp_path / "empty", tmp_path / "shared"
    empty.mkdir()
    shared.mkdir()
    for name in ("notes.txt", "plan.npz", "opening.json"):
        (shared / name).write_text("all may read it", encoding="utf-8")
    for folder in (new, empty, shared):
        opening.save(folder)
        assert [mode(folder / name) for name in ("plan.npz", "opening.json")] == [0o600] * 2
    assert [mode(folder) for folder in (new, empty, shared)] == [0o700, 0o700, 0o755]
    assert mode(shared / "notes.txt") == 0o644
    path = tmp_path / "p.npz"
    for before in (0o644, 0o600):
        PLAN.save(path)
        assert mode(path) == 0o600
        path.chmod(before)


# --- folders --------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from leakbound._base.files import replacing_folder
rename, calls = Path.rename, []
def dies(path, to):
    calls.append(to)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, to)
Path.rename = dies
with replacing_folder(sys.argv[1]) as new:
    (new / "which").write_text("new")
"""
"""The program, which is killed at one of the renames that replace a folder."""


def bundle(place: Path) -> None:
    RESULT.bundle(place, scores=SCORES, plan=PLAN)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_kill_between_renames_loses_no_folder(number: int, tmp_path: Path) -> None:
    place = tmp_path / "bun[d]le"
    place.mkdir()
    (place / "which").write_text("old", encoding="utf-8")
    killed = subprocess.run([sys.executable, "-c", KILLED, place, str(number)], check=False)
    assert killed.returncode == -signal.SIGKILL
    recover_folder(place)
    assert (place / "which").read_text(encoding="utf-8") == ("new" if number == 3 else "old")
    with replacing_folder(place) as new:
        (new / "which").write_text("newer", encoding="utf-8")
    assert (place / "which").read_text(encoding="utf-8") == "newer"
    assert not list(tmp_path.glob(".*.old"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupt_between_renames_loses_no_bundle(
    error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename, calls = tmp_path / "bundle", Path.rename, list[Path]()
    bundle(place)

    def fails(path: Path, to: Any) -> Path:
        calls.append(path)
        if len(calls) == 2:
            raise error
        return rename(path, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            bundle(place)
    assert [one.name for one in tmp_path.iterdir()] == ["bundle"]
    assert verify_bundle(place).why == ""


def test_a_lone_old_bundle_is_found_by_readers_and_writers(tmp_path: Path) -> None:
    place = tmp_path / "bundle"
    for use in (lambda: verify_bundle(place), lambda: bundle(place)):
        bundle(place)
        place.rename(tmp_path / ".bundle.0123456789abcdef.old")
        use()
        assert [one.name for one in tmp_path.iterdir()] == ["bundle"]
        assert verify_bundle(place).why == ""


def test_a_replaced_folder_keeps_its_permissions(tmp_path: Path) -> None:
    place = tmp_path / "bundle"
    bundle(place)
    place.chmod(0o700)
    (place / "inputs.npz").chmod(0o600)
    bundle(place)
    assert [mode(one) for one in (place, place / "inputs.npz", place / "SHA256SUMS")] == [
        0o700,
        0o600,
        0o644,
    ]


def test_a_folder_takes_the_place_of_nothing_else(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OptionError, match="is not a folder"), replacing_folder(tmp_path / "pipe"):
        pass
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OptionError, match="is a loop of links"):
        bundle(tmp_path / "loop")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
