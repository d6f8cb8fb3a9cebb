"""Columns of features in files, as a table that `features=` of a design takes."""

import csv
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from leakbound._base.files import parquet_batches
from leakbound._base.scores import TOKENS
from leakbound._base.tables import Column, Writing, read_columns
from leakbound._base.types import AnyArray, Data, Named
from leakbound.cli.files import Signs, suffix_of
from leakbound.cli.joined import Table
from leakbound.cli.options import option, parse_columns, refuse
from leakbound.errors import FormatError


@dataclass(frozen=True)
class Reading:
    """How columns are read whose values may be numbers, words or dates."""

    categorical: Annotated[str, option("COL,COL", "Columns whose numbers are categories.")] = ""
    missing: Annotated[
        str,
        option(
            "WORD,WORD",
            "Further marks of missing values, such as '<0.5' or -9. NA, NULL, . and - are known: "
            "name them to confirm them without a warning.",
        ),
    ] = ""

    @property
    def codes(self) -> list[str]:
        """The columns whose numbers are categories."""
        return parse_columns(self.categorical, "--categorical")

    def writing(self, signs: Signs, *, named: bool) -> Writing:
        """Return how values are written; `named` is as `Writing` has it."""
        marks = next(csv.reader([self.missing], skipinitialspace=True), [])
        return Writing(signs.sign, signs.grouping, tuple(marks), named=named)


def features_in(table: Table, names: list[str], reading: Reading) -> dict[str, Column]:
    """Return columns of features, if any are named, as a frame with these would be read."""
    codes = {*reading.codes}
    others = sorted(codes - {*names})
    if others:
        refuse(f"--categorical names {others[0]!r}, which --features does not: add it there")
    if not names and reading.missing:
        refuse("--missing is about columns of --features: name these, or leave --missing out")
    if not names:
        return {}
    for path in table.paths:
        codes |= _categories_of(path)
    stored: Named = {name: table.as_stored(name) for name in names}
    columns = read_columns(stored, "features", reading.writing(table.signs, named=False))
    for name in codes & columns.keys():
        columns[name] = replace(columns[name], categorical=True)
    return columns


def tokens_in(table: Table) -> dict[str, AnyArray]:
    """Return the number of tokens of each text by its name; nothing where it is not told.

    Nobody asked for this column: if it lacks a number, a note says that it is left out.
    """
    from leakbound.audits.model_inputs import can_challenge

    if TOKENS not in table or not can_challenge():
        return {}
    with suppress(FormatError):
        tokens = table.numbers(TOKENS)
        if np.isfinite(tokens).all():
            return {TOKENS: tokens}
    note = f"note: the column {TOKENS} is not a number in each row: no challenge reads it"
    typer.echo(note, err=True)
    return {}


def _categories_of(path: Path) -> set[str]:
    """Return the columns of a parquet file that are declared to hold categories."""
    if suffix_of(path) != ".parquet":
        return set()
    from pyarrow import types

    schema, _ = parquet_batches(path)
    declared = {one.name for one in schema if types.is_dictionary(one.type)}
    # Parquet has no categories of numbers: pandas tells them apart by notes of its own.
    notes: Data = {}
    with suppress(ValueError):
        notes = schema.pandas_metadata
    with suppress(AttributeError, KeyError, TypeError):  # of notes in another form
        told = [one["name"] for one in notes["columns"] if one["pandas_type"] == "categorical"]
        declared |= set(told)
    return declared
