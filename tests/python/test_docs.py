"""The examples in docstrings and in the README run, and give what they say."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import leakbound

README = Path(__file__).parents[2] / "README.md"
FOUND = [info.name for info in pkgutil.walk_packages(leakbound.__path__, "leakbound.")]
MODULES = ["leakbound", *sorted(n for n in FOUND if not n.endswith(("_core", "__main__")))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


def test_the_public_modules_have_examples() -> None:
    finder = doctest.DocTestFinder()
    for name in ("leakbound", "leakbound.cuts", "leakbound.stats", "leakbound.claims"):
        tests = finder.find(importlib.import_module(name), name)
        assert any(test.examples for test in tests), f"{name} has no example"


def test_readme_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks, "the README has no Python example"
    names: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
