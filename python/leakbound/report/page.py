"""Results to one self-contained HTML file: no script, no network, light and dark, on paper too.

Nothing is computed here but the layout: every number is a field of a result, and every sentence of
judgement comes from one place.
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
from leakbound.report.kinds import KINDS
from leakbound.results import PanoramiaResult, ZeroRunResult
from leakbound.results.words import (
    DELTA,
    HOW,
    claim_sentence,
    conditional_words,
    explanation,
    figure_of,
    headline,
    headline_of_many,
    is_family,
    joint_confidence,
    leaks,
    reachable,
    shown,
    symbol,
    verdict,
    why_zero,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from jinja2 import Environment

    from leakbound.results.words import Result

__all__ = ["environment", "render", "write"]


def write(
    path: str | os.PathLike[str],
    results: Result | Mapping[str, Result],
    *,
    title: str = "Privacy audit",
    summary: str = "",
    columns: Mapping[str, Mapping[str, str]] | None = None,
    simultaneous: Mapping[str, Result] | None = None,
    epsilon: float | None = None,
    c: float | None = None,
) -> None:
    """Write the report of one or several audits, all of it or nothing.

    Parameters
    ----------
    path : str or os.PathLike
        File to write.
    results, title, summary, columns, simultaneous, epsilon, c
        As for `render`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OptionError
        If there is no result, or `simultaneous` is of other models.
    OSError
        If the file cannot be written.
    """
    text = render(
        results,
        title=title,
        summary=summary,
        columns=columns,
        simultaneous=simultaneous,
        epsilon=epsilon,
        c=c,
    )
    write_text(path, text)


def render(
    results: Result | Mapping[str, Result],
    *,
    title: str = "Privacy audit",
    summary: str = "",
    columns: Mapping[str, Mapping[str, str]] | None = None,
    simultaneous: Mapping[str, Result] | None = None,
    epsilon: float | None = None,
    c: float | None = None,
) -> str:
    """Return the report of one or several audits as one HTML document.

    Parameters
    ----------
    results : AuditResult, PanoramiaResult, or mapping of str to them
        One result, or several by the name of the model audited.
    title : str
        Title of the document.
    summary : str
        A paragraph about what was audited.
    columns : mapping of str to mapping of str to str, optional
        Further columns of the table of several models: name of the column, then of the model.
    simultaneous : mapping of str to result, optional
        The same audits of several models at higher confidence, 1 - β/n for n models: of these the
        headline speaks, at confidence 1 - β. If None, it speaks of `results`, at the confidence
        that all of them hold with together: 85 % for three models at 95 %.
    epsilon, c : float, optional
        A claimed guarantee to check.

    Returns
    -------
    str
        HTML that needs no other file: style and figures are inside.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OptionError
        If there is no result, or `simultaneous` is of other models.
    """
    named = dict(results) if isinstance(results, Mapping) else {"": results}
    if not named:
        message = "a report needs at least one result, got an empty mapping"
        raise OptionError(message)
    top = _scale(named, epsilon)
    models = [
        _Model.of(name, result, ident=f"m{i}", top=top, epsilon=epsilon, c=c)
        for i, (name, result) in enumerate(named.items())
    ]
    spoken = named if simultaneous is None else dict(simultaneous)
    if spoken.keys() != named.keys():
        message = "simultaneous must have one result for each model in results, by the same names"
        raise OptionError(message)
    lead = max(models, key=lambda model: _rank(spoken[model.name]))
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            summary=summary,
            verdict=_Verdict.of(spoken, lead),
            models=models,
            lead=lead,
            several=len(named) > 1,
            columns=columns or {},
            panoramia=any(isinstance(result, PanoramiaResult) for result in named.values()),
            zero_run=any(
                model.beside or isinstance(model.result, ZeroRunResult) for model in models
            ),
        )
    )


@dataclass(frozen=True)
class _Fact:
    """One key number: its name, its value, and a note below it."""

    name: str
    value: str
    note: str


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


@dataclass(frozen=True)
class _Verdict:
    """What stands on top: of the one model, or of all of them together."""

    tone: str
    tag: str
    terms: str
    headline: str

    @classmethod
    def of(cls, spoken: Mapping[str, Result], lead: _Model) -> _Verdict:
        """Put the verdict in words."""
        result = spoken[lead.name]
        confidence, over = result.confidence, ""
        if len(spoken) > 1:
            confidence = joint_confidence(spoken.values())
            over = f" over the {len(spoken)} models"
        return cls(
            tone=_tone(result) if confidence > 0 else result.kind.replace("_", "-"),
            tag=lead.tag,
            terms=f"{result.claim.name}, {percent(confidence)} confidence{over}",
            headline=headline_of_many(spoken) if over else lead.headline,
        )


def _rank(result: Result) -> tuple[bool, float]:
    """Return what makes a model the worst of several: proven leakage, then the number."""
    return leaks(result), shown(result)


def _tone(result: Result) -> str:
    return "leaks" if leaks(result) else result.kind.replace("_", "-")


@dataclass(frozen=True)
class _Beside:
    """Zero-Run on the same examples: its words, its assumptions and its figures."""

    words: str
    result: Result
    figures: tuple[svg.Drawn, ...]


@dataclass(frozen=True)
class _Model:
    """What the page shows of one result."""

    ident: str
    name: str
    result: Result
    tag: str
    tone: str
    headline: str
    explanation: str
    claim: str
    verdict: str
    bound: str
    ceiling: str
    facts: tuple[_Fact, ...]
    sign: str
    range: _Range
    figures: tuple[svg.Drawn, ...]
    beside: _Beside | None
    reasons: tuple[str, ...]
    options: dict[str, str]
    provenance: dict[str, str]

    @classmethod
    def of(
        cls,
        name: str,
        result: Result,
        *,
        ident: str,
        top: float,
        epsilon: float | None,
        c: float | None,
    ) -> _Model:
        """Put one result in words, numbers and figures."""
        return cls(
            ident=ident,
            name=name,
            result=result,
            tag=KINDS[result.kind].tag,
            tone=_tone(result),
            headline=headline(result),
            explanation=explanation(result),
            claim="" if epsilon is None else claim_sentence(result, epsilon=epsilon, c=c),
            verdict=verdict(result),
            bound=number(shown(result)),
            ceiling=number(reachable(result)),
            facts=tuple(_facts(result)),
            sign=figure_of(result),
            range=_range(result, top, epsilon),
            figures=svg.draw(result, ident),
            beside=_beside(result, ident),
            reasons=_reasons(result),
            options=dict(_flat(result.options)),
            provenance=_provenance(result),
        )


def _beside(result: Result, ident: str) -> _Beside | None:
    if not isinstance(result, PanoramiaResult) or result.conditional is None:
        return None
    figures = svg.draw(result.conditional, f"{ident}-z", only=("overlap", "bootstrap"))
    return _Beside(conditional_words(result), result.conditional, figures)


def _reasons(result: Result) -> tuple[str, ...]:
    """Return why an estimate is 0, if it is one."""
    if not isinstance(result, PanoramiaResult) or result.kind != "estimate" or result.bound:
        return ()
    known = result.conditional
    certified = ""
    if known is not None and known.bound > 0:
        certified = f"If its propensities are right, Zero-Run proves ε ≥ {number(shown(known))}"
    return why_zero(result.c_lb, result.attack.ceiling, certified)


def _facts(result: Result) -> Iterator[_Fact]:
    members = f"{result.members:,} members, {result.m - result.members:,} not"
    if isinstance(result, PanoramiaResult):
        if result.lower_bound is None:
            yield _Fact("Estimate ε̃", number(result.bound), KINDS[result.kind].tag)
        else:
            yield _Fact("ε at least", number(result.bound), KINDS[result.kind].tag)
        yield _Fact("c + ε at least", number(result.c_plus_epsilon_lb), "attack, with the model")
        yield _Fact("c at least", number(result.c_lb), "baseline, without the model")
        for found in result.conditionals:
            yield _Fact(
                "Conditionally, ε at least",
                number(shown(found)),
                "withheld: propensities refuted" if found.withheld else HOW[found.correction],
            )
        auc = f"baseline {result.baseline.auc:.3f}"
    else:
        at = ""
        if is_family(result):
            at = f" at δ = {DELTA:g}"
            limit = "at most" if result.bounds_above else "at least"
            rounded = result.rounded(result.bound)
            yield _Fact(f"{symbol(result)} {limit}", rounded, result.claim.name)
        name = "ε at least" if result.kind.endswith("lower_bound") else "ε"
        yield _Fact(name + at, number(shown(result)), KINDS[result.kind].tag)
        yield _Fact("Ceiling" + at, number(reachable(result)), "a perfect attack, same examples")
        yield _Fact("Right guesses", f"{result.correct:,} of {result.guesses:,}", _path(result))
        auc = "0.5 is guessing"
    yield _Fact("AUC", f"{result.auc:.3f}", auc)
    yield _Fact("Examples", f"{result.m:,}", members)
    yield _Fact("Confidence", percent(result.confidence), "over the coins of membership")


def _path(result: Result) -> str:
    return {
        "member": "of membership, highest scores first",
        "members": "of membership, upper half",
        "non-members": "of non-membership, lower half",
        "interleaved": "both ways, in turn",
    }[result.path]


def _scale(named: Mapping[str, Result], epsilon: float | None) -> float:
    """Return the right end of the axis that all ranges share."""
    ends = [max(_levels(result)) for result in named.values()]
    return 1.12 * max(*ends, epsilon or 0.0, 0.1)


def _levels(result: Result) -> tuple[float, float]:
    """Return the two levels that divide the axis: bound and ceiling; for PANORAMIA c and c + ε."""
    if isinstance(result, PanoramiaResult) and result.lower_bound is None:
        return result.c_lb, max(result.c_lb, result.c_plus_epsilon_lb)
    return shown(result), max(shown(result), reachable(result))


def _range(result: Result, top: float, epsilon: float | None) -> _Range:
    first, second = _levels(result)
    low, high = number(first), number(second)
    if isinstance(result, PanoramiaResult) and result.lower_bound is None:
        total = number(result.c_plus_epsilon_lb)
        names = {
            "first": f"c, proved for the generator: up to {low}",
            "second": f"ε̃ = {number(result.bound)}, an estimate; c + ε is at least {total}",
            "rest": "not proved by this audit",
        }
    elif result.kind == "invalid":
        names = {
            "first": f"claimed without proof: ε below {low}",
            "second": f"up to the ceiling, {high}",
            "rest": "beyond the ceiling",
        }
    else:
        names = {
            "first": f"ruled out: ε below {low}",
            "second": f"not ruled out, though within reach: up to {high}",
            "rest": f"out of reach of this audit: ε of {high} and more",
        }
    if first <= 0:
        del names["first"]
    if second <= first:
        del names["second"]
    return _Range(
        first=100 * first / top,
        second=100 * second / top,
        low=low if first > 0 else "",
        high=high if second > first else "",
        names=names,
        claimed=None if epsilon is None else 100 * epsilon / top,
        claim="" if epsilon is None else f"claimed {epsilon:g}",
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


def _provenance(result: Result) -> dict[str, str]:
    source = result.provenance
    return {
        "leakbound": source.leakbound,
        "Python": source.python,
        "NumPy": source.numpy,
        "seed": str(source.seed),
        **{f"SHA-256 of {name}": digest for name, digest in source.sha256.items()},
    }


def environment() -> Environment:
    """Return what renders the package's templates.

    Returns
    -------
    jinja2.Environment
        With the filters that keep numbers with their signs and units.
    """
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
    """Keep a number with its sign and unit, and a short name, on one line."""
    for sign in "=<≥":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    text = re.sub("“[^”]{,30}”", lambda name: name[0].replace(" ", "\u00a0"), text)
    return text.replace(" %", "\u202f%")
