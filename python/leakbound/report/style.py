"""The one look of leakbound's figures."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from leakbound.errors import MissingExtraError
from leakbound.report.description import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from leakbound._base.types import FloatArray, IntArray, Kind

INK = "#1b1f24"
MUTED = "#59626d"
RULE = "#d3d8df"
PAPER = "#ffffff"
MEMBER = "#0a63a8"
OTHER = "#b4500e"
ALERT = "#b3261e"
DASHED, DOTTED = (0, (4, 2)), (0, (1, 2))
"""Lines: of bounds, and of what chance or a perfect attack gives."""

_SIZE = (4.4, 3.1)

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.dpi": 110,
    "figure.facecolor": PAPER,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.borderaxespad": 0.4,
    "legend.fontsize": 8.5,
    "legend.edgecolor": "none",
    "legend.facecolor": PAPER,
    "legend.framealpha": 0.8,
    "legend.handlelength": 1.6,
    "legend.labelcolor": "linecolor",
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    "savefig.dpi": 200,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelsize": 8,
    "xtick.major.size": 0,
    "xtick.minor.visible": False,
    "ytick.color": MUTED,
    "ytick.labelsize": 8,
    "ytick.major.size": 0,
    "ytick.minor.visible": False,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of leakbound's figures; matplotlib's own settings return after the block.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> before = dict(mpl.rcParams)
    >>> with house_style():
    ...     mpl.rcParams["axes.spines.top"]
    False
    >>> dict(mpl.rcParams) == before
    True
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = "figures need matplotlib, which is not installed: pip install 'leakbound[plot]'"
        raise MissingExtraError(message) from error
    with mpl.rc_context(_STYLE):
        yield


def new_axes(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=_SIZE, layout="constrained")[1]


def name_axes(
    ax: Axes, title: str, x: str, y: str, kind: Kind = "lower_bound", tag: str = ""
) -> None:
    """Write title and axis names; numbers that are not bounds carry in words what they are."""
    words = tag or ("" if kind == "lower_bound" else KINDS[kind].tag)
    ax.set_title(title, pad=20 if words else 8)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.tick_params(which="both", length=0)
    ax.minorticks_off()
    if words:
        ax.annotate(
            words,
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 5),
            textcoords="offset points",
            color=INK,
            weight="bold",
        )


def draw_classes(ax: Axes, edges: FloatArray, members: IntArray, others: IntArray) -> None:
    """Draw the histograms of members and non-members over each other."""
    from matplotlib.ticker import MaxNLocator

    for name, counts, colour, dashes in (
        ("members", members, MEMBER, "-"),
        ("non-members", others, OTHER, "--"),
    ):
        label = f"{name} ({int(counts.sum()):,})"
        ax.stairs(counts, edges, fill=True, color=colour, alpha=0.22, linewidth=0)
        ax.stairs(counts, edges, color=colour, linestyle=dashes, linewidth=1.3, label=label)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=2, borderaxespad=0.1)
