"""How results of subgroups are printed and written: a table, and a folder for each label."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import typer

from leakbound._base.console import INCONCLUSIVE, bar, tell
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
    subgroup_results: Mapping[object, AuditResult],
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
        subgroup_results = {
            subgroup_label: subgroup_result.with_check(**claim_to_check)
            for subgroup_label, subgroup_result in subgroup_results.items()
        }
    folders = dict[Any, Path]()
    if delivery.out is not None:
        folders = _write_subgroup_reports(delivery, delivery.out, subgroup_results, file)
    if delivery.json_full:
        typer.echo(_subgroups_as_json(subgroup_results, AuditResult.to_json))
    elif delivery.json:
        write_brief = partial(output.brief, lenient=delivery.lenient)
        typer.echo(_subgroups_as_json(subgroup_results, write_brief))
    else:
        _print_subgroups(subgroup_results, question.confidence)
    say: Callable[[str], None] = typer.echo
    if delivery.json or delivery.json_full:
        say = tell
    for subgroup_label, folder in folders.items():
        say(f"Report of {subgroup_label}: {folder / 'report.html'}")
    raise typer.Exit(_exit_code_of_subgroups(delivery, subgroup_results, question))


def _write_subgroup_reports(
    delivery: BundledDelivery, out: Path, subgroup_results: Mapping[object, AuditResult], file: Path
) -> dict[Any, Path]:
    """Write the files of each subgroup, and return their folders by label."""
    folders = {
        subgroup_label: out / name
        for subgroup_label, name in _folder_names_of_subgroups(subgroup_results).items()
    }
    title = delivery.title or f"Privacy audit of {file.name}"
    with bar("Drawing the reports"):
        for subgroup_label, subgroup_result in subgroup_results.items():
            folders[subgroup_label].mkdir(exist_ok=True)
            output.write_files(
                folders[subgroup_label],
                subgroup_result,
                title=f"{title}: {subgroup_label}",
                model=delivery.model,
                auditor=delivery.auditor,
            )
    return folders


def _exit_code_of_subgroups(
    delivery: BundledDelivery, subgroup_results: Mapping[object, AuditResult], question: Question
) -> int:
    """Return the code of a subgroup that is refuted, else of an inconclusive one, else 0."""
    codes = set[int]()
    for subgroup_result in subgroup_results.values():
        codes.add(output.exit_code(subgroup_result, lenient=delivery.lenient))
    if question.goal and _unaudited_subgroups(subgroup_results):
        codes.add(INCONCLUSIVE)
    return output.gravest_code(codes)


def _unaudited_subgroups(subgroup_results: Mapping[object, AuditResult]) -> str:
    """Return which subgroups are not audited, and why, as each result says."""
    first_subgroup_result = next(iter(subgroup_results.values()))
    return str(first_subgroup_result.options.get("not_audited", ""))


def _subgroups_as_json(
    subgroup_results: Mapping[object, AuditResult], write: Callable[[AuditResult], str]
) -> str:
    """Return results as one JSON object, by their labels."""
    stored_by_label = {
        str(subgroup_label): json.loads(write(subgroup_result))
        for subgroup_label, subgroup_result in subgroup_results.items()
    }
    return json.dumps(stored_by_label, ensure_ascii=False)


def _print_subgroups(subgroup_results: Mapping[object, AuditResult], confidence: float) -> None:
    """Print a row for each subgroup, and what they have in common."""
    first_subgroup_result = next(iter(subgroup_results.values()))
    summary = first_subgroup_result.summary()
    output.say(
        f"All {len(subgroup_results)} bounds hold together ({percent(confidence)} confidence): "
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
    output.say(output.grid(columns, _rows_of_subgroups(subgroup_results)))
    output.say("")
    not_audited = _unaudited_subgroups(subgroup_results)
    if not_audited:
        output.say(f"Not audited: {not_audited}", "yellow")
    output.say(f"seed: {first_subgroup_result.options['seed']}")
    for subgroup_label, subgroup_result in subgroup_results.items():
        for warning in subgroup_result.warnings:
            output.say(f"warning, {subgroup_label}: {output.spelled(warning)}", "yellow")


def _rows_of_subgroups(subgroup_results: Mapping[object, AuditResult]) -> Iterator[tuple[str, ...]]:
    """Yield the numbers of each subgroup, and the verdict."""
    for subgroup_label, subgroup_result in subgroup_results.items():
        summary = subgroup_result.summary()
        verdict = summary.verdict
        if subgroup_result.checked is not None:
            verdict = subgroup_result.checked.verdict
        if not summary.ceiling:
            verdict = "too few to prove anything"
        yield (
            str(subgroup_label),
            f"{subgroup_result.m:,}",
            f"{subgroup_result.members:,}",
            number(summary.epsilon),
            number(summary.ceiling),
            f"{subgroup_result.correct:,} of {subgroup_result.guesses:,}",
            verdict,
        )


def _folder_names_of_subgroups(subgroup_results: Mapping[object, AuditResult]) -> dict[object, str]:
    """Return a name of a folder for each label: its letters and digits, and a number if needed."""
    folder_names: dict[object, str] = {}
    for subgroup_number, subgroup_label in enumerate(subgroup_results, start=1):
        letters_and_digits = re.sub(r"[^\w-]+", "-", str(subgroup_label))
        folder_name = letters_and_digits[:_LONGEST_FOLDER_NAME].strip("-")
        # Names that differ in case only are one folder on some systems.
        names_taken = {taken.lower() for taken in folder_names.values()}
        if not folder_name or folder_name.lower() in names_taken:
            folder_name = f"{folder_name or 'subgroup'}-{subgroup_number}"
        folder_names[subgroup_label] = folder_name
    return folder_names
