"""What demonstrations share: progress, reproducible training, quiet tools, scores on disk."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import torch

from leakbound._files import write_text
from leakbound._scores import Scores
from leakbound.plan import InclusionPlan

__all__ = ["DELTA", "Progress", "Ticks", "quiet_opacus", "reproducible", "write_scores"]

Progress: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share of the work done so far, from 0 to 1."""

DELTA = 1e-5
"""The δ of every model trained with DP-SGD."""


class Ticks:
    """Counts epochs and reports the share of them done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, what: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(what, self._done / self._total)


def write_scores(folder: Path, name: str, scores: Scores, plan: InclusionPlan) -> None:
    """Write scores as a table that ``leakbound one-run`` reads.

    Parameters
    ----------
    folder : Path
        Where to; made if need be.
    name : str
        What the model is called, which the file is named after.
    scores : Scores
        Its scores.
    plan : InclusionPlan
        Membership.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = zip(scores.ids.tolist(), plan.member.tolist(), scores.values.tolist(), strict=True)
    lines = [f"{label},{int(member)},{value!r}" for label, member, value in columns]
    file = name.lower().replace(", ε = ", "-epsilon-").replace(" ", "-")
    write_text(folder / f"{file}.csv", "\n".join(["id,member,score", *lines, ""]))


@contextmanager
def reproducible() -> Iterator[None]:
    """Run on one thread, with random streams of our own: same seed, same bits.

    One thread is also fastest for networks this small.

    Yields
    ------
    None
        Nothing; threads and random state are given back after.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def quiet_opacus() -> Iterator[None]:
    """Silence what opacus warns of on every run and what does not matter here.

    Yields
    ------
    None
        Nothing; other warnings come through.
    """
    with warnings.catch_warnings():
        # A guarantee against an adversary who predicts the generator needs another package.
        warnings.filterwarnings("ignore", "Secure RNG turned off", UserWarning)
        # The inputs of a first layer need no gradient; per-example gradients are unaffected.
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
        # The noise is first bracketed with a coarse accountant, then found with an exact one.
        warnings.filterwarnings("ignore", "Optimal order is the", UserWarning)
        yield
