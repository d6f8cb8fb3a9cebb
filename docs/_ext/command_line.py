"""The directive `commands`: every command of the program, read from the program itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils.nodes import Node
    from sphinx.application import Sphinx

TAG = re.compile(r"(?<!\\)\[(bold|dim|/)[^\]]*\]")
BOLD = re.compile(r"\[bold\](.*?)\[/\]")
SPECIAL = re.compile(r"([*_|\\])")
LITERAL = re.compile(r"(``.*?``)")
UNDERLINES = "-~"


def plain(text: str) -> str:
    """Return text of the program's help as reStructuredText: what is bold there is code."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", BOLD.sub(r"``\1``", text))
    parts = LITERAL.split(TAG.sub("", text).replace("\\[", "["))
    return "".join(p if p.startswith("``") else SPECIAL.sub(r"\\\1", p) for p in parts)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help; examples, dimmed on a terminal, as code."""
    for paragraph in text.split("\n\n"):
        lines = [TAG.sub("", line) for line in paragraph.splitlines()]
        if all(line.startswith("leakbound ") for line in lines):
            yield ".. code-block:: console\n\n" + "\n".join(f"   $ {line}" for line in lines)
        else:
            yield plain(paragraph)


def described(name: str, command: Any, depth: int = 0) -> Iterator[str]:
    """Yield the section of a command, and those of the commands in it."""
    title = name.removeprefix("leakbound ")
    context = typer.Context(command, info_name=name)
    pieces = " ".join([name, *command.collect_usage_pieces(context)])
    yield f".. _command-{title.replace(' ', '-')}:\n\n{title}\n{UNDERLINES[depth] * len(title)}"
    yield from paragraphs(command.help or "")
    yield f".. code-block:: text\n\n   {pieces}"
    group = ""
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.is_eager:  # --help
            continue
        if (panel := getattr(parameter, "rich_help_panel", None) or "") != group:
            yield f"**{panel}**"
            group = panel
        words, meaning = parameter.get_help_record(context)
        yield f"``{words}``\n    {plain(meaning.replace('  [', ' ['))}"
    for inner, found in getattr(command, "commands", {}).items():
        yield from described(f"{name} {inner}", found, depth + 1)


class Commands(SphinxDirective):
    """One section for each command."""

    def run(self) -> list[Node]:
        """Read the program and write its reference."""
        from leakbound.cli.commands import COMMANDS, program

        text: list[str] = []
        for name in COMMANDS:
            commands: Any = typer.main.get_command(program(name))
            text += described(f"leakbound {name}", commands.commands[name])
        return self.parse_text_to_nodes("\n\n".join(text), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
