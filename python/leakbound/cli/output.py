"""What the commands print and write, and their exit codes."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer

from leakbound._base.console import INCONCLUSIVE, REFUTED, failure, silence, tell
from leakbound._base.formatting import printable
from leakbound.cli.wording import OPTIONS, in_its_words
from leakbound.errors import LeakboundError
from leakbound.report.description import KINDS
from leakbound.report.style import house_style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.table import Table

    from leakbound.results.base import Result

_CODES = {"not refuted": 0, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}
# Width of output to a file or another program.
_PAGE = 160


@contextmanager
def answering(options: Iterable[str]) -> Iterator[None]:
    """End a command without a traceback for errors that a user can fix."""
    OPTIONS.set(tuple(options))
    try:
        yield
        sys.stdout.flush()
    except (LeakboundError, OSError, EOFError, KeyboardInterrupt) as error:
        # Click would exit with 1.
        if isinstance(error, BrokenPipeError):
            silence(sys.stdout)
        raise typer.Exit(failure(error, in_its_words)) from None


def end(result: Result, *, lenient: bool) -> NoReturn:
    """Exit with 0, 1 or 3: claim not refuted (or none), refuted, or inconclusive.

    Unless lenient, a result with warnings or contradicted assumptions is inconclusive instead of
    not refuted: inverted scores refute nothing, however much the model leaks.
    """
    code = 0 if result.checked is None else _CODES[result.checked.verdict]
    doubts = [f"contradicted: {one.name}" for one in result.summary().contradicted]
    doubts += [in_its_words(text) for text in result.warnings]
    if doubts and not lenient and result.checked is not None and code == 0:
        tell(f"leakbound: inconclusive (use --lenient to accept): {'; '.join(doubts)}")
        code = INCONCLUSIVE
    raise typer.Exit(code)


def grid(columns: Iterable[tuple[str, bool]]) -> Table:
    """Return an empty table; each column has a heading, and whether it holds numbers."""
    from rich.table import Table

    class Grid(Table):
        """A table that prints text unchanged and invisible characters as escapes."""

        def add_row(self, *cells: object, **options: object) -> None:
            plain = (printable(one) if isinstance(one, str) else one for one in cells)
            super().add_row(*cast("Any", plain), **cast("Any", options))

    table = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = list(columns)
    table.show_header = any(heading for heading, _ in columns)
    for heading, numeric in columns:
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=numeric)
    return table


def show(result: Result) -> None:
    """Print one result for people: verdict, evidence, key numbers, warnings."""
    tone = "bold" if KINDS[result.kind].proves else "bold red"
    said = result.summary()
    say(said.headline, tone)
    if said.answer:
        say(said.answer, "bold")
    for text in said.paragraphs:
        say(text)
    table = grid([("", False), ("", True), ("", False)])
    for metric in said.metrics:
        table.add_row(metric.name, metric.value, metric.note)
    say("")
    say(table)
    for one in said.contradicted:
        say(f"contradicted: {one.name}. {one.statement}", "bold red")
    for text in result.warnings:
        say(f"warning: {in_its_words(text)}", "yellow")


def say(what: str | Table, style: str | None = None) -> None:
    """Print text or a table to standard output, wrapped and styled on a terminal only."""
    if isinstance(what, str):
        what = printable(what, lines=True)
        if not sys.stdout.isatty():
            typer.echo(what)
            return
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(what, style=style, markup=False)
        return
    plain = Console(file=io.StringIO(), highlight=False, width=_PAGE, color_system=None)
    plain.print(what, markup=False)
    lines = cast("io.StringIO", plain.file).getvalue().rstrip("\n").split("\n")
    typer.echo("\n".join(line.rstrip() for line in lines))


def announce(folder: Path, *, aside: bool) -> None:
    """Print where the report is, on standard output or (`aside`) on standard error."""
    text = f"Report: {folder / 'report.html'}"
    if aside:
        tell(text)
    else:
        typer.echo(text)


def write_files(folder: Path, result: Result, *, title: str) -> None:
    """Write result.json, report.html and the figures, each file atomically."""
    from leakbound import report
    from leakbound._base.files import write_text
    from leakbound.report.page import svg

    result.to_json(folder / "result.json")
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for figure in result.summary().figures:
        write_text(figures / f"{figure.name}.svg", svg(figure))
    report.write(folder / "report.html", result, title=title)


def prepare(folder: Path) -> None:
    """Make the output folder and check that figures can be drawn, before the audit."""
    folder.mkdir(parents=True, exist_ok=True)
    with house_style():
        pass
