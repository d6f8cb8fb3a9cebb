"""Long loops over replicates: in blocks, on any executor, with checkpoints."""

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, as_completed
from pathlib import Path

import numpy as np

from leakbound._base.archives import DamagedFileError, open_archive
from leakbound._base.files import replacing, write_text
from leakbound._base.progress import track
from leakbound._base.types import FloatArray
from leakbound.errors import CheckpointError

__all__ = ["BLOCK", "Checkpoint", "run_blocks"]

BLOCK = 64
"""Replicates of one task of an executor, and of one file of a checkpoint."""

Task = Callable[[int, int], FloatArray]
"""Returns one row for each of `count` replicates from number `first`."""


class Checkpoint:
    """A folder with a file for each finished block, and the key of what they are results of.

    Parameters
    ----------
    path : str or os.PathLike
        The folder; made if it does not exist.
    key : str
        Whatever decides the numbers: data, model, seed.

    Raises
    ------
    CheckpointError
        If the folder was begun with another key, or is not a checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str], key: str) -> None:
        self._folder = Path(path)
        stored = self._folder / "key"
        self._folder.mkdir(parents=True, exist_ok=True)
        found = sorted(file.name for file in self._folder.iterdir() if file.name[0] != ".")
        if not found:
            write_text(stored, key)
        elif not stored.is_file():
            message = (
                f"{self._folder} is not a checkpoint: it holds {', '.join(found[:3])} and no key "
                "that says what was computed; give an empty folder, or a new one"
            )
            raise CheckpointError(message)
        elif stored.read_bytes() != key.encode():
            message = (
                f"{self._folder} is a checkpoint of other data, another model or another seed: "
                "give another folder, or delete this one"
            )
            raise CheckpointError(message)

    def load(self, first: int, count: int) -> FloatArray | None:
        """Return a finished block.

        Parameters
        ----------
        first, count : int
            The replicates.

        Returns
        -------
        ndarray or None
            None if it is not finished.

        Raises
        ------
        CheckpointError
            If its file is damaged, or is not as it was stored.
        """
        path = self._path(first, count)
        if not path.exists():
            return None
        try:
            with open_archive(path) as content:
                block, seal = content["block"], str(content["sha256"])
        except (DamagedFileError, OSError) as error:
            message = f"the block {path} cannot be read: {error}; remove it to compute it anew"
            raise CheckpointError(message) from error
        if (
            block.dtype != np.float64
            or block.ndim == 0
            or len(block) != count
            or seal != _seal(block, first)
            or np.isnan(block).any()
        ):
            message = f"the block {path} is not as it was stored: remove it to compute it anew"
            raise CheckpointError(message)
        return block

    def save(self, first: int, block: FloatArray) -> None:
        """Store a finished block, all of it or nothing.

        Parameters
        ----------
        first : int
            Number of its first replicate.
        block : ndarray
            One row for each replicate.
        """
        with replacing(self._path(first, len(block))) as file:
            np.savez(file, block=block, sha256=np.array(_seal(block, first)))

    def _path(self, first: int, count: int) -> Path:
        return self._folder / f"{first:08d}-{count}.npz"


def _seal(block: FloatArray, first: int) -> str:
    """Return a digest of a block: its place, shape and values."""
    content = hashlib.sha256(f"{first} {block.shape}".encode())
    content.update(np.ascontiguousarray(block, "<f8").data)
    return content.hexdigest()


def run_blocks(
    task: Task,
    replicates: int,
    *,
    size: int = BLOCK,
    executor: Executor | None = None,
    checkpoint: Checkpoint | None = None,
    progress: bool = True,
) -> FloatArray:
    """Run a task over blocks of replicates and put the results in order.

    Parameters
    ----------
    task : callable
        Returns one row for each of `count` replicates from number `first`. For processes and Dask
        it must be picklable.
    replicates : int
        How many in all.
    size : int
        Replicates of a block.
    executor : concurrent.futures.Executor, optional
        Where to run the blocks; here, one after the other, if None.
    checkpoint : Checkpoint, optional
        Where finished blocks are kept and found again.
    progress : bool
        Whether to show a bar, where somebody looks.

    Returns
    -------
    ndarray of float64, shape (replicates, …)
        The rows, whatever the executor and its number of workers.
    """
    blocks = [(first, min(size, replicates - first)) for first in range(0, replicates, size)]
    finished: dict[int, FloatArray] = {}
    if checkpoint is not None:
        stored = ((first, checkpoint.load(first, count)) for first, count in blocks)
        finished = {first: block for first, block in stored if block is not None}
    open_blocks = [block for block in blocks if block[0] not in finished]
    run = _here(task, open_blocks) if executor is None else _there(task, open_blocks, executor)
    for first, block in track(run, "bootstrap", total=len(open_blocks), shown=progress):
        finished[first] = block
        if checkpoint is not None:
            checkpoint.save(first, block)
    return np.concatenate([finished[first] for first, _ in blocks])


def _here(task: Task, blocks: list[tuple[int, int]]) -> Iterator[tuple[int, FloatArray]]:
    for first, count in blocks:
        yield first, task(first, count)


def _there(
    task: Task, blocks: list[tuple[int, int]], executor: Executor
) -> Iterator[tuple[int, FloatArray]]:
    futures = {executor.submit(task, first, count): first for first, count in blocks}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()
