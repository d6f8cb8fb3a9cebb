"""The `compare` fixture, and the table of ratios at the end of a run."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ratios import RATIOS, Compare

RESULTS = Path(__file__).parents[1] / "results"


@pytest.fixture
def compare(benchmark: BenchmarkFixture) -> Compare:
    """Return what times work beside a peer, and keeps the ratio."""
    return Compare(benchmark)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the ratios as a table, and keep them."""
    if not RATIOS:
        return
    RESULTS.mkdir(exist_ok=True)
    rows = [asdict(ratio) for ratio in RATIOS]
    (RESULTS / "ratios.json").write_text(json.dumps(rows, indent=2) + "\n")
    terminalreporter.section("ratios to a peer in this run")
    for ratio in RATIOS:
        terminalreporter.write_line(
            f"{ratio.work:<34} {ratio.size:>11,} {ratio.seconds:>9.4f} s"
            f"  {ratio.ratio:>7.3f} ± {ratio.spread:.3f} of {ratio.peer}"
        )
