"""Scores on their way to where they are kept: memory, or a file."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import torch
from torch import Tensor

from leakbound._base.checks import instance
from leakbound._base.files import replacing
from leakbound._base.types import FloatArray
from leakbound.errors import OptionError
from leakbound.torch.signals import float64

Keep: TypeAlias = Callable[[Iterable[Tensor]], tuple[FloatArray, bool]]
"""From the scores of all batches to those of all examples, and whether they are floats."""

_WAITING = 1 << 16
"""Scores that stay on the device before they are written together."""


@contextmanager
def keeping(out: str | os.PathLike[str] | None) -> Iterator[Keep]:
    """Lend a function that puts scores together, in memory or in the file `out`.

    The file gets its name when the block ends without an error, and not before.
    """
    if out is None:
        yield _collect
        return
    instance(out, "out", (str, os.PathLike))
    if Path(out).suffix != ".npy":
        message = f"out must end in .npy, the format that is written, got {os.fspath(out)!r}"
        raise OptionError(message)
    with replacing(out) as file:
        yield partial(_write, file)


def _collect(parts: Iterable[Tensor]) -> tuple[FloatArray, bool]:
    """Keep all on the device, and wait for it once, at the end."""
    listed = list(parts)
    if not listed:
        return np.empty(0), True
    return _read(listed), listed[0].is_floating_point()


def _write(file: BinaryIO, parts: Iterable[Tensor]) -> tuple[FloatArray, bool]:
    """Write as we go: a head of fixed length, the scores, then the head with their number."""
    _write_head(file, 0)
    start = file.tell()
    total, floating = 0, True
    waiting: list[Tensor] = []
    for part in parts:
        waiting.append(part)
        floating = part.is_floating_point()
        if sum(map(len, waiting)) >= _WAITING:
            total += _append(file, waiting)
    total += _append(file, waiting)
    file.seek(0)
    _write_head(file, total)
    file.flush()
    if not total:
        return np.empty(0), floating
    return np.memmap(file.name, np.dtype("<f8"), "r", start, (total,)), floating


def _append(file: BinaryIO, waiting: list[Tensor]) -> int:
    """Write the scores that wait, and return their number."""
    if not waiting:
        return 0
    values = _read(waiting)
    waiting.clear()
    file.write(values.astype("<f8", copy=False).data)
    return values.size


def _write_head(file: BinaryIO, examples: int) -> None:
    # NumPy leaves room in the head for the length of the array to grow.
    content = {"descr": "<f8", "fortran_order": False, "shape": (examples,)}
    np.lib.format.write_array_header_1_0(file, content)


def _read(parts: list[Tensor]) -> FloatArray:
    values: FloatArray = float64(torch.cat(parts)).cpu().numpy()
    return values
