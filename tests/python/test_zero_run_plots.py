"""Figures and reports of Zero-Run audits: overlap and bootstrap beside those of every audit."""

from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from leakbound import errors, plots
from leakbound._zero_run_plots import plots_of
from leakbound.simulate import noisy_sum

GAME = noisy_sum(600, mu=2.5, shift=0.6, seed=2)


@pytest.fixture(scope="module")
def result() -> lb.ZeroRunResult:
    odds = GAME.log_odds + 0.1 * np.random.default_rng(0).normal(size=(79, 1))
    return lb.audit_zero_run(GAME.scores, GAME.member, 1 / (1 + np.exp(-odds)))


def test_which_figures_there_are(result: lb.ZeroRunResult) -> None:
    assert [*plots_of(result)] == [*plots.PLOTS, "overlap", "bootstrap"]
    known = lb.audit_zero_run(GAME.scores, GAME.member, GAME.propensity)
    assert [*plots_of(known)] == [*plots.PLOTS, "overlap"]
    assert plots_of(known.naive) == plots.PLOTS
    with pytest.raises(errors.OptionError, match="overlap, got 'bootstrap'"):
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
    assert page.count("<svg") >= 6
    assert "worth" in page
    assert "79 replicates" in page
    assert "If the propensities are right" in page
    assert lb.ZeroRunResult.from_json(result.to_json()) == result
