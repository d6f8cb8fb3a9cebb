"""Files and folders that are either the old ones or the new ones, never half of each."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    The bytes go to a new file in the same folder, reach the disk, and only then get the name; a
    reader sees the old content or the new, and a block that raises leaves the old in place.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 to `path`, all of it or nothing."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends without an error.

    Files go to a new folder beside it, reach the disk, and only then the folder gets the name; a
    block that raises leaves the old folder as it was.
    """
    target = Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    temporary.mkdir()
    try:
        yield temporary
        _sync_folder(temporary)
        _take_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _sync_folder(target.parent)


def _take_place(new: Path, target: Path) -> None:
    """Give a folder its name; the old one of this name steps aside for a moment, and goes."""
    try:
        new.rename(target)  # over nothing, or an empty folder
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.EACCES}:
            raise
        old = target.with_name(f"{new.name}.old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where folders can be synced."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
