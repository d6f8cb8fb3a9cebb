"""How much a reader takes in per line: syntax nodes, ternaries, large functions.

All is counted in a copy that ruff formats at 80 columns without magic commas, so that neither wider
lines nor commas change a figure. Docstrings, comments, blank lines and imports are left out.
"""

import ast
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Of more nodes than this, a line is heavy.
HEAVY = 20


@dataclass
class Density:
    """What the Python files of a folder hold."""

    lines: int = 0
    heavy: int = 0
    nodes: int = 0
    ternaries: int = 0
    parallel: int = 0
    """Assignments of one tuple to another."""
    functions: dict[str, int] = field(default_factory=dict)
    """Nodes of each function, by its file, name and line."""
    conditions: list[str] = field(default_factory=list)
    """Loops that only raise, and so are an `if … raise`."""
    named: dict[str, list[ast.Name | ast.ClassDef]] = field(default_factory=dict)
    """Names and classes of each file."""

    @property
    def per_line(self) -> float:
        return self.nodes / self.lines

    @property
    def heavy_per_1000(self) -> float:
        return 1000 * self.heavy / self.lines

    @property
    def ternaries_per_1000(self) -> float:
        return 1000 * self.ternaries / self.nodes

    @property
    def parallel_per_1000(self) -> float:
        return 1000 * self.parallel / self.nodes

    def larger(self, nodes: int) -> list[str]:
        """Return the functions of more nodes than this."""
        return [name for name, size in self.functions.items() if size > nodes]

    def add(self, name: str, text: str) -> None:
        """Count one file."""
        tree = ast.parse(text)
        code = {
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.strip().startswith("#")
        }
        every_node = list(ast.walk(tree))
        ignored: set[ast.AST] = set()
        for node in every_node:
            if isinstance(node, ast.Import | ast.ImportFrom):
                ignored.add(node)
                code -= lines_of(node)
            elif (docstring := docstring_of(node)) is not None:
                ignored |= {docstring, docstring.value}
                code -= lines_of(docstring)

        per_line: Counter[int] = Counter()
        for node in every_node:
            if isinstance(node, ast.expr | ast.stmt) and node not in ignored:
                per_line[node.lineno] += 1
            place = f"{name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.IfExp):
                self.ternaries += 1
            elif is_parallel(node):
                self.parallel += 1
            elif isinstance(node, ast.For) and all(isinstance(one, ast.Raise) for one in node.body):
                self.conditions.append(place)
            elif isinstance(node, Function):
                self.functions[f"{place} {node.name}"] = size_of(node, ignored)
        self.named[name] = [
            node for node in every_node if isinstance(node, ast.Name | ast.ClassDef)
        ]
        self.lines += len(code)
        self.heavy += sum(nodes > HEAVY for nodes in per_line.values())
        self.nodes += per_line.total()


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """Return the statement that is a node's docstring."""
    if not isinstance(node, ast.Module | ast.ClassDef | Function):
        return None
    if ast.get_docstring(node, clean=False) is None:
        return None
    first = node.body[0]
    assert isinstance(first, ast.Expr)
    return first


def lines_of(node: ast.stmt) -> set[int]:
    assert node.end_lineno is not None
    return set(range(node.lineno, node.end_lineno + 1))


def is_parallel(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def size_of(function: Function, ignored: set[ast.AST]) -> int:
    """Return the nodes of a function's body."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    return sum(isinstance(node, ast.expr | ast.stmt) and node not in ignored for node in nodes)


def measured(folder: Path, work: Path) -> Density:
    """Measure the Python files below a folder, in a copy that is formatted in another."""
    copy = work / folder.name
    paths = sorted(folder.rglob("*.py"))
    for path in paths:
        target = copy / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    options = ["--isolated", "--quiet", "--line-length=80"]
    commas = "--config=format.skip-magic-trailing-comma=true"
    subprocess.run([sys.executable, "-m", "ruff", "format", *options, commas, copy], check=True)

    density = Density()
    for path in paths:
        name = path.relative_to(folder)
        density.add(str(name), (copy / name).read_text(encoding="utf-8"))
    return density
