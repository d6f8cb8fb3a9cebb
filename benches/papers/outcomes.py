"""What a reproduction is: a function that returns a table, and perhaps lines of a figure."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias
from zlib import compress, decompress

import pyarrow as pa
from pyarrow import parquet

__all__ = ["Cell", "Compute", "Line", "Outcome", "Reproduction", "read", "store"]

Cell: TypeAlias = str | int | float | None
"""An entry of a table: words, a count, a number, or nothing."""


@dataclass(frozen=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    panel : str
        Title of the axes it is drawn on.
    name : str
        What it shows.
    x, y : tuple of float
        Its points.
    """

    panel: str
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """Our values, the printed ones, and the reasons for differences.

    Parameters
    ----------
    columns : tuple of str
        Headings of the table.
    rows : tuple of tuple of `Cell`
        Entries, one for each heading.
    notes : tuple of str
        What was done, and why figures differ from those printed.
    lines : tuple of Line
        What a figure draws, if there is one.
    axes : tuple of str
        Names of its axes; on a logarithmic axis "log " comes first.
    shared : bool
        Whether all panels have the same y axis.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...]
    lines: tuple[Line, ...] = ()
    axes: tuple[str, ...] = ("x", "y")
    shared: bool = False


Compute: TypeAlias = Callable[..., Outcome]
"""A function that computes an outcome: its keywords, among full, seed, seeds and m, are sizes."""


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper that can be reproduced.

    Parameters
    ----------
    title : str
        What it shows.
    source : str
        Paper, and number of the table or figure.
    compute : callable
        Takes `full`, whether to use the paper's sizes where they take long, and what else of
        `seed`, `seeds` (their number) and `m` makes sense; returns an `Outcome`.
    """

    title: str
    source: str
    compute: Compute

    @property
    def sizes(self) -> set[str]:
        """What of `full`, `seed`, `seeds` and `m` it takes."""
        return set(signature(self.compute).parameters)


def store(outcome: Outcome, path: Path) -> None:
    """Write the rows as parquet, and all else of the outcome as deflated JSON in its metadata."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [_column(cells) for cells in zip(*outcome.rows, strict=True)]
    all_but_rows = asdict(outcome)
    del all_but_rows["rows"]
    deflated_json = compress(json.dumps(all_but_rows).encode())
    metadata = {"outcome": b64encode(deflated_json)}
    table = pa.table(columns, names=outcome.columns).replace_schema_metadata(metadata)
    parquet.write_table(table, path, compression="zstd")


def _column(cells: tuple[Cell, ...]) -> pa.Array:
    """Return a column: numbers beside words are words, whole numbers beside floats are floats."""
    types = {type(cell) for cell in cells}
    if str in types:
        words = [None if cell is None else str(cell) for cell in cells]
        return pa.array(words)
    if float in types:
        return pa.array(cells, pa.float64())
    return pa.array(cells)


def read(path: Path) -> Outcome:
    """Return what was stored."""
    table = parquet.read_table(path)
    deflated_json = b64decode(table.schema.metadata[b"outcome"])
    all_but_rows = json.loads(decompress(deflated_json))
    columns = [column.to_pylist() for column in table.columns]
    lines = []
    for line in all_but_rows["lines"]:
        x = tuple(line["x"])
        y = tuple(line["y"])
        lines.append(Line(panel=line["panel"], name=line["name"], x=x, y=y))
    return Outcome(
        columns=tuple(all_but_rows["columns"]),
        rows=tuple(zip(*columns, strict=True)),
        notes=tuple(all_but_rows["notes"]),
        lines=tuple(lines),
        axes=tuple(all_but_rows["axes"]),
        shared=all_but_rows["shared"],
    )
