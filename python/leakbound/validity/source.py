"""Which code a run counts the false claims of: the version, and a digest of every file."""

import hashlib
from functools import cache
from pathlib import Path

import leakbound._core as _core

_PACKAGE = Path(__file__).parents[1]
_CODE = (".py", ".so", ".pyd")


def version() -> str:
    """Return the version of the package."""
    return _core.__version__


@cache
def digest() -> str:
    """Return SHA-256 of the package's Python files and compiled core, names included."""
    total = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*")):
        if file.suffix in _CODE:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            total.update(f"{file.relative_to(_PACKAGE).as_posix()} {content}\n".encode())
    return total.hexdigest()
