"""Figures and reports of Zero-Run audits: overlap and bootstrap beside those of every audit."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

import leakbound as lb
from leakbound import errors
from leakbound.report import figures as plots
from leakbound.report import svg
from leakbound.report.style import house_style
from leakbound.results.zero_run import plot_shift
from leakbound.simulate import noisy_sum

GAME = noisy_sum(600, mu=2.5, shift=0.6, seed=2)


@pytest.fixture(scope="module")
def result() -> lb.ZeroRunResult:
    odds = GAME.log_odds + 0.1 * np.random.default_rng(0).normal(size=(79, 1))
    return lb.audit_zero_run(GAME.scores, GAME.member, 1 / (1 + np.exp(-odds)))


def names(result: lb.AuditResult) -> list[str]:
    return [figure.name for figure in result.figures()]


def test_which_figures_there_are(result: lb.ZeroRunResult) -> None:
    assert names(result) == [*plots.PLOTS, "overlap", "shift", "bootstrap"]
    known = lb.audit_zero_run(GAME.scores, GAME.member, GAME.propensity)
    assert names(known) == [*plots.PLOTS, "overlap", "shift"]
    with pytest.raises(errors.OptionError, match="shift, got 'bootstrap'"):
        known.plot("bootstrap")


def test_the_bootstrap_shows_what_is_reported(result: lb.ZeroRunResult) -> None:
    axes = result.plot("bootstrap")
    assert result.bootstrap is not None
    drawn = {str(line.get_label()): float(np.asarray(line.get_xdata())[0]) for line in axes.lines}
    assert drawn == {"reported": result.bound, "at the estimate": result.bootstrap.estimate}
    counted = sum(patch.get_height() for patch in axes.patches)  # type: ignore[attr-defined]
    assert counted == 79
    assert "79 replicates" in axes.get_title(loc="left")


def test_the_report_has_both(result: lb.ZeroRunResult, tmp_path: Path) -> None:
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 7
    assert "not a bound at the stated confidence" in page
    assert "worth" in page
    assert "79 replicates" in page
    assert "Exploratory: " in page
    assert "If the propensities are right" not in page
    assert lb.ZeroRunResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("claim", "options"),
    [
        (lb.PureDP(), {}),
        (lb.PureDP(), {"variant": "absolute", "cuts": lb.Fixed(100)}),
        (lb.PureDP(), {"correction": "composition"}),
        (lb.GaussianDP(), {"correction": "match"}),
        (lb.GaussianDP(), {"correction": "tamper"}),
        (lb.ApproxDP(delta=1e-6), {"correction": "composition"}),
    ],
    ids=str,
)
def test_bounds_against_shift(claim: Any, options: dict[str, Any]) -> None:
    result: lb.ZeroRunResult = lb.audit_zero_run(
        GAME.scores, GAME.member, GAME.propensity, claim=claim, **options
    )
    curve = result.shift_curve
    assert curve is not None
    sizes = np.abs(GAME.log_odds)
    assert curve.max_log_odds[-1] == pytest.approx(sizes.max())
    assert curve.examples.tolist() == [np.sum(sizes <= x) for x in curve.max_log_odds + 1e-12]
    assert np.all(np.diff(curve.max_log_odds) > 0)
    assert curve.bound[-1] == result.bound  # all of them are the audit itself
    if "cuts" not in options and isinstance(claim, lb.PureDP):
        for limit, bound in zip(curve.max_log_odds[2:5], curve.bound[2:5], strict=True):
            alone: lb.ZeroRunResult = lb.audit_zero_run(
                GAME.scores,
                GAME.member,
                GAME.propensity,
                claim=claim,
                max_log_odds=float(limit) + 1e-12,
                **options,
            )
            assert bound == pytest.approx(alone.bound, abs=1e-9)
    again = lb.ZeroRunResult.from_json(result.to_json()).shift_curve
    assert again is not None
    assert np.array_equal(again.bound, curve.bound)
    assert np.array_equal(again.naive, curve.naive)


def test_what_the_naive_audit_sees_of_shift_alone() -> None:
    """Far examples make the naive audit claim more; near ones are comparable."""
    rng = np.random.default_rng(3)
    odds = 1.5 * rng.normal(size=4000)
    member = rng.random(4000) < 1 / (1 + np.exp(-odds))
    result = lb.audit_zero_run(
        odds + 0.2 * rng.normal(size=4000), member, 1 / (1 + np.exp(-odds)), claim=lb.PureDP()
    )
    curve = result.shift_curve
    assert curve is not None
    assert not curve.bound.any()
    assert curve.naive[0] < 0.5 < 2 < curve.naive[-1]


def test_the_figure_of_bounds_against_shift(result: lb.ZeroRunResult) -> None:
    axes = result.plot("shift")
    curve = result.shift_curve
    assert curve is not None
    lines = {str(line.get_label()): np.asarray(line.get_ydata(), float) for line in axes.lines}
    assert np.array_equal(lines["corrected"], curve.bound)
    assert np.array_equal(lines["naive: shift not corrected for"], curve.naive)
    assert set(lines["reported"]) == {result.bound}
    assert "600" in axes.get_xticklabels()[-1].get_text()
    assert any("exploratory" in text.get_text() for text in axes.texts)


@pytest.mark.parametrize("examples", [600, 60_000, 6_000_000])
def test_no_words_of_a_page_are_cut_off_or_on_each_other(
    result: lb.ZeroRunResult, examples: int
) -> None:
    curve = result.shift_curve
    assert curve is not None
    large = replace(curve, examples=curve.examples * (examples // 600))
    for figure in result.figures():
        with house_style():
            canvas = Canvas(figsize=svg._SIZE, layout="constrained")
            axes = canvas.add_subplot()
            if figure.name == "shift":
                plot_shift(large, result.bound, "ε", axes)
            else:
                figure.draw(axes)
            axes.set_title("")
            canvas.draw_without_rendering()
            whole = canvas.bbox
            for text in [*axes.texts, axes.xaxis.label, axes.yaxis.label]:
                box = text.get_window_extent()
                assert box.x0 > -1, text.get_text()
                assert box.x1 < whole.x1 + 1, text.get_text()
            ticks = [text for text in axes.get_xticklabels() if text.get_text()]
            boxes = sorted((text.get_window_extent() for text in ticks), key=lambda box: box.x0)
            assert all(left.x1 < right.x0 for left, right in pairwise(boxes)), figure.name
            assert axes.get_window_extent().width > 0.7 * whole.width, figure.name


def test_shares_that_a_policy_cannot_audit_are_left_out() -> None:
    cuts = lb.KLScan(min_guesses=400)
    result = lb.audit_zero_run(
        GAME.scores, GAME.member, GAME.propensity, claim=lb.PureDP(), cuts=cuts
    )
    curve = result.shift_curve
    assert curve is not None
    assert 0 < curve.examples.size < 8
    assert curve.examples.min() >= 400
    assert curve.bound[-1] == result.bound > 0
    draws = np.tile(GAME.propensity, (79, 1))
    again = lb.audit_zero_run(
        GAME.scores, GAME.member, draws, claim=lb.PureDP(), cuts=cuts, confidence=0.9
    )
    assert again.bound == pytest.approx(result.bound, abs=1e-9)


def test_a_bound_that_is_withheld_is_not_shown_against_shift() -> None:
    game = noisy_sum(2000, mu=3.0, shift=0.1, seed=1, bias=3.0)
    result = lb.audit_zero_run(game.scores, game.member, np.full(2000, 0.5), features=game.features)
    assert result.withheld
    assert result.shift_curve is None
    assert "shift" not in names(result)
    again = lb.ZeroRunResult.from_json(result.to_json())
    assert again == result
    assert again.shift_curve is None
