"""What several pictures have: colours, the example of a page, histograms and bands of ε."""

from __future__ import annotations

import html
import io
import re
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

INK = "#111111"
FAINT = "#888888"
"""Text and thin lines; both are replaced by the colours of the page."""
MEMBER = "#2f80c8"
OTHER = "#cc6a1f"
PROVED = OTHER
"""The colours of plots and reports."""
WIDTH = 5.6
"""Of most pictures, in inches."""
ROOT = Path(__file__).parents[2]
THEME = {INK: "var(--pst-color-text-base)", FAINT: "var(--pst-color-text-muted)"}
METADATA = re.compile(r"<metadata>.*?</metadata>", re.S)
IDENTIFIED_GROUP = re.compile(r'<g id="[^"]*">')
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def for_page(svg: str, caption: str) -> str:
    """Return a drawing as SVG for a page that has others, in the colours of the page."""
    without_declaration = svg[svg.index("<svg") :]
    without_metadata = METADATA.sub("", without_declaration)
    svg = IDENTIFIED_GROUP.sub("<g>", without_metadata)
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    label = html.escape(caption)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


@dataclass(frozen=True)
class _Picture:
    """A function that draws on panels, and how these are laid out."""

    draw: Callable[[Any], None]
    layout: dict[str, Any]


_PICTURES: dict[str, _Picture] = {}


def picture(
    *, height: float, width: float = WIDTH, **layout: Any
) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a function, by its name, that draws on the axes of panels of this size in inches.

    `layout` has further options of `pyplot.subplots`; without them there is one panel.
    """

    def register(draw: Callable[[Any], None]) -> Callable[[Any], None]:
        layout["figsize"] = (width, height)
        _PICTURES[draw.__name__] = _Picture(draw, layout)
        return draw

    return register


def picture_as_svg(name: str, caption: str) -> str:
    """Return the picture of a name as SVG for a page that has others."""
    import matplotlib.pyplot as plt

    registered_picture = _PICTURES[name]
    file = io.StringIO()
    with plt.rc_context({**STYLE, "svg.hashsalt": name}):
        figure, axes = plt.subplots(**registered_picture.layout)
        registered_picture.draw(axes)
        figure.savefig(file, format="svg", transparent=True)
        plt.close(figure)
    return for_page(file.getvalue(), caption)


def example(page: str) -> dict[str, Any]:
    """Run the first example of a page, in a temporary folder, and return its names."""
    path = ROOT / "docs" / f"{page}.md"
    first_example = first_block_of_python(path)
    names: dict[str, Any] = {}
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        exec(first_example, names)
    return names


def first_block_of_python(path: Path) -> str:
    """Return the first block of Python on a page."""
    text = path.read_text(encoding="utf-8")
    _, after_fence = text.split("```python\n", maxsplit=1)
    block, _ = after_fence.split("```", maxsplit=1)
    return block


def band(ax: Any, bound: float, ceiling: float, end: float) -> None:
    """Draw which ε are ruled out, which are not, and which are out of reach."""
    not_ruled_out = ceiling - bound
    out_of_reach = end - ceiling
    outline = {"color": "none", "edgecolor": FAINT, "height": 0.6}
    ax.barh(y=0, width=bound, color=PROVED, height=0.6)
    ax.barh(y=0, width=not_ruled_out, left=bound, hatch="///", **outline)
    ax.barh(y=0, width=out_of_reach, left=ceiling, **outline)
    ax.set(xlim=(0, end), ylim=(-0.4, 0.4), yticks=[])
    ax.spines["left"].set_visible(False)


def histogram(
    ax: Any,
    scores: Any,
    member: Any,
    *,
    members: str = "members",
    others: str = "others",
    score: str = "score",
    counted: str = "",
    bins: int = 30,
) -> None:
    """Draw the scores of two groups, with their names, that of the score and what is counted."""
    edges = np.histogram_bin_edges(scores, bins)
    ax.hist(x=scores[~member], bins=edges, color=OTHER, alpha=0.65, label=others)
    ax.hist(x=scores[member], bins=edges, color=MEMBER, alpha=0.65, label=members)
    ax.set(yticks=[], xlabel=score, ylabel=counted)
    ax.legend()


def share_legend(axes: Any) -> None:
    """Put the legend of panels with the same groups below all of them."""
    for ax in axes:
        ax.get_legend().remove()
    first_panel = axes[0]
    handles, labels = first_panel.get_legend_handles_labels()
    first_panel.figure.legend(handles, labels, loc="outside lower center", ncols=2)
