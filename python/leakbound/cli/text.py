"""Tables in text: csv, tsv and JSON lines, compressed by gzip or not."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO, cast

import numpy as np

from leakbound.cli.layouts import suffix_of
from leakbound.errors import InputFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from leakbound.cli.layouts import Layout

    Readers = Mapping[str, Callable[[str], Any]]
    """For each column what reads its text, or raises ValueError that says what is wrong with it."""
    Rows = Iterator[tuple[int, list[str]]]
    """Fields by the number of their line."""

_OBJECT = '{"score": 0.5, "member": 1}'
_LINE = 1 << 26
"""Longest line in characters: a file without line breaks must not fill the memory."""


def rows_of(file: TextIO, called: Path, layout: Layout) -> tuple[list[str], Rows]:
    """Return the names of a table's columns and its rows by line; `called` says what it is."""
    lines = _bounded(file, called)
    if suffix_of(called) in {".jsonl", ".ndjson"}:
        return _objects(lines, called)
    reader = csv.reader(lines, delimiter=layout.separates(called), skipinitialspace=True)
    header = next(reader, None)
    if header is None:
        message = (
            f"{called} is empty: its first line must name the columns, for example score,member"
        )
        raise InputFileError(message)
    return [name.strip() for name in header], _below(reader, called, len(header))


def _below(reader: Any, called: Path, fields: int) -> Rows:
    """Yield the number and the fields of every line below the header that is not blank."""
    for row in reader:
        if row and len(row) != fields:
            message = (
                f"{called}, line {reader.line_num}: {len(row)} values where the header names "
                f"{fields} columns"
            )
            raise InputFileError(message)
        if row:
            yield reader.line_num, row


def _objects(lines: Iterator[str], called: Path) -> tuple[list[str], Rows]:
    """Read JSON lines: an object on each, with the names of the first one."""

    def objects() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                one = json.loads(line)
            except (ValueError, RecursionError) as error:
                message = f"{called}, line {number} is not JSON: {error}"
                raise InputFileError(message) from error
            if not isinstance(one, dict):
                message = f"{called}, line {number} is not a JSON object, such as {_OBJECT}"
                raise InputFileError(message)
            yield number, one

    def rows(first: tuple[int, dict[str, Any]]) -> Rows:
        for number, one in chain([first], every):
            try:
                yield number, [_in_text(one[name]) for name in first[1]]
            except KeyError as error:
                message = f"{called}, line {number} has no {error}, which the first line has"
                raise InputFileError(message) from error

    every = objects()
    first = next(every, None)
    if first is None:
        message = f"{called} is empty: it needs a JSON object on each line, such as {_OBJECT}"
        raise InputFileError(message)
    return list(first[1]), rows(first)


def _in_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _bounded(file: TextIO, path: Path) -> Iterator[str]:
    """Yield lines of text: not so long that they are none, and without NUL, which ends words."""
    for number, line in enumerate(iter(lambda: file.readline(_LINE), ""), 1):
        if len(line) == _LINE and not line.endswith("\n"):
            message = f"{path}, line {number} has more than {_LINE:,} characters: it is no table"
            raise InputFileError(message)
        if "\0" in line:
            message = f"{path}, line {number} has NUL bytes: save it as UTF-8 text"
            raise InputFileError(message)
        yield line


def columns_of(
    names: Sequence[str], lines: Rows, called: Path, readers: Readers
) -> dict[str, NDArray[Any]]:
    """Return columns of text as arrays: what their readers make of it."""
    columns: dict[str, list[Any]] = {name: [] for name in readers}
    places = [
        (name, names.index(name), read, columns[name].append) for name, read in readers.items()
    ]
    for line, row in lines:
        for name, place, read, add in places:
            try:
                add(read(row[place]))
            except ValueError as error:
                message = f"{called}, line {line}: {name} {error}"
                raise InputFileError(message) from error
    return {name: np.array(values) for name, values in columns.items()}


@contextmanager
def opened_text(path: Path) -> Iterator[TextIO]:
    """Open a table in text, compressed or not; say what is wrong with what is none."""
    packed = path.suffix.lower() == ".gz"
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield cast("TextIO", file)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        message = f"{path} is not UTF-8 text (byte 0x{byte:02x}): save it as UTF-8"
        raise InputFileError(message) from error
    except csv.Error as error:
        message = f"{path} is not a csv file: {error}"
        raise InputFileError(message) from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        if not packed:
            raise
        message = f"{path} is not compressed by gzip, or was cut off: {error}"
        raise InputFileError(message) from error
