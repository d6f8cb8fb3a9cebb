"""Figures of a report: drawn by matplotlib, coloured and set in type by the page around them."""

from __future__ import annotations

import html
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound.report import style

if TYPE_CHECKING:
    from collections.abc import Iterable

    from leakbound.report.description import Figure

_SIZE = (4.3, 2.9)
_COLOURS = {
    style.INK: "ink",
    style.MUTED: "muted",
    style.RULE: "grid",
    style.PAPER: "paper",
    style.MEMBER: "member",
    style.OTHER: "other",
    style.ALERT: "alert",
}
_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


@dataclass(frozen=True)
class Drawn:
    """A figure, ready for the page: its title, SVG that says what it shows, and how to read it."""

    title: str
    svg: str
    caption: str


def draw(
    figures: Iterable[Figure], ident: str, *, size: tuple[float, float] = _SIZE
) -> tuple[Drawn, ...]:
    """Draw figures for a page."""
    return tuple(
        Drawn(
            one.title,
            _inline(
                svg(one, heading=False, size=size),
                re.sub(r"\W+", "-", f"{ident}-{one.name}"),
                one.words,
            ),
            one.caption,
        )
        for one in figures
    )


def svg(figure: Figure, *, heading: bool = True, size: tuple[float, float] = _SIZE) -> str:
    """Draw one figure as a stand-alone SVG document, the same bytes every time."""
    with style.house_style():
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=size, layout="constrained")
        axes = figure.draw(canvas.add_subplot())
        if not heading:
            axes.set_title("")
        text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "leakbound"}):
            canvas.savefig(text, format="svg", metadata=_METADATA)
    return text.getvalue()


def _inline(document: str, ident: str, words: str) -> str:
    """Turn an SVG document into an element that takes its colours and typeface from the page."""
    _, view, body = re.split(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', document, maxsplit=1)
    body = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL
    )
    body = re.sub(r'\bid="', f'id="{ident}-', body)
    body = re.sub(r'(url\(|href=")#', rf"\1#{ident}-", body)
    body = re.sub(r"font-family: [^;\"]*;? ?", "", body)
    for colour, name in _COLOURS.items():
        body = body.replace(colour, f"var(--{name})")
    return f'<svg {view} role="img" aria-label="{html.escape(words)}">{body}'
