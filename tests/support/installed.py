"""Environments that hold what an install line of the README brings, and nothing else.

They cost no installing: distributions that are here are linked into an empty virtual environment.
"""

import re
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

import leakbound

__all__ = ["extras_of", "linked_environment"]

ROOT = Path(__file__).parents[2]


def extras_of(page: str) -> set[str]:
    """Return the extras that a page installs, which names them in one way only."""
    (line,) = set(re.findall(r'pip install "\.\[([\w,]+)\]"', page))
    return set(line.split(","))


def linked_environment(folder: Path, extras: Iterable[str]) -> Path:
    """Make an environment with leakbound, its dependencies and those of extras; return its Python.

    What leakbound needs is read from `pyproject.toml`, since the installed metadata may be older.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "leakbound").symlink_to(Path(leakbound.__file__).parent)
    own = distribution("leakbound")
    (about,) = (name for name in top_level(own) if name.endswith(".dist-info"))
    (site / about).symlink_to(Path(str(own.locate_file(about))))
    for found in closure(wanted(extras)):
        for name in top_level(found):
            (site / name).symlink_to(Path(str(found.locate_file(name))))
    return folder / "bin" / "python"


def wanted(extras: Iterable[str]) -> list[Requirement]:
    """Return what leakbound asks for, with extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def closure(requirements: list[Requirement]) -> list[Distribution]:
    """Return the distributions that an installer would bring for these."""
    found: dict[str, Distribution] = {}
    seen: set[str] = set()
    left = [*requirements]
    while left:
        one = left.pop()
        if str(one) in seen:
            continue
        seen.add(str(one))
        here = distribution(one.name)
        found[here.name] = here
        for line in here.requires or ():
            further = Requirement(line)
            marker = further.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *one.extras)):
                left.append(further)
    return list(found.values())


def top_level(found: Distribution) -> set[str]:
    """Return the files and folders that a distribution has beside those of others."""
    first = {file.parts[0] for file in found.files or ()}
    return first - {"..", "__pycache__"}
