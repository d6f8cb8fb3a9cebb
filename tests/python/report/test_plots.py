"""Figures: the right data on the right axes, in one style that stays inside."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import leakbound as lb
from leakbound.errors import OptionError
from leakbound.report import figures as plots


def audit(shift: float, *, examples: int = 400, cuts: Any = None) -> lb.AuditResult:
    rng = np.random.default_rng(11)
    member = rng.random(examples) < 0.5
    scores = rng.normal(size=examples) + shift * member
    return lb.audit(scores, lb.Coins(member), cuts=cuts)


def generated(*, real_nonmembers: bool = False) -> lb.PanoramiaResult:
    rng = np.random.default_rng(12)
    member = rng.random(2000) < 0.5
    baseline = rng.normal(size=2000) + 0.7 * member * (not real_nonmembers)
    attack = rng.normal(size=2000) + 2.0 * member
    return lb.audit(
        attack, lb.Panoramia(member, baseline=baseline, real_nonmembers=real_nonmembers)
    )


Result = lb.AuditResult | lb.PanoramiaResult

RESULTS: dict[str, Any] = {
    "leaks": audit(2.0, cuts=lb.KLScan()),
    "nothing": audit(0.0, examples=30),
    "fixed": audit(2.0, cuts=lb.Fixed(guesses=100)),
    "few_cuts": audit(2.0, cuts=lb.UnionBound(grid=(20, 60, 150))),
    "many_examples": audit(0.4, examples=9_000),
    "estimate": generated(),
    "real_nonmembers": generated(real_nonmembers=True),
}


@pytest.fixture(params=["leaks", "few_cuts", "estimate"])
def result(request: pytest.FixtureRequest) -> Any:
    return RESULTS[request.param]


@pytest.fixture(autouse=True)
def _no_figure_left() -> Iterator[None]:
    yield
    plt.close("all")


def texts(ax: Axes) -> str:
    legend = ax.get_legend()
    named = [] if legend is None else legend.get_texts()
    titles = [ax.get_title(loc) for loc in ("left", "center", "right")]
    return "\n".join([*titles, *(text.get_text() for text in [*ax.texts, *named])])


@pytest.mark.parametrize("kind", plots.PLOTS)
def test_every_figure_of_every_kind_can_be_drawn(kind: str, result: Result) -> None:
    plt.close("all")
    before = dict(mpl.rcParams)
    ax = result.plot(kind)
    ax.figure.canvas.draw()
    assert dict(mpl.rcParams) == before
    assert ax.get_ylabel()
    assert ax.get_title("left")
    assert len(plt.get_fignums()) == 1
    assert result.plot(kind, ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def test_bound_shows_the_curve_the_bound_and_the_ceiling() -> None:
    result = RESULTS["leaks"]
    ax = result.plot("bound")
    curve = ax.lines[0]
    np.testing.assert_array_equal(curve.get_xdata(), result.curve.guesses)
    np.testing.assert_array_equal(curve.get_ydata(), result.curve.bound)
    levels = {float(line.get_ydata()[0]) for line in ax.lines[1:]}
    assert {result.bound, result.ceiling} <= levels
    assert f"{result.correct} of {result.guesses} guesses" in texts(ax)
    low, high = ax.get_ylim()
    assert low < 0
    assert high > result.ceiling
    assert ax.get_xscale() == "log"


def test_one_threshold_is_not_drawn_as_a_curve() -> None:
    with pytest.raises(OptionError, match="kind must be one of precision_recall, roc, histogram"):
        RESULTS["fixed"].plot("bound")


def test_precision_recall_shows_the_curve_and_the_chosen_cut() -> None:
    result = RESULTS["leaks"]
    ax = result.plot("precision_recall")
    _, measured, chosen = ax.lines
    np.testing.assert_array_equal(measured.get_xdata(), result.curve.recall)
    np.testing.assert_array_equal(measured.get_ydata(), result.curve.precision)
    assert np.asarray(chosen.get_ydata()).item() == result.correct / result.guesses


def test_roc_shows_the_rates_and_the_most_that_the_claim_allows() -> None:
    result = RESULTS["leaks"]
    ax = result.plot("roc")
    measured, allowed, chance = ax.lines
    assert len(np.asarray(measured.get_xdata())) == len(result.roc.guesses) + 1
    assert np.asarray(measured.get_xdata())[-1] == result.roc.false_positive_rate[-1]
    x, y = (np.asarray(values) for values in allowed.get_data())
    slope = np.exp(result.bound) * x
    mirror = 1 - np.exp(-result.bound) * (1 - x)
    np.testing.assert_allclose(y, np.minimum(slope, mirror))
    np.testing.assert_array_equal(*chance.get_data())
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("name", ["leaks", "nothing", "many_examples", "estimate"])
def test_histogram_counts_everybody(name: str) -> None:
    result = RESULTS[name]
    ax = result.plot("histogram")
    outlines = [patch for patch in ax.patches if not patch.get_fill()]
    heights = [patch.get_data().values.sum() for patch in outlines]
    members = getattr(result, "attack", result).members
    assert heights == [members, result.m - members]
    assert f"members ({members:,})" in texts(ax)
    assert all(float(tick).is_integer() for tick in ax.get_yticks())


@pytest.mark.parametrize("kind", ["bound", "precision_recall", "roc"])
def test_numbers_that_are_no_bounds_say_so_in_the_figure(kind: str) -> None:
    tag = "estimate, not a lower bound"
    assert tag in texts(RESULTS["estimate"].plot(kind))
    assert tag not in texts(RESULTS["leaks"].plot(kind))
