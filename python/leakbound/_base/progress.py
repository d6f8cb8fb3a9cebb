"""A progress bar for loops that last, shown only where somebody is looking."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

from leakbound.errors import MissingExtraError

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds before a bar appears."""


@contextmanager
def bar(what: str, *, total: int | None, shown: bool) -> Iterator[Callable[[int], None]]:
    """Lend what advances a bar on standard error, which shows once a second has passed."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    progress = Progress(console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=total)
    began = monotonic()

    def advance(by: int) -> None:
        progress.advance(task, by)
        if monotonic() - began > _PATIENCE:
            progress.start()

    try:
        yield advance
    finally:
        progress.stop()


def track(items: Iterable[T], what: str, *, total: int | None, shown: bool) -> Iterator[T]:
    """Yield `items`, with a bar on standard error once the loop has lasted a second."""
    with bar(what, total=total, shown=shown) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import in the block what an extra installs."""
    try:
        yield
    except ImportError as error:
        message = (
            f"{what} needs {error.name}, which is not installed: pip install 'leakbound[{extra}]'"
        )
        raise MissingExtraError(message) from error
