"""Locks between processes: they end with the process that holds them, however it ends."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Windows has no such locks: there one process at a time may write.
fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None


def take(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file or folder for its owner alone, and return whether that was possible.

    Closing the descriptor ends the lock. Where the system has no such locks there is nothing to
    wait for: some network file systems lock no folders.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Run the block while no other process runs one with the same folder."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        take(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


_HELD: dict[tuple[int, int], list[int]] = {}
"""Files that this process holds, by device and number: the descriptor, and by how many owners."""


def hold(owner: object, file: Path) -> str:
    """Hold a file for this process as long as an owner lives; return who else holds it, or "".

    The lock belongs to the process: after an interrupt, it can continue with what it began.
    """
    descriptor = os.open(file, os.O_RDONLY)
    status = os.fstat(descriptor)
    key = status.st_dev, status.st_ino
    if key in _HELD:
        os.close(descriptor)
    elif take(descriptor, wait=False):
        _HELD[key] = [descriptor, 0]
    else:
        os.close(descriptor)
        return holder(status.st_ino)
    _HELD[key][1] += 1
    weakref.finalize(owner, _release_lock, key)
    return ""


def _release_lock(key: tuple[int, int]) -> None:
    held = _HELD[key]
    held[1] -= 1
    if not held[1]:
        os.close(_HELD.pop(key)[0])


def holder(number: int) -> str:
    """Return who locks a file, as far as the system tells."""
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(f":{number}"):
                return f"process {words[4]}"
    return "another process"
