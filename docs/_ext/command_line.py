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
COMMAND = re.compile("^leakbound ", re.M)
BOLD = re.compile(r"\[bold\](.*?)\[/\]")
BACKQUOTED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LITERAL_OR_SPECIAL_CHARACTER = re.compile(r"(``.*?``)|([*_|\\])")
UNDERLINES = "-~"


def plain(text: str) -> str:
    """Return text of the program's help as reStructuredText: what is bold there is code."""
    with_code = BOLD.sub(r"``\1``", text)
    with_code = BACKQUOTED.sub(r"``\1``", with_code)
    without_tags = TAG.sub("", with_code)
    with_brackets = without_tags.replace("\\[", "[")
    return LITERAL_OR_SPECIAL_CHARACTER.sub(escaped, with_brackets)


def escaped(literal_or_special_character: re.Match[str]) -> str:
    """Return a literal as it is, and a character that reStructuredText reads as markup escaped."""
    literal, special_character = literal_or_special_character.groups()
    return literal or f"\\{special_character}"


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help; examples of commands as code."""
    for paragraph in text.split("\n\n"):
        without_tags = TAG.sub("", paragraph)
        commands, number_of_commands = COMMAND.subn("   $ leakbound ", without_tags)
        if number_of_commands == len(without_tags.splitlines()):
            yield f".. code-block:: console\n\n{commands}"
        else:
            yield plain(paragraph)


def described(name: str, command: Any, depth: int = 0) -> Iterator[str]:
    """Yield the section of a command, and those of the commands in it."""
    title = name.removeprefix("leakbound ")
    anchor = title.replace(" ", "-")
    underline = UNDERLINES[depth] * len(title)
    context = typer.Context(command, info_name=name)
    arguments = " ".join(command.collect_usage_pieces(context))
    yield f".. _command-{anchor}:"
    yield f"{title}\n{underline}"
    yield from paragraphs(command.help or "")
    yield f".. code-block:: text\n\n   {name} {arguments}"
    yield from options(command.params, context)
    for subcommand in getattr(command, "commands", {}).values():
        full_name = f"{name} {subcommand.name}"
        yield from described(full_name, subcommand, depth + 1)


def options(parameters: list[Any], context: typer.Context) -> Iterator[str]:
    """Yield the options of a command with their meanings, below the names of their groups."""
    current_group = None
    for parameter in parameters:
        if parameter.hidden or parameter.is_eager:  # --help
            continue
        group = parameter.rich_help_panel
        if group != current_group:
            yield f"**{group}**"
            current_group = group
        spelling, meaning = parameter.get_help_record(context)
        meaning_in_rst = plain(meaning.replace("  [", " ["))
        yield f"``{spelling}``\n    {meaning_in_rst}"


class Commands(SphinxDirective):
    """One section for each command."""

    def run(self) -> list[Node]:
        """Read the program and write its reference."""
        from leakbound.cli.commands import COMMANDS, program

        sections: list[str] = []
        for name in COMMANDS:
            application = program(name)
            main_program: Any = typer.main.get_command(application)
            command = main_program.commands[name]
            sections += described(f"leakbound {name}", command)
        text = "\n\n".join(sections)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
