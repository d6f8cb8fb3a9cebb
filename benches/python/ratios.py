"""Ratios to a peer in the same run: ours and the peer's rounds take turns."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

from pytest_benchmark.fixture import BenchmarkFixture

__all__ = ["RATIOS", "Compare", "Ratio"]

Work: TypeAlias = Callable[[], object]


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


RATIOS: list[Ratio] = []
"""Those of this run."""


@dataclass(frozen=True)
class Compare:
    """What times work beside a peer, keeps the ratio, and times the work for pytest-benchmark."""

    benchmark: BenchmarkFixture

    def __call__(
        self,
        work: str,
        run: Work,
        *,
        peer: str,
        run_peer: Work,
        size: int,
        rounds: int,
        peer_share: float = 1.0,
    ) -> Ratio:
        """Time `run` and `run_peer` in turn, `rounds` times.

        `peer_share` is the share of the peer's work that `run_peer` does.
        """
        rounds_of_both = [(_seconds(run), _seconds(run_peer)) for _ in range(rounds)]
        ratios = [peer_share * ours / theirs for ours, theirs in rounds_of_both]
        first_quartile, median, third_quartile = statistics.quantiles(ratios, n=4)
        ratio = Ratio(
            work=work,
            peer=peer,
            size=size,
            seconds=statistics.median(ours for ours, _ in rounds_of_both),
            ratio=median,
            spread=(third_quartile - first_quartile) / 2,
        )
        RATIOS.append(ratio)
        self.benchmark.extra_info.update(asdict(ratio))
        self.benchmark(run)
        return ratio


def _seconds(run: Work) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
