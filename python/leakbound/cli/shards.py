"""Shards of scores and membership, counted batch by batch: files, folders, globs, a pipe."""

from collections.abc import Callable, Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Annotated

import typer

from leakbound._base.checks import check_membership
from leakbound._base.console import bar
from leakbound._base.counting import TALLY_BITS, Counts, added, counted
from leakbound._base.tally import Tally, is_tally
from leakbound.cli.files import PIPE, TEXT, Columns, Layout, about, check_names, opened, suffix_of
from leakbound.cli.options import ScoreCol, argument, command, option, refuse
from leakbound.errors import FormatError, InputError

app = typer.Typer()

_KINDS = TEXT | {".parquet"}


def are_shards(files: Sequence[Path]) -> bool:
    """Return whether files are counted in batches instead of read whole."""
    if len(files) != 1:
        return True
    (file,) = files
    if file == PIPE or file.is_dir() or (has_magic(str(file)) and not file.exists()):
        return True
    return is_tally(file)


def tally_of(paths: Sequence[Path], score: str, layout: Layout) -> Tally:
    """Count shards and add tallies; memory holds one batch and the counts."""
    files = list(_files(paths))
    tallies = {path for path in files if is_tally(path)}
    bits = Tally.from_parquet(min(tallies)).bits if tallies else TALLY_BITS

    def parts(move: Callable[..., None]) -> Iterator[Tally]:
        for path in files:
            with about(path):
                if path in tallies:
                    yield Tally.from_parquet(path)
                else:
                    counts = added(_counts(path, score, layout, bits))
                    if counts[0].size:
                        yield Tally(*counts, bits)
            move(advance=1)

    with bar("Counting", total=len(files) if len(files) > 1 else None) as move:
        return Tally.sum(parts(move))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that arguments name; those of folders and globs are sorted by name."""
    for path in paths:
        if path == PIPE or path.is_file():
            yield path
            continue
        if path.is_dir():
            # Engines skip such names: _SUCCESS, or a file in .cache.
            files = sorted(
                file
                for file in path.rglob("*")
                if suffix_of(file) in _KINDS
                and file.is_file()
                and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            )
        else:
            matches = map(Path, glob(str(path), recursive=True))  # noqa: PTH207 (from anywhere)
            files = sorted(match for match in matches if match.is_file())
        if not files:
            kinds = ", ".join(sorted(_KINDS))
            message = (
                f"{path}: no such files; give files that end in {kinds}, a folder, a glob or -"
            )
            raise FormatError(message)
        yield from files


def _counts(path: Path, score: str, layout: Layout, bits: int) -> Iterator[Counts]:
    """Yield counts of a shard, batch by batch; messages number its rows."""
    first = 0
    with opened(path, layout) as (names, load):
        check_names(path, names, [score, layout.member_col])
        for stored in load([score, layout.member_col]):
            batch = Columns(path, stored, layout, first)
            if len(batch):
                try:
                    member = check_membership(batch.member(), len(batch))
                except InputError as error:
                    message = f"column {layout.member_col!r}, rows from {first} on: {error}"
                    raise InputError(message) from error
                yield counted(batch.numbers(score), member, bits, first)
            first += len(batch)


TALLY = (
    "A SHARD is a .parquet, .csv, .tsv or .jsonl file with columns [bold]score[/] and "
    "[bold]member[/], a tally, a folder of these, a glob, or - for csv on standard input. Files "
    "are read in batches. Every example must be in one file only. Two files with equal counts are "
    "refused as duplicates."
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
    whole = tally_of(shards, score_col, layout)
    whole.to_parquet(out)
    typer.echo(
        f"{out}: {whole.m:,} examples, {whole.members:,} members, {len(whole):,} keys of "
        f"{whole.bits} bits, {len(whole.shards):,} shards"
    )
