"""Processes that work for another one, and end when it does."""

import multiprocessing
import os
from threading import Thread

__all__ = ["end_with_parent"]


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone.

    Workers of a pool wait for work from a pipe that they hold open themselves: one whose parent was
    killed would wait for ever.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()
