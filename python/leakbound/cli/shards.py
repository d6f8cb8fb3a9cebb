"""Shards of scores and membership, counted batch by batch: files, folders, globs, a pipe."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakbound._base.console import bar
from leakbound._base.counting import TALLY_BITS
from leakbound._base.imports import needs
from leakbound._base.tally import Tally, counted_batches, is_tally
from leakbound.errors import (
    ArrayTypeError,
    InputFileError,
    MembershipError,
    NaNScoresError,
    TallyError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

PIPE = Path("-")
_ROWS = 1 << 18
"""Rows of a batch."""
_SUFFIXES = (".parquet", ".csv", ".arrow", ".feather")
_STREAM, _FILE, _PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"
"""How Arrow's streams and files begin, and those of parquet."""


def are_shards(files: Sequence[Path]) -> bool:
    """Return whether files are shards to be counted, and no table to be read whole."""
    if len(files) != 1:
        return True
    (file,) = files
    if file == PIPE or file.is_dir() or (has_magic(str(file)) and not file.exists()):
        return True
    return file.suffix.lower() in {".arrow", ".feather"} or is_tally(file)


def tally_of(
    given: Sequence[Path],
    *,
    score: str = "score",
    member: str = "member",
    bits: int | None = None,
    allow_repeats: bool = False,
) -> Tally:
    """Count shards, and add tallies among them; memory is that of a batch and of the counts."""
    files = list(_listed(given))
    tallies = {path for path in files if path != PIPE and is_tally(path)}
    if bits is None:
        bits = Tally.from_parquet(min(tallies)).bits if tallies else TALLY_BITS

    def counted(advance: Callable[[int], None]) -> Iterator[Tally]:
        for path in files:
            with _named(path):
                if path in tallies:
                    yield Tally.from_parquet(path)
                else:
                    batches = _batches(path, score, member)
                    part = counted_batches(batches, score=score, member=member, bits=bits)
                    if part is not None:
                        yield part
            advance(1)

    with bar("Counting", total=len(files) if len(files) > 1 else None, shown=True) as advance:
        return Tally.sum(counted(advance), allow_repeats=allow_repeats)


def _listed(given: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that arguments name: those in folders and of globs in order of name."""
    for path in given:
        if path == PIPE or path.is_file():
            yield path
            continue
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in _SUFFIXES)
            found = [p for p in inside if p.is_file() and not _hidden(p.relative_to(path))]
            what = f"{path} is a folder without shards, files that end in {', '.join(_SUFFIXES)}"
        elif has_magic(str(path)):
            matches = map(Path, glob(str(path), recursive=True))  # noqa: PTH207 (from anywhere)
            found = sorted(match for match in matches if match.is_file())
            what = f"no file matches {path}"
        else:
            found, what = [], f"{path} is no file: give shards, a folder of them, a glob or -"
        if not found:
            raise InputFileError(what)
        yield from found


def _hidden(path: Path) -> bool:
    """Return whether engines leave a file out, such as _SUCCESS, or one in .cache."""
    return any(part.startswith((".", "_")) for part in path.parts)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the shard in what is said about its rows and columns."""
    with needs("io", "reading shards"):
        import pyarrow as pa
    try:
        yield
    except (ArrayTypeError, MembershipError, NaNScoresError, TallyError) as error:
        rows = " (rows count from 0)" if " row" in str(error) else ""
        message = f"{_shown(path)}: {error}{rows}"
        raise InputFileError(message) from error
    except pa.ArrowException as error:
        message = f"{_shown(path)} cannot be read: {error}"
        raise InputFileError(message) from error


def _shown(path: Path) -> str:
    return "standard input" if path == PIPE else str(path)


def _batches(path: Path, score: str, member: str) -> Iterator[tuple[int, Any]]:
    """Yield the batches of a shard with the number of their first row."""
    if path != PIPE and path.suffix.lower() not in _SUFFIXES:
        message = f"{path} is no shard: files that end in {', '.join(_SUFFIXES)} are counted"
        raise InputFileError(message)
    if path != PIPE and path.stat().st_size == 0:
        message = f"{path} is empty: it needs the columns {score} and {member}"
        raise InputFileError(message)
    with nullcontext(sys.stdin.buffer) if path == PIPE else path.open("rb") as file:
        schema, batches = _reader(file, path, score, member)
        _check(schema, path, score, member)
        first = 0
        for batch in batches:
            yield first, batch
            first += batch.num_rows


def _reader(file: Any, path: Path, score: str, member: str) -> tuple[Any, Iterable[Any]]:
    """Return the schema and the batches of a shard, read one after another."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    begins = file.peek(len(_FILE)) if hasattr(file, "peek") else b""
    if path == PIPE and begins.startswith((_FILE, _PARQUET)):
        message = "standard input is not read back and forth: pipe csv, or a stream of Arrow IPC"
        raise InputFileError(message)
    if path.suffix.lower() == ".parquet":
        shard = parquet.ParquetFile(file, pre_buffer=False)
        batches = shard.iter_batches(_ROWS, columns=[score, member])  # not before both were found
        return shard.schema_arrow, batches
    if begins.startswith(_FILE):
        content = pa.ipc.open_file(file)
        return content.schema, map(content.get_batch, range(content.num_record_batches))
    if path.suffix.lower() in {".arrow", ".feather"} or begins.startswith(_STREAM):
        stream = pa.ipc.open_stream(file)
        return stream.schema, stream
    convert = csv.ConvertOptions(
        column_types={score: pa.float64()},
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
        strings_can_be_null=True,
    )
    stream = csv.open_csv(file, convert_options=convert)
    return stream.schema, stream


def _check(schema: Any, path: Path, score: str, member: str) -> None:
    """Check that a shard has both columns, and no words for labels."""
    from pyarrow import types

    for name, option in ((score, "--score-col"), (member, "--member-col")):
        if schema.get_field_index(name) < 0:
            seen = ", ".join(map(repr, schema.names))
            message = (
                f"{_shown(path)} has no column {name!r}, or several: name another by {option}; "
                f"its columns are {seen}"
            )
            raise InputFileError(message)
    kind = schema.field(member).type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        message = (
            f"{_shown(path)}: column {member!r} holds words, and what is counted batch by batch "
            "has 0 and 1 there: write these, or give one-run this file alone, with "
            "--member-values IN,OUT"
        )
        raise InputFileError(message)
