"""The `record` fixture, and the table of ratios at the end of a run."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ratios import Ratio

RESULTS = Path(__file__).parents[1] / "results"

_ratios: list[Ratio] = []


@pytest.fixture
def record(benchmark: BenchmarkFixture) -> Callable[[Ratio, Callable[[], object]], None]:
    """Keep a ratio, and time the work once more for pytest-benchmark's own table."""

    def record(ratio: Ratio, run: Callable[[], object]) -> None:
        _ratios.append(ratio)
        benchmark.extra_info.update(asdict(ratio))
        benchmark(run)

    return record


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
