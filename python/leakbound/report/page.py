"""Results to one self-contained HTML file: no script, no network, light and dark, on paper too.

Nothing is computed here but the layout: every number and every sentence of judgement comes from the
results; only what is said of several of them together is said here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound._base.files import write_text
from leakbound._base.formatting import number, percent
from leakbound.errors import OptionError
from leakbound.report import svg
from leakbound.report.contents import KINDS, SMALL
from leakbound.report.several import headline_of_many, joint_confidence, subject_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from jinja2 import Environment

    from leakbound.report.contents import Metric, Overview, Reportable, Section, Summary
    from leakbound.report.parts import Assumption

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def write(
    path: str | os.PathLike[str],
    results: Reportable | Mapping[str, Reportable],
    *,
    title: str = "Privacy audit",
    summary: str = "",
    columns: Mapping[str, Mapping[str, str]] | None = None,
    simultaneous: Mapping[str, Reportable] | None = None,
    epsilon: float | None = None,
    c: float | None = None,
    about: Mapping[str, str] | None = None,
    notes: str = "",
    overview: Overview | None = None,
) -> None:
    """Write the report of one or several audits, all of it or nothing."""
    text = render(
        results,
        title=title,
        summary=summary,
        columns=columns,
        simultaneous=simultaneous,
        epsilon=epsilon,
        c=c,
        about=about,
        notes=notes,
        overview=overview,
    )
    write_text(path, text)


def render(
    results: Reportable | Mapping[str, Reportable],
    *,
    title: str = "Privacy audit",
    summary: str = "",
    columns: Mapping[str, Mapping[str, str]] | None = None,
    simultaneous: Mapping[str, Reportable] | None = None,
    epsilon: float | None = None,
    c: float | None = None,
    about: Mapping[str, str] | None = None,
    notes: str = "",
    overview: Overview | None = None,
) -> str:
    """Return the report of one or several audits as one HTML document that needs no other file.

    `columns` are further columns of the table of several models: name of the column, then of the
    model. `simultaneous` are the same audits at higher confidence, 1 - 0.05/n for n models: the
    headline is about these, at 95 %, and else about `results`, at the confidence that all hold with
    together. `epsilon` and `c` are a claimed guarantee to check; `about` has names and values that
    stand below the title, `notes` a paragraph at the end, and `overview` a figure and a table of
    several audits below the verdict.
    """
    named = dict(results) if isinstance(results, Mapping) else {"": results}
    if not named:
        message = "a report needs at least one result, got an empty mapping"
        raise OptionError(message)
    ends = [result.levels() for result in named.values()]
    top = 1.12 * max(*(max(end.first, end.second) for end in ends), epsilon or 0.0, 0.1)
    assumed: dict[tuple[Assumption, ...], str] = {}
    models = [
        _Model.of(name, result, ident=f"m{i}", top=top, epsilon=epsilon, c=c, assumed=assumed)
        for i, (name, result) in enumerate(named.items())
    ]
    spoken = named if simultaneous is None else dict(simultaneous)
    if spoken.keys() != named.keys():
        message = "simultaneous must have one result for each model in results, by the same names"
        raise OptionError(message)
    designs = dict.fromkeys(result.design for result in named.values())
    lead = max(models, key=lambda model: _rank(spoken[model.name].summary()))
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            summary=summary,
            about={**(about or {}), "Design": "; ".join(designs)},
            notes=notes,
            threshold=number(SMALL) if any(KINDS[one.result.kind].proves for one in models) else "",
            verdict=_Verdict.of(spoken, lead),
            models=models,
            unit=_unit(models),
            together={name: number(one.summary().epsilon) for name, one in spoken.items()}
            if simultaneous is not None and len(named) > 1
            else {},
            lead=lead,
            meaning=spoken[lead.name].meaning(),
            of=lead.name if spoken[lead.name].summary().refutes else "",
            several=len(named) > 1,
            subject=subject_of(named.values()),
            accounted=any(model.summary.beside for model in models),
            columns=columns or {},
            overview=overview,
            opening=_opening(overview),
            papers={paper for model in models for paper in model.summary.papers}
            | cited(part.section for model in models for part in model.grounds),
        )
    )


def _opening(overview: Overview | None) -> svg.Drawn | None:
    """Return the figure of an overview drawn, as high as its rows take."""
    if overview is None:
        return None
    return svg.draw([overview.figure], "open", size=(8.6, 1.1 + 0.17 * len(overview.table)))[0]


@dataclass(frozen=True)
class _Range:
    """Where the bound, the ceiling and a claim lie on the axis of ε, in percent of its length."""

    first: float
    second: float
    low: str
    high: str
    names: dict[str, str]
    claimed: float | None
    claim: str

    @property
    def words(self) -> str:
        """The bar for those who do not see it."""
        return "; ".join(self.names.values())

    @classmethod
    def of(cls, result: Reportable, top: float, epsilon: float | None) -> _Range:
        """Place the levels of a result on an axis that ends at `top`."""
        levels = result.levels()
        first, second = levels.first, levels.second
        there = {"first": first > 0, "second": second > first, "rest": True}
        return cls(
            first=100 * first / top,
            second=100 * second / top,
            low=number(first) if there["first"] else "",
            high=number(second) if there["second"] else "",
            names={
                part: text
                for (part, drawn), text in zip(there.items(), levels.names, strict=True)
                if drawn
            },
            claimed=None if epsilon is None else 100 * epsilon / top,
            claim="" if epsilon is None else f"claimed {epsilon:g}",
        )


@dataclass(frozen=True)
class _Verdict:
    """What stands on top: of the one model, or of all of them together."""

    tone: str
    tag: str
    terms: str
    confidence: str
    headline: str

    @classmethod
    def of(cls, spoken: Mapping[str, Reportable], lead: _Model) -> _Verdict:
        """Put the verdict in words."""
        result = spoken[lead.name]
        confidence, over = result.confidence, ""
        if len(spoken) > 1:
            confidence = joint_confidence(spoken.values())
            over = f" over the {len(spoken)} {subject_of(spoken.values())}s"
        return cls(
            tone=_tone(result) if confidence > 0 else _look(result),
            tag=lead.tag,
            terms=f"{result.summary().claim}, {percent(confidence)} confidence{over}",
            confidence=f"at {percent(confidence)} confidence" if confidence > 0 else "",
            headline=headline_of_many(spoken) if over else lead.headline,
        )


def _unit(models: list[_Model]) -> str:
    """Return the heading of the bounds of several models, with their δ where all have the same."""
    proves = all(KINDS[one.result.kind].proves for one in models)
    deltas = {one.summary.terms.at for one in models}
    return ("ε at least" if proves else "ε") + (deltas.pop() if len(deltas) == 1 else "")


def _amount(summary: Summary) -> str:
    """Return the bound as an ε with its δ, as the table has it, and as its family's parameter."""
    at, formula = summary.terms.at, summary.formula
    if not formula.startswith("ε"):
        return f"ε ≥ {number(summary.epsilon)}{at} ({formula})"
    epsilon, comma, nature = formula.partition(",")
    return f"{epsilon}{at}{comma}{nature}"


def _rank(summary: Summary) -> tuple[bool, float]:
    """Return what makes a model the worst of several: leakage that is proved, then the number."""
    return summary.leaks, summary.epsilon


def _tone(result: Reportable) -> str:
    return "leaks" if result.summary().leaks else _look(result)


def _look(result: Reportable) -> str:
    """Return the style class of a kind; what is exploratory looks as estimates do."""
    look = "estimate" if result.kind == "exploratory_lower_bound" else result.kind
    return look.replace("_", "-")


@dataclass(frozen=True)
class _Grounds:
    """A section of grounds, its figures drawn."""

    section: Section
    figures: tuple[svg.Drawn, ...]
    before: str
    """Where the page has the same assumptions before; empty if nowhere."""

    @classmethod
    def of(
        cls, name: str, result: Reportable, ident: str, assumed: dict[tuple[Assumption, ...], str]
    ) -> tuple[_Grounds, ...]:
        """Collect the grounds of a result; `assumed` says where assumptions first stood."""
        found = []
        for i, section in enumerate(result.sections()):
            before = assumed.get(section.assumptions, "")
            assumed.setdefault(section.assumptions, name or section.title)
            found.append(cls(section, svg.draw(section.figures, f"{ident}-{i}"), before))
        return tuple(found)


@dataclass(frozen=True)
class _Model:
    """What the page shows of one result."""

    ident: str
    name: str
    result: Reportable
    summary: Summary
    tag: str
    tone: str
    headline: str
    evidence: tuple[str, ...]
    claim: str
    bound: str
    amount: str
    ceiling: str
    metrics: tuple[Metric, ...]
    tiles: int
    """Key numbers in a row: four or three, whichever leaves fewer places of the last row empty."""
    range: _Range
    figures: tuple[svg.Drawn, ...]
    grounds: tuple[_Grounds, ...]
    options: dict[str, str]
    provenance: dict[str, str]

    @classmethod
    def of(
        cls,
        name: str,
        result: Reportable,
        *,
        ident: str,
        top: float,
        epsilon: float | None,
        c: float | None,
        assumed: dict[tuple[Assumption, ...], str],
    ) -> _Model:
        """Collect what one result says, and draw its figures."""
        summary, metrics = result.summary(), result.metrics()
        return cls(
            ident=ident,
            name=name,
            result=result,
            summary=summary,
            tag=KINDS[result.kind].tag,
            tone=_tone(result),
            headline=result.headline(),
            evidence=result.evidence(),
            claim=result.answered
            or ("" if epsilon is None else result.answer(epsilon=epsilon, c=c)),
            bound=number(summary.epsilon),
            amount=_amount(summary),
            ceiling=number(result.epsilon_ceiling),
            metrics=metrics,
            tiles=min((4, 3), key=lambda row: -len(metrics) % row),
            range=_Range.of(result, top, epsilon),
            figures=svg.draw(result.figures(), ident),
            grounds=_Grounds.of(name, result, ident, assumed),
            options=dict(_flat(result.options)),
            provenance=_provenance(result),
        )


def _flat(options: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _shown(value)


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def _provenance(result: Reportable) -> dict[str, str]:
    source = result.provenance
    return {
        "leakbound": source.leakbound,
        "Python": source.python,
        "NumPy": source.numpy,
        "seed": str(source.seed),
        **{f"SHA-256 of {name}": digest for name, digest in source.sha256.items()},
    }


def cited(sections: Iterable[Section]) -> set[str]:
    """Return those of the papers that not every page refers to which grounds name."""
    said = " ".join(text for section in sections for text in section.paragraphs)
    return {author for author in ("Mahloujifar", "Ville", "Wasserman") if author in said}


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
    environment.filters.update(glue=_glue, percent=percent)
    return environment


def _glue(text: str) -> str:
    """Keep a number with its sign and unit, and a short name, on one line; set powers of ten."""
    text = re.sub(r"\b(?:1|(\d(?:\.\d+)?))e-0*(\d+)\b", _power, text)
    for sign in "=<>≥≤≈+±":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    text = re.sub("“[^”]{,30}”", lambda name: name[0].replace(" ", "\u00a0"), text)
    return text.replace("ε-DP", "ε-\u2060DP").replace(" %", "\u202f%")


def _power(small: re.Match[str]) -> str:
    """Write 1e-05 as 10⁻⁵, and 2.5e-06 as 2.5·10⁻⁶."""
    factor = f"{small[1]}·" if small[1] else ""
    return f"{factor}10⁻{small[2].translate(_RAISED)}"
