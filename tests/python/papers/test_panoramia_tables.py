"""Reproductions of PANORAMIA's table and figures: their layout, on targets trained in no time."""

from collections.abc import Iterator

import numpy as np
import pytest
from torch import nn

import panoramia_models
import panoramia_run
from census import Census, features
from drawing import svg
from leakbound.generators import Samples
from leakbound.panoramia import StackedAttack
from outcomes import Outcome
from panoramia_tables import PANORAMIA
from targets import table_classifier


@pytest.fixture(autouse=True, scope="module")
def _tiny() -> Iterator[None]:
    """Train for less than the reproductions do."""
    with pytest.MonkeyPatch.context() as patch:
        tiny = {"members": 800, "seeds": 1}
        patch.setattr(panoramia_run, "QUICK", {"epochs": (1, 40), "epsilons": (), **tiny})
        patch.setattr(panoramia_models, "QUICK", {"epochs": (5,), **tiny})
        patch.setattr(panoramia_models, "WIDTHS", (16, 256))
        patch.setattr(panoramia_models, "setting", older_people)
        _forget()
        yield
    _forget()


def _forget() -> None:
    for cached in (panoramia_run.census_run, panoramia_models.trained, panoramia_models.audit):
        cached.cache_clear()


class Older(Census):
    """A census of people ten years older."""

    def sample(self, n: int, *, seed: int) -> Samples:
        drawn = super().sample(n, seed=seed)
        values = drawn.values.copy()
        values[:, 0] += 10
        return Samples(values, drawn.labels)


def older_people(*, full: bool) -> panoramia_models.Setting:  # noqa: ARG001
    return panoramia_models.Setting(
        process=Census(),
        recipe=table_classifier(16),
        generator=Older(),
        attack=StackedAttack(),
        inputs=features,
        other=lambda: nn.Linear(12, 2),
        members=800,
        seeds=(0,),
    )


def outcome(name: str) -> Outcome:
    return PANORAMIA[f"panoramia-{name}"].compute(full=False)


def test_table_3_has_the_papers_layout() -> None:
    rows = outcome("table3").rows
    ours, printed = rows[:12], rows[12:]
    zero_run = ("Zero-Run, match", "Zero-Run, Poisson-binomial")
    assert [row[:2] for row in ours[:6]] == [
        ("1 epoch", audit)
        for audit in ("PANORAMIA", "PANORAMIA, union", *zero_run, "RM;RN", "O(1)")
    ]
    for row in (ours[0], ours[6]):
        assert row[5] == pytest.approx(max(0, row[4] - row[3]))
    assert len(printed) == 9
    assert all(row[2] == 10_000 for row in printed)


def test_figures_end_where_the_bounds_are() -> None:
    precision = outcome("figure3")
    bounds = outcome("figure4")
    assert [line.name for line in bounds.lines] == ["baseline", "1 epoch", "40 epochs"]
    for row, line in zip(bounds.rows, bounds.lines, strict=True):
        assert max(line.y) == row[5]
    for line in precision.lines:
        assert min(line.y) >= 0
        assert max(line.y) <= 1
        assert np.all(np.diff(line.x) >= 0)
    assert "<svg" in svg(bounds)


def test_table_11_falls_as_more_may_fail() -> None:
    found = outcome("table11")
    ours = [row for row in found.rows if row[0] == "40 epochs"]
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
    assert min(value for row in ours for value in row if isinstance(value, float)) >= 0
    assert min(ours[0][4], ours[0][7]) > 0.1
    assert "<svg" in svg(found)


def test_table_2_has_a_row_for_each_helper() -> None:
    rows = outcome("table2").rows
    ours, printed = {row[0]: row for row in rows[:4]}, rows[4:]
    assert tuple(ours) == panoramia_models.HELPERS
    for row in ours.values():
        assert row[1] > 0.3
        assert row[4] == pytest.approx(max(0, row[3] - row[1]))
    assert len({row[1:] for row in ours.values()}) == 4
    assert all("(printed)" in row[0] for row in printed)
