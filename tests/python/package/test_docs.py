"""Examples on pages run and print what pages show; commands on pages parse.

Examples in docstrings are separate tests, which pytest collects from the package.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import leakbound.report.page as page_of_reports
from leakbound.cli.commands import program
from leakbound.report.description import Figure
from page_examples import EXAMPLE, renewed, set_out

ROOT = Path(__file__).parents[3]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
OPTIONAL = {"lightning", "opacus", "pandas", "sklearn", "torch"}
# Each recipe of these pages runs in its own process: integrations/test_tally_engines.py.
ENGINES = {"docs/guides/engines.md"}


@pytest.fixture(scope="module", autouse=True)
def drawn_once() -> Iterator[None]:
    """Draw each kind of figure on one page: it takes a fifth of a second, and pages show none."""
    drawn: dict[tuple[str, str], str] = {}
    draw = page_of_reports.svg

    def svg(figure: Figure, **how: Any) -> str:
        kind = figure.name, figure.title
        if kind not in drawn:
            drawn[kind] = draw(figure, **how)
        return drawn[kind]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_of_reports, "svg", svg)
        yield


@pytest.mark.parametrize(
    "page", [page for page in PAGES if EXAMPLE.search(PAGES[page]) and page not in ENGINES]
)
def test_examples_run_and_print_what_pages_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    set_out(Path(page))
    try:
        assert renewed(PAGES[page]) == PAGES[page]
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"needs {error.name}")


def commands(text: str) -> list[list[str]]:
    """Return the words of each command of the program that a page shows."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    lines = re.sub(r"\\\n\s*", "", "".join(blocks)).splitlines()
    found = [re.search(r"(?:^\$|\|) (?:\S*/)?leakbound (.*)", line) for line in lines]
    return [shlex.split(one[1], comments=True) for one in found if one]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(PAGES[page])])
def test_commands_parse(page: str) -> None:
    for words in commands(PAGES[page]):
        command: Any = typer.main.get_command(program(*words[:1]))
        rest, context = words, typer.Context(command)
        while hasattr(command, "commands"):
            name, command, rest = command.resolve_command(context, rest)
            context = typer.Context(command, info_name=name, resilient_parsing=True)
        command.parse_args(context, [*rest])
