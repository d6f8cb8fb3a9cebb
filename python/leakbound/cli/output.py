"""What the commands print and write, in which words, and their exit codes."""

import errno
import io
import json
import os
import shlex
import sys
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NoReturn

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
_WORDS_OF_OBJECTS = {
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
        message = f"{_option_name(error.option)}{message.removeprefix(error.option)}"
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
    option_name, _, option_value = str(part).partition("=")
    if isinstance(part, Option) and isinstance(part.value, list | dict):
        option_value = ",".join(part.value)
    if option_name == "ids":
        return "the column id"
    if option_name == "columns":
        return f"--categorical {option_value}"
    if option_name == "missing":
        return f"--missing {shlex.quote(option_value)}"
    object_name, _, arguments = option_value.partition("(")
    if option_name == "claim" and object_name == "ApproxDP":
        return f"--claim eps=E,{arguments.removesuffix(')')}"
    if option_name == "delta":
        return f"--claim eps=E,delta={option_value}"
    if option_name not in OPTIONS.get():
        return _command_line_word(str(part))
    if option_value in {"", "True"}:
        return _option_name(option_name)
    option_value = option_value.strip("'\"")
    return f"{_option_name(option_name)} {_command_line_word(option_value)}"


def _command_line_word(written: str) -> str:
    """Return what the command line calls an object that Python writes with its arguments."""
    object_name, _, arguments = written.partition("(")
    guesses = arguments.removeprefix("guesses=").removesuffix(")")
    if object_name == "Fixed" and guesses.isdecimal():
        return f"fixed:{guesses}"
    return _WORDS_OF_OBJECTS.get(object_name, written)


def _option_name(option: str) -> str:
    return f"--{option.replace('_', '-')}"


CODE_OF_VERDICT = {"not refuted": 0, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}
_WIDTH_WITHOUT_TERMINAL = 160


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
    code, doubts = _code_and_doubts(result, lenient=lenient, further=further)
    if doubts:
        tell(f"leakbound: inconclusive (use --lenient to accept): {'; '.join(doubts)}")
    return code


def _code_and_doubts(
    result: Result, *, lenient: bool, further: Verdict | None
) -> tuple[int, list[str]]:
    """Return the exit code, and what makes a result inconclusive that refutes nothing."""
    verdicts = list[Verdict]()
    if further is not None:
        verdicts.append(further)
    if result.checked is not None:
        verdicts.append(result.checked.verdict)
    codes = [CODE_OF_VERDICT[verdict] for verdict in verdicts]
    code = gravest_code(codes)
    doubts = [f"contradicted: {assumption.name}" for assumption in result.summary().contradicted]
    if codes:
        doubts += [spelled(warning) for warning in result.warnings]
    elif not getattr(result, "is_withheld", False):
        doubts = []  # nothing was claimed, and a bound was given
    if doubts and not lenient and code == 0:
        return INCONCLUSIVE, doubts
    return code, []


def gravest_code(codes: Container[int]) -> int:
    """Return the exit code of a claim that is refuted, else of an inconclusive one, else 0."""
    for code in (REFUTED, INCONCLUSIVE):
        if code in codes:
            return code
    return 0


def grid(columns: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table of text; each column has a heading, and whether it holds numbers."""
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="dim",
    )
    columns = list(columns)
    table.show_header = any(heading for heading, _ in columns)
    for heading, is_numeric in columns:
        alignment: Literal["left", "right"] = "left"
        if is_numeric:
            alignment = "right"
        table.add_column(heading, justify=alignment, no_wrap=is_numeric)
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def _colour_of(verdict: str) -> str:
    """Return the colour of a verdict: no colour says that a model is private."""
    colours = {
        "leaks": "red",
        "refuted": "red",
        "nothing refuted": "default",
        "not refuted": "green",
    }
    colour = colours.get(verdict, "yellow")
    return f"bold {colour}"


def brief(result: Result, *, lenient: bool = False, further: Verdict | None = None) -> str:
    """Return a result as JSON for scripts: what matters most first, and no curves.

    `exit_code` is that of the command, which warnings make 3 where a claim is not refuted.
    """
    summary = result.summary()
    code, _ = _code_and_doubts(result, lenient=lenient, further=further)
    leading_fields: dict[str, object] = {"headline": summary.headline, "verdict": summary.verdict}
    units_of_numbers = {"bound_units": summary.units["bound"]}
    if "epsilon" in summary.units:
        leading_fields["epsilon"] = summary.epsilon
        units_of_numbers = {"units": summary.units["epsilon"], **units_of_numbers}
    stored_result = _without_curves(result.to_dict())
    fields_in_order = {**leading_fields, **units_of_numbers, "exit_code": code, **stored_result}
    return json.dumps(encode(fields_in_order), ensure_ascii=False)


_CURVES = {"Curve", "Exposed", "Histogram", "Overlap", "Roc"}


def _without_curves(stored_result: object) -> Any:
    """Return what is stored of a result without the parts that are drawn, at any depth."""
    if not isinstance(stored_result, dict):
        return stored_result
    parts_without_curves = dict[str, object]()
    for name, part in stored_result.items():
        stored_part = _without_curves(part)
        is_curve = isinstance(stored_part, dict) and stored_part.get("type") in _CURVES
        if not is_curve:
            parts_without_curves[name] = stored_part
    return parts_without_curves


def show(result: Result) -> None:
    """Print one result for people: verdict, evidence, numbers, assumptions, seed, warnings."""
    summary = result.summary()
    verdict = summary.verdict
    if summary.leaks:
        verdict = "leaks"
    say(summary.headline, _colour_of(verdict))
    if result.checked is not None and summary.answer != summary.headline:
        say(summary.answer, _colour_of(result.checked.verdict))
    for paragraph in summary.paragraphs:
        say(paragraph)
    rows_of_metrics = [(metric.name, metric.value, metric.note) for metric in summary.metrics]
    name_value_note = [("", False), ("", True), ("", False)]
    say("")
    say(grid(name_value_note, rows_of_metrics))
    say("")
    contradicted_first = dict.fromkeys((*summary.contradicted, *summary.assumptions))
    for assumption in contradicted_first:
        style = None
        if assumption.status == "contradicted":
            style = "bold red"
        say(f"{assumption.status}: {assumption.name}. {assumption.statement}", style)
    # Of runs that were made, their own: a stream draws nothing
    seed = result.options.get("seed", result.provenance.seed)
    how_to_repeat = f"; --seed {seed} repeats this audit"
    if result.options.get("repeatable") is False:
        how_to_repeat = ""
    say(f"seed: {seed}{how_to_repeat}")
    for warning in result.warnings:
        say(f"warning: {spelled(warning)}", "yellow")
    for step in summary.next_steps:
        say(f"next: {spelled(step)}")


def say(what: str | Table, style: str | None = None) -> None:
    """Print text or a table to standard output, wrapped and styled on a terminal only."""
    if isinstance(what, str):
        what = printable(what, lines=True)
        if not sys.stdout.isatty():
            typer.echo(what)
            return
    from rich.console import Console

    if sys.stdout.isatty():
        terminal = Console(highlight=False)
        terminal.print(what, style=style, markup=False)
        return
    printed_text = io.StringIO()
    plain_console = Console(
        file=printed_text,
        highlight=False,
        width=_WIDTH_WITHOUT_TERMINAL,
        color_system=None,
    )
    plain_console.print(what, markup=False)
    printed_lines = printed_text.getvalue().rstrip("\n").split("\n")
    typer.echo("\n".join(line.rstrip() for line in printed_lines))


def write_files(folder: Path, result: Result, **about: Any) -> None:
    """Write result.json, report.html and the figures, each file atomically."""
    from leakbound._base.files import write_text
    from leakbound.report.page import svg

    result.to_json(folder / "result.json")
    figures_folder = folder / "figures"
    figures_folder.mkdir(exist_ok=True)
    for figure in result.summary().figures:
        write_text(figures_folder / f"{figure.name}.svg", svg(figure))
    result.report(folder / "report.html", **about)


def prepare(folder: Path | None) -> None:
    """Make the output folder and check that figures can be drawn, before the audit."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    with house_style():
        pass
