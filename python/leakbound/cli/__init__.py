"""The command line: audits, their planning and their evidence.

Commands parse, read, call, print and write; no statistics here. They are imported when the program
runs, so that an installation they cannot be imported from ends with the exit code of a crash.
"""

import sys
from typing import Any

from leakbound._base.console import BAD_INPUT, ended

__all__ = ["main"]


def main() -> None:
    """Run the command line; the console script `leakbound` calls it."""
    sys.exit(ended(_program))


def _program() -> int:
    """Run the commands without Click's own ends, which exit with 1 at the end of input."""
    from typer import BadParameter

    from leakbound.cli.commands import app

    usage_error: type[Any] = BadParameter.__mro__[1]
    try:
        return app(standalone_mode=False) or 0
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), end="")  # noqa: T201 (the list of commands)
            return BAD_INPUT
        from typer import rich_utils

        rich_utils.rich_format_error(error)
        return BAD_INPUT
