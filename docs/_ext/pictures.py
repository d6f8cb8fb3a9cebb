"""The directive `picture`: drawn by leakbound while pages are built, inline, in light and dark.

A page asks for a picture by the name of a function here, or in `pictures_of_audits`, and gives its
caption. The colours of text and lines are those of the page.
"""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

INK, FAINT = "#111111", "#888888"
"""Text and thin lines; both are replaced by the colours of the page."""
MEMBER, OTHER = "#d1691e", "#5b8fd0"
THEME = {INK: "var(--pst-color-text-base)", FAINT: "var(--pst-color-text-muted)"}
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


class Picture(SphinxDirective):
    """A drawing with its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[Node]:
        """Draw, and put drawing and caption into a figure."""
        caption = " ".join(self.content)
        drawn = nodes.raw("", drawing(self.arguments[0], caption), format="html")
        text, messages = self.state.inline_text(caption, self.lineno)
        figure = nodes.figure("", drawn, nodes.caption("", "", *text), classes=["picture"])
        return [figure, *messages]


def drawing(name: str, caption: str) -> str:
    """Return a drawing as SVG for a page that has others."""
    import matplotlib.pyplot as plt

    import pictures_of_audits

    draw = globals().get(name) or getattr(pictures_of_audits, name)
    file = io.StringIO()
    with plt.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = draw(plt)
        figure.savefig(file, format="svg", transparent=True)
        plt.close(figure)
    svg = re.sub(r"<metadata>.*?</metadata>", "", file.getvalue(), flags=re.S)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg[svg.index("<svg") :])
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(caption)}"', 1)


def band(ax: Any, bound: float, ceiling: float, end: float) -> None:
    """Draw which ε are ruled out, which are not, and which are out of reach."""
    ax.barh(0, bound, color=MEMBER, height=0.6)
    ax.barh(0, ceiling - bound, left=bound, color="none", edgecolor=FAINT, hatch="///", height=0.6)
    ax.barh(0, end - ceiling, left=ceiling, color="none", edgecolor=FAINT, height=0.6)
    ax.set(xlim=(0, end), ylim=(-0.4, 0.4), yticks=[])
    ax.spines["left"].set_visible(False)


def histogram(ax: Any, scores: Any, member: Any, names: tuple[str, str], bins: int = 30) -> None:
    """Draw the scores of two groups."""
    edges = np.linspace(np.min(scores), np.max(scores), bins + 1)
    for one, name, colour in ((False, names[1], OTHER), (True, names[0], MEMBER)):
        ax.hist(scores[member == one], edges, color=colour, alpha=0.65, label=name)
    ax.set_yticks([])
    ax.legend()


def gate(plt: Any) -> Any:
    """Three outcomes of a claim."""
    rows = [(0.8, 4.0, "passes (exit code 0)"), (2.6, 4.0, "fails (exit code 1)")]
    rows.append((0.2, 1.5, "inconclusive (exit code 3)"))
    figure, axes = plt.subplots(3, 1, figsize=(5.6, 2.9), sharex=True)
    for ax, (bound, ceiling, title) in zip(axes, rows, strict=True):
        band(ax, bound, ceiling, 5.0)
        ax.axvline(2.0, color=INK, linestyle="--")
        ax.set_title(title, loc="left", fontsize=10)
    axes[-1].set_xlabel("ε: ruled out (filled), not ruled out (hatched), out of reach (empty)")
    return figure


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
