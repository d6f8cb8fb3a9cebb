"""Values that wait until they are asked for, and those that are not stored."""

from collections.abc import Callable
from dataclasses import Field, field, fields
from functools import cached_property
from typing import Any, Generic, TypeVar

T = TypeVar("T")

IF_ANY = {"if_any": True}
"""Metadata of a dataclass field, None or a word, whose default is left out of the stored form."""


class Lazy(Generic[T]):
    """A value that is computed when first asked for, and kept."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute

    @cached_property
    def value(self) -> T:
        """The value."""
        return self._compute()


def unstored() -> Any:
    """Return a dataclass field for a tuple too large for JSON: pickled, but not compared."""
    return field(default=(), repr=False, metadata={"stored": False})


def stored_fields(kind: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass that are part of its stored form."""
    return [one for one in fields(kind) if one.metadata.get("stored", True)]
