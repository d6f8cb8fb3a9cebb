"""Results to one self-contained HTML file: no script, no network, light and dark, on paper too.

Nothing is computed here but the layout: every number and every sentence of judgement comes from
descriptions of results; only what is said of several of them together is said here.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leakbound._base.files import write_text
from leakbound._base.formatting import number, percent
from leakbound.errors import OptionError
from leakbound.report import style
from leakbound.report.description import KINDS, SMALL

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from jinja2 import Environment

    from leakbound.report.description import Description, Figure, Overview, Reportable, Terms
    from leakbound.report.parts import Assumption

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FIGURE_SIZE = (4.3, 2.9)
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


def write(
    path: str | os.PathLike[str], results: Reportable | Mapping[str, Reportable], **layout: Any
) -> None:
    """Write the page that `render` returns, all of it or nothing."""
    write_text(path, render(results, **layout))


def render(
    results: Reportable | Mapping[str, Reportable],
    *,
    title: str = "",
    summary: str = "",
    columns: Mapping[str, Mapping[str, str]] | None = None,
    simultaneous: Mapping[str, Reportable] | None = None,
    about: Mapping[str, str] | None = None,
    notes: str = "",
) -> str:
    """Return the report of one or several audits as one HTML document that needs no other file.

    `columns` are further columns of the table of several models: name of the column, then of the
    model. `simultaneous` are the same audits at higher confidence, 1 - 0.05/n for n models: the
    headline is about these, at 95 %, and else about `results`, at the confidence that all hold with
    together. `about` has names and values that stand below the title, `notes` a paragraph at the
    end.
    """
    # 1. What is said of each model, and of all of them together.
    named = dict(results) if isinstance(results, Mapping) else {"": results}
    if not named:
        message = "a report needs at least one result, got an empty mapping"
        raise OptionError(message)
    said = {name: result.summary() for name, result in named.items()}
    several = len(named) > 1
    spoken = said
    if simultaneous is not None:
        spoken = {name: result.summary() for name, result in simultaneous.items()}
    if spoken.keys() != said.keys():
        message = "simultaneous must have one result for each model in results, by the same names"
        raise OptionError(message)
    # 2. The bars of all models share one axis.
    marks = [(one.levels.first, one.levels.second, one.claimed or 0.0) for one in said.values()]
    top = 1.12 * max(0.1, *map(max, marks))
    assumed: dict[tuple[Assumption, ...], str] = {}
    models = [
        _model(name, named[name], one, ident=f"m{i}", top=top, assumed=assumed)
        for i, (name, one) in enumerate(said.items())
    ]
    # 3. The worst of several opens: leakage that is proved, then the number
    worst = max(spoken, key=lambda name: (spoken[name].leaks, spoken[name].epsilon))
    lead = next(model for model in models if model["name"] == worst)
    # 4. The template lays out, and says nothing of its own.
    own = {} if several else lead["said"].about
    overview = said[worst].overview
    template = environment().get_template("report.html.j2")
    return template.render(
        title=title or said[worst].title,
        summary=summary,
        about={**(about or {}), **own}
        | {"Design": "; ".join(dict.fromkeys(one.design for one in said.values()))},
        notes=notes,
        threshold=number(SMALL) if any(KINDS[one.kind].proves for one in said.values()) else "",
        verdict=_verdict(spoken, worst, lead),
        models=models,
        unit=_unit(said.values()),
        together={name: number(one.epsilon) for name, one in spoken.items()}
        if spoken is not said and several
        else {},
        lead=lead,
        meaning=spoken[worst].meaning,
        of=worst if spoken[worst].refutes else "",
        several=several,
        subject=subject_of(said.values()),
        accounted=any(one.interval for one in said.values()),
        columns=columns or {},
        overview=overview,
        opening=_opening(overview),
        papers={paper for one in said.values() for paper in one.papers} | _cited(said.values()),
    )


def _opening(overview: Overview | None) -> Drawn | None:
    """Return the figure of an overview drawn, as high as its rows take."""
    if overview is None:
        return None
    return draw([overview.figure], "open", size=(8.6, 1.1 + 0.17 * len(overview.table)))[0]


def _range(said: Description, top: float) -> dict[str, Any]:
    """Place bound, ceiling and claim on an axis of ε that ends at `top`, in percent of its length.

    Parts of no length have no name.
    """
    first, second, claimed = said.levels.first, said.levels.second, said.claimed
    there = {"first": first > 0, "second": second > first, "rest": True}
    parts = zip(there, said.levels.names, strict=True)
    return {
        "first": 100 * first / top,
        "second": 100 * second / top,
        "low": number(first) if there["first"] else "",
        "high": number(second) if there["second"] else "",
        "names": {part: text for part, text in parts if there[part]},
        "claimed": None if claimed is None else 100 * claimed / top,
        "claim": "" if claimed is None else f"claimed {claimed:g}",
    }


def _verdict(
    spoken: Mapping[str, Description], worst: str, lead: Mapping[str, Any]
) -> dict[str, str]:
    """Return what stands on top: of the one model, or of all of them together."""
    said, over, headline = spoken[worst], "", lead["said"].headline
    confidence = said.confidence
    if len(spoken) > 1:
        confidence = joint_confidence(spoken.values())
        over = f" over the {len(spoken)} {subject_of(spoken.values())}s"
        headline = headline_of_many(spoken)
    return {
        "tone": _tone(said) if confidence > 0 else _look(said),
        "tag": lead["tag"],
        "terms": f"{said.claim}, {percent(confidence)} confidence{over}",
        "confidence": f"at {percent(confidence)} confidence" if confidence > 0 else "",
        "headline": headline,
    }


def _unit(said: Iterable[Description]) -> str:
    """Return the heading of the bounds of several models, with their δ where all have the same."""
    known = {(KINDS[one.kind].proves, one.terms.at) for one in said}
    proves, deltas = all(proves for proves, _ in known), {at for _, at in known}
    return ("ε at least" if proves else "ε") + (deltas.pop() if len(deltas) == 1 else "")


def _tone(said: Description) -> str:
    return "leaks" if said.leaks else _look(said)


def _look(said: Description) -> str:
    """Return the style class of a kind; what is exploratory looks as estimates do."""
    look = "estimate" if said.kind == "exploratory_lower_bound" else said.kind
    return look.replace("_", "-")


def _model(
    name: str,
    result: Reportable,
    said: Description,
    *,
    ident: str,
    top: float,
    assumed: dict[tuple[Assumption, ...], str],
) -> dict[str, Any]:
    """Return what the page shows of one result; `assumed` says where assumptions first stood."""
    grounds = []
    for i, section in enumerate(said.sections):
        figures = draw(section.figures, f"{ident}-{i}")
        before = assumed.get(section.assumptions, "")
        grounds.append({"section": section, "figures": figures, "before": before})
        assumed.setdefault(section.assumptions, name or section.title)
    source = result.provenance
    versions = {"leakbound": source.leakbound, "Python": source.python, "NumPy": source.numpy}
    digests = {f"SHA-256 of {name}": digest for name, digest in source.sha256.items()}
    return {
        "ident": ident,
        "name": name,
        "said": said,
        "tag": KINDS[said.kind].tag,
        "tone": _tone(said),
        "amount": _amount(said),
        # four tiles in a row, or three, whichever leaves fewer places of the last row empty
        "tiles": min((4, 3), key=lambda row: -len(said.metrics) % row),
        "range": _range(said, top),
        "figures": draw(said.figures, ident),
        "grounds": grounds,
        "options": dict(_flat(result.options)),
        "provenance": {**versions, "seed": str(source.seed), **digests},
    }


def _amount(said: Description) -> str:
    """Return the bound as an ε with its δ, as tables have it, and as its family's parameter."""
    at, formula = said.terms.at, said.formula
    if not formula.startswith("ε"):
        return f"ε ≥ {number(said.epsilon)}{at} ({formula})"
    epsilon, comma, nature = formula.partition(",")
    return f"{epsilon}{at}{comma}{nature}"


def _flat(options: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{name}", "none" if value is None else str(value)


def _cited(said: Iterable[Description]) -> set[str]:
    """Return those of the papers that not every page refers to which grounds name."""
    texts = [text for one in said for section in one.sections for text in section.paragraphs]
    return {one for one in ("Mahloujifar", "Ville", "Wasserman") if any(one in x for x in texts)}


def environment() -> Environment:
    """Return what renders the package's templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("leakbound.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(glue=_glue, number=number, percent=percent)
    return environment


def _glue(text: str) -> str:
    """Keep a number with its sign and unit, and a short name, on one line; set powers of ten."""
    # 1e-05 as 10⁻⁵, then signs that stay with their numbers
    text = re.sub(r"\b(?:1|(\d(?:\.\d+)?))e-0*(\d+)\b", _power, text)
    for sign in "=<>≥≤≈+±":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    text = re.sub("“[^”]{,30}”", lambda name: name[0].replace(" ", "\u00a0"), text)
    return text.replace("ε-DP", "ε-\u2060DP").replace(" %", "\u202f%")


def _power(small: re.Match[str]) -> str:
    """Write 1e-05 as 10⁻⁵, and 2.5e-06 as 2.5·10⁻⁶."""
    factor = f"{small[1]}·" if small[1] else ""
    return f"{factor}10⁻{small[2].translate(_RAISED)}"


def subject_of(said: Iterable[Description]) -> str:
    """Return what the results are of: of models, where they are not all of the same."""
    subjects = {one.subject for one in said}
    return subjects.pop() if len(subjects) == 1 else "model"


def joint_confidence(said: Iterable[Description]) -> float:
    """Return the confidence at which all bounds hold together, whatever their dependence."""
    return max(0.0, 1 - sum(1 - one.confidence for one in said if KINDS[one.kind].proves))


def headline_of_many(said: Mapping[str, Description]) -> str:
    """Return the verdict on several models, or generators: how many leak, and which one most.

    To name the worst of several is a statement about all of them, so its confidence is the joint
    one: audits at confidence 1 - 0.05/n each let it be 95 %. What any of the bounds is conditional
    on, the headline is too.
    """
    proved = {name: one for name, one in said.items() if one.refutes}
    counted = f"{len(said)} {subject_of(said.values())}s"
    if not proved:
        return f"Nothing could be refuted on any of the {counted}."
    together = joint_confidence(said.values())
    if together <= 0:
        return (
            f"Nothing is claimed of the {counted} together: each bound has its own "
            "probability of error, and these add up to 1. Audit each at a confidence of "
            f"1 - 0.05/{len(said)}."
        )
    sure = f"({percent(together)} confidence, simultaneously over the {counted})"
    most = max(proved, key=lambda name: proved[name].epsilon)
    worst, epsilon = proved[most].terms, number(proved[most].epsilon)
    conditional = replace(worst, condition=_together(one.terms for one in proved.values()))
    leaking = sum(one.leaks for one in proved.values())
    if not leaking:
        return conditional.conditional(
            f"Little is proved on the {counted}: at most, ε is at least "
            f"{epsilon}{worst.at}{worst.within} on “{most}” {sure}."
        )
    share = "All" if leaking == len(said) else f"{leaking} of"
    end = "; the" if conditional.condition else ". The"
    return conditional.conditional(
        f"{share} {counted} leak{end} worst is “{most}”: no {worst.guarantee} "
        f"with ε < {epsilon}{worst.at} is compatible with its audit {sure}."
    )


def _together(terms: Iterable[Terms]) -> str:
    """Return all that has to hold for some bounds, each condition once."""
    conditions = dict.fromkeys(one.condition for one in terms if one.condition)
    first, *others = conditions or [""]
    return first + "".join(f", and {one.removeprefix('if ')}" for one in others)


@dataclass(frozen=True)
class Drawn:
    """A figure, ready for the page: its title, SVG that says what it shows, and how to read it."""

    title: str
    svg: str
    caption: str


def draw(
    figures: Iterable[Figure], ident: str, *, size: tuple[float, float] = _FIGURE_SIZE
) -> list[Drawn]:
    """Draw figures for a page."""
    drawn = []
    for one in figures:
        document = svg(one, heading=False, size=size)
        own = re.sub(r"\W+", "-", f"{ident}-{one.name}")
        drawn.append(Drawn(one.title, _inline(document, own, one.words), one.caption))
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
    """Turn an SVG document into an element that takes its colours and typeface from the page."""
    # ids are unique on a page, and colours those of its light or dark theme
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
