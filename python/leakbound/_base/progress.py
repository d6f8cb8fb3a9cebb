"""A progress bar for loops that last, shown only where somebody is looking."""

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

__all__ = ["track"]

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds before a bar appears."""


def track(items: Iterable[T], what: str, *, total: int | None, shown: bool) -> Iterator[T]:
    """Yield `items`, with a bar on standard error once the loop has lasted a second."""
    if not shown or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    began = monotonic()
    try:
        for item in items:
            yield item
            bar.advance(task)
            if monotonic() - began > _PATIENCE:
                bar.start()
    finally:
        bar.stop()
