"""Figures of the Zero-Run paper: what they must show, at small sizes."""

import pytest

from leakbound.reproduce import REPRODUCTIONS, Outcome
from leakbound.reproduce import _zero_run as module
from leakbound.reproduce._draw import svg


def columns(outcome: Outcome) -> dict[str, list[float]]:
    numbers = range(1, len(outcome.columns) - 1)
    return {outcome.columns[i]: [float(row[i]) for row in outcome.rows] for i in numbers}


def test_bounds_against_shift() -> None:
    outcome = module._shift_sweep(full=False, m=1200, repetitions=1)
    found = columns(outcome)
    assert found["uncorrected, best of six"][-1] > 0.66
    assert found["composition, best of six"][1:] == [0.0] * 5
    assert max(found["matching"]) < 0.66
    for ours, theirs in zip(
        found["matching"], found["paper's tampering, unaware, best of six"], strict=True
    ):
        assert ours >= theirs - 0.05
    assert svg(outcome)


@pytest.mark.parametrize("name", ["_bootstrap", "_propensities"])
def test_fitted_propensities(name: str) -> None:
    outcome = getattr(module, name)(full=False, m=500)
    assert len(outcome.rows) == 3
    assert len(outcome.lines) in {3, 6}
    assert all(max(line.y) > 0 for line in outcome.lines)


def test_they_are_listed() -> None:
    assert {f"zerorun-figure2{x}" for x in "abc"} <= set(REPRODUCTIONS)


@pytest.mark.validity
def test_figure_2a_at_length() -> None:
    """The sizes of the paper: what is claimed of the figure holds at every shift."""
    outcome = REPRODUCTIONS["zerorun-figure2a"].compute(full=True)
    found = columns(outcome)
    shifts, wrong = zip(
        *((row[0], int(row[-1].split("/")[0])) for row in outcome.rows), strict=True
    )
    assert shifts == (1.0, 0.9, 0.8, 0.6, 0.4, 0.2)
    assert 6 <= wrong[3] <= 14  # of 20, at 0.6: about half
    assert wrong[:3] == (0, 0, 0)
    assert wrong[4:] == (20, 20)
    assert min(found["matching"][1:]) >= 0.34
    assert max(found["matching, tight test"]) < 0.66
    assert min(found["signed odds, ε"]) >= 1.0
    aware = found["paper's tampering, aware, best of six"]
    assert aware[1] == max(aware[1:]) < 0.3
    assert aware[-1] < 0.2
