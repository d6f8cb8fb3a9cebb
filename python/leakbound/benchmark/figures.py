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

_MARKS = "osD^vPX*"


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
    return _panels(table, claim=claim, height=lambda _: 3.0, draw=_bounds)


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
    return _panels(
        table, claim=claim, height=lambda most: max(3.0, 0.25 * most), draw=_false_claims
    )


def _panels(
    table: Table,
    claim: str,
    height: Callable[[int], float],
    draw: Callable[[Axes, list[Row]], None],
) -> Figure:
    instance(table, "table", Table)
    every = table.summary().lines
    panels: dict[str, list[Row]] = {}
    for line in every:
        if line["claim"] == claim:
            panels.setdefault(line["game"], []).append(line)
    if not panels:
        there = ", ".join(sorted({repr(line["claim"]) for line in every})) or "none"
        raise OptionError(f"claim must be one of those of the table ({there}), got {claim!r}")
    columns = min(3, len(panels))
    down = -(-len(panels) // columns)
    size = 4.2 * columns, height(max(map(len, panels.values()))) * down + 0.6
    with house_style():
        from matplotlib import pyplot as plt

        figure, grid = plt.subplots(
            down, columns, squeeze=False, figsize=size, layout="constrained"
        )
        for ax, (game, lines) in zip(grid.flat, panels.items(), strict=False):
            ax.set_title("\n".join(wrap(game, 34)))
            draw(ax, lines)
        for ax in figure.axes[len(panels) :]:
            ax.set_axis_off()
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _bounds(ax: Axes, lines: list[Row]) -> None:
    lines = [line for line in lines if line["errors"] < line["games"]]
    if not lines:
        return
    for number, name in enumerate(dict.fromkeys(map(method, lines))):
        points = sorted((line["m"], line["bound"]) for line in lines if method(line) == name)
        mark = _MARKS[number % len(_MARKS)]
        ax.plot(*zip(*points, strict=True), label=name, color=f"C{number}", marker=mark)
    points = sorted({line["m"]: line["oracle"] for line in lines}.items())
    best = "best fixed threshold, labels known"
    ax.plot(*zip(*points, strict=True), ":", color=MUTED, label=best)
    if lines[0]["truth"] <= 3 * max(line["bound"] for line in lines):
        ax.axhline(lines[0]["truth"], color=INK, linestyle="--")
    ax.set(xscale="log", xlabel="examples m", ylabel="mean bound")
    ax.set_xticks([m for m, _ in points], [f"{m:,}" for m, _ in points])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)


def _false_claims(ax: Axes, lines: list[Row]) -> None:
    level = 1 - lines[0]["confidence"]
    lines = [line for line in reversed(lines) if line["judged"]]
    for number, line in enumerate(lines):
        colour = "C0"
        if line["low"] > level:
            colour = ALERT
        ax.plot((line["low"], line["high"]), (number, number), color=colour)
        ax.plot(line["false_claims"] / line["judged"], number, "o", color=colour)
    ax.set_yticks(range(len(lines)), [f"{method(line)}, m = {line['m']:,}" for line in lines])
    ax.axvline(level, color=INK, linestyle="--")
    ax.set(xlabel="share of false claims", xlim=(-0.01, None))
