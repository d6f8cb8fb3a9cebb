"""The one look of leakbound's figures."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from leakbound._base.imports import needs
from leakbound._base.types import FloatArray, IntArray, Kind, Named
from leakbound.report.description import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Members are blue and others orange, which colour-blind readers tell apart
INK = "#1b1f24"
MUTED = "#59626d"
RULE = "#d3d8df"
PAPER = "#ffffff"
MEMBER = "#0a63a8"
OTHER = "#b4500e"
ALERT = "#b3261e"

_SIZE = (4.4, 3.1)

# The settings of matplotlib, in its own format; colours are those above
_STYLE = Path(__file__).parent / "templates" / "figures.mplstyle"


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of leakbound's figures; matplotlib's settings return after the block."""
    with needs("plot", "a figure"):
        import matplotlib as mpl
    with mpl.rc_context(fname=_STYLE):
        yield


def new_axes(ax: "Axes | None") -> "Axes":
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=_SIZE, layout="constrained")[1]


def name_axes(ax: "Axes", title: str, x: str, y: str, kind: Kind = "lower_bound") -> None:
    """Write title and axis names; numbers that are not bounds carry in words what they are."""
    words = ""
    if kind != "lower_bound":
        words = KINDS[kind].tag
    room = 8
    if words:
        room = 20
    ax.set_title(title, pad=room)
    ax.set(xlabel=x, ylabel=y)
    ax.tick_params(which="both", length=0)
    ax.minorticks_off()
    look: Named = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(words, (0.0, 1.0), xytext=(0, 5), color=INK, weight="bold", **look)
    plain_words(ax)


def plain_words(ax: "Axes", ticks: "Iterable[Text]" = ()) -> None:
    """Show dollar signs in names, which matplotlib would read as the ends of a formula."""
    named = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *ticks]
    legend = ax.get_legend()
    if legend:
        named.extend(legend.get_texts())
    for one in named:
        one.set_parse_math(False)


def draw_classes(ax: "Axes", edges: FloatArray, members: IntArray, others: IntArray) -> None:
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
