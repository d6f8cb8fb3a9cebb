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

_RAISED_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FIGURE_SIZE = (4.3, 2.9)
# Axes end here: beyond it, their arithmetic overflows
_END_OF_LONGEST_AXIS = 1e300
_AUTHORS_IN_TEXT = ("Mahloujifar", "Ville", "Wasserman")
# Names of the figures' colours in the page's style sheet, which has a dark theme too
_NAMES_OF_COLOURS = {
    style.INK: "ink",
    style.MUTED: "muted",
    style.RULE: "grid",
    style.PAPER: "paper",
    style.MEMBER: "member",
    style.OTHER: "other",
    style.ALERT: "alert",
}
# Options that only the JSON has: constants of the methods, which no reader chooses
_OPTIONS_OF_METHODS = {
    *["kappa", "draws", "min_guesses", "grid", "levels", "transform", "joint_level", "rate_level"]
}
# Nothing that changes from run to run: the same figure has the same bytes
_METADATA_OF_SVG = {"Creator": None, "Date": None, "Format": None, "Type": None}


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
    description = result.summary()
    provenance = result.provenance
    overview = overview or description.overview
    text_of_page = "\n".join(
        paragraph for section in description.sections for paragraph in section.paragraphs
    )
    authors_in_text = [name for name in _AUTHORS_IN_TEXT if name in text_of_page]
    opening_figures = []
    opening_size = _FIGURE_SIZE
    if overview is not None:
        opening_size = (8.6, 1.1 + 0.17 * len(overview.table))
        if overview.figure:
            opening_figures = [overview.figure]
    versions = {
        "leakbound": provenance.leakbound,
        "Python": provenance.python,
        "NumPy": provenance.numpy,
    }
    digests = {f"SHA-256 of {name}": digest for name, digest in provenance.sha256.items()}
    # 2. The template does the layout.
    template = environment().get_template("report.html.j2")
    threshold_in_words = ""
    if KINDS[description.kind].proves:
        threshold_in_words = f"{description.terms.symbol} of at least {number(SMALL)}"
    page: str = template.render(
        title=title or description.title,
        summary=summary,
        about={**(about or {}), **description.about, "Design": description.design},
        threshold=threshold_in_words,
        said=description,
        guide=_sentence_for_regulators(),
        tag=KINDS[description.kind].tag,
        tone=_tone_of_page(description),
        # as many tiles in a row as leave the fewest empty places in the last row
        tiles=min((5, 4, 3), key=lambda row: -len(description.metrics) % row),
        range=_axis_of_levels(description),
        figures=draw(description.figures, "figure"),
        grounds=[
            (section, draw(section.figures, f"ground-{i}"))
            for i, section in enumerate(description.sections)
        ],
        options=dict(_options_in_words(result.options)),
        provenance={**versions, "seed": str(provenance.seed), **digests},
        overview=overview,
        opening=draw(opening_figures, "opening", size=opening_size),
        # Papers named in the text are cited in addition to those of every page.
        papers={*description.papers, *authors_in_text},
    )
    return page


def _tone_of_page(description: Description) -> str:
    """Return how the page looks: exploratory numbers look like estimates."""
    if description.leaks or description.verdict == "refuted":
        return "leaks"
    if KINDS[description.kind].proves:
        return "bound"
    return "estimate"


def _sentence_for_regulators() -> str:
    """Return a sentence that leads to the page for people who do not know such reports.

    The address of the documentation is that of the package's metadata, where it has one.
    """
    title_of_page = "For regulators and assessors"
    project_urls: dict[str, str] = {}
    with suppress(PackageNotFoundError):  # a copy that was not installed
        stated_urls = metadata("leakbound").get_all("Project-URL") or ()
        project_urls = dict(url_line.split(", ", 1) for url_line in stated_urls)
    link_to_page = f"“{title_of_page}” (docs/regulators.md in the sources of leakbound)"
    if "Documentation" in project_urls:
        address_of_page = f"{project_urls['Documentation'].rstrip('/')}/regulators.html"
        link_to_page = f'<a href="{html.escape(address_of_page)}">{title_of_page}</a>'
    return (
        f"New to such reports? {link_to_page} explains this page without formulas, and what to ask."
    )


def _axis_of_levels(description: Description) -> Named:
    """Place bound, ceiling and claim on an axis of ε, in percent of its length.

    Parts of zero length have no name.
    """
    levels = description.levels
    bound = min(levels.first, _END_OF_LONGEST_AXIS)
    ceiling = min(levels.second, _END_OF_LONGEST_AXIS)
    claimed = min(description.claimed or 0.0, _END_OF_LONGEST_AXIS)
    end_of_axis = 1.12 * max(0.1, bound, ceiling, claimed)
    name_below_bound, name_below_ceiling, name_above_ceiling = levels.names
    names_of_parts: dict[str, str] = {}
    axis_in_percent: Named = {
        "first": 100 * bound / end_of_axis,
        "second": 100 * ceiling / end_of_axis,
        "low": "",
        "high": "",
        "names": names_of_parts,
        "claimed": None,
        "claim": "",
    }
    if bound > 0:
        axis_in_percent["low"] = number(levels.first)
        names_of_parts["first"] = name_below_bound
    if ceiling > bound:
        axis_in_percent["high"] = number(levels.second)
        names_of_parts["second"] = name_below_ceiling
    names_of_parts["rest"] = name_above_ceiling
    if description.claimed is not None:
        axis_in_percent["claimed"] = 100 * claimed / end_of_axis
        axis_in_percent["claim"] = f"claimed {description.claimed:g}"
    return axis_in_percent


def _options_in_words(options: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield options that a reader may have chosen, with their full names."""
    for option_name, option in options.items():
        full_name = f"{prefix}{option_name}"
        if isinstance(option, Mapping):
            yield from _options_in_words(option, f"{full_name}.")
        elif option_name in _OPTIONS_OF_METHODS:
            continue
        elif isinstance(option, list | tuple):
            yield full_name, ", ".join(map(str, option))
        elif isinstance(option, float):
            yield full_name, f"{option:.4g}"
        elif option is None:
            yield full_name, "none"
        else:
            yield full_name, str(option)


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
    environment.filters.update(glue=_with_unbroken_numbers, percent=percent)
    return environment


def _with_unbroken_numbers(text: str) -> str:
    """Keep numbers with their signs and units on one line, and set powers of ten."""
    text = re.sub(r"\b(?:1|(\d(?:\.\d+)?))e-0*(\d+)\b", _power_of_ten, text)
    for sign in "=<>≥≤≈+±":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    text = re.sub("“[^”]{,30}”", lambda name: name[0].replace(" ", "\u00a0"), text)
    return text.replace("ε-DP", "ε-\u2060DP").replace(" %", "\u202f%")


def _power_of_ten(small: re.Match[str]) -> str:
    """Write 1e-05 as 10⁻⁵, and 2.5e-06 as 2.5·10⁻⁶."""
    factor = ""
    if small[1]:
        factor = f"{small[1]}·"
    return f"{factor}10⁻{small[2].translate(_RAISED_DIGITS)}"


def draw(
    figures: Iterable[Figure], ident: str, *, size: tuple[float, float] = _FIGURE_SIZE
) -> list[dict[str, str]]:
    """Draw figures for a page: for each its title, its SVG with a description, and its caption."""
    drawn_figures = []
    for figure in figures:
        figure_id = re.sub(r"\W+", "-", f"{ident}-{figure.name}")
        description_in_words = f"{figure.title}. {figure.caption}"
        svg_element = _svg_element(
            svg(figure, heading=False, size=size),
            ident=figure_id,
            description_in_words=description_in_words,
        )
        drawn_figures.append({"title": figure.title, "svg": svg_element, "caption": figure.caption})
    return drawn_figures


def svg(figure: Figure, *, heading: bool = True, size: tuple[float, float] = _FIGURE_SIZE) -> str:
    """Draw one figure as a stand-alone SVG document, the same bytes every time."""
    with style.house_style():
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas

        svg_canvas = Canvas(figsize=size, layout="constrained")
        axes = figure.draw(svg_canvas.add_subplot())
        if not heading:
            axes.set_title("")
        svg_text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "leakbound"}):
            svg_canvas.savefig(svg_text, format="svg", metadata=_METADATA_OF_SVG)
    return svg_text.getvalue()


def _svg_element(document: str, ident: str, description_in_words: str) -> str:
    """Turn an SVG document into an element with the page's colours and typeface."""
    # ids are unique on a page, and colours follow its light or dark theme
    _, view_box, svg_body = re.split(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', document, maxsplit=1)
    svg_body = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg_body, flags=re.DOTALL
    )
    svg_body = re.sub(r'\bid="', f'id="{ident}-', svg_body)
    svg_body = re.sub(r'(url\(|href=")#', rf"\1#{ident}-", svg_body)
    svg_body = re.sub(r"font-family: [^;\"]*;? ?", "", svg_body)
    for figure_colour, colour_name in _NAMES_OF_COLOURS.items():
        svg_body = svg_body.replace(figure_colour, f"var(--{colour_name})")
    return f'<svg {view_box} role="img" aria-label="{html.escape(description_in_words)}">{svg_body}'
