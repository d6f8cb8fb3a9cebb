"""Ceilings on the length of files, on parameters, public names and exceptions.

`make lint` counts parameters, of which no function has more than 12 (PLR0913 in pyproject.toml).
"""

import ast
import builtins
import tomllib
from pathlib import Path
from typing import TypeVar

import leakbound
from leakbound import errors

Node = TypeVar("Node", bound=ast.AST)

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "leakbound"
# Most lines of a file.
LONG = 600


def files(folder: str, suffix: str = "py") -> list[Path]:
    """Return files of the repository, but for the rows of the validity suite."""
    paths = sorted((ROOT / folder).rglob(f"*.{suffix}"))
    return [path for path in paths if ROOT / "tests" / "validity" not in path.parents]


def lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def test_files_are_short() -> None:
    paths = [*files("python/leakbound"), *files("tests"), *files("rust", "rs")]
    assert paths
    assert [path for path in paths if lines([path]) > LONG] == []


def test_functions_have_few_parameters() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    assert "PLR0913" in ruff["lint"]["select"]
    assert ruff["lint"]["pylint"]["max-args"] <= 12


def test_public_names_are_few() -> None:
    assert 0 < len(set(vars(leakbound)["__all__"]) - {"__version__"}) <= 45


def nodes(kind: type[Node]) -> list[Node]:
    """Return nodes of a kind in the package, but for the file of its errors."""
    paths = [path for path in files("python/leakbound") if path != PACKAGE / "errors.py"]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, kind)]


def test_exceptions_are_few() -> None:
    """Classes are counted that end up below BaseException, however many bases lie between."""
    raised = {
        name
        for name, value in [*vars(builtins).items(), *vars(errors).items()]
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    classes, ours = nodes(ast.ClassDef), set(errors.__all__)
    while (
        more := {
            node.name
            for node in classes
            if {ast.unparse(base).split(".")[-1] for base in node.bases} & (raised | ours)
        }
        - ours
    ):
        ours |= more
    assert len(ours) <= 14


def test_every_error_is_used() -> None:
    """The package raises or catches each class of errors, or its compiled core raises it."""
    used = {node.id for node in nodes(ast.Name)}
    core = "".join(path.read_text(encoding="utf-8") for path in files("rust/leakbound-py", "rs"))
    assert [name for name in errors.__all__ if name not in used and f'"{name}"' not in core] == []
