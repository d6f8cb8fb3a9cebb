"""Figures and reports of Zero-Run audits: the overlap beside those of every audit."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

import leakbound as lb
from leakbound import errors
from leakbound.report import page
from leakbound.report.style import house_style
from noisy_sums import noisy_sum

GAME = noisy_sum(600, mu=2.5, shift=0.6, seed=2)


@pytest.fixture(scope="module")
def result() -> lb.ZeroRunResult:
    odds = GAME.log_odds + 0.1 * np.random.default_rng(0).normal(size=(79, 1))
    return lb.audit(GAME.scores, lb.ZeroRun(GAME.member, 1 / (1 + np.exp(-odds))))


def test_which_figures_there_are(result: lb.ZeroRunResult) -> None:
    names = [figure.name for figure in result.summary().figures]
    assert names == ["bound", "overlap", "precision_recall", "roc", "histogram"]
    with pytest.raises(errors.OptionError, match="histogram, got 'bootstrap'"):
        result.plot("bootstrap")


def test_no_words_of_a_page_are_cut_off_or_on_each_other(result: lb.ZeroRunResult) -> None:
    for figure in result.summary().figures:
        with house_style():
            canvas = Canvas(figsize=page._FIGURE_SIZE, layout="constrained")
            axes = canvas.add_subplot()
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
