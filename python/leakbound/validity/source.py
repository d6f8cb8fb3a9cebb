"""Which code a run counts the false claims of: version, commit, and a digest of every file."""

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import leakbound._core as _core

COMMIT = "LEAKBOUND_COMMIT"
"""Environment variable that names the commit where git cannot."""
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


@cache
def commit() -> str | None:
    """Return the commit that the package's files are of, "-dirty" if they differ; None if unknown.

    The environment variable `COMMIT` comes first, then git, if it tracks the package.
    """
    if given := os.environ.get(COMMIT):
        return given
    git = shutil.which("git")
    if git is None or not _ask(git, "ls-files", "__init__.py"):
        return None
    return _ask(git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or None


def _ask(git: str, *words: str) -> str:
    """Return what git says of the package's folder, nothing if it is no work tree."""
    command = [git, "-C", str(_PACKAGE), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
