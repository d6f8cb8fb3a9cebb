"""Figures of the Zero-Run paper: what they must show, at small sizes."""

import pytest

import zero_run as module
import zero_run_images as images
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


def test_bootstrapped_bounds_of_shifted_images() -> None:
    outcome = images._bootstrap(full=False, m=400, seeds=1)
    found = {str(row[0]): row[1:] for row in outcome.rows}
    assert [*found] == ["IID", "OOD", "IID (printed)", "OOD (printed)"]
    uncorrected, exact, _, quantile, over_set, p = found["OOD"]
    assert uncorrected > exact
    assert 0 <= quantile < uncorrected
    assert 0 <= over_set < uncorrected
    assert 0 < float(p) <= 1
    assert found["IID"][0] == pytest.approx(found["IID"][1], abs=0.05)  # no shift
    densities, reported = outcome.lines[::2], outcome.lines[1::2]
    assert [line.name for line in densities] == ["IID", "OOD"]
    for line, row in zip(reported, outcome.rows, strict=False):
        assert line.x == pytest.approx((row[4], row[4]), abs=1e-3)
    for line in densities:
        width = line.x[1] - line.x[0]
        assert sum(line.y) * width == pytest.approx(1, abs=0.01)
    assert svg(outcome)


@pytest.mark.validity
def test_figure_2b_at_length() -> None:
    """Shift passes for leakage where it is not corrected for; corrected, both splits are alike."""
    outcome = images.ZERO_RUN_IMAGES["zerorun-figure2b"].compute(full=False)
    found = {str(row[0]): row[1:] for row in outcome.rows}
    assert found["OOD"][0] > 1.5 * found["IID"][0]
    for split in ("IID", "OOD"):
        uncorrected, exact, middle, quantile, over_set, p = found[split]
        assert 0.15 < quantile < middle <= uncorrected
        assert middle == pytest.approx(exact, abs=0.1)
        assert 0 <= over_set <= exact + 0.1
        assert 0 < float(p) <= 1
    assert found["OOD"][3] == pytest.approx(found["IID"][3], abs=0.12)


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
