"""The lines of an outcome as a figure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from leakbound.report import style as plots

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from outcomes import Line, Outcome

__all__ = ["svg"]

_COLOURS = (plots.MUTED, plots.OTHER, plots.MEMBER, plots.ALERT, plots.INK)
_DASHES = ("-", "--", ":")
"""For the first lines of a panel, and those whose colour is taken."""
_PANEL_WIDTH = 4.0
_PANEL_HEIGHT = 2.9
_MOST_MARKED_POINTS = 60
"""Points up to which each is marked."""


def svg(outcome: Outcome) -> str:
    """Draw the lines of an outcome, one panel beside the other."""
    panels = list(dict.fromkeys(line.panel for line in outcome.lines))
    with plots.house_style():
        import matplotlib as mpl
        from matplotlib.figure import Figure

        size = (_PANEL_WIDTH * len(panels), _PANEL_HEIGHT)
        figure = Figure(figsize=size, layout="constrained")
        for position, panel in enumerate(panels, start=1):
            shared_axis = None
            if outcome.shared and figure.axes:
                shared_axis = figure.axes[0]
            axes = figure.add_subplot(1, len(panels), position, sharey=shared_axis)
            axes.set_title(panel)
            lines_of_panel = [line for line in outcome.lines if line.panel == panel]
            for number, line in enumerate(lines_of_panel):
                _draw_line(axes, line, number)
            horizontal_label, vertical_label = outcome.axes
            _label_axis(axes.xaxis, axes.set_xscale, horizontal_label)
            _label_axis(axes.yaxis, axes.set_yscale, vertical_label)
        for axes in figure.axes:
            axes.set_ylim(bottom=0)
        figure.axes[-1].legend(loc="best")
        text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "leakbound"}):
            figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _draw_line(axes: Axes, line: Line, number: int) -> None:
    """Draw the line of this number in a panel, in a colour and dashes of its own."""
    times_colours_used, colour = divmod(number, len(_COLOURS))
    marker = ""
    if len(line.x) <= _MOST_MARKED_POINTS:
        marker = "o"
    axes.plot(
        line.x,
        line.y,
        color=_COLOURS[colour],
        linestyle=_DASHES[times_colours_used % len(_DASHES)],
        label=line.name,
        marker=marker,
        markersize=3,
    )


def _label_axis(axis: Axis, set_scale: Callable[[str], None], label: str) -> None:
    """Name an axis; one whose label begins with "log" is logarithmic."""
    axis.set_label_text(label.removeprefix("log "))
    if label.startswith("log "):
        set_scale("log")
        _name_logarithmic(axis)


def _name_logarithmic(axis: Axis) -> None:
    """Name as many values as there is room for."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    lowest, highest = sorted(axis.get_data_interval())
    if highest < 100 * lowest:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
