"""The command that audits a synthetic table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound import audit_synthetic
from leakbound._base.console import bar
from leakbound._base.tables import Writing, read_columns
from leakbound.attacks.synthetic.scores import RISKS
from leakbound.cli import options
from leakbound.cli.features import Reading
from leakbound.cli.files import Signs, about, read
from leakbound.cli.options import BundledDelivery, command, option

app = typer.Typer()

SYNTHETIC = (
    "The records were split at random: the generator was trained on --members, and --nonmembers "
    "were held out. All three files have the same columns: numbers, dates (2024-05-31), "
    "true/false, words, and empty cells or marks such as NA for missing values. The bound is on ε "
    "for replacing one training record. The usual similarity metrics are reported too.\n\n"
    "[dim]Needs: pip install 'leakbound\\[io,ml]'[/]"
)


@dataclass(frozen=True)
class ColumnNames:
    """Columns of the records with a special role."""

    strata: Annotated[str, option("COL", "Column that the split was stratified by.")] = ""
    groups: Annotated[
        str, option("COL", "Column of groups that the split kept together, such as a person's id.")
    ] = ""
    secret: Annotated[
        str,
        option(
            "COL,COL",
            "Columns that an intruder wants to infer from all others, named before the first "
            "result. Default: every column in turn.",
        ),
    ] = ""


@command(
    app,
    "synthetic",
    "leakbound synthetic --members train.csv --nonmembers test.csv --synthetic made.csv",
    SYNTHETIC,
)
def synthetic(
    *,
    members: Annotated[Path, option("FILE", "Training records of the generator, one per row.")],
    nonmembers: Annotated[Path, option("FILE", "Held-out records of the same random split.")],
    table: Annotated[
        Path, option("FILE", "Synthetic records that the generator produced.", "--synthetic")
    ],
    reference: Annotated[
        Path | None,
        option("FILE", "Other records of the population, not in --nonmembers."),
    ] = None,
    relation: options.Relation = "replace",
    attacks: Annotated[
        str, option("NAME,NAME", "Attacks to run. The error level is divided among them.")
    ] = "default",
    columns: ColumnNames,
    reading: Reading,
    most_certified: Annotated[
        int | None,
        option(
            "N",
            "Claim that at most N hits of singling out, linkability and inference each are "
            "certified; exit with 1 if more are.",
            min=0,
        ),
    ] = None,
    question: options.Question,
    signs: Signs,
    delivery: BundledDelivery,
) -> None:
    """Audit a synthetic table in a file."""
    common = question.options(relation)
    names = options.parse_columns(attacks, "--attacks")
    if most_certified is not None and not {"default", *RISKS} & {*names}:
        options.refuse(
            f"--most-certified is about {', '.join(RISKS)}: name one of them in --attacks, or "
            "leave --attacks out"
        )
    writing = reading.writing(signs, named=True)
    with bar("Reading the tables"):
        inside, outside, generated = (
            read_table(path, signs=signs, writing=writing) for path in (members, nonmembers, table)
        )
        third = None
        if reference is not None:
            third = read_table(reference, signs=signs, writing=writing)
    roles = _roles(columns, reading.codes)
    with bar("Auditing the synthetic table"):
        tried: Any = names
        if names == ["default"]:
            tried = "default"
        result = audit_synthetic(
            inside,
            outside,
            generated,
            reference=third,
            attacks=tried,
            columns=roles,
            **common,
        )
    counted = None
    if most_certified is not None and result.risks is not None:
        counted = (result.risks.check(most_certified), result.risks.answer(most_certified))
    inputs = {
        "members": inside,
        "nonmembers": outside,
        "synthetic": generated,
        "reference": third,
        "columns": roles,
    }
    delivery.conclude(result, table, question.goal, relation, inputs=inputs, further=counted)


def _roles(columns: ColumnNames, codes: list[str]) -> dict[str, Any]:
    """Return the roles of columns, as `audit_synthetic` takes them."""
    roles: dict[str, object] = dict.fromkeys(codes, "codes")
    named = dict.fromkeys(options.parse_columns(columns.secret, "--secret"), "secret")
    if columns.strata:
        if columns.strata in named:
            options.refuse(f"--strata {columns.strata} is a secret too: name another column")
        named[columns.strata] = "stratum"
    for name, role in named.items():
        roles[name] = role
        if name in codes:
            roles[name] = f"{role} of codes"
    if columns.groups:
        roles[columns.groups] = "group"
    return roles


def read_table(path: Path, signs: Signs, writing: Writing) -> dict[str, Any]:
    """Read all columns of a table of records; what their text stands for the audit settles."""
    stored: Any = read(path, None, signs).stored
    with about(path):
        return read_columns(stored, str(path), writing)
