"""Packages import what is asked of them, and no more; type checkers see the same names."""

import ast
import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet

import leakbound
from leakbound.cli.commands import COMMANDS, program

PACKAGE = Path(leakbound.__file__).parent
LAZY = sorted(
    ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    for path in PACKAGE.rglob("__init__.py")
    if "lazy_attributes" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", LAZY)
def test_type_checkers_and_programs_see_the_same_names(name: str) -> None:
    module = import_module(name)
    stub = Path(module.__file__ or "").with_suffix(".pyi").read_text(encoding="utf-8")
    seen = {
        alias.asname: node.module or ""
        for node in ast.walk(ast.parse(stub))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(module.__all__) == {one for one in seen if seen[one] != name}
    assert set(seen) <= set(dir(module))
    for attribute, home in seen.items():
        if attribute == "torch" and find_spec("torch") is None:
            continue
        assert getattr(module, attribute or "") is getattr(import_module(home), attribute or "")


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


COMMAND = "from leakbound.cli import main; main()"
HEAVY = r"(torch|matplotlib|sklearn|scipy|pydantic|typer|rich|jinja2|pandas|pytest)\b"
AUDITS = "import leakbound as lb; lb.audit, lb.Coins, lb.RandomSplit, lb.Panoramia, lb.ZeroRun"


@pytest.mark.parametrize(
    ("program", "arguments", "needed", "unwanted"),
    [
        ("import leakbound", "", "leakbound.errors", r"numpy|leakbound\.(?!_base|errors$)"),
        ("import leakbound", "", "leakbound._base.imports", r"leakbound\._base\.(?!imports$)"),
        (AUDITS, "", "numpy", HEAVY),
        (COMMAND, "--help", "typer", r"numpy|pydantic|rich\b|leakbound\.cli\.(?!commands$)"),
        (COMMAND, "coins --help", "typer", r"torch|matplotlib|jinja2|pyarrow|scipy|sklearn|pandas"),
        (
            COMMAND,
            "coins scores.npz",
            "leakbound.audits.road",
            r"pyarrow|pandas|leakbound\.(propensity|audits\.zero_run)\b",
        ),
        (COMMAND, "coins scores.csv", "pyarrow", "pandas"),
        (COMMAND, "coins scores.jsonl", "pyarrow", "pandas"),
        (COMMAND, "coins scores.parquet", "pyarrow", "pandas"),
    ],
)
def test_programs_load_what_they_use_and_no_more(
    program: str, arguments: str, needed: str, unwanted: str, tmp_path: Path
) -> None:
    member = np.tile([1, 0], 30)
    np.savez(tmp_path / "scores.npz", score=member - 0.5, member=member)
    rows = [
        {"id": f"e{row}", "score": coin - 0.5, "member": coin}
        for row, coin in enumerate(member.tolist())
    ]
    table = pa.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "scores.parquet")
    csv.write_csv(table, tmp_path / "scores.csv")
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tell = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    command = [sys.executable, "-c", f"{tell}; {program}", *arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    loaded = done.stderr.splitlines()[-1].split()
    assert needed in loaded
    assert [name for name in loaded if re.match(unwanted, name)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_by_the_first_line_of_its_help(name: str) -> None:
    _, line = COMMANDS[name]
    commands: Any = typer.main.get_command(program(name))
    full = commands.commands[name].help or ""
    assert full.split("\n\n")[0] == line
