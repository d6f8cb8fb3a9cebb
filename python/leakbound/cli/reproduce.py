"""The command that computes a table or figure of a paper anew."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads it)
from typing import TYPE_CHECKING, Annotated

import typer

from leakbound._base.files import write_text
from leakbound.cli import output, wide
from leakbound.errors import OptionError

if TYPE_CHECKING:
    from leakbound.experiments.papers import Cell, Outcome

app = typer.Typer()

REPRODUCE = (
    "Compute a table or figure of a paper anew: ours beside the printed, and why they differ.\n\n"
    "Without NAME, list what there is."
)


@app.command("reproduce", help=REPRODUCE)
def reproduce(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Which table or figure.")] = "",
    *,
    full: Annotated[
        bool, typer.Option("--full", metavar="", help="The paper's sizes, where they take long.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write NAME.json, and NAME.svg if there is a figure."),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="Print the outcome as JSON to stdout, and nothing else."
        ),
    ] = False,
) -> None:
    """Compute a table or figure of a paper anew."""
    from leakbound.experiments.papers import REPRODUCTIONS

    with output.answering():
        if not name:
            table = output.grid([("name", False), ("what", False), ("source", False)])
            for known, one in REPRODUCTIONS.items():
                table.add_row(known, one.title, one.source)
            output.say(table)
            return
        if name not in REPRODUCTIONS:
            message = f"NAME must be one of {', '.join(REPRODUCTIONS)}, got {name!r}"
            raise OptionError(message)
        if out is not None:
            output.prepare(out)
        chosen = REPRODUCTIONS[name]
        with output.waiting(f"Computing {name}"):
            outcome = chosen.compute(full=full)
        if json:
            typer.echo(outcome.to_json())
        else:
            output.say(f"{chosen.title}: {chosen.source}", "bold")
            _show(outcome)
        if out is not None:
            _write(outcome, out / name)


def _show(outcome: Outcome) -> None:
    rows = [[_words(cell) for cell in row] for row in outcome.rows]
    wide.show(outcome.columns, rows, [_numeric(cells) for cells in zip(*outcome.rows, strict=True)])
    for note in outcome.notes:
        output.say(f"- {note}")


def _numeric(cells: tuple[Cell, ...]) -> bool:
    return not any(isinstance(cell, str) for cell in cells)


def _words(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}" if 0 < abs(cell) < 0.01 else f"{cell:.2f}"
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def _write(outcome: Outcome, stem: Path) -> None:
    outcome.to_json(stem.with_suffix(".json"))
    if outcome.lines:
        from leakbound.experiments.papers.draw import svg

        write_text(stem.with_suffix(".svg"), svg(outcome))
