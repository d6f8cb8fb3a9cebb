"""How much memory a call takes, its threads and the core included."""

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["forget_highest", "highest", "peak_over_start", "resident", "return_free_memory"]

_STATUS = Path("/proc/self/status")
_KIB = 1024


def peak_over_start(call: Callable[[], object]) -> int:
    """Return by how many bytes a call in a child of this process raises its resident memory."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        peak = -1
        try:
            gc.collect()
            return_free_memory()
            forget_highest()
            before = resident()
            call()
            peak = highest() - before
        finally:
            os.write(write, str(peak).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        peak = int(answer.read())
    os.waitpid(child, 0)
    assert peak >= 0, "the call raised an error"
    return peak


def return_free_memory() -> None:
    """Give the system what the allocator keeps: what a call takes of that would not be seen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return _field("VmRSS")


def highest() -> int:
    """Return the most bytes that were in memory at once."""
    return _field("VmHWM")


def forget_highest() -> None:
    """Let the most bytes be those of now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _field(name: str) -> int:
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    (line,) = (one for one in lines if one.startswith(f"{name}:"))
    return _KIB * int(line.split()[1])
