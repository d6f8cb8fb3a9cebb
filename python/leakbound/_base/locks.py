"""Locks between processes: they end with the process that holds them, however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
