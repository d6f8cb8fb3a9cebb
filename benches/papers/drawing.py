"""The lines of an outcome as a figure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from leakbound.report import style as plots

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from outcomes import Outcome

__all__ = ["svg"]

_COLOURS = (plots.MUTED, plots.OTHER, plots.MEMBER, plots.ALERT, plots.INK)
_DASHES = ("-", "--", ":")
"""For the first lines of a panel, and those whose colour is taken."""
_PANEL = (4.0, 2.9)
_FEW = 60
"""Points up to which each is marked."""


def svg(outcome: Outcome) -> str:
    """Draw the lines of an outcome, one panel beside the other."""
    panels = list(dict.fromkeys(line.panel for line in outcome.lines))
    with plots.house_style():
        import matplotlib as mpl
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_PANEL[0] * len(panels), _PANEL[1]), layout="constrained")
        for place, panel in enumerate(panels, start=1):
            shared = None
            if outcome.shared and figure.axes:
                shared = figure.axes[0]
            axes = figure.add_subplot(1, len(panels), place, sharey=shared)
            drawn = [line for line in outcome.lines if line.panel == panel]
            for number, line in enumerate(drawn):
                repeats, colour = divmod(number, len(_COLOURS))
                axes.plot(
                    line.x,
                    line.y,
                    color=_COLOURS[colour],
                    linestyle=_DASHES[repeats % len(_DASHES)],
                    label=line.name,
                    marker="o" if len(line.x) <= _FEW else "",
                    markersize=3,
                )
            axes.set_title(panel)
            for axis, scale, label in (
                (axes.xaxis, axes.set_xscale, outcome.axes[0]),
                (axes.yaxis, axes.set_yscale, outcome.axes[1]),
            ):
                axis.set_label_text(label.removeprefix("log "))
                if label.startswith("log "):
                    scale("log")
                    _name_logarithmic(axis)
        for axes in figure.axes:
            axes.set_ylim(bottom=0)
        figure.axes[-1].legend(loc="best")
        text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "leakbound"}):
            figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _name_logarithmic(axis: Axis) -> None:
    """Name as many values as there is room for."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = sorted(axis.get_data_interval())
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
