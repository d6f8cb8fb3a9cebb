"""Figures of a benchmark's rows: a panel for each game."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from leakbound._base.checks import instance
from leakbound.benchmark.table import Row, Table, method
from leakbound.errors import OptionError
from leakbound.report.style import ALERT, INK, MUTED, house_style

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bounds", "draw_false_claims"]

_MARKERS = "osD^vPX*"
# Inches
_PANEL_WIDTH = 4.2
_PANEL_HEIGHT = 3.0
_LEGEND_HEIGHT = 0.6


def draw_bounds(table: Table, claim: str) -> Figure:
    """Draw mean bounds against the number of examples, a panel for each game.

    Parameters
    ----------
    table : Table
        Rows of `run`. Methods that failed in every game of a panel are left out of it.
    claim : str
        The claim to show, as the column ``claim`` has it, for example ``"pure DP"``.

    Returns
    -------
    matplotlib.figure.Figure
        The dashed line is the truth, where it fits into the panel; the dotted line is the best
        fixed threshold with labels known.

    Raises
    ------
    OptionError
        No row is about the claim.
    """
    return _figure_of_panels(table, claim, panel_height=_PANEL_HEIGHT, draw=_draw_bounds_panel)


def draw_false_claims(table: Table, claim: str) -> Figure:
    """Draw the share of false claims of each bound, a panel for each game.

    Parameters
    ----------
    table : Table
        Rows of `run`.
    claim : str
        The claim to show, as the column ``claim`` has it, for example ``"pure DP"``.

    Returns
    -------
    matplotlib.figure.Figure
        Lines are exact confidence limits, red if they exclude the allowed share, which is dashed.

    Raises
    ------
    OptionError
        No row is about the claim.
    """
    most_lines = max(map(len, _lines_by_game(table, claim).values()))
    panel_height = max(_PANEL_HEIGHT, 0.25 * most_lines)
    return _figure_of_panels(table, claim, panel_height, draw=_draw_false_claims_panel)


def _lines_by_game(table: Table, claim: str) -> dict[str, list[Row]]:
    """Return the lines of the summary that are about a claim, by their game."""
    instance(table, "table", Table)
    summary_lines = table.summary().lines
    lines_by_game: dict[str, list[Row]] = {}
    for summary_line in summary_lines:
        if summary_line["claim"] == claim:
            lines_by_game.setdefault(summary_line["game"], []).append(summary_line)
    if not lines_by_game:
        known_claims = sorted({repr(summary_line["claim"]) for summary_line in summary_lines})
        raise OptionError(
            f"claim must be one of those of the table ({', '.join(known_claims) or 'none'}), "
            f"got {claim!r}"
        )
    return lines_by_game


def _figure_of_panels(
    table: Table, claim: str, panel_height: float, draw: Callable[[Axes, list[Row]], None]
) -> Figure:
    """Draw a panel for each game, and below them a legend for all."""
    lines_by_game = _lines_by_game(table, claim)
    panels_in_row = min(3, len(lines_by_game))
    rows_of_panels = -(-len(lines_by_game) // panels_in_row)
    figure_width = _PANEL_WIDTH * panels_in_row
    figure_height = panel_height * rows_of_panels + _LEGEND_HEIGHT
    with house_style():
        from matplotlib import pyplot as plt

        figure, axes_grid = plt.subplots(
            rows_of_panels,
            panels_in_row,
            squeeze=False,
            figsize=(figure_width, figure_height),
            layout="constrained",
        )
        for axes, (game, summary_lines) in zip(axes_grid.flat, lines_by_game.items(), strict=False):
            axes.set_title("\n".join(wrap(game, 34)))
            draw(axes, summary_lines)
        for axes in figure.axes[len(lines_by_game) :]:
            axes.set_axis_off()
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _draw_bounds_panel(axes: Axes, summary_lines: list[Row]) -> None:
    """Draw the mean bound of each method against the number of examples."""
    summary_lines = [
        summary_line
        for summary_line in summary_lines
        if summary_line["errors"] < summary_line["games"]
    ]
    if not summary_lines:
        return
    bounds_by_method: dict[str, list[tuple[int, float]]] = {}
    for summary_line in summary_lines:
        method_bounds = bounds_by_method.setdefault(method(summary_line), [])
        method_bounds.append((summary_line["m"], summary_line["bound"]))
    for method_number, (method_name, bounds_by_size) in enumerate(bounds_by_method.items()):
        example_counts, mean_bounds = zip(*sorted(bounds_by_size), strict=True)
        marker = _MARKERS[method_number % len(_MARKERS)]
        color = f"C{method_number}"
        axes.plot(example_counts, mean_bounds, label=method_name, color=color, marker=marker)
    oracle_by_size = {summary_line["m"]: summary_line["oracle"] for summary_line in summary_lines}
    example_counts, oracle_bounds = zip(*sorted(oracle_by_size.items()), strict=True)
    oracle_label = "best fixed threshold, labels known"
    axes.plot(example_counts, oracle_bounds, ":", color=MUTED, label=oracle_label)
    truth = summary_lines[0]["truth"]
    largest_bound = max(summary_line["bound"] for summary_line in summary_lines)
    if truth <= 3 * largest_bound:
        axes.axhline(truth, color=INK, linestyle="--")
    axes.set(xscale="log", xlabel="examples m", ylabel="mean bound")
    axes.set_xticks(example_counts, [f"{m:,}" for m in example_counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)


def _draw_false_claims_panel(axes: Axes, summary_lines: list[Row]) -> None:
    """Draw the share of false claims of each method, with its confidence limits."""
    allowed_share = 1 - summary_lines[0]["confidence"]
    summary_lines = [
        summary_line for summary_line in reversed(summary_lines) if summary_line["judged"]
    ]
    for line_height, summary_line in enumerate(summary_lines):
        color = "C0"
        if summary_line["low"] > allowed_share:
            color = ALERT
        axes.plot(
            (summary_line["low"], summary_line["high"]), (line_height, line_height), color=color
        )
        axes.plot(
            summary_line["false_claims"] / summary_line["judged"], line_height, "o", color=color
        )
    method_labels = [
        f"{method(summary_line)}, m = {summary_line['m']:,}" for summary_line in summary_lines
    ]
    axes.set_yticks(range(len(summary_lines)), method_labels)
    axes.axvline(allowed_share, color=INK, linestyle="--")
    axes.set(xlabel="share of false claims", xlim=(-0.01, None))
