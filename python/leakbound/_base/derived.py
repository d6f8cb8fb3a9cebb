"""Classes that were derived outside the package, found by the names that files have of them."""

from collections.abc import Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def derived(kind: Any, name: str) -> Any:
    """Return the class that was derived from another, outside the package, by its name.

    Its name is its attribute `name`, if that is a text, and else that of the class. It is found
    once the module that defines it was imported; the last definition counts. None if there is none.
    """
    found = [one for one in _below(kind) if _name_of(one) == name]
    return found[-1] if found else None


def _name_of(kind: type[object]) -> str:
    """Return how files call a class."""
    own = vars(kind).get("name")
    return own if isinstance(own, str) else kind.__name__


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        if one.__module__.partition(".")[0] != _PACKAGE:
            yield one
        yield from _below(one)
