"""Checks of the documentation that need no build; the build checks links."""

import importlib
import re
from pathlib import Path

import pytest

from public import MODULES

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
EXAMPLES = {"tutorials": DOCS / "examples" / "tutorials", "gallery": DOCS / "examples" / "gallery"}


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def listed() -> dict[str, set[str]]:
    """Return, for each module, the names that the reference documents."""
    found: dict[str, set[str]] = {}
    for page in sorted((DOCS / "reference").glob("*.md")):
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", text(page), re.S):
            for module in re.findall(r"automodule:: (\S+)", block):
                found.setdefault(module, set()).update(importlib.import_module(module).__all__)
            if module := re.search(r"currentmodule:: (\S+)", block):
                names = re.findall(r"^   (\w+)$", block, re.M)
                found.setdefault(module[1], set()).update(names)
        for line in re.findall(r"^- (`leakbound\..*)$", text(page), re.M):
            module_name, first = re.findall(r"`([\w.]+)`", line)[0].rsplit(".", 1)
            rest = re.findall(r"`([\w.]+)`", line)[1:]
            found.setdefault(module_name, set()).update([first, *rest])
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    module = MODULES[name]
    documented = listed()
    anywhere = set().union(*documented.values())
    modules = {
        one.removeprefix("leakbound.")
        for one in re.findall(r"`(leakbound\.\w+)`", text(DOCS / "reference" / "index.md"))
    }
    missing = set(module.__all__) - anywhere - modules - {"__version__", "canaries"}
    assert not missing
    for one in documented.get(name, ()):
        assert hasattr(module, one), f"{name}.{one} is documented, and not there"


@pytest.mark.parametrize("folder", EXAMPLES.values(), ids=EXAMPLES)
def test_examples_have_a_title_and_a_place(folder: Path) -> None:
    named = text(folder / "order.txt").split()
    assert sorted(named) == sorted(path.name for path in folder.glob("*.py"))
    for name in named:
        source = text(folder / name)
        assert re.match(r'"""\n(.+)\n=+\n', source)
        assert "__file__" not in source, f"{name} needs more than what is installed"
        compile(source, name, "exec")
        assert not re.search(r"\bylim=|set_ylim\((?!bottom=0\))", source), (
            "an upper limit cuts off what lies above it"
        )


PAGES = [
    page
    for pattern in ("what-is-an-audit.md", "which-audit.md", "audits/*.md", "guides/*.md")
    for page in sorted(DOCS.glob(pattern))
    if page.stem != "index"
]


def words(page: str) -> int:
    """Count words of prose, tables and captions, but not of code, link targets and directives."""
    captions = re.sub(r"^```\{picture\} \w+\n(.*?)^```", r"\1", page, flags=re.M | re.S)
    prose = re.sub(r"^```.*?^```|^:::.*?$", "", captions, flags=re.M | re.S)
    return len(re.findall(r"\S*[^\W\d_]\S*", re.sub(r"\]\([^)]*\)", "]", prose)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_are_short_and_have_a_picture(page: Path) -> None:
    shown = text(page)
    assert words(shown) <= 800
    assert re.search(r"^```\{picture\}|^!\[|^:::\{div\} flow", shown, re.M)
    assert page.parent.name != "audits" or "](../theory/" in shown


def test_readme_answers_on_one_screen() -> None:
    first = text(ROOT / "README.md").split("## Which audit")[0]
    assert first.count("\n") <= 60
    assert "![" in first
    assert (DOCS / "_static" / "report.png").stat().st_size < 200_000


def test_long_names_break_on_a_phone() -> None:
    """An article 390 pixels wide scrolled sideways where one name was longer than a line."""
    css = text(ROOT / "docs" / "_static" / "leakbound.css")
    rules = dict(re.findall(r"^(\.bd-article [^{]*?) \{ ([^}]*) \}$", css, re.MULTILINE))
    assert rules[".bd-article :is(h1, h2, h3, h4, p, li, dt, dd)"] == "overflow-wrap: anywhere;"
    assert rules[".bd-article table :is(p, li)"] == "overflow-wrap: break-word;"
    assert rules[".bd-article span.pre"] == "white-space: normal;"
    assert rules[".bd-article :is(p, li, dt, dd) code"] == "overflow-wrap: anywhere;"
    phone = css.partition("@media (max-width: 600px) {")[2].partition("\n}")[0]
    assert ".bd-article dl.field-list { display: block; }" in phone
    assert "table.indextable :is(tr, td) { display: block; width: auto !important; }" in phone
