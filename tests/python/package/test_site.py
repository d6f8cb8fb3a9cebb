"""The documentation, held without building it: names, pages and links."""

import importlib
import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GENERATED = ("tutorials", "gallery", "_build", "reference/api")
EXAMPLES = {"tutorials": DOCS / "examples" / "tutorials", "gallery": DOCS / "examples" / "gallery"}
PAGES = sorted(
    path
    for path in chain(DOCS.rglob("*.md"), DOCS.rglob("*.rst"))
    if not path.relative_to(DOCS).as_posix().startswith((*GENERATED, "examples", "_templates"))
)
MODULES = [
    "leakbound",
    "leakbound.attacks",
    "leakbound.attacks.synthetic",
    "leakbound.audits",
    "leakbound.claims",
    "leakbound.claims.tradeoff",
    "leakbound.cuts",
    "leakbound.errors",
    "leakbound.evidence",
    "leakbound.generators",
    "leakbound.integrations",
    "leakbound.panoramia",
    "leakbound.planning",
    "leakbound.planning.canaries",
    "leakbound.propensity",
    "leakbound.results",
    "leakbound.simulate",
    "leakbound.stats",
    "leakbound.testing",
    "leakbound.torch",
    "leakbound.validity",
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.S)


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
    if name == "leakbound.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(name)
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


def reached(page: Path) -> set[Path]:
    """Return the pages that a page's tables of contents name."""
    entries = "\n".join(TOCTREE.findall(text(page))).splitlines()
    names = [line.strip() for line in entries if line.strip() and not line.startswith(":")]
    found: set[Path] = set()
    for name in names:
        target = (page.parent / name).resolve()
        if name.split("/")[0] in EXAMPLES:
            assert (EXAMPLES[name.split("/")[0]] / "GALLERY_HEADER.rst").exists()
            continue
        files = [target.with_name(target.name + suffix) for suffix in (".md", ".rst")]
        assert any(file.exists() for file in files), f"{page.name} lists {name}, which is not there"
        found.update(file for file in files if file.exists())
    return found


def test_every_page_is_in_a_table_of_contents() -> None:
    found, new = {DOCS / "index.md"}, {DOCS / "index.md"}
    while new:
        new = set().union(*(reached(page) for page in new)) - found
        found |= new
    assert set(PAGES) - found == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(text(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target.parent.name in EXAMPLES and target.suffix == ".rst":
            target = EXAMPLES[target.parent.name] / f"{target.stem}.py"
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", text(target), re.M)
            slugs = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
            assert anchor in slugs, f"{page.name} links to {link}"


@pytest.mark.parametrize("folder", EXAMPLES.values(), ids=EXAMPLES)
def test_examples_have_a_title_and_a_place(folder: Path) -> None:
    named = text(folder / "order.txt").split()
    assert sorted(named) == sorted(path.name for path in folder.glob("*.py"))
    for name in named:
        source = text(folder / name)
        assert re.match(r'"""\n(.+)\n=+\n', source)
        compile(source, name, "exec")
        assert not re.search(r"\bylim=|set_ylim\((?!bottom=0\))", source), (
            "an upper limit cuts off what lies above it"
        )


def test_cards_and_references_of_examples_exist() -> None:
    for kind, stem in re.findall(
        r"^:link: (tutorials|gallery)/(\w+)$", text(DOCS / "index.md"), re.M
    ):
        assert (EXAMPLES[kind] / f"{stem}.py").exists()
