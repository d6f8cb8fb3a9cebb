"""Long loops over replicates: in blocks, on any executor, with checkpoints."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, as_completed

import numpy as np

from leakbound._base.checkpoints import Checkpoints
from leakbound._base.progress import track
from leakbound._base.types import FloatArray

__all__ = ["BLOCK", "run_blocks"]

BLOCK = 64
"""Replicates of one task of an executor, and of one file of a checkpoint."""

Task = Callable[[int, int], FloatArray]
"""Returns one row for each of `count` replicates from number `first`."""


def run_blocks(
    task: Task,
    replicates: int,
    *,
    size: int = BLOCK,
    executor: Executor | None = None,
    checkpoint: Checkpoints | None = None,
    progress: bool = True,
) -> FloatArray:
    """Run a task over blocks of replicates, or find them again, and put the results in order."""
    blocks = [(first, min(size, replicates - first)) for first in range(0, replicates, size)]
    finished: dict[int, FloatArray] = {}
    if checkpoint is not None:
        stored = ((first, checkpoint.load(_name(first, count))) for first, count in blocks)
        finished = {first: block["block"] for first, block in stored if block is not None}
    open_blocks = [block for block in blocks if block[0] not in finished]
    run = _here(task, open_blocks) if executor is None else _there(task, open_blocks, executor)
    for first, block in track(run, "bootstrap", total=len(open_blocks), shown=progress):
        finished[first] = block
        if checkpoint is not None:
            checkpoint.save(_name(first, len(block)), {"block": block})
    return np.concatenate([finished[first] for first, _ in blocks])


def _name(first: int, count: int) -> str:
    return f"{first:08d}-{count}"


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
