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
    columns = []
    for column in zip(*outcome.rows, strict=True):
        kinds = {type(cell) for cell in column}
        # Whole numbers beside floats are floats, and numbers beside words are words.
        kind = next((one for one in (str, float) if one in kinds), int)
        columns.append(pa.array([None if cell is None else kind(cell) for cell in column]))
    rest = {name: value for name, value in asdict(outcome).items() if name != "rows"}
    table = pa.table(columns, names=outcome.columns)
    parquet.write_table(
        table.replace_schema_metadata({"outcome": b64encode(compress(json.dumps(rest).encode()))}),
        path,
        compression="zstd",
    )


def read(path: Path) -> Outcome:
    """Return what was stored."""
    table = parquet.read_table(path)
    rest = json.loads(decompress(b64decode(table.schema.metadata[b"outcome"])))
    lines = tuple(
        Line(panel=line["panel"], name=line["name"], x=tuple(line["x"]), y=tuple(line["y"]))
        for line in rest.pop("lines")
    )
    rows = tuple(zip(*(column.to_pylist() for column in table.columns), strict=True))
    rest = {name: tuple(x) if isinstance(x, list) else x for name, x in rest.items()}
    return Outcome(rows=rows, lines=lines, **rest)
