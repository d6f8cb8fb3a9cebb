"""What the commands print and write, and how they end."""

from __future__ import annotations

import io
import re
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer

from leakbound._base.console import INCONCLUSIVE, REFUTED, failure, silence, tell
from leakbound._base.formatting import printable
from leakbound.errors import LeakboundError
from leakbound.report.description import KINDS
from leakbound.report.style import house_style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.table import Table

    from leakbound.results.base import Result

_CODES = {"not refuted": 0, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}
# Width of what goes to a file or another program, where no terminal sets one.
_PAGE = 160
_OPTIONS: ContextVar[tuple[str, ...]] = ContextVar("_OPTIONS", default=())
"""Arguments of Python that are options of the command that runs."""
# What the library says with names of Python, in words of the command line.
_WORDS = {
    "Coins": "leakbound coins",
    "Panoramia": "leakbound panoramia",
    "RandomSplit": "leakbound split",
    "ZeroRun": "leakbound zero-run",
    "ApproxDP": "(ε, δ)-DP",
    "GaussianDP": "Gaussian DP",
    "LaplaceDP": "Laplace DP",
    "PureDP": "pure DP",
    "SubsampledGaussianDP": "DP-SGD",
    "Fixed": "fixed:R",
    "KLScan": "kl",
    "OutsideIn": "outside-in",
    "UnionBound": "union",
    "Weighted": "weighted",
    "ids=": "the column id",
}


@contextmanager
def answering(options: Iterable[str]) -> Iterator[None]:
    """End a command as the command line promises: no traceback for what a user can mend."""
    _OPTIONS.set(tuple(options))
    try:
        yield
        sys.stdout.flush()
    except (LeakboundError, OSError, EOFError, KeyboardInterrupt) as error:
        # Click has ends of its own for these, and they exit with 1.
        if isinstance(error, BrokenPipeError):
            silence(sys.stdout)
        raise typer.Exit(failure(error, in_its_words)) from None


def end(result: Result, *, lenient: bool) -> NoReturn:
    """Leave with 0, 1 or 3: the checked claim is not refuted (or there is none), is, or may be.

    Unless lenient, what there are warnings about, or assumptions that the data contradict, is not
    said to be not refuted: scores that are inverted refute nothing, whatever the model leaks.
    """
    code = 0 if result.checked is None else _CODES[result.checked.verdict]
    doubts = [f"contradicted: {one.name}" for one in result.summary().contradicted]
    doubts += [in_its_words(text) for text in result.warnings]
    if doubts and not lenient and result.checked is not None and code == 0:
        tell(f"leakbound: in doubt (--lenient lets the claim pass): {'; '.join(doubts)}")
        code = INCONCLUSIVE
    raise typer.Exit(code)


def grid(columns: Iterable[tuple[str, bool]]) -> Table:
    """Return an empty table without lines; each column has a heading, and whether it is numbers."""
    from rich.table import Table

    class Grid(Table):
        """A table that prints text as it is, and what is no text to see as escapes."""

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
    """Print text or a table to standard output: in lines of a terminal, or as they are."""
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
    """Say where the report is: on standard output, or aside on standard error."""
    text = f"Report: {folder / 'report.html'}"
    if aside:
        tell(text)
    else:
        typer.echo(text)


def write_files(folder: Path, result: Result, *, title: str) -> None:
    """Write result.json, report.html and the figures, each of them whole or not at all."""
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
    """Make the output folder, and see that figures can be drawn, before hours of work."""
    folder.mkdir(parents=True, exist_ok=True)
    with house_style():
        pass


def in_its_words(text: str) -> str:
    """Return a message in the words of the command line.

    Examples
    --------
    >>> in_its_words('Weighted is not for Laplace DP: take OutsideIn, Fixed or UnionBound')
    'weighted is not for Laplace DP: take outside-in, fixed:R or union'
    """
    text = text.replace(" (.to_numpy() of a pandas object is read by position)", "")
    text = re.sub(r"\bFixed\(guesses=(\d+)\)", r"fixed:\1", text)
    text = re.sub(r"\bset (\w+)=False\b", r"leave out \1=True", text)
    words = "|".join(map(re.escape, _WORDS))
    text = re.sub(rf"\b({words})(?!\w)(?:\([^()]*\))?", lambda match: _WORDS[match[1]], text)
    names = "|".join(_OPTIONS.get()) or "(?!)"
    # A name of one word may be a word, except before a value and where a message begins with it.
    snakes = "|".join(name for name in _OPTIONS.get() if "_" in name) or "(?!)"
    text = re.sub(rf'(?<![,\w-])({names})=(?![…\'])("?(?:[\w.+-]+(?::\w+)?)?"?)()', _flag, text)
    return re.sub(rf"\b({snakes})()\b|^({names})()(?= must\b)", _flag, text)


def _flag(match: re.Match[str]) -> str:
    name, value = match[1] or match[3], (match[2] or "").strip('"')
    flag = f"--{name.replace('_', '-')}"
    return flag if value in {"", "True"} else f"{flag} {value}"
