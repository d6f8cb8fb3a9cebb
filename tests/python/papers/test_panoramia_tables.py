"""Reproductions of PANORAMIA's tables and figures: their layout, on targets trained in no time."""

from collections.abc import Iterator

import numpy as np
import pytest

import panoramia_models
import panoramia_run
from at_hand import at_hand
from drawing import svg
from outcomes import Outcome
from panoramia_run import Sizes, audit_people
from panoramia_tables import PANORAMIA
from targets import Audited, Training, perceptron


@pytest.fixture(autouse=True, scope="module")
def _tiny() -> Iterator[None]:
    """Train for less than the reproductions do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panoramia_models, "SHARES", (0.2,))
        yield


def outcome(name: str) -> Outcome:
    return at_hand(lambda: PANORAMIA[f"panoramia-{name}"].compute(full=False, m=336, seeds=1))


def test_table_6_and_figure_12_are_of_one_run_on_adult() -> None:
    table, figure = outcome("table6"), outcome("figure12")
    assert [row[0] for row in table.rows[:3]] == [
        "MLP, 10 epochs",
        "MLP, 100 epochs",
        "MLP, DP-SGD, ε = 8",
    ]
    assert [row[4] for row in table.rows[3:]] == [0.655, 0.648]
    assert panoramia_run.people_run.cache_info().misses == 1
    precision = [line for line in figure.lines if line.panel == "share of correct guesses"]
    bounds = [line for line in figure.lines if line.panel == "c or c + ε"]
    for row, line in zip(figure.rows, bounds, strict=True):
        assert row[0] == line.name
        assert max(line.y) == row[5]
    for line in precision:
        assert min(line.y) >= 0
        assert max(line.y) <= 1
        assert np.all(np.diff(line.x) >= 0)
    assert "<svg" in svg(figure)


def test_table_11_falls_as_more_may_fail() -> None:
    found = outcome("table11")
    ours = [row for row in found.rows if row[0] == "MLP, 100 epochs"]
    assert [row[1:3] for row in ours] == [
        (delta, gamma) for delta in ("0", "1e-5") for gamma in ("0", "1e-5", "1e-4", "1e-3")
    ]
    for rows in (ours[1:4], ours[5:]):
        for column in (3, 4, 6, 7):
            values = [row[column] for row in rows]
            assert values == sorted(values, reverse=True)
    for exact, relaxed in zip(ours[:4], ours[4:], strict=True):
        assert exact[3] == relaxed[3]
        assert exact[4] >= relaxed[4]
    printed = [row for row in found.rows if "ε = 10 (printed)" in row[0] and row[1] == "0"]
    assert [row[7] for row in printed] == [2.833, 2.801, 2.57, 1.28]


def test_table_2_has_a_row_for_each_helper() -> None:
    rows = outcome("table2").rows
    ours = {row[0]: row for row in rows[:4]}
    assert tuple(ours) == panoramia_models.HELPERS
    for row in ours.values():
        assert row[4] == pytest.approx(max(0, row[3] - row[1]))
    assert [row[1] for row in rows[4:7]] == [2.44, 2.21, 2.01]


def test_a_run_has_as_many_examples_as_were_asked_for() -> None:
    assert Sizes(m=420).of(1, 6000) == {"seed": 0, "seeds": 1, "members": 1000}

    def run() -> Audited:
        training = Training(perceptron(104, 16, 2), (1,))
        return audit_people([training], conditional=False, **Sizes(m=252).of(1, 6000))

    assert {row.m for row in at_hand(run).found.rows if row.audit == "PANORAMIA"} == {252}
