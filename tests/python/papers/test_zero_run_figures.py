"""Figures of the Zero-Run paper: what they must show, at small sizes."""

from typing import Any

import pytest

import zero_run as module
import zero_run_shifts as shifts
from at_hand import at_hand
from drawing import svg
from outcomes import Outcome


def columns(outcome: Outcome) -> dict[str, list[float]]:
    numbers = range(1, len(outcome.columns) - 1)
    return {outcome.columns[i]: [float(row[i]) for row in outcome.rows] for i in numbers}


def test_bounds_against_shift() -> None:
    outcome = module._shift_sweep(full=False, m=1200, repetitions=1)
    found = columns(outcome)
    assert found["uncorrected, best of six"][-1] > 0.66
    assert found["composition, best of six"][1:] == [0.0] * 5
    assert max(found["matching"]) < 0.66
    assert max(found["learnt, confidence set"]) < 0.66
    assert len(found["learnt, percentile of refits"]) == 6
    for ours, theirs in zip(
        found["matching"], found["paper's tampering, unaware, best of six"], strict=True
    ):
        assert ours >= theirs - 0.05
    assert svg(outcome)


def rows(outcome: Outcome) -> dict[str, Any]:
    """The rows that are ours, by the name of the split."""
    return {str(row[0]): row[1:] for row in outcome.rows if "printed" not in str(row[0])}


def test_bootstrapped_bounds_of_real_shifts() -> None:
    outcome = at_hand(lambda: shifts._bootstrap(full=False, m=400, seeds=1))
    found = rows(outcome)
    assert [*found] == ["images, IID", "images, sites", "census, IID", "census, 1994 and 1995"]
    for name in ("images, IID", "census, IID"):
        assert found[name][0] == pytest.approx(found[name][1], abs=0.05)  # no shift
    assert found["images, sites"][0] > found["images, sites"][1]
    assert found["census, 1994 and 1995"][1] is None
    for uncorrected, _, _, quantile, over_set, p in found.values():
        assert 0 <= quantile <= uncorrected + 0.05
        assert 0 <= over_set <= uncorrected + 0.05
        assert 0 < float(p) <= 1
    densities, reported = outcome.lines[::2], outcome.lines[1::2]
    assert [line.name for line in densities] == [*found]
    for line, row in zip(reported, found.values(), strict=True):
        assert line.x == pytest.approx((row[3], row[3]), abs=1e-3)
    for line in densities:
        assert sum(line.y) * (line.x[1] - line.x[0]) == pytest.approx(1, abs=0.01)
    assert svg(outcome)


@pytest.mark.validity
def test_figure_2b_at_length() -> None:
    """Shift passes for leakage where it is not corrected for; corrected, little is left of it."""
    compute = shifts.ZERO_RUN_SHIFTS["zerorun-figure2b"].compute
    found = rows(at_hand(lambda: compute(full=False)))
    uncorrected, exact, middle, quantile, _, _ = found["images, sites"]
    assert uncorrected > exact
    assert quantile < middle < uncorrected
    for name in ("census, IID", "census, 1994 and 1995"):
        uncorrected, _, middle, quantile, over_set, _ = found[name]
        assert 0.3 < quantile < middle <= uncorrected
        assert 0 < over_set < quantile


@pytest.mark.validity
def test_figure_2a_at_length() -> None:
    """The sizes of the paper: what is claimed of the figure holds at every shift."""
    outcome = module.ZERO_RUN["zerorun-figure2a"].compute(full=True)
    found = columns(outcome)
    shifts, wrong = zip(
        *((row[0], int(row[-1].split("/")[0])) for row in outcome.rows), strict=True
    )
    assert shifts == (1.0, 0.9, 0.8, 0.6, 0.4, 0.2)
    assert 6 <= wrong[3] <= 14  # of 20, at 0.6: about half
    assert wrong[:3] == (0, 0, 0)
    assert wrong[4:] == (20, 20)
    assert min(found["matching"][1:]) >= 0.34
    assert max(found["matching"]) < 0.66
    assert min(found["signed odds, ε"]) >= 1.0
    aware = found["paper's tampering, aware, best of six"]
    assert aware[1] == max(aware[1:]) < 0.3
    assert aware[-1] < 0.2
