"""Ratios to a peer in the same run: ours and the peer's rounds take turns, medians are compared."""

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Ratio:
    """How long something took, in units of its peer."""

    work: str
    peer: str
    size: int
    seconds: float
    ratio: float
    spread: float
    """Half the distance between the quartiles of the ratio over rounds."""


class Compare(Protocol):
    """Time work beside its peer and record the ratio."""

    def __call__(
        self,
        work: str,
        run: Callable[[], object],
        *,
        peer: str,
        run_peer: Callable[[], object],
        size: int,
        rounds: int,
    ) -> None: ...


_ratios: list[Ratio] = []


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


@pytest.fixture
def compare(benchmark: BenchmarkFixture) -> Compare:
    def compare(
        work: str,
        run: Callable[[], object],
        *,
        peer: str,
        run_peer: Callable[[], object],
        size: int,
        rounds: int,
    ) -> None:
        pairs = [(_seconds(run), _seconds(run_peer)) for _ in range(rounds)]
        ratios = [ours / theirs for ours, theirs in pairs]
        low, _, high = statistics.quantiles(ratios, n=4)
        ours = statistics.median(ours for ours, _ in pairs)
        record = Ratio(work, peer, size, ours, statistics.median(ratios), (high - low) / 2)
        _ratios.append(record)
        benchmark.extra_info.update(asdict(record))
        benchmark.pedantic(run, rounds=1)

    return compare


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the ratios as a table, and keep them."""
    if not _ratios:
        return
    RESULTS.mkdir(exist_ok=True)
    rows = [asdict(ratio) for ratio in _ratios]
    (RESULTS / "ratios.json").write_text(json.dumps(rows, indent=2) + "\n")
    terminalreporter.section("ratios to a peer in this run")
    for ratio in _ratios:
        terminalreporter.write_line(
            f"{ratio.work:<34} {ratio.size:>11,} {ratio.seconds:>9.4f} s"
            f"  {ratio.ratio:>7.3f} ± {ratio.spread:.3f} of {ratio.peer}"
        )
