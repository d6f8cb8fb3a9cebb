"""Shards of scores and membership, counted batch by batch: files, folders, globs, a pipe."""

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from leakbound._base.checks import check_membership
from leakbound._base.console import bar, tell
from leakbound._base.files import RECORD
from leakbound._base.messages import Message
from leakbound._base.types import AnyArray, BoolArray
from leakbound._core import threads
from leakbound._tally.counting import TALLY_BITS, arrow, counted_pieces
from leakbound._tally.tally import METADATA, Tally
from leakbound.audits.pair_tally import PairTally
from leakbound.cli.files import (
    PIPE,
    TEXT,
    Layout,
    about,
    read_in_batches,
    suffix_of,
)
from leakbound.cli.options import ScoreCol, argument, command, option, refuse
from leakbound.cli.runs import check_coins
from leakbound.errors import FormatError, InputError, LeakboundError

app = typer.Typer()

KINDS = TEXT | {".parquet"}
SHARD_ROWS = "shard_rows"
"""Name, in the record of a folder of scores, of the rows of a shard."""
ROWS = "rows of DATA"
"""Name of the rows of all files, with commas between."""
MADE_OF = b"leakbound.made_of"
"""Name, in the metadata of a shard, of the digest of the record."""
# Shards of a file at most, in what a record says.
_MOST_SHARDS_OF_FILE = 10**6
# Most examples whose ids are compared: they are held in memory, with their shards.
_MOST_COMPARED_ROWS = 1 << 20
# Most shards that are read at once: each takes some 50 megabytes.
_MOST_WORKERS = 8


def are_shards(files: Sequence[Path]) -> bool:
    """Return whether files are counted in batches instead of read whole."""
    if len(files) != 1:
        return True
    (file,) = files
    if file == PIPE or file.is_dir() or (has_magic(str(file)) and not file.exists()):
        return True
    return _is_tally(file)


def tally_of(paths: Sequence[Path], score: str, layout: Layout) -> Tally:
    """Count shards and add tallies; memory holds a few batches and the counts."""
    files = list(files_of(paths))
    tallies = {path for path in files if _is_tally(path)}
    path = min(tallies, default=PIPE)
    with about(path):
        key_bits = TALLY_BITS
        if tallies:
            key_bits = Tally.from_parquet(path).bits

    stopped = Event()

    def counted_file(path: Path) -> Tally | None:
        if path in tallies:
            return Tally.from_parquet(path)
        counts = counted_pieces(
            _scores_and_membership(path, score=score, layout=layout, stopped=stopped), key_bits
        )
        if counts[0].size:
            return Tally(*counts, key_bits)
        return None

    def file_tallies(move: Callable[..., None], pool: Executor) -> Iterator[Tally]:
        nonlocal path
        remaining_files = iter(files)
        counted_ahead = deque(
            pool.submit(counted_file, file) for file in islice(remaining_files, 2 * workers)
        )
        for path in files:  # noqa: B007 (for messages)
            file_tally = counted_ahead.popleft().result()
            counted_ahead.extend(
                pool.submit(counted_file, file) for file in islice(remaining_files, 1)
            )
            if file_tally is not None:
                yield file_tally
            move(advance=1)

    workers = min(_MOST_WORKERS, threads())
    file_count = None
    if len(files) > 1:
        file_count = len(files)
    with (
        bar("Counting", total=file_count) as move,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            whole_tally = Tally.sum(file_tallies(move, pool))
        except LeakboundError:
            with about(path):  # that of the shard which does not add up
                raise
        finally:
            stopped.set()
    tables = [path for path in files if path not in tallies and path != PIPE]
    _compare_coins(files, tables, layout, rows=whole_tally.m)
    return whole_tally


def _compare_coins(
    files: Sequence[Path], tables: Sequence[Path], layout: Layout, *, rows: int
) -> None:
    """Compare ids and coins of different files; warn where they are not compared."""
    if rows <= _MOST_COMPARED_ROWS:
        check_coins(tables, layout)
        if len(files) > max(1, len(tables)):
            tell(
                "note: coins of different files are not compared where one is a tally or a pipe: "
                "each coin must decide on one run only"
            )
    elif len(files) > 1:
        tell(
            f"note: ids and coins of more than {_MOST_COMPARED_ROWS:,} rows are not compared: each "
            "example must be in one file, and each coin decide on one run, only"
        )


def pairs_of(paths: Sequence[Path]) -> PairTally | list[Path]:
    """Add tallies of pairs; return the files if they are tables of scores."""
    files = list(files_of(paths))
    tallies = [path for path in files if _is_tally(path)]
    tables = [path for path in files if path not in tallies]
    if not tallies:
        return tables
    if tables:
        raise FormatError(
            f"{tallies[0]} is a tally and {tables[0]} a table of scores, which cannot be added: "
            "give tables only, or tallies of pairs only"
        )
    whole_tally: PairTally | None = None
    for path in tallies:
        with about(path):
            file_tally = PairTally.from_parquet(path)
            if whole_tally is not None:
                file_tally = whole_tally + file_tally
            whole_tally = file_tally
    assert whole_tally is not None
    return whole_tally


def _is_tally(path: Path) -> bool:
    """Return whether a file is what `to_parquet` of a tally of either kind writes."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    return METADATA in _parquet_metadata(path)


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that arguments name; those of folders and globs are sorted by name."""
    for path in paths:
        if path == PIPE or path.is_file():
            yield path
            continue
        if path.is_dir():
            _check_scored_folder(path)
            # Engines skip such names: _SUCCESS, or a file in .cache.
            files = sorted(
                file
                for file in path.rglob("*")
                if suffix_of(file) in KINDS
                and file.is_file()
                and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            )
        else:
            matches = map(Path, glob(str(path), recursive=True))  # noqa: PTH207 (from anywhere)
            files = sorted(match for match in matches if match.is_file())
        if not files:
            kinds = ", ".join(sorted(KINDS))
            raise FormatError(
                f"{path}: no such files; give files that end in {kinds}, a folder, a glob or -"
            )
        yield from files


def record_digest(made_of: Mapping[str, str]) -> str:
    """Return the digest of a job of scoring, which its shards have, too."""
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def _check_scored_folder(folder: Path) -> None:
    """Refuse a folder that `leakbound score` has not finished, or with shards of another job."""
    record = folder / RECORD
    if not record.is_file():
        return
    made_of = dict[str, str]()
    shard_counts = list[int]()
    errors_of_record = (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
        ArithmeticError,
    )
    with suppress(*errors_of_record):
        made_of = dict(json.loads(record.read_text(encoding="utf-8")))
        rows_of_shard = int(made_of[SHARD_ROWS])
        shard_counts = [math.ceil(int(rows) / rows_of_shard) for rows in made_of[ROWS].split(",")]
    shards = [
        folder / f"{file_number:05d}-{shard_number:05d}.parquet"
        for file_number, count in enumerate(shard_counts)
        for shard_number in range(min(count, _MOST_SHARDS_OF_FILE))
    ]
    missing_shards = [shard for shard in shards if not shard.exists()]
    if missing_shards:
        raise FormatError(
            f"{folder} has {len(shards) - len(missing_shards):,} of {len(shards):,} shards: run "
            "the same leakbound score command again, which goes on where it stopped"
        )
    digest = record_digest(made_of).encode()
    for shard in shards:
        if _parquet_metadata(shard).get(MADE_OF, digest) != digest:
            raise FormatError(
                f"{shard} was not scored by the model and from the data that {record} names: score "
                "again, into a new folder"
            )


def _parquet_metadata(path: Path) -> dict[bytes, bytes]:
    """Return the metadata of a parquet file; none of a damaged one, which its reader refuses."""
    pa = arrow("reading parquet")
    with suppress(pa.ArrowException, OSError):
        return pa.parquet.read_schema(path).metadata or {}
    return {}


def _scores_and_membership(
    path: Path, score: str, layout: Layout, stopped: Event
) -> Iterator[tuple[AnyArray, BoolArray]]:
    """Yield scores and membership of a shard, batch by batch; messages number its rows."""
    member_col = layout.member_col
    for batch in read_in_batches(path, [score, member_col], layout):
        if stopped.is_set():
            return
        try:
            member = check_membership(batch.member(), len(batch))
        except InputError as error:
            message = "column {column!r}, rows from {first} on: {error}"
            raise InputError(
                Message(message, column=member_col, first=batch.first, error=error)
            ) from error
        yield batch.numbers(score), member


TALLY = (
    "A SHARD is a .parquet, .csv, .tsv or .jsonl file with columns [bold]score[/] and "
    "[bold]member[/], a tally, a folder of these, a glob, or - for csv on standard input. Files "
    "are read in batches. Every example must be in one file only. Two files with equal counts are "
    "refused as duplicates, and so are repeated ids in a column [bold]id[/], up to a million rows. "
    "Files with the same ids are several runs, and need separate coins."
)
COUNTED = """leakbound tally scores/ --out tally.parquet
leakbound coins tally.parquet"""


@command(app, "tally", COUNTED, TALLY, "")
def tally(
    shards: Annotated[list[Path], argument("SHARD…", "Files, folders, globs, or -.")],
    *,
    out: Annotated[Path, option("FILE", "Tally to write: .parquet.")],
    score_col: ScoreCol = "score",
    layout: Layout,
) -> None:
    """Count shards of scores into a tally."""
    if out.suffix.lower() != ".parquet":
        refuse(f"--out {out}: a tally is a .parquet file; use --out {out.with_suffix('.parquet')}")
    whole_tally = tally_of(shards, score=score_col, layout=layout)
    whole_tally.to_parquet(out)
    typer.echo(
        f"{out}: {whole_tally.m:,} examples, {whole_tally.members:,} members, {len(whole_tally):,} "
        f"keys of {whole_tally.bits} bits, {len(whole_tally.shards):,} shards"
    )
