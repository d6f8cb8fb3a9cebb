"""Write a result as one self-contained HTML file, without scripts or network access.

This module does the layout only: numbers and sentences come from descriptions of results.
"""

import html
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING

from leakbound._base.formatting import number, percent
from leakbound._base.types import Named
from leakbound.report import style
from leakbound.report.description import KINDS, SMALL, Description, Figure, Overview, Reportable

if TYPE_CHECKING:
    from jinja2 import Environment

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FIGURE_SIZE = (4.3, 2.9)
# Axes end here: beyond it, their arithmetic overflows
_FARTHEST = 1e300
_NAMED = ("Mahloujifar", "Ville", "Wasserman")
# Names of the figures' colours in the page's style sheet, which has a dark theme too
_COLOURS = {
    style.INK: "ink",
    style.MUTED: "muted",
    style.RULE: "grid",
    style.PAPER: "paper",
    style.MEMBER: "member",
    style.OTHER: "other",
    style.ALERT: "alert",
}
# Options that only the JSON has: constants of the methods, which no reader chooses
_INTERNAL = {
    *["kappa", "draws", "min_guesses", "grid", "levels", "transform", "joint_level", "rate_level"]
}
# Nothing that changes from run to run: the same figure has the same bytes
_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def render(
    result: Reportable,
    *,
    title: str = "",
    summary: str = "",
    about: Mapping[str, str] | None = None,
    overview: Overview | None = None,
) -> str:
    """Return the report of an audit as one HTML document that needs no other files.

    `summary` is a paragraph below the title, and `about` lists facts below that. `overview`
    compares this audit with others, if the result has no overview itself.
    """
    # 1. The description and its figures; the height of an overview depends on its rows.
    said = result.summary()
    source = result.provenance
    overview = overview or said.overview
    text = "\n".join(one for section in said.sections for one in section.paragraphs)
    named = [name for name in _NAMED if name in text]
    opening = []
    if overview is not None and overview.figure:
        opening = [overview.figure]
    size = _FIGURE_SIZE
    if overview is not None:
        size = (8.6, 1.1 + 0.17 * len(overview.table))
    versions = {"leakbound": source.leakbound, "Python": source.python, "NumPy": source.numpy}
    digests = {f"SHA-256 of {name}": digest for name, digest in source.sha256.items()}
    # 2. The template does the layout.
    template = environment().get_template("report.html.j2")
    threshold = ""
    if KINDS[said.kind].proves:
        threshold = f"{said.terms.symbol} of at least {number(SMALL)}"
    page: str = template.render(
        title=title or said.title,
        summary=summary,
        about={**(about or {}), **said.about, "Design": said.design},
        threshold=threshold,
        said=said,
        guide=_guide(),
        tag=KINDS[said.kind].tag,
        tone=_tone(said),
        # as many tiles in a row as leave the fewest empty places in the last row
        tiles=min((5, 4, 3), key=lambda row: -len(said.metrics) % row),
        range=_range(said),
        figures=draw(said.figures, "figure"),
        grounds=[
            (section, draw(section.figures, f"ground-{i}"))
            for i, section in enumerate(said.sections)
        ],
        options=_chosen(result.options),
        provenance={**versions, "seed": str(source.seed), **digests},
        overview=overview,
        opening=draw(opening, "opening", size=size),
        # Papers named in the text are cited in addition to those of every page.
        papers={*said.papers, *named},
    )
    return page


def _tone(said: Description) -> str:
    """Return how the page looks: exploratory numbers look like estimates."""
    if said.leaks or said.verdict == "refuted":
        return "leaks"
    if KINDS[said.kind].proves:
        return "bound"
    return "estimate"


def _chosen(options: Mapping[str, object]) -> dict[str, str]:
    """Return options that a reader may have chosen, under their names."""
    flat = dict(_flat(options))
    return {name: one for name, one in flat.items() if name.rpartition(".")[2] not in _INTERNAL}


def _guide() -> str:
    """Return a sentence that leads to the page for people who do not know such reports.

    The address of the documentation is that of the package's metadata, where it has one.
    """
    title = "For regulators and assessors"
    urls: dict[str, str] = {}
    with suppress(PackageNotFoundError):  # a copy that was not installed
        named = metadata("leakbound").get_all("Project-URL") or ()
        urls = dict(line.split(", ", 1) for line in named)
    place = f"“{title}” (docs/regulators.md in the sources of leakbound)"
    if "Documentation" in urls:
        address = f"{urls['Documentation'].rstrip('/')}/regulators.html"
        place = f'<a href="{html.escape(address)}">{title}</a>'
    return f"New to such reports? {place} explains this page without formulas, and what to ask."


def _range(said: Description) -> Named:
    """Place bound, ceiling and claim on an axis of ε, in percent of its length.

    Parts of zero length have no name.
    """
    levels = said.levels
    first = min(levels.first, _FARTHEST)
    second = min(levels.second, _FARTHEST)
    claimed = min(said.claimed or 0.0, _FARTHEST)
    top = 1.12 * max(0.1, first, second, claimed)
    of_first, of_second, of_rest = levels.names
    placed: Named = {
        "first": 100 * first / top,
        "second": 100 * second / top,
        "low": "",
        "high": "",
        "names": {},
        "claimed": None,
        "claim": "",
    }
    if first > 0:
        placed["low"] = number(levels.first)
        placed["names"]["first"] = of_first
    if second > first:
        placed["high"] = number(levels.second)
        placed["names"]["second"] = of_second
    placed["names"]["rest"] = of_rest
    if said.claimed is not None:
        placed["claimed"] = 100 * claimed / top
        placed["claim"] = f"claimed {said.claimed:g}"
    return placed


def _flat(options: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in options.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(str, value))
        elif isinstance(value, float):
            yield name, f"{value:.4g}"
        elif value is None:
            yield name, "none"
        else:
            yield name, str(value)


def environment() -> "Environment":
    """Return what renders the package's templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("leakbound.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(glue=_glue, percent=percent)
    return environment


def _glue(text: str) -> str:
    """Keep numbers with their signs and units on one line, and set powers of ten."""
    text = re.sub(r"\b(?:1|(\d(?:\.\d+)?))e-0*(\d+)\b", _power, text)
    for sign in "=<>≥≤≈+±":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    text = re.sub("“[^”]{,30}”", lambda name: name[0].replace(" ", "\u00a0"), text)
    return text.replace("ε-DP", "ε-\u2060DP").replace(" %", "\u202f%")


def _power(small: re.Match[str]) -> str:
    """Write 1e-05 as 10⁻⁵, and 2.5e-06 as 2.5·10⁻⁶."""
    factor = ""
    if small[1]:
        factor = f"{small[1]}·"
    return f"{factor}10⁻{small[2].translate(_RAISED)}"


def draw(
    figures: Iterable[Figure], ident: str, *, size: tuple[float, float] = _FIGURE_SIZE
) -> list[dict[str, str]]:
    """Draw figures for a page: for each its title, its SVG with a description, and its caption."""
    drawn = []
    for one in figures:
        own = re.sub(r"\W+", "-", f"{ident}-{one.name}")
        words = f"{one.title}. {one.caption}"
        inline = _inline(svg(one, heading=False, size=size), ident=own, words=words)
        drawn.append({"title": one.title, "svg": inline, "caption": one.caption})
    return drawn


def svg(figure: Figure, *, heading: bool = True, size: tuple[float, float] = _FIGURE_SIZE) -> str:
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
    """Turn an SVG document into an element with the page's colours and typeface."""
    # ids are unique on a page, and colours follow its light or dark theme
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
