"""Classes that were derived outside the package, found by the names that files have of them."""

from collections.abc import Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def derived(kind: type[object], name: str) -> Any:
    """Return the class that was derived from another, outside the package, by its name.

    Its name is its attribute `name`, if that is a text, and else that of the class. It is found
    once the module that defines it was imported; the last definition counts. None if there is none.
    """
    last_defined_class = None
    for subclass in _subclasses_outside_package(kind):
        stored_name = vars(subclass).get("name")
        if not isinstance(stored_name, str):
            stored_name = subclass.__name__
        if stored_name == name:
            last_defined_class = subclass
    return last_defined_class


def _subclasses_outside_package(kind: type[object]) -> Iterator[type[object]]:
    """Yield classes that other packages derive from a class, or from those derived from it."""
    for subclass in kind.__subclasses__():
        package, _, _ = subclass.__module__.partition(".")
        if package != _PACKAGE:
            yield subclass
        yield from _subclasses_outside_package(subclass)
