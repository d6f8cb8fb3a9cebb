"""The command that verifies a bundle."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads the annotation)
from typing import Annotated

import typer

from leakbound._base.ending import REFUTED
from leakbound.cli import output
from leakbound.evidence import verify_bundle
from leakbound.planning import Commitment

app = typer.Typer()

VERIFY = (
    "Recompute what a bundle claims: its digests, its commitment, its audit, its page.\n\n"
    "Prints each check, then [bold]VALID[/] or [bold]INVALID[/] and why.\n\n"
    "[dim]Exit code: 0 valid, 1 invalid, 2 no bundle there or no commitment, 70 a crash.[/]"
)
_MARKS = {True: "ok", False: "FAILED", None: "-"}


@app.command("verify", help=VERIFY)
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The bundle.")],
    *,
    commitment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The commitment.json that was published before training."
        ),
    ] = None,
    canaries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The canaries, whose digest the protocol has to name."),
    ] = None,
    page: Annotated[
        bool,
        typer.Option(
            " /--no-page",
            metavar="",
            help="Leave report.html out: for bundles of another matplotlib. Do not read it then.",
        ),
    ] = True,
) -> None:
    """Verify a bundle."""
    with output.answering():
        published = None if commitment is None else Commitment.from_json(commitment)
        with output.waiting("Auditing again"):
            found = verify_bundle(folder, commitment=published, canaries=canaries, page=page)
        table = output.grid([("", False), ("", False), ("", False)])
        table.show_header = False
        for check in found.checks:
            table.add_row(_MARKS[check.passed], check.name, check.words)
        output.say(table)
        output.say(str(found), "bold" if found.valid else "bold red")
        raise typer.Exit(0 if found.valid else REFUTED)
