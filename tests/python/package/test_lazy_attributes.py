"""Packages import what is asked of them, and no more; type checkers see the same names."""

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import typer

import leakbound
from leakbound.cli.commands import COMMANDS

PACKAGE = Path(leakbound.__file__).parent
LAZY = sorted(
    ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    for path in PACKAGE.rglob("__init__.py")
    if "lazy_attributes" in path.read_text(encoding="utf-8")
)


def loaded(code: str, *arguments: object) -> set[str]:
    """Return the modules that a program has loaded at its end."""
    tell = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = subprocess.run(
        [sys.executable, "-c", f"{tell}; {code}", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return set(done.stderr.splitlines()[-1].split())


def loaded_by_the_program(*arguments: object) -> set[str]:
    return loaded("from leakbound.cli import main; main()", *arguments)


def seen_by_type_checkers(module: ModuleType) -> dict[str, str]:
    """Return the module of each name that is imported for types alone."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        alias.asname or alias.name: node.module or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def seen_at_run_time(module: ModuleType) -> dict[str, str]:
    """Return the module of each name that `lazy_attributes` was told of."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    (homes,) = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    return {
        name: module.__name__ if isinstance(key, ast.Name) else ast.literal_eval(key or values)
        for key, values in zip(homes.keys, homes.values, strict=True)
        for name in ast.literal_eval(values).split()
    }


@pytest.mark.parametrize("name", LAZY)
def test_type_checkers_and_programs_see_the_same_names(name: str) -> None:
    module = import_module(name)
    assert seen_at_run_time(module) == seen_by_type_checkers(module)
    assert set(module.__all__) | set(seen_at_run_time(module)) <= set(dir(module)) | {"CutPolicy"}
    for attribute, home in seen_at_run_time(module).items():
        if attribute == "torch" and find_spec("torch") is None:
            continue
        assert getattr(module, attribute) is getattr(import_module(home), attribute)


def test_an_unknown_name_is_an_attribute_error_with_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="module 'leakbound' has no attribute 'audit_onerun'"):
        leakbound.audit_onerun  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="audit_onerun"):
        from leakbound import audit_onerun  # type: ignore[attr-defined]  # noqa: F401


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import leakbound as lb, pydoc
assert "torch" in dir(lb)
try:
    lb.torch
except AttributeError as error:
    assert "pip install 'leakbound[torch]'" in str(error), error
try:
    from leakbound import torch
except ImportError as error:
    assert "pip install 'leakbound[torch]'" in str(error), error
pydoc.render_doc(lb)
"""


def test_without_torch_its_attribute_says_what_to_install() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=True)


def test_importing_the_package_imports_nothing_but_what_hands_out_its_names() -> None:
    assert {name for name in loaded("import leakbound") if name.startswith("leakbound")} == {
        "leakbound",
        "leakbound._base",
        "leakbound._base.imports",
        "leakbound.errors",
    }


def test_the_list_of_commands_loads_no_command() -> None:
    names = loaded_by_the_program("--help")
    assert {"numpy", "pydantic", "rich"}.isdisjoint(names)
    assert {
        ".".join(name.split(".")[:3]) for name in names if name.startswith("leakbound.cli")
    } <= {
        "leakbound.cli",
        "leakbound.cli.commands",
    }


def test_an_audit_of_one_run_loads_neither_the_other_audits_nor_arrow(tmp_path: Path) -> None:
    table = tmp_path / "scores.npz"
    np.savez(table, score=np.tile([0.5, -0.5], 30), member=np.tile([1, 0], 30))
    names = loaded_by_the_program("coins", table)
    assert "leakbound.audits.road" in names
    others = {"pyarrow", "pandas", "leakbound.propensity", "leakbound.audits.zero_run"}
    assert others.isdisjoint(names)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_by_the_first_line_of_its_help(name: str) -> None:
    module, line = COMMANDS[name]
    group = typer.main.get_group(import_module(f"leakbound.cli.{module}").app)
    full = (group.help if group.name == name else group.commands[name].help) or ""
    assert full.split("\n\n")[0] == line
