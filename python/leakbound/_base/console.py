"""The program and the terminal: exit codes that never say "refuted" by accident, and a bar.

Python ends a program with 1 after any exception, and Click after an end of input or a closed pipe;
here 1 means that a claim was refuted, and so every end goes through `ended`.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Timer
from typing import Any, TypeVar

from leakbound._base.formatting import printable
from leakbound.errors import InternalError, LeakboundError

T = TypeVar("T")

REFUTED, BAD_INPUT, INCONCLUSIVE, CRASH, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 70, 130, 141

# Environment variable that asks for the traceback of a crash.
_TRACEBACK = "LEAKBOUND_TRACEBACK"
# Characters of what a crash says of itself.
_LONGEST = 400


def ended(program: Callable[[], int]) -> int:
    """Run a program and return the code to exit with, whatever happens in it."""
    _open_streams()
    try:
        code = program()
    except BaseException as error:
        code = failure(error)
    return _flushed(code)


def is_refusal(error: BaseException) -> bool:
    """Return whether an exception is about input, not a defect of this package."""
    return isinstance(error, LeakboundError | OSError) and not isinstance(error, InternalError)


def one_line(error: BaseException) -> str:
    """Return what an exception says, on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        name = os.fsdecode(error.filename) if not isinstance(error.filename, int) else "a file"
        return f"{name}: {error.strerror}"
    return " ".join(str(error).split())


def tell(text: str) -> None:
    """Write a line to standard error; where nobody can read it, the exit code has to do."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{printable(text, lines=True)}\n")
        sys.stderr.flush()


def silence(stream: Any) -> None:
    """Send what is left in a stream nowhere, so that the flush at exit cannot fail."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _open_streams() -> None:
    """Have streams to write to that take any text, also where the caller closed them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (lives on)
            setattr(sys, name, nowhere)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def failure(error: BaseException, worded: Callable[[str], str] = str) -> int:
    """Say what went wrong and return the code for it; `worded` puts our messages otherwise."""
    if isinstance(error, KeyboardInterrupt):
        tell("leakbound: interrupted")
        return INTERRUPTED
    # Where nobody reads on, rich turns a broken pipe into an exit with 1.
    if isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError):
        return BROKEN_PIPE
    if is_refusal(error):
        said = one_line(error)
        tell(f"leakbound: {worded(said) if isinstance(error, LeakboundError) else said}")
        return BAD_INPUT
    hint = "" if os.environ.get(_TRACEBACK) else f" ({_TRACEBACK}=1 shows the traceback)"
    if not hint:
        with suppress(Exception):
            tell("".join(traceback.format_exception(error)).rstrip())
    words = type(error).__name__
    with suppress(Exception):  # the text of an exception is anybody's code
        text = one_line(error)[:_LONGEST]
        words = text if text and isinstance(error, InternalError) else f"{words}: {text}"
    tell(f"leakbound: internal error: {words.removesuffix(': ')}; please report it{hint}")
    return CRASH


def _flushed(code: int) -> int:
    """Return the code once everything is written, or the one for what could not be."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        silence(sys.stdout)
        code = code if code in {BAD_INPUT, CRASH} else failure(error)
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)
    return code


# Seconds before a bar appears.
_PATIENCE = 1.0


@contextmanager
def bar(
    what: str, *, total: float | None = None, shown: bool = True
) -> Iterator[Callable[..., None]]:
    """Show a bar on standard error once the block has lasted a second, on a terminal only.

    The block gets what moves it: rich's `Progress.update`, as by ``advance=1``.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda **_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    progress = Progress(console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=total)
    # What takes no second shows nothing: a flash would only disturb.
    timer = Timer(_PATIENCE, progress.start)
    timer.start()
    try:
        yield partial(progress.update, task)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def track(items: Iterable[T], what: str, *, total: int | None, shown: bool) -> Iterator[T]:
    """Yield `items`, with a bar on standard error once the loop has lasted a second."""
    with bar(what, total=total, shown=shown) as move:
        for item in items:
            yield item
            move(advance=1)
