"""Imports point one way, file by file."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import leakbound

PACKAGE = Path(leakbound.__file__).parent
CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"

FLOORS = (
    ("cli",),
    ("dp_sgd",),
    ("integrations",),
    ("evidence", "testing"),
    ("benchmark", "mechanisms", "panoramia", "planning"),
    ("audits",),
    ("results",),
    ("propensity", "generators", "simulate"),
    ("stats",),
    ("claims", "cuts", "report", "torch", "attacks"),
    ("_tally",),
    ("datasets",),
    ("_core",),
    ("_base",),
    ("errors",),
)
"""The rooms of the package: each imports only from floors below its own."""
RANK = {room: -floor for floor, rooms in enumerate(FLOORS) for room in rooms}

FACES = {"leakbound", "leakbound.__main__"}
"""What may see everything, besides the command line on the top floor."""


@cache
def files() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """Modules of this package that a file imports: at its top, lazily, for types or by a text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            assert node.module is not None
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in files() else node.module for name in whole)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))


@cache
def arrows() -> frozenset[tuple[str, str]]:
    """Pairs of a module and another one that it imports."""
    return frozenset(
        (module, other)
        for module, path in files().items()
        for other in imported(path)
        if other in files() and other != module
    )


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_module_has_a_room() -> None:
    outside = {module for module in files() if module not in FACES}
    assert {room(module) for module in outside} == set(RANK)


def test_imports_point_downwards() -> None:
    upward = {
        (module, other)
        for module, other in arrows()
        if module not in FACES
        and (
            RANK[room(module)] < max(RANK.values())
            if other in FACES
            else room(module) != room(other) and RANK[room(other)] >= RANK[room(module)]
        )
    }
    assert not upward


def test_no_files_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module, other in arrows():
        graph.setdefault(module, set()).add(other)
    TopologicalSorter(graph).prepare()


def test_no_room_reaches_into_private_names_of_another() -> None:
    reached = {
        f"{module} imports {name} of {node.module}"
        for module, path in files().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leakbound")
        for name in (alias.name for alias in node.names)
        if name.startswith("_") and name not in {"_core", "__version__"}
    }
    assert not reached


def test_the_diagram_for_contributors_is_drawn_from_this_table() -> None:
    diagram = "\n".join(" · ".join(rooms) for rooms in FLOORS)
    assert f"```\n{diagram}\n```" in CONTRIBUTING.read_text(encoding="utf-8")
