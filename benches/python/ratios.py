"""Ratios to a peer in the same run: ours and the peer's rounds take turns."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Ratio", "measure"]


@dataclass(frozen=True)
class Ratio:
    """How long some work took, in units of its peer."""

    work: str
    peer: str
    size: int
    seconds: float
    ratio: float
    """Median over rounds."""
    spread: float
    """Half the distance between its quartiles."""


def measure(
    work: str,
    run: Callable[[], object],
    *,
    peer: str,
    run_peer: Callable[[], object],
    size: int,
    rounds: int,
) -> Ratio:
    """Time `run` and `run_peer` in turn, `rounds` times."""
    pairs = [(_seconds(run), _seconds(run_peer)) for _ in range(rounds)]
    ratios = [ours / theirs for ours, theirs in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    seconds = statistics.median(ours for ours, _ in pairs)
    return Ratio(
        work=work,
        peer=peer,
        size=size,
        seconds=seconds,
        ratio=statistics.median(ratios),
        spread=(high - low) / 2,
    )


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
