"""How results of subgroups are printed and written: a table, and a folder for each label."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import typer

from leakbound._base.console import INCONCLUSIVE, REFUTED, bar, tell
from leakbound._base.formatting import number, percent
from leakbound._base.types import Relation
from leakbound.cli import output
from leakbound.cli.options import BundledDelivery, Question, claimed
from leakbound.results import AuditResult

# Characters of a folder's name at most.
_LONGEST = 60


def conclude(
    delivery: BundledDelivery,
    found: AuditResult | dict[object, AuditResult],
    file: Path,
    question: Question,
    inputs: Mapping[str, object],
    relation: Relation | None = None,
) -> NoReturn:
    """Conclude with one result, or with one for each subgroup."""
    if isinstance(found, AuditResult):
        delivery.conclude(found, file, question.goal, relation, inputs)
    _conclude_each(delivery, found, file, question, relation)


def _conclude_each(
    delivery: BundledDelivery,
    results: Mapping[object, AuditResult],
    file: Path,
    question: Question,
    relation: Relation | None,
) -> NoReturn:
    """Check a claim in each subgroup, print and write all results, and end with one exit code.

    A claim that is refuted of one subgroup is refuted, and one that was not tested of each of them
    is inconclusive.
    """
    if question.goal:
        asked = claimed(question.goal, relation)
        results = {label: one.with_check(**asked) for label, one in results.items()}
    if delivery.out is not None:
        folders = _folders(results)
        with bar("Drawing the reports"):
            for label, one in results.items():
                folder = delivery.out / folders[label]
                folder.mkdir(exist_ok=True)
                title = f"{delivery.title or f'Privacy audit of {file.name}'}: {label}"
                about = {"title": title, "model": delivery.model, "auditor": delivery.auditor}
                output.write_files(folder, one, **about)
    if delivery.json_full:
        typer.echo(_together(results, AuditResult.to_json))
    elif delivery.json:
        typer.echo(_together(results, partial(output.brief, lenient=delivery.lenient)))
    else:
        _show(results, question.confidence)
    if delivery.out is not None:
        say = tell if delivery.json or delivery.json_full else typer.echo
        for label, folder_name in folders.items():
            say(f"Report of {label}: {delivery.out / folder_name / 'report.html'}")
    codes = {output.exit_code(one, lenient=delivery.lenient) for one in results.values()}
    if question.goal and _not_audited(results):
        codes.add(INCONCLUSIVE)
    raise typer.Exit(next((code for code in (REFUTED, INCONCLUSIVE) if code in codes), 0))


def _not_audited(results: Mapping[object, AuditResult]) -> str:
    """Return which subgroups are not audited, and why, as each result says."""
    first = next(iter(results.values()))
    return str(first.options.get("not_audited", ""))


def _together(results: Mapping[Any, AuditResult], write: Any) -> str:
    """Return results as one JSON object, by their labels."""
    parts = {str(label): json.loads(write(one)) for label, one in results.items()}
    return json.dumps(parts, ensure_ascii=False)


def _show(results: Mapping[object, AuditResult], confidence: float) -> None:
    """Print a row for each subgroup, and what they have in common."""
    first = next(iter(results.values()))
    said = first.summary()
    output.say(
        f"All {len(results)} bounds hold together ({percent(confidence)} confidence): "
        f"{said.claim}.",
        "bold",
    )
    output.say("")
    headings = (
        said.terms.units,
        "members",
        f"{said.terms.symbol} at least{said.terms.at}",
        "ceiling",
        "correct",
    )
    columns = [("subgroup", False), *((name, True) for name in headings), ("", False)]
    output.say(output.grid(columns, _rows(results)))
    output.say("")
    left_out = _not_audited(results)
    if left_out:
        output.say(f"Not audited: {left_out}", "yellow")
    output.say(f"seed: {first.options['seed']}")
    for label, one in results.items():
        for text in one.warnings:
            output.say(f"warning, {label}: {output.spelled(text)}", "yellow")


def _rows(results: Mapping[object, AuditResult]) -> Iterator[tuple[str, ...]]:
    """Yield the numbers of each subgroup, and the verdict."""
    for label, one in results.items():
        said = one.summary()
        verdict = said.verdict
        if one.checked is not None:
            verdict = one.checked.verdict
        if not said.ceiling:
            verdict = "too few to prove anything"
        yield (
            str(label),
            f"{one.m:,}",
            f"{one.members:,}",
            number(said.epsilon),
            number(said.ceiling),
            f"{one.correct:,} of {one.guesses:,}",
            verdict,
        )


def _folders(results: Mapping[object, AuditResult]) -> dict[Any, str]:
    """Return a name of a folder for each label: its letters and digits, and a number if needed."""
    names: dict[object, str] = {}
    for place, label in enumerate(results, start=1):
        plain = re.sub(r"[^\w-]+", "-", str(label))[:_LONGEST].strip("-")
        if not plain or plain.lower() in {one.lower() for one in names.values()}:
            plain = f"{plain or 'subgroup'}-{place}"
        names[label] = plain
    return names
