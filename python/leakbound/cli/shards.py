"""Shards of scores and membership, counted batch by batch: files, folders, globs, a pipe."""

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Annotated

import numpy as np
import typer

from leakbound._base.checks import check_ids, check_membership
from leakbound._base.console import bar, tell
from leakbound._base.files import RECORD
from leakbound._base.messages import Message
from leakbound._base.types import AnyArray, BoolArray
from leakbound._core import threads
from leakbound._tally.counting import TALLY_BITS, arrow, counted_pieces
from leakbound._tally.tally import METADATA, Tally
from leakbound.audits.member_count import MemberCount
from leakbound.audits.pair_tally import PairTally
from leakbound.audits.premises import looks_drawn
from leakbound.cli.files import (
    PIPE,
    TEXT,
    Columns,
    Layout,
    about,
    opened,
    read_in_batches,
    suffix_of,
    together,
)
from leakbound.cli.options import ScoreCol, argument, command, option, refuse
from leakbound.errors import DesignError, FormatError, InputError, LeakboundError

# Coins that would all have to agree by chance: once in 10⁹
_FEWEST_COMPARED_COINS = 30
_ONE_RUN = (
    "a coin may decide on one run only. If all these runs were trained on the same canaries, put "
    "their rows into one file and give --groups id: scores of a canary are averaged, and the bound "
    "is on all runs together. To audit runs as one, toss coins for each run"
)


@dataclass(frozen=True, eq=False)
class _FileOfCoins:
    """Who was a member in a file, and the ids of its rows, if it has some."""

    path: Path
    ids: AnyArray | None
    member: BoolArray

    def has_ids_of(self, other: "_FileOfCoins") -> bool:
        """Whether both files have the same ids, in any order."""
        if self.ids is None or other.ids is None or self.ids.size != other.ids.size:
            return False
        return np.array_equal(np.sort(self.ids), np.sort(other.ids))

    @property
    def coins_by_id(self) -> BoolArray:
        """Membership in the order of the ids."""
        if self.ids is None:
            return self.member
        by_id = np.argsort(self.ids, kind="stable")
        return self.member[by_id]


def check_coins(paths: Sequence[Path], layout: Layout) -> None:
    """Check that no coin is counted twice, and say if files are several runs.

    Files with the same ids are runs, which need coins of their own; otherwise no id may be there
    twice. Files whose ids are not the same, or that have none, are compared row by row.
    """
    files_of_coins = list[_FileOfCoins]()
    for path in paths:
        file_of_coins = _read_coins(path, layout)
        if file_of_coins.member.size:
            files_of_coins.append(file_of_coins)
    runs_by_ids = _runs_by_ids(files_of_coins)
    if files_of_coins and all(file_of_coins.ids is not None for file_of_coins in files_of_coins):
        first_runs = [runs[0] for runs in runs_by_ids]
        _check_distinct_ids(first_runs)
    _check_without_ids(files_of_coins)
    largest_number_of_runs = max(map(len, runs_by_ids), default=1)
    if largest_number_of_runs > 1:
        tell(
            "note: files have the same ids and different coins: they are audited as "
            f"{largest_number_of_runs} runs, each with separate coins. The bound is on one run"
        )


def _runs_by_ids(files_of_coins: Sequence[_FileOfCoins]) -> list[list[_FileOfCoins]]:
    """Return lists of files with the same ids, each of another run; check their coins."""
    runs_by_ids = list[list[_FileOfCoins]]()
    for file_of_coins in files_of_coins:
        if file_of_coins.ids is None:
            continue
        earlier_runs = next(
            (runs for runs in runs_by_ids if runs[0].has_ids_of(file_of_coins)), None
        )
        if earlier_runs is None:
            runs_by_ids.append([file_of_coins])
            continue
        for earlier_run in earlier_runs:
            _check_independent_coins(earlier_run, file_of_coins)
        earlier_runs.append(file_of_coins)
    return runs_by_ids


def _read_coins(path: Path, layout: Layout) -> _FileOfCoins:
    """Read membership, and ids if there is one column of them."""
    with opened(path, layout) as (names, load):
        has_ids = names.count("id") == 1
        wanted_columns = [layout.member_col]
        if has_ids:
            wanted_columns.append("id")
        columns = Columns(path, together(load(wanted_columns)), layout)
    if not len(columns):
        return _FileOfCoins(path, ids=None, member=np.empty(0, dtype=np.bool_))
    ids = None
    if has_ids:
        ids = columns.words("id").astype(np.str_)
    return _FileOfCoins(path, ids=ids, member=columns.member() == 1)


def _check_independent_coins(one: _FileOfCoins, other: _FileOfCoins) -> None:
    """Refuse runs whose coins are the same, the opposite, or depend on each other."""
    agreeing_coins = int((one.coins_by_id == other.coins_by_id).sum())
    coin_count = one.member.size
    agreement = MemberCount.of_coins(agreeing_coins, coin_count)
    if 0 < agreeing_coins < coin_count and not agreement.impossible:
        return
    flaw_of_coins = f"coins that depend on each other ({agreeing_coins:,} of {coin_count:,} agree)"
    if agreeing_coins == coin_count:
        flaw_of_coins = "the same coins"
    elif not agreeing_coins:
        flaw_of_coins = "opposite coins"
    raise DesignError(
        f"{one.path} and {other.path} have the same ids and {flaw_of_coins}: {_ONE_RUN}"
    )


def _check_without_ids(files_of_coins: Sequence[_FileOfCoins]) -> None:
    """Compare files of which ids do not tell whether they have the same canaries.

    Refuse those of which row by row all coins agree, or differ, where these look drawn. In another
    order of rows the same coins leave only their numbers, which are told.
    """
    first_with_coins = dict[bytes, _FileOfCoins]()
    first_with_counts = dict[tuple[int, int], _FileOfCoins]()
    incomparable: tuple[Path, Path] | None = None
    for file_of_coins in files_of_coins:
        row_count = file_of_coins.member.size
        # The same for coins and for their opposites.
        coins_relative_to_first = (file_of_coins.member != file_of_coins.member[0]).tobytes()
        earlier_file = first_with_coins.setdefault(coins_relative_to_first, file_of_coins)
        is_drawn = row_count >= _FEWEST_COMPARED_COINS and looks_drawn(file_of_coins.member)
        if (
            is_drawn
            and earlier_file is not file_of_coins
            and not earlier_file.has_ids_of(file_of_coins)
        ):
            relation = "opposite"
            if earlier_file.member[0] == file_of_coins.member[0]:
                relation = "the same"
            raise DesignError(
                f"{earlier_file.path} and {file_of_coins.path} have {relation} coins, row by row: "
                f"{_ONE_RUN}; a column id is needed for that, with the same id for a canary in "
                "each run"
            )
        rows_and_members = (row_count, int(file_of_coins.member.sum()))
        earlier_file = first_with_counts.setdefault(rows_and_members, file_of_coins)
        is_incomparable = earlier_file is not file_of_coins and not earlier_file.has_ids_of(
            file_of_coins
        )
        if incomparable is None and is_incomparable:
            incomparable = (earlier_file.path, file_of_coins.path)
    if incomparable is not None:
        first_path, second_path = incomparable
        tell(
            f"note: {first_path} and {second_path} have equally many rows and members, and not the "
            "same ids, so that their coins cannot be compared: each coin must decide on one run "
            "only"
        )


def _check_distinct_ids(files_of_coins: list[_FileOfCoins]) -> None:
    """Refuse an id that is there twice, in one file or in two that are no runs of each other."""
    ids_of_all_files = np.concatenate(
        [file_of_coins.ids for file_of_coins in files_of_coins if file_of_coins.ids is not None]
    )
    membership_of_all_files = np.concatenate(
        [file_of_coins.member for file_of_coins in files_of_coins]
    )
    try:
        check_ids(ids_of_all_files, membership_of_all_files)
    except InputError as error:
        message = (
            "{error} (rows count from 0, through all files in order). If files are runs, each has "
            "to have the ids of all canaries"
        )
        raise FormatError(Message(message, error=error)) from error


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
    with read_in_batches(path, [score, member_col], layout) as batches:
        for batch in batches:
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
