"""Real data: tests that need it are skipped by name where it is not installed."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from leakbound.errors import MissingExtraError

__all__ = ["at_hand"]

T = TypeVar("T")


def at_hand(compute: Callable[[], T]) -> T:
    """Return what it computes, or skip the test with the command that installs the data."""
    try:
        return compute()
    except MissingExtraError as error:
        pytest.skip(str(error))
