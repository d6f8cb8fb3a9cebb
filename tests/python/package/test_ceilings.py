"""Ceilings on lines, files, functions and names, which may only fall: who adds takes as much away.

`make lint` counts statements, of which no function has more than 40 (PLR0915 in pyproject.toml).
"""

import ast
import builtins
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import leakbound
from leakbound import errors

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "leakbound"
# Most lines of a file, and the files that are still longer: each leaves the set once it is not.
LONG = 450
LONG_FILES: set[str] = set()
# Most parameters of a public function, and the functions that still have more.
PARAMETERS = 11
MANY_PARAMETERS: set[str] = set()
# Shares of comment lines: fewer explain too little, more repeat the code.
LOW, HIGH = 0.015, 0.03


def files(folder: str, suffix: str = "py") -> list[Path]:
    """Return files of the repository, but for the rows of the validity suite."""
    paths = sorted((ROOT / folder).rglob(f"*.{suffix}"))
    return [path for path in paths if ROOT / "tests" / "validity" not in path.parents]


def lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


@pytest.mark.parametrize(
    ("folder", "suffix", "ceiling"),
    [("python/leakbound", "py", 35_050), ("tests", "py", 25_950), ("rust", "rs", 26_000)],
)
def test_lines_are_no_more_than_they_were(folder: str, suffix: str, ceiling: int) -> None:
    assert 0 < lines(files(folder, suffix)) <= ceiling


def test_files_are_few() -> None:
    assert 0 < len(files("python/leakbound")) <= 200


def test_files_are_short() -> None:
    paths = [*files("python/leakbound"), *files("tests"), *files("rust", "rs")]
    long = {path.relative_to(ROOT).as_posix() for path in paths if lines([path]) > LONG}
    assert long == LONG_FILES


def test_comments_are_neither_missing_nor_everywhere() -> None:
    text = b"\n".join(path.read_bytes() for path in files("python/leakbound")).splitlines()
    share = sum(line.lstrip().startswith(b"#") for line in text) / len(text)
    assert LOW <= share <= HIGH


def definitions(path: Path) -> Iterator[ast.FunctionDef]:
    """Public functions of a file, and public methods of its public classes."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    for node in [*body, *(part for each in classes for part in each.body)]:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            yield node


def parameters(function: ast.FunctionDef) -> int:
    """Return how many parameters a caller sees."""
    named = function.args
    every = [*named.posonlyargs, *named.args, *named.kwonlyargs, named.vararg, named.kwarg]
    return sum(one is not None and one.arg not in {"self", "cls"} for one in every)


def test_public_functions_have_few_parameters() -> None:
    many = {
        f"{path.relative_to(PACKAGE).as_posix()} {function.name}"
        for path in files("python/leakbound")
        for function in definitions(path)
        if parameters(function) > PARAMETERS
    }
    assert many == MANY_PARAMETERS


def test_bodies_of_functions_are_short() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"][
        "lint"
    ]
    assert "PLR0915" in lint["select"]
    assert lint["pylint"]["max-statements"] <= 40


def test_public_names_are_few() -> None:
    assert 0 < len(set(leakbound.__all__) - {"__version__"}) <= 45


def test_exceptions_are_few() -> None:
    """Classes are counted that end up below BaseException, however many bases lie between."""
    raised = {name for name, value in vars(builtins).items() if is_exception(value)}
    classes = [
        node
        for path in files("python/leakbound")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    ours: set[str] = set()
    while (
        more := {
            node.name
            for node in classes
            if {ast.unparse(base).split(".")[-1] for base in node.bases} & (raised | ours)
        }
        - ours
    ):
        ours |= more
    assert set(errors.__all__) <= ours
    assert len(ours) <= 14


def is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def test_every_error_is_used() -> None:
    """The package raises or catches each class of errors, or its compiled core raises it."""
    others = [path for path in files("python/leakbound") if path != PACKAGE / "errors.py"]
    used = {
        node.id
        for path in others
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name)
    }
    core = "".join(path.read_text(encoding="utf-8") for path in files("rust/leakbound-py", "rs"))
    assert {
        name for name in errors.__all__ if name not in used and f'"{name}"' not in core
    } == set()
