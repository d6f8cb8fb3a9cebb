"""Classes that were derived outside the package, found by the names that files have of them."""

from collections.abc import Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def derived(kind: type[object], name: str) -> Any:
    """Return the class that was derived from another, outside the package, by its name.

    Its name is its attribute `name`, if that is a text, and else that of the class. It is found
    once the module that defines it was imported; the last definition counts. None if there is none.
    """
    return dict(_below(kind)).get(name)


def _below(kind: type[object]) -> Iterator[tuple[str, type[object]]]:
    """Yield classes below another with how files call them."""
    for one in kind.__subclasses__():
        if one.__module__.partition(".")[0] != _PACKAGE:
            name = vars(one).get("name")
            if not isinstance(name, str):
                name = one.__name__
            yield name, one
        yield from _below(one)
