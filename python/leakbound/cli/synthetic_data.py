"""The command that audits a synthetic table: read three files, call, print, write."""

from pathlib import Path
from typing import Annotated

import typer

from leakbound import audit_synthetic
from leakbound.cli import options, output
from leakbound.cli.delivery import Delivery
from leakbound.cli.layouts import Signs
from leakbound.cli.options import command, option
from leakbound.cli.records import read_tables

app = typer.Typer()

SYNTHETIC = (
    "The records were split at random before: the generator learnt from --members, and "
    "--nonmembers were held out. All three files have the same columns: numbers, dates "
    "(2024-05-31), words, and empty where a value is missing. The bound is on replacing one record "
    "of the training data; the usual similarity metrics stand beside it.\n\n"
    + options.EXIT_CODES
    + "\n\n[dim]Needs: pip install 'leakbound\\[io,ml]'[/]"
)


@command(app, "synthetic", SYNTHETIC)
def synthetic(
    *,
    members: Annotated[
        Path, option("FILE", "What the generator was trained on: one row per record.")
    ],
    nonmembers: Annotated[Path, option("FILE", "The rest of the same random split.")],
    table: Annotated[Path, option("FILE", "What the generator made.", "--synthetic")],
    reference: Annotated[
        Path | None,
        option("FILE", "Other records of the population, a third set: never the non-members."),
    ] = None,
    relation: options.Relation = "replace",
    attacks: Annotated[
        str, option("NAME,NAME", "Attacks to make, each at its share of the level.")
    ] = "default",
    strata: Annotated[str, option("COL", "The column that the split was stratified by.")] = "",
    groups: Annotated[
        str, option("COL", "The column whose values were split as one, such as a person's id.")
    ] = "",
    categorical: Annotated[str, option("COL,COL", "Columns of numbers that are codes.")] = "",
    question: options.Question,
    signs: Signs,
    delivery: Delivery,
) -> None:
    """Audit a synthetic table in a file."""
    common, names = question.options(relation), options.parse_columns(attacks, "--attacks")
    with output.waiting("Reading the tables"):
        inside, outside = read_tables([members, nonmembers], signs)
        (generated,) = read_tables([table], signs)
        third = None if reference is None else read_tables([reference], signs)[0]
    result = audit_synthetic(
        inside,
        outside,
        generated,
        reference=third,
        attacks="default" if names == ["default"] else names,
        strata=strata or None,
        groups=groups or None,
        categorical=options.parse_columns(categorical, "--categorical"),
        **common,
    )
    delivery.conclude(result, table, question.goal, relation)
