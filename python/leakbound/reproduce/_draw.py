"""The lines of an outcome as a figure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from leakbound import plots

if TYPE_CHECKING:
    from leakbound.reproduce._protocol import Outcome

__all__ = ["svg"]

_COLOURS = (plots.MUTED, plots.OTHER, plots.MEMBER, plots.ALERT, plots.INK)
_PANEL = (4.0, 2.9)


def svg(outcome: Outcome) -> str:
    """Draw the lines of an outcome, one panel beside the other.

    Parameters
    ----------
    outcome : Outcome
        With at least one line.

    Returns
    -------
    str
        An SVG document, the same every time.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    panels = list(dict.fromkeys(line.panel for line in outcome.lines))
    with plots.house_style():
        import matplotlib as mpl
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_PANEL[0] * len(panels), _PANEL[1]), layout="constrained")
        for place, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(1, len(panels), place)
            drawn = [line for line in outcome.lines if line.panel == panel]
            for line, colour in zip(drawn, _COLOURS, strict=False):
                axes.plot(line.x, line.y, color=colour, label=line.name, marker="o", markersize=3)
            axes.set_title(panel)
            for named, scale, label in (
                (axes.set_xlabel, axes.set_xscale, outcome.axes[0]),
                (axes.set_ylabel, axes.set_yscale, outcome.axes[1]),
            ):
                named(label.removeprefix("log "))
                scale("log" if label.startswith("log ") else "linear")
            axes.set_ylim(bottom=0)
        figure.axes[-1].legend(loc="best")
        text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "leakbound"}):
            figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
