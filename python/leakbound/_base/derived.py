"""Classes that were derived outside the package, found by the names that files have of them."""

from collections.abc import Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def derived(kind: type[object], name: str) -> Any:
    """Return the class that was derived from another, outside the package, by its name.

    Its name is its attribute `name`, if that is a text, and else that of the class. It is found
    once the module that defines it was imported; the last definition counts. None if there is none.
    """
    classes_by_name = dict(_named_subclasses(kind))
    return classes_by_name.get(name)


def _named_subclasses(kind: type[object]) -> Iterator[tuple[str, type[object]]]:
    """Yield classes below another with how files call them."""
    for subclass in kind.__subclasses__():
        package, _, _ = subclass.__module__.partition(".")
        if package != _PACKAGE:
            name = vars(subclass).get("name")
            if not isinstance(name, str):
                name = subclass.__name__
            yield name, subclass
        yield from _named_subclasses(subclass)
