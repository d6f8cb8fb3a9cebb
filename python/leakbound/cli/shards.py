"""Shards of scores and membership, counted batch by batch: files, folders, globs, a pipe."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakbound._base.extras import needs
from leakbound._base.progress import bar
from leakbound._base.tally import TALLY_BITS, Tally, counted_batches, is_tally
from leakbound.errors import (
    ArrayTypeError,
    InputFileError,
    MembershipError,
    NaNScoresError,
    TallyError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["are_shards", "tally_of"]

PIPE = Path("-")
_ROWS = 1 << 18
"""Rows of a batch."""
_SUFFIXES = (".parquet", ".csv", ".arrow", ".feather")
_STREAM, _FILE, _PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"
"""How Arrow's streams and files begin, and those of parquet."""


@dataclass(frozen=True)
class _Columns:
    """The columns that are counted, the bits of keys, and the type of labels in the first shard."""

    score: str
    member: str
    bits: int
    kinds: dict[str, Path] = field(default_factory=dict)

    def check(self, schema: Any, path: Path) -> None:
        """Check that a shard has both columns, and labels of the type that all others have."""
        from pyarrow import types

        for name, option in ((self.score, "--score-col"), (self.member, "--member-col")):
            if schema.get_field_index(name) < 0:
                seen = ", ".join(map(repr, schema.names))
                message = (
                    f"{_shown(path)} has no column {name!r}, or several: name another by {option}; "
                    f"its columns are {seen}"
                )
                raise InputFileError(message)
        kind = schema.field(self.member).type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
            message = (
                f"{_shown(path)}: column {self.member!r} holds words, and what is counted batch by "
                "batch has 0 and 1 there: write these, or give one-run this file alone, with "
                "--member-values IN,OUT"
            )
            raise InputFileError(message)
        plain = "whole numbers" if types.is_integer(kind) else str(kind)
        self.kinds.setdefault(plain, path)
        if len(self.kinds) > 1:
            (one, first), (other, _) = self.kinds.items()
            message = (
                f"{path}: column {self.member!r} is of {other}, and that of {first} of {one}: "
                "write labels of all shards in one type"
            )
            raise InputFileError(message)


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
    sizes = {path: path.stat().st_size for path in files if path != PIPE}
    tallies = {path for path in files if path != PIPE and is_tally(path)}
    width = Tally.from_parquet(min(tallies)).bits if tallies and bits is None else bits
    columns = _Columns(score, member, TALLY_BITS if width is None else width)

    total = sum(sizes.values()) if len(sizes) == len(files) else None

    def counted(advance: Callable[[int], None]) -> Iterator[Tally]:
        for path in files:
            with _named(path):
                if path in tallies:
                    yield Tally.from_parquet(path)
                    advance(sizes[path])
                    continue
                batches = _numbered(_batches(path, columns), advance)
                part = counted_batches(batches, score=score, member=member, bits=columns.bits)
                if part is not None:
                    yield part

    with bar("Counting", total=total, shown=True) as advance:
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


def _numbered(
    batches: Iterator[tuple[Any, int]], advance: Callable[[int], None]
) -> Iterator[tuple[int, Any]]:
    """Yield batches with the number of their first row; advance by the bytes read for each."""
    first = 0
    for batch, read in batches:
        yield first, batch
        first += batch.num_rows
        advance(read)


def _batches(path: Path, columns: _Columns) -> Iterator[tuple[Any, int]]:
    """Yield the batches of a shard, and how many of its bytes were read for each."""
    if path == PIPE:
        pipe = sys.stdin.buffer
        begins = pipe.peek(len(_FILE)) if hasattr(pipe, "peek") else b""
        if begins.startswith((_FILE, _PARQUET)):
            message = (
                "standard input is not read back and forth: pipe csv, or a stream of Arrow IPC"
            )
            raise InputFileError(message)
        yield from (_stream if begins.startswith(_STREAM) else _csv)(pipe, path, columns)
        return
    readers = {".parquet": _parquet, ".csv": _csv, ".arrow": _ipc, ".feather": _ipc}
    if path.suffix.lower() not in readers:
        message = f"{path} is no shard: files that end in {', '.join(_SUFFIXES)} are counted"
        raise InputFileError(message)
    if path.stat().st_size == 0:
        first = ": its first line must name the columns, for example score,member"
        message = f"{path} is empty{first if path.suffix.lower() == '.csv' else ''}"
        raise InputFileError(message)
    with path.open("rb") as file:
        yield from readers[path.suffix.lower()](file, path, columns)


def _parquet(file: Any, path: Path, columns: _Columns) -> Iterator[tuple[Any, int]]:
    """Read row groups one after another."""
    from pyarrow import parquet

    with parquet.ParquetFile(file, pre_buffer=False) as shard:
        columns.check(shard.schema_arrow, path)
        rows, size = max(1, shard.metadata.num_rows), path.stat().st_size
        wanted = [columns.score, columns.member]
        for batch in shard.iter_batches(batch_size=_ROWS, columns=wanted, use_threads=True):
            yield batch, size * batch.num_rows // rows


def _csv(file: Any, path: Path, columns: _Columns) -> Iterator[tuple[Any, int]]:
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types={columns.score: pa.float64()},
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
        strings_can_be_null=True,
    )
    at = 0
    with csv.open_csv(file, convert_options=convert) as shard:
        columns.check(shard.schema, path)
        for batch in shard:
            read = file.tell() if path != PIPE else 0
            yield batch.select([columns.score, columns.member]), read - at
            at = read


def _ipc(file: Any, path: Path, columns: _Columns) -> Iterator[tuple[Any, int]]:
    """Read a file, or a stream that was written to one."""
    import pyarrow as pa

    begins = file.read(len(_FILE))
    file.seek(0)
    if begins != _FILE:
        yield from _stream(file, path, columns)
        return
    size = path.stat().st_size
    with pa.ipc.open_file(file) as shard:
        columns.check(shard.schema, path)
        for index in range(shard.num_record_batches):
            yield shard.get_batch(index), size // shard.num_record_batches


def _stream(file: Any, path: Path, columns: _Columns) -> Iterator[tuple[Any, int]]:
    import pyarrow as pa

    with pa.ipc.open_stream(file) as shard:
        columns.check(shard.schema, path)
        for batch in shard:
            yield batch, 0
