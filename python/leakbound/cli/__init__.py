"""The command line: audits, their planning and their evidence.

Commands parse, read, call, print and write; no statistics here. They are imported when the program
runs, so that an installation they cannot be imported from ends with the exit code of a crash.
"""

import sys
from functools import partial
from typing import Any

from leakbound._base.console import BAD_INPUT, ended, tell

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line; the console script `leakbound` calls it."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the program with some arguments, and return the code to exit with."""
    return ended(partial(_program, arguments))


def _program(arguments: list[str]) -> int:
    """Run the commands without Click's own ends, which exit with 1 at the end of input."""
    from typer import BadParameter

    from leakbound.cli.commands import program

    usage_error: type[Any] = BadParameter.__mro__[1]
    try:
        called = program(*arguments[:1])
        return called(arguments, prog_name="leakbound", standalone_mode=False) or 0
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), end="")  # noqa: T201 (the list of commands)
            return BAD_INPUT
        name = "leakbound"
        if error.ctx is not None:
            name = error.ctx.command_path
            _name_what_was_meant(error)
        message = " ".join(error.format_message().split()).rstrip(".")
        message = message.replace("Value error, ", "")  # in newer versions of Typer
        tell(f"leakbound: {message} (see {name} --help)")
        return BAD_INPUT


def _name_what_was_meant(error: Any) -> None:
    """Name the option that was probably meant in an error about one that a command has not."""
    from leakbound.cli.options import SYNONYMS

    meant = SYNONYMS.get(getattr(error, "option_name", ""), "")
    has = {name for one in error.ctx.command.params for name in one.opts}
    if meant in has:
        error.possibilities = [meant]
