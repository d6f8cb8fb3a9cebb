"""Reproductions of PANORAMIA's table and figures: their layout, on targets trained in no time."""

from collections.abc import Iterator
from typing import Any

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


def numbers(row: tuple[Any, ...]) -> list[float]:
    """The numbers at the end of a row."""
    return [value for value in row if isinstance(value, float)]


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


def test_figure_10_counts_what_figure_3_shares() -> None:
    shares, counts = outcome("figure3"), outcome("figure10")
    assert shares.rows == counts.rows
    for share, count in zip(shares.lines, counts.lines, strict=True):
        np.testing.assert_allclose(np.array(share.y) * count.x, count.y)
    assert "<svg" in svg(counts)


def test_figure_14_tells_members_learnt_by_heart() -> None:
    found = outcome("figure14")
    medians = {row[:2]: row[3] for row in found.rows}
    sides = ("members", "generated", "real non-members")
    assert [*medians] == [
        (model, side) for model in ("1 epoch", "40 epochs", "helper") for side in sides
    ]
    assert medians["40 epochs", "members"] < 0.7 * medians["40 epochs", "real non-members"]
    assert medians["helper", "members"] == pytest.approx(
        medians["helper", "real non-members"], rel=0.2
    )
    for line in found.lines:
        assert sum(line.y) == pytest.approx(1)
    assert "<svg" in svg(found)


def test_figure_6_ends_with_all_pairs() -> None:
    found = outcome("figure6")
    table = {row[:2]: row for row in outcome("table3").rows}
    for target in ("1 epoch", "40 epochs"):
        ours = [row for row in found.rows if row[0] == target]
        sizes = [row[1] for row in ours]
        assert sizes == [125, 250, 336]
        c, both, difference, real, by_loss = ours[-1][2:]
        assert (c, both, difference) == table[target, "PANORAMIA"][3:6]
        assert real == table[target, "RM;RN"][-1]
        assert by_loss == table[target, "O(1)"][-1]
    learnt = [row[-1] for row in found.rows if row[0] == "40 epochs"]
    assert learnt == sorted(learnt)
    assert learnt[-1] > learnt[0] + 0.1
    assert [row[2:5] for row in found.rows[-4:-3]] == [(2.44, 3.6, 1.16)]
    assert "<svg" in svg(found)


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
    for row in ours:
        assert all(value >= 0 for value in numbers(row))
    assert min(ours[0][4], ours[0][7]) > 0.1
    printed = [row for row in found.rows if "ε = 10 (printed)" in row[0] and row[1] == "0"]
    assert [row[7] for row in printed] == [2.833, 2.801, 2.57, 1.28]
    assert "<svg" in svg(found)


def test_table_2_has_a_row_for_each_helper() -> None:
    rows = outcome("table2").rows
    ours = {row[0]: row for row in rows[:4]}
    assert tuple(ours) == panoramia_models.HELPERS
    for row in ours.values():
        assert row[1] > 0.3
        assert row[4] == pytest.approx(max(0, row[3] - row[1]))
    assert len({row[1:] for row in ours.values()}) == 4
    assert [row[1] for row in rows[4:7]] == [2.44, 2.21, 2.01]
    assert all("(printed)" in row[0] for row in rows[4:])


def test_figures_2_and_9_share_a_point_with_table_2() -> None:
    c = outcome("table2").rows[0][1]
    by_training, by_share = outcome("figure2"), outcome("figure9")
    assert [row[0] for row in by_training.rows] == [40, 80, 160, 320]
    assert by_training.rows[-1][1] == c
    assert [row[:2] for row in by_share.rows] == [(80, 456), (160, 416), (320, 336), (640, 176)]
    assert by_share.rows[2][2] == c
    assert "<svg" in svg(by_training)
    assert "<svg" in svg(by_share)


def test_table_7_compares_accuracies_too() -> None:
    rows = outcome("table7").rows
    name, c, both, difference, by_loss, training, test, gap = rows[0]
    assert name == "40 epochs"
    assert difference == pytest.approx(max(0, both - c))
    assert by_loss > difference
    assert gap == pytest.approx(training - test)
    assert gap > 0.05
    assert rows[1][1:5] == (2.44, 3.87, 1.43, 1.471)


def test_figure_15_is_of_models_by_size() -> None:
    found = outcome("figure15")
    for row, width in zip(found.rows, panoramia_models.WIDTHS, strict=True):
        network = table_classifier(width).network()
        assert row[:2] == (width, sum(weight.numel() for weight in network.parameters()))
    accuracies = [row[6] for row in found.rows]
    assert accuracies == sorted(accuracies)
    assert "<svg" in svg(found)
