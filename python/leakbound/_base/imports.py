"""Attributes of a package that are imported when they are first asked for.

What a program does not use, it does not load: importing the package and printing its help cost
little, and optional dependencies are imported where they are needed.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from leakbound.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType


def lazy_attributes(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names live in other modules.

    A home is a module and its names, separated by spaces; those of the package itself are its
    submodules.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> object:
        module = home.get(name)
        if module is None:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[package])
        if module == package:
            return _submodule(f"{package}.{name}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, names


def _submodule(name: str) -> ModuleType:
    """Import a submodule; what it lacks is an attribute that is not there, said in its words."""
    try:
        return import_module(name)
    except MissingExtraError as error:
        raise AttributeError(str(error)) from error


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
