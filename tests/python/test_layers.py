"""Imports point one way, and the package costs no more than NumPy to import."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import leakbound

PACKAGE = Path(leakbound.__file__).parent

LAYERS = [
    {"_core"},
    {"_streams", "errors", "_typing"},
    {"_scalars"},
    {"_archives", "_files", "_progress", "_rounding", "_validate"},
    {"_align", "_approx", "_json", "_levels", "_parts", "_poisson_binomial", "_policy", "_scores"},
    {"_zero_run"},
    {"cuts", "plan", "propensity", "tradeoff"},
    {"_pld"},
    {"claims"},
    {"_fdp"},
    {"_composition"},
    {"_audit_result", "stats"},
    {"_zero_run_result"},
    {"_panoramia_result"},
    {"results"},
    {"audits", "simulate"},
    {"_allowed", "_wording"},
    {"attacks", "planning", "torch", "validity"},
    {"generators"},
    {"_plot_style"},
    {"plots"},
    {"_panoramia_plots"},
    {"_zero_run_plots"},
    {"_figures"},
    {"report"},
    {"panoramia"},
    {"demos"},
    {"reproduce"},
    {"cli"},
    {"__main__"},
]
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}

METHODS_THAT_DRAW = {
    ("propensity", "plots"),
    ("_audit_result", "_zero_run_plots"),
    ("_audit_result", "report"),
}
"""`.plot()` and `.report()` reach for what draws them when they are called, and not before."""

HEAVY = {"torch", "matplotlib", "sklearn", "scipy", "pydantic", "typer", "rich", "jinja2", "pandas"}


def files() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            yield parts[0], path


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of this package's modules that a file imports, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("leakbound."))


def test_every_module_has_a_place() -> None:
    assert {module for module, _ in files()} <= set(RANK)


def test_imports_point_to_lower_layers() -> None:
    upward = {
        (module, other)
        for module, path in files()
        for other in imported(ast.parse(path.read_text(encoding="utf-8")))
        if {module, other} <= set(RANK) and other != module and RANK[other] >= RANK[module]
    }
    assert upward == METHODS_THAT_DRAW


def test_nothing_imports_the_package_itself_or_relatively() -> None:
    for _, path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path.name} imports relatively"


def test_importing_the_package_loads_numpy_only() -> None:
    code = "import sys, leakbound; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "numpy" in loaded
    assert HEAVY.isdisjoint(loaded)
