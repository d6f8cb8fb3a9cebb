"""The examples in docstrings, in the README and on the first pages run, and give what they say."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import leakbound

ROOT = Path(__file__).parents[3]
PRINTING = ["README.md", "docs/index.md"]
RUNNING = [f"docs/how-to/{name}.md" for name in ("a-billion-scores", "from-a-file", "planning")]
FOUND = [info.name for info in pkgutil.walk_packages(leakbound.__path__, "leakbound.")]
MODULES = ["leakbound", *sorted(n for n in FOUND if not n.endswith(("_core", "__main__")))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


def test_the_public_modules_have_examples() -> None:
    finder = doctest.DocTestFinder()
    for public in ("claims", "cuts", "generators", "planning", "stats"):
        tests = [
            test
            for name in MODULES
            if name.startswith(f"leakbound.{public}.")
            for test in finder.find(importlib.import_module(name), name)
        ]
        assert any(test.examples for test in tests), f"{public} has no example"
    assert any(test.examples for test in finder.find(leakbound, "leakbound"))


@pytest.mark.parametrize("page", PRINTING)
def test_examples_print_what_pages_say(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```", text, re.M | re.S)
    assert examples, f"{page} has no Python example with its output"
    names: dict[str, object] = {"__name__": "page"}
    for source, printed in examples:
        exec(compile(source, page, "exec"), names)
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("page", RUNNING)
def test_examples_of_guides_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert examples
    names: dict[str, object] = {"__name__": "page"}
    for source in examples:
        exec(compile(source, page, "exec"), names)
