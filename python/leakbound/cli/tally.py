"""The command that counts shards of scores and membership into one small file."""

from pathlib import Path
from typing import Annotated

import typer

from leakbound.cli.layouts import Layout
from leakbound.cli.options import argument, command, flag, option
from leakbound.cli.shards import tally_of
from leakbound.errors import OptionError

app = typer.Typer()

TALLY = (
    "A SHARD is a .parquet, .csv, .tsv, .jsonl or .arrow file with the columns [bold]score[/] and "
    "[bold]member[/], a tally, a folder of these, a glob, or - for csv or a stream of Arrow IPC on "
    "standard input. Shards are read one batch after another. Every example must be in one shard "
    "only; shards of equal counts are refused.\n\n"
    "[dim]leakbound tally scores/ --out tally.parquet[/]\n"
    "[dim]leakbound coins tally.parquet[/]"
)


@command(app, "tally", TALLY)
def tally(
    shards: Annotated[list[Path], argument("SHARD…", "Files, folders, globs, or -.")],
    *,
    out: Annotated[Path, option("FILE", "The tally to write: .parquet.")],
    score_col: Annotated[str, option("COL", "The column of scores.")] = "score",
    bits: Annotated[
        int | None,
        option(
            "N",
            "Bits of a key, 9 of them sign and exponent: 20, or those of tallies added.",
            min=8,
            max=32,
        ),
    ] = None,
    allow_repeats: Annotated[
        bool, flag("--allow-repeats", "Add shards whose counts are those of another.")
    ] = False,
    layout: Layout,
) -> None:
    """Count shards of scores into a tally."""
    if out.suffix.lower() != ".parquet":
        message = (
            f"--out {out}: a tally is a .parquet file; write --out {out.with_suffix('.parquet')}"
        )
        raise OptionError(message)
    counted = tally_of(shards, score_col, layout, bits=bits, allow_repeats=allow_repeats)
    counted.to_parquet(out)
    typer.echo(
        f"{out}: {counted.m:,} examples, {counted.members:,} members, {len(counted):,} keys of "
        f"{counted.bits} bits, {len(counted.shards):,} shards"
    )
