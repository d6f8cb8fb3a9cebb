"""Reproductions of PANORAMIA's table and figures: their layout, on targets trained in no time."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from leakbound.demos import census
from leakbound.reproduce import REPRODUCTIONS, _panoramia
from leakbound.reproduce._draw import svg


@pytest.fixture(autouse=True, scope="module")
def _tiny() -> Iterator[None]:
    """Train for less than the reproductions do."""
    with pytest.MonkeyPatch.context() as patch:
        small = partial(census.run, seed=0)
        patch.setattr(
            census,
            "run",
            lambda **_: small(epochs=(1, 40), epsilons=(), members=800, seeds=1),
        )
        _panoramia._run.cache_clear()
        yield
    _panoramia._run.cache_clear()


def test_table_3_has_the_papers_layout() -> None:
    outcome = REPRODUCTIONS["panoramia-table3"].compute(full=False)
    ours, printed = outcome.rows[:8], outcome.rows[8:]
    assert [row[:2] for row in ours[:4]] == [
        ("1 epoch", audit) for audit in ("PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)")
    ]
    for row in (ours[0], ours[4]):
        assert row[5] == pytest.approx(max(0, row[4] - row[3]))
    assert len(printed) == 9
    assert all(row[2] == 10_000 for row in printed)


def test_figures_end_where_the_bounds_are() -> None:
    precision = REPRODUCTIONS["panoramia-figure3"].compute(full=False)
    bounds = REPRODUCTIONS["panoramia-figure4"].compute(full=False)
    assert [line.name for line in bounds.lines] == ["baseline", "1 epoch", "40 epochs"]
    for row, line in zip(bounds.rows, bounds.lines, strict=True):
        assert max(line.y) == row[5]
    for line in precision.lines:
        assert min(line.y) >= 0
        assert max(line.y) <= 1
        assert np.all(np.diff(line.x) >= 0)
    assert "<svg" in svg(bounds)
