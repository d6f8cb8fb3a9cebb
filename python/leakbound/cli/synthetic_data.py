"""The command that audits a synthetic table: read three files, call, print, write."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads the annotation)
from typing import Annotated, Literal

import typer

from leakbound import audit_synthetic
from leakbound.cli import output
from leakbound.cli.audits import (
    Claimed,
    Confidence,
    Cuts,
    Decimal,
    Family,
    Json,
    Lenient,
    Out,
    Seed,
    Separator,
    conclude,
)
from leakbound.cli.layouts import parse_layout
from leakbound.cli.options import (
    CLAIM_OF,
    for_replacing,
    guarantee_of,
    parse_claim,
    parse_columns,
    parse_cuts,
)
from leakbound.cli.records import read_tables

__all__ = ["SYNTHETIC", "synthetic"]

app = typer.Typer()

SYNTHETIC = (
    "Audit a generator by the synthetic table that it made: how much ε does the table prove?\n\n"
    "The records were split at random before: the generator learnt from --members, and "
    "--nonmembers were held out. All three files have the same columns: numbers, dates "
    "(2024-05-31), words, and empty where a value is missing. The bound is on replacing one record "
    "of the training data; the usual similarity metrics stand beside it.\n\n"
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach "
    "or in doubt, 70 a crash.[/]\n\n"
    "[dim]Needs: pip install 'leakbound\\[ml]'[/]"
)

_FILE = "A table with one row per record: .csv, .tsv, .jsonl, these with .gz, .npz or .parquet."


@app.command("synthetic", help=SYNTHETIC)
def synthetic(
    *,
    members: Annotated[
        Path, typer.Option(metavar="FILE", help=f"What the generator was trained on. {_FILE}")
    ],
    nonmembers: Annotated[
        Path, typer.Option(metavar="FILE", help="The rest of the same random split.")
    ],
    made: Annotated[
        Path, typer.Option("--synthetic", metavar="FILE", help="What the generator made.")
    ],
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Other records of the population, a third set: never the non-members.",
        ),
    ] = None,
    claim: Claimed = "",
    family: Family = "",
    relation: Annotated[
        Literal["replace", "add_remove"],
        typer.Option(
            help="What the claim compares: training with one record replaced by another, or with "
            "and without one. The bound is on the former; a claim of the latter is converted to "
            "what follows from it.",
        ),
    ] = "replace",
    attacks: Annotated[
        str,
        typer.Option(metavar="NAME,NAME", help="Attacks to make, each at its share of the level."),
    ] = "default",
    strata: Annotated[
        str, typer.Option(metavar="COL", help="The column that the split was stratified by.")
    ] = "",
    groups: Annotated[
        str,
        typer.Option(
            metavar="COL", help="The column whose values were split as one, such as a person's id."
        ),
    ] = "",
    categorical: Annotated[
        str, typer.Option(metavar="COL,COL", help="Columns of numbers that are codes.")
    ] = "",
    sep: Separator = "",
    decimal: Decimal = "",
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    seed: Seed = None,
    out: Out = None,
    json: Json = False,
    lenient: Lenient = False,
) -> None:
    """Audit a synthetic table in a file."""
    with output.answering():
        goal = parse_claim(claim, CLAIM_OF) if claim else {}
        guarantee = guarantee_of(goal if relation == "replace" else for_replacing(goal), family)
        policy = parse_cuts(cuts)
        names = parse_columns(attacks, "--attacks")
        codes = parse_columns(categorical, "--categorical") if categorical else []
        layout = parse_layout("", "", sep, decimal)
        if out is not None:
            output.prepare(out)
        with output.waiting("Reading the tables"):
            inside, outside = read_tables([members, nonmembers], layout)
            (table,) = read_tables([made], layout)
            third = None if reference is None else read_tables([reference], layout)[0]
        result = audit_synthetic(
            inside,
            outside,
            table,
            reference=third,
            claim=guarantee,
            attacks="default" if names == ["default"] else names,
            confidence=confidence,
            cuts=policy,
            strata=strata or None,
            groups=groups or None,
            categorical=codes,
            seed=seed,
        )
        conclude(result, made, goal, out, json=json, lenient=lenient, relation=relation)
