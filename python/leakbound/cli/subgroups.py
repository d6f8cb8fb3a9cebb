"""How results of subgroups are printed and written: a table, and a folder for each label."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
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

_LONGEST_FOLDER_NAME = 60


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
        claim_to_check = claimed(question.goal, relation)
        results = {label: result.with_check(**claim_to_check) for label, result in results.items()}
    folders = dict[Any, Path]()
    if delivery.out is not None:
        folders = _write_reports(delivery, delivery.out, results, file)
    if delivery.json_full:
        typer.echo(_as_one_json(results, AuditResult.to_json))
    elif delivery.json:
        write_brief = partial(output.brief, lenient=delivery.lenient)
        typer.echo(_as_one_json(results, write_brief))
    else:
        _show(results, question.confidence)
    say: Callable[[str], None] = typer.echo
    if delivery.json or delivery.json_full:
        say = tell
    for label, folder in folders.items():
        say(f"Report of {label}: {folder / 'report.html'}")
    raise typer.Exit(_joint_exit_code(delivery, results, question))


def _write_reports(
    delivery: BundledDelivery, out: Path, results: Mapping[object, AuditResult], file: Path
) -> dict[Any, Path]:
    """Write the files of each subgroup, and return their folders by label."""
    folders = {label: out / name for label, name in _folder_names(results).items()}
    title = delivery.title or f"Privacy audit of {file.name}"
    with bar("Drawing the reports"):
        for label, result in results.items():
            folders[label].mkdir(exist_ok=True)
            output.write_files(
                folders[label],
                result,
                title=f"{title}: {label}",
                model=delivery.model,
                auditor=delivery.auditor,
            )
    return folders


def _joint_exit_code(
    delivery: BundledDelivery, results: Mapping[object, AuditResult], question: Question
) -> int:
    """Return the code of a subgroup that is refuted, else of an inconclusive one, else 0."""
    codes = set[int]()
    for result in results.values():
        codes.add(output.exit_code(result, lenient=delivery.lenient))
    if question.goal and _not_audited(results):
        codes.add(INCONCLUSIVE)
    for code in (REFUTED, INCONCLUSIVE):
        if code in codes:
            return code
    return 0


def _not_audited(results: Mapping[object, AuditResult]) -> str:
    """Return which subgroups are not audited, and why, as each result says."""
    first_result = next(iter(results.values()))
    return str(first_result.options.get("not_audited", ""))


def _as_one_json(results: Mapping[Any, AuditResult], write: Any) -> str:
    """Return results as one JSON object, by their labels."""
    stored_by_label = {str(label): json.loads(write(result)) for label, result in results.items()}
    return json.dumps(stored_by_label, ensure_ascii=False)


def _show(results: Mapping[object, AuditResult], confidence: float) -> None:
    """Print a row for each subgroup, and what they have in common."""
    first_result = next(iter(results.values()))
    summary = first_result.summary()
    output.say(
        f"All {len(results)} bounds hold together ({percent(confidence)} confidence): "
        f"{summary.claim}.",
        "bold",
    )
    output.say("")
    numeric_headings = (
        summary.terms.units,
        "members",
        f"{summary.terms.symbol} at least{summary.terms.at}",
        "ceiling",
        "correct",
    )
    numeric_columns = [(heading, True) for heading in numeric_headings]
    columns = [("subgroup", False), *numeric_columns, ("", False)]
    output.say(output.grid(columns, _table_rows(results)))
    output.say("")
    not_audited = _not_audited(results)
    if not_audited:
        output.say(f"Not audited: {not_audited}", "yellow")
    output.say(f"seed: {first_result.options['seed']}")
    for label, result in results.items():
        for warning in result.warnings:
            output.say(f"warning, {label}: {output.spelled(warning)}", "yellow")


def _table_rows(results: Mapping[object, AuditResult]) -> Iterator[tuple[str, ...]]:
    """Yield the numbers of each subgroup, and the verdict."""
    for label, result in results.items():
        summary = result.summary()
        verdict = summary.verdict
        if result.checked is not None:
            verdict = result.checked.verdict
        if not summary.ceiling:
            verdict = "too few to prove anything"
        yield (
            str(label),
            f"{result.m:,}",
            f"{result.members:,}",
            number(summary.epsilon),
            number(summary.ceiling),
            f"{result.correct:,} of {result.guesses:,}",
            verdict,
        )


def _folder_names(results: Mapping[object, AuditResult]) -> dict[Any, str]:
    """Return a name of a folder for each label: its letters and digits, and a number if needed."""
    names: dict[object, str] = {}
    for position, label in enumerate(results, start=1):
        letters_and_digits = re.sub(r"[^\w-]+", "-", str(label))
        name = letters_and_digits[:_LONGEST_FOLDER_NAME].strip("-")
        # Names that differ in case only are one folder on some systems.
        names_taken = {taken.lower() for taken in names.values()}
        if not name or name.lower() in names_taken:
            name = f"{name or 'subgroup'}-{position}"
        names[label] = name
    return names
