"""Shards of scores and membership, counted batch by batch: files, folders, globs, a pipe."""

from __future__ import annotations

from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakbound._base.progress import bar, needs
from leakbound._base.tally import TALLY_BITS, Tally, counted_batches, is_tally
from leakbound.cli.files import ARROW, PIPE, TEXT, Columns, check_names, opened
from leakbound.cli.layouts import suffix_of
from leakbound.errors import (
    ArrayTypeError,
    InputFileError,
    MembershipError,
    NaNScoresError,
    TallyError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from leakbound.cli.layouts import Layout

_KINDS = TEXT | ARROW | {".parquet"}


def are_shards(files: Sequence[Path]) -> bool:
    """Return whether files are shards to be counted, and no table to be read whole."""
    if len(files) != 1:
        return True
    (file,) = files
    if file == PIPE or file.is_dir() or (has_magic(str(file)) and not file.exists()):
        return True
    return file.suffix.lower() in ARROW or is_tally(file)


def tally_of(
    paths: Sequence[Path],
    score: str,
    layout: Layout,
    *,
    bits: int | None = None,
    allow_repeats: bool = False,
) -> Tally:
    """Count shards, and add tallies among them; memory is that of a batch and of the counts."""
    files = list(_files(paths))
    tallies = {path for path in files if is_tally(path)}
    if bits is None:
        bits = Tally.from_parquet(min(tallies)).bits if tallies else TALLY_BITS

    def counted(advance: Callable[[int], None]) -> Iterator[Tally]:
        for path in files:
            try:
                if path in tallies:
                    yield Tally.from_parquet(path)
                else:
                    batches = _batches(path, score, layout)
                    part = counted_batches(batches, score="score", member="member", bits=bits)
                    if part is not None:
                        yield part
            except (ArrayTypeError, MembershipError, NaNScoresError, TallyError) as error:
                message = f"{path}: {error}"
                raise InputFileError(message) from error
            advance(1)

    with bar("Counting", total=len(files) if len(files) > 1 else None, shown=True) as advance:
        return Tally.sum(counted(advance), allow_repeats=allow_repeats)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that arguments name: those in folders and of globs in order of name."""
    for path in paths:
        if path == PIPE or path.is_file():
            yield path
            continue
        if path.is_dir():
            # Engines leave out what begins so, such as _SUCCESS, or a file in .cache.
            found = sorted(
                file
                for file in path.rglob("*")
                if suffix_of(file) in _KINDS
                and file.is_file()
                and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            )
        else:
            matches = map(Path, glob(str(path), recursive=True))  # noqa: PTH207 (from anywhere)
            found = sorted(match for match in matches if match.is_file())
        if not found:
            kinds = ", ".join(sorted(_KINDS))
            message = (
                f"{path} names no shards: give files that end in {kinds}, a folder, a glob or -"
            )
            raise InputFileError(message)
        yield from found


def _batches(path: Path, score: str, layout: Layout) -> Iterator[tuple[int, Any]]:
    """Yield scores and membership of a shard with the number of their first row."""
    with needs("io", "counting shards"):
        import pyarrow as pa
    first = 0
    with opened(path, layout) as (names, load):
        check_names(path, names, [score, layout.member_col])
        for stored in load([score, layout.member_col]):
            batch = Columns(path, stored, layout, first)
            columns = [pa.array(batch.numbers(score)), pa.array(batch.member())]
            yield first, pa.RecordBatch.from_arrays(columns, names=["score", "member"])
            first += len(batch)
