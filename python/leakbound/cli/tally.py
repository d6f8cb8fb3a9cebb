"""The command that counts shards of scores and membership into one small file."""

from pathlib import Path
from typing import Annotated

import typer

from leakbound.cli import output
from leakbound.cli.shards import tally_of
from leakbound.errors import OptionError

app = typer.Typer()

TALLY = (
    "Count shards of scores into one small file, a tally, that one-run audits.\n\n"
    "A SHARD is a .parquet, .csv or .arrow file with the columns [bold]score[/] and "
    "[bold]member[/], a tally, a folder of these, a glob, or - for csv or a stream of Arrow IPC on "
    "standard input. Shards are read one batch after another. Every example must be in one shard "
    "only; shards of equal counts are refused.\n\n"
    "[dim]leakbound tally scores/ --out tally.parquet[/]\n"
    "[dim]leakbound one-run tally.parquet[/]"
)


@app.command("tally", help=TALLY)
def tally(
    shards: Annotated[
        list[Path], typer.Argument(metavar="SHARD…", help="Files, folders, globs, or -.")
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The tally to write: .parquet.")],
    score: Annotated[
        str, typer.Option("--score-col", "--score", metavar="COL", help="The column of scores.")
    ] = "score",
    member: Annotated[
        str, typer.Option("--member-col", "--member", metavar="COL", help="The column of labels.")
    ] = "member",
    bits: Annotated[
        int | None,
        typer.Option(
            help="Bits of a key, 9 of them sign and exponent: 20, or those of tallies added.",
            min=8,
            max=32,
        ),
    ] = None,
    allow_repeats: Annotated[
        bool,
        typer.Option(
            "--allow-repeats", metavar="", help="Add shards whose counts are those of another."
        ),
    ] = False,
) -> None:
    """Count shards of scores into a tally."""
    with output.answering():
        if out.suffix.lower() != ".parquet":
            named = out.with_suffix(".parquet")
            message = f"--out {out}: a tally is a .parquet file; write --out {named}"
            raise OptionError(message)
        counted = tally_of(
            shards, score=score, member=member, bits=bits, allow_repeats=allow_repeats
        )
        counted.to_parquet(out)
        typer.echo(
            f"{out}: {counted.m:,} examples, {counted.members:,} members, {len(counted):,} keys of "
            f"{counted.bits} bits, {len(counted.shards):,} shards"
        )
