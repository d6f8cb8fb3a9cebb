"""The program and the terminal: exit codes that never mean "refuted" by accident, and progress.

Python exits with 1 after any exception, and Click after an end of input or a closed pipe. Here 1
means that a claim was refuted, so every exit goes through `ended`.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import Timer
from typing import IO, TYPE_CHECKING, TypeVar

from leakbound._base.formatting import printable
from leakbound.errors import InternalError, LeakboundError

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

REFUTED = 1
BAD_INPUT = 2
INCONCLUSIVE = 3
CRASH = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

# Environment variable that shows the traceback of a crash.
_TRACEBACK = "LEAKBOUND_TRACEBACK"
# Most characters of the message of a crash.
_LONGEST_MESSAGE = 400


def ended(program: Callable[[], int]) -> int:
    """Run a program and return the code to exit with, whatever happens in it."""
    _open_streams()
    try:
        code = program()
    except BaseException as error:
        code = failure(error)
    return _code_after_flush(code)


def is_refusal(error: BaseException) -> bool:
    """Return whether an exception is about input, not a defect of this package."""
    return isinstance(error, LeakboundError | OSError) and not isinstance(error, InternalError)


def one_line(error: BaseException) -> str:
    """Return the message of an exception on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        name = "a file"
        if not isinstance(error.filename, int):
            name = os.fsdecode(error.filename)
        return f"{name}: {error.strerror}"
    return " ".join(str(error).split())


def tell(text: str) -> None:
    """Write a line to standard error, if it can be written to."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{printable(text, lines=True)}\n")
        sys.stderr.flush()


def silence(stream: IO[str]) -> None:
    """Discard what is left in a stream, so that the flush at exit cannot fail."""
    with suppress(OSError, ValueError, AttributeError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, stream.fileno())
        os.close(null_device)


def _open_streams() -> None:
    """Make streams accept any text, and replace those that the caller closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            null_device = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (lives on)
            setattr(sys, name, null_device)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def failure(error: BaseException, worded: Callable[[LeakboundError], str] = one_line) -> int:
    """Print what went wrong and return the exit code; `worded` writes the messages of ours."""
    if isinstance(error, KeyboardInterrupt):
        tell("leakbound: interrupted")
        return INTERRUPTED
    # rich turns a broken pipe into an exit with 1.
    cause: BaseException | None = error
    if isinstance(error, SystemExit):
        cause = error.__context__
    if isinstance(cause, BrokenPipeError):
        return BROKEN_PIPE
    if is_refusal(error):
        message = one_line(error)
        if isinstance(error, LeakboundError):
            message = worded(error)
        tell(f"leakbound: {message}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        tell(
            "leakbound: there is not enough memory for this many rows: audit fewer, or count "
            "scores with leakbound tally, which reads them in batches"
        )
        return BAD_INPUT
    hint_at_traceback = ""
    if not os.environ.get(_TRACEBACK):
        hint_at_traceback = f" ({_TRACEBACK}=1 shows the traceback)"
    if not hint_at_traceback:
        with suppress(Exception):
            tell("".join(traceback.format_exception(error)).rstrip())
    description = _crash_in_words(error).removesuffix(": ")
    tell(f"leakbound: internal error: {description}; please report it{hint_at_traceback}")
    return CRASH


def _crash_in_words(error: BaseException) -> str:
    """Return the type of an exception and its message, where that can be had."""
    type_name = type(error).__name__
    with suppress(Exception):  # the text of an exception may raise
        text = one_line(error)[:_LONGEST_MESSAGE]
        if text and isinstance(error, InternalError):
            return text
        return f"{type_name}: {text}"
    return type_name


def _code_after_flush(code: int) -> int:
    """Return the code once everything is written, or the one for what could not be."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        silence(sys.stdout)
        if code not in {BAD_INPUT, CRASH}:
            code = failure(error)
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)
    return code


# Seconds before a bar appears: what ends sooner shows nothing.
_SECONDS_BEFORE_BAR = 0.5
# Seconds over which the remaining time is estimated: a step may take minutes.
_SECONDS_OF_ESTIMATE = 600.0
_OPEN: "ContextVar[Progress | None]" = ContextVar("_OPEN", default=None)
"""The bars of the command that runs, to which the phases of its work add theirs."""


@contextmanager
def bar(
    what: str, *, total: float | None = None, shown: bool = True
) -> Iterator[Callable[..., None]]:
    """Show progress and remaining time on standard error if a block takes time, on a terminal only.

    The block gets rich's `Progress.update`, as in ``move(advance=1)``. A bar in another is a line
    below it.
    """
    outer_progress = _OPEN.get()
    if not shown or (outer_progress is None and not sys.stderr.isatty()):
        yield lambda **_: None
        return
    if outer_progress is not None:
        task = outer_progress.add_task(what, total=total)
        try:
            yield partial(outer_progress.update, task)
        finally:
            outer_progress.remove_task(task)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(),
        *Progress.get_default_columns(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=_SECONDS_OF_ESTIMATE,
    )
    task = progress.add_task(what, total=total)
    token = _OPEN.set(progress)
    timer = Timer(_SECONDS_BEFORE_BAR, progress.start)
    timer.start()
    try:
        yield partial(progress.update, task)
    finally:
        _OPEN.reset(token)
        timer.cancel()
        timer.join()
        progress.stop()


def track(
    items: Iterable[T], what: str, *, total: int | None, shown: bool | None = None
) -> Iterator[T]:
    """Yield `items` and show progress; without `shown`, only below the bar of a command."""
    if shown is None:
        shown = bool(_OPEN.get())
    if not shown:
        yield from items
        return
    with bar(what, total=total, shown=shown) as move:
        for item in items:
            yield item
            move(advance=1)
