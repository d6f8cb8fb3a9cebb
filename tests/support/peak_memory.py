"""How much memory a call takes, its threads and the core included."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["peak_over_start"]

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
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # of the peak
            before = _resident("VmRSS")
            call()
            peak = _resident("VmHWM") - before
        finally:
            os.write(write, str(peak).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        peak = int(answer.read())
    os.waitpid(child, 0)
    assert peak >= 0, "the call raised an error"
    return peak


def _resident(field: str) -> int:
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    (line,) = (one for one in lines if one.startswith(f"{field}:"))
    return _KIB * int(line.split()[1])
