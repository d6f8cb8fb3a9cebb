"""What the commands print and write, in which words, and their exit codes."""

import errno
import io
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.table import Table

from leakbound._base.console import INCONCLUSIVE, REFUTED, failure, silence, tell
from leakbound._base.formatting import printable
from leakbound._base.messages import Message, Option, Part, Ways
from leakbound._base.records import encode
from leakbound._base.types import Verdict
from leakbound.errors import LeakboundError
from leakbound.report.style import house_style
from leakbound.results.base import Result

OPTIONS: ContextVar[tuple[str, ...]] = ContextVar("OPTIONS", default=())
"""Arguments in Python that are options of the current command."""
# What the command line calls objects of Python.
_WORDS = {
    "Choices": "leakbound choices",
    "Coins": "leakbound coins",
    "Panoramia": "leakbound panoramia",
    "RandomSplit": "leakbound split",
    "ZeroRun": "leakbound zero-run",
    "ApproxDP": "(ε, δ)-DP",
    "GaussianDP": "Gaussian DP",
    "LaplaceDP": "Laplace DP",
    "PureDP": "pure DP",
    "SubsampledGaussianDP": "DP-SGD",
    "ZeroConcentratedDP": "zCDP",
    "Fixed": "fixed:R",
    "KLScan": "kl",
    "OutsideIn": "outside-in",
    "SecondLook": "second-look",
    "UnionBound": "union",
    "Weighted": "weighted",
}


def worded(error: LeakboundError) -> str:
    """Return the message of an error as the command line writes it, in one line."""
    message = spelled(error.args[0])
    if error.option in OPTIONS.get() and message.startswith(error.option):
        message = f"{_flag_of(error.option)}{message.removeprefix(error.option)}"
    return " ".join(message.split())


def spelled(text: str) -> str:
    """Return a text; of a message, with the names of the command line.

    Examples
    --------
    >>> spelled(Message("{Weighted} is not for {LaplaceDP()}: take {OutsideIn} or {Fixed(…)}"))
    'weighted is not for Laplace DP: take outside-in or fixed:R'
    """
    if isinstance(text, Message):
        return text.spelled(_spelling)
    return text


def _spelling(part: Part) -> str:
    """Return what the command line calls an option with its value, or an object."""
    if isinstance(part, Ways):
        return part.shell
    name, _, value = str(part).partition("=")
    if isinstance(part, Option) and isinstance(part.value, list | dict):
        value = ",".join(part.value)
    if name == "ids":
        return "the column id"
    if name == "columns":
        return f"--categorical {value}"
    if name == "missing":
        return f"--missing {shlex.quote(value)}"
    kind, _, inside = value.partition("(")
    if name == "claim" and kind == "ApproxDP":
        return f"--claim eps=E,{inside.removesuffix(')')}"
    if name == "delta":
        return f"--claim eps=E,delta={value}"
    if name not in OPTIONS.get():
        return _word_of(str(part))
    if value in {"", "True"}:
        return _flag_of(name)
    value = value.strip("'\"")
    return f"{_flag_of(name)} {_word_of(value)}"


def _word_of(written: str) -> str:
    """Return what the command line calls an object that Python writes with its arguments."""
    kind, _, arguments = written.partition("(")
    guesses = arguments.removeprefix("guesses=").removesuffix(")")
    if kind == "Fixed" and guesses.isdecimal():
        return f"fixed:{guesses}"
    return _WORDS.get(kind, written)


def _flag_of(option: str) -> str:
    return f"--{option.replace('_', '-')}"


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
        raise typer.Exit(failure(error, worded)) from None


def end(result: Result, *, lenient: bool, further: Verdict | None = None) -> NoReturn:
    """Exit with the code of a result."""
    raise typer.Exit(exit_code(result, lenient=lenient, further=further))


def exit_code(result: Result, *, lenient: bool, further: Verdict | None = None) -> int:
    """Return 0, 1 or 3: claim not refuted (or none), refuted, or inconclusive.

    Of several claims a refuted one decides, then an inconclusive one. Unless lenient, a result with
    warnings or contradicted assumptions is inconclusive instead of not refuted: inverted scores
    refute nothing, however much the model leaks. Without a claim, a result is inconclusive
    only if its bound is withheld.
    """
    code, doubts = _judged(result, lenient=lenient, further=further)
    if doubts:
        tell(f"leakbound: inconclusive (use --lenient to accept): {'; '.join(doubts)}")
    return code


def _judged(result: Result, *, lenient: bool, further: Verdict | None) -> tuple[int, list[str]]:
    """Return the exit code, and what makes a result inconclusive that refutes nothing."""
    claims = [further]
    if result.checked is not None:
        claims.append(result.checked.verdict)
    codes = [_CODES[verdict] for verdict in claims if verdict is not None]
    code = next((one for one in (REFUTED, INCONCLUSIVE) if one in codes), 0)
    doubts = [f"contradicted: {one.name}" for one in result.summary().contradicted]
    if codes:
        doubts += [spelled(text) for text in result.warnings]
    elif not getattr(result, "is_withheld", False):
        doubts = []  # nothing was claimed, and a bound was given
    if doubts and not lenient and code == 0:
        return INCONCLUSIVE, doubts
    return code, []


def grid(columns: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table of text; each column has a heading, and whether it holds numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = list(columns)
    table.show_header = any(heading for heading, _ in columns)
    for heading, numeric in columns:
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def _tone(verdict: str) -> str:
    """Return the colour of a verdict: no colour says that a model is private."""
    tones = {"leaks": "red", "refuted": "red", "nothing refuted": "default", "not refuted": "green"}
    return f"bold {tones.get(verdict, 'yellow')}"


def brief(result: Result, *, lenient: bool = False, further: Verdict | None = None) -> str:
    """Return a result as JSON for scripts: what matters most first, and no curves.

    `exit_code` is that of the command, which warnings make 3 where a claim is not refuted.
    """
    said = result.summary()
    code, _ = _judged(result, lenient=lenient, further=further)
    first: dict[str, object] = {"headline": said.headline, "verdict": said.verdict}
    units = {"bound_units": said.units["bound"]}
    if "epsilon" in said.units:
        first["epsilon"] = said.epsilon
        units = {"units": said.units["epsilon"], **units}
    rest = _without_curves(result.to_dict())
    told = {**first, **units, "exit_code": code, **rest}
    return json.dumps(encode(told), ensure_ascii=False)


def _without_curves(stored: object) -> Any:
    if not isinstance(stored, dict):
        return stored
    kept = {name: _without_curves(part) for name, part in stored.items()}
    curves = {"Curve", "Exposed", "Histogram", "Overlap", "Roc"}
    return {
        name: part
        for name, part in kept.items()
        if not (isinstance(part, dict) and part.get("type") in curves)
    }


def show(result: Result) -> None:
    """Print one result for people: verdict, evidence, numbers, assumptions, seed, warnings."""
    said = result.summary()
    verdict = said.verdict
    if said.leaks:
        verdict = "leaks"
    say(said.headline, _tone(verdict))
    if result.checked is not None and said.answer != said.headline:
        say(said.answer, _tone(result.checked.verdict))
    for text in said.paragraphs:
        say(text)
    rows = [(metric.name, metric.value, metric.note) for metric in said.metrics]
    say("")
    say(grid([("", False), ("", True), ("", False)], rows))
    say("")
    for one in dict.fromkeys((*said.contradicted, *said.assumptions)):
        tone = None
        if one.status == "contradicted":
            tone = "bold red"
        say(f"{one.status}: {one.name}. {one.statement}", tone)
    # Of runs that were made, their own: a stream draws nothing
    seed = result.options.get("seed", result.provenance.seed)
    repeats = f"; --seed {seed} repeats this audit"
    if result.options.get("repeatable") is False:
        repeats = ""
    say(f"seed: {seed}{repeats}")
    for text in result.warnings:
        say(f"warning: {spelled(text)}", "yellow")
    for text in said.next_steps:
        say(f"next: {spelled(text)}")


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
    page = io.StringIO()
    plain = Console(file=page, highlight=False, width=_PAGE, color_system=None)
    plain.print(what, markup=False)
    lines = page.getvalue().rstrip("\n").split("\n")
    typer.echo("\n".join(line.rstrip() for line in lines))


def write_files(folder: Path, result: Result, **about: Any) -> None:
    """Write result.json, report.html and the figures, each file atomically."""
    from leakbound._base.files import write_text
    from leakbound.report.page import svg

    result.to_json(folder / "result.json")
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for figure in result.summary().figures:
        write_text(figures / f"{figure.name}.svg", svg(figure))
    result.report(folder / "report.html", **about)


def prepare(folder: Path | None) -> None:
    """Make the output folder and check that figures can be drawn, before the audit."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    with house_style():
        pass
