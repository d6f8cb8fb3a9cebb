"""The command that verifies a bundle."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from leakbound._base.ending import REFUTED
from leakbound.cli import output
from leakbound.cli.options import argument, command, flag, option
from leakbound.errors import OptionError
from leakbound.evidence import verify_bundle
from leakbound.planning import Commitment

app = typer.Typer()

VERIFY = (
    "Prints each check, then [bold]VALID[/] or [bold]INVALID[/] and why.\n\n"
    "[dim]Exit code: 0 valid, 1 invalid, 2 no bundle there or no commitment, or no time left, 70 a "
    "crash.[/]"
)
_PATIENCE = 600.0
"""Seconds that a bundle may take, unless told otherwise: whoever wrote it chose the work."""
_MARKS = {True: "ok", False: "FAILED", None: "-"}


@command(app, "verify", VERIFY)
def verify(
    folder: Annotated[Path, argument("DIR", "The bundle.")],
    *,
    commitment: Annotated[
        Path | None, option("FILE", "The commitment.json that was published before training.")
    ] = None,
    canaries: Annotated[
        Path | None, option("FILE", "The canaries, whose digest the protocol has to name.")
    ] = None,
    page: Annotated[
        bool, flag(" /--no-page", "Leave report.html out, of another matplotlib: do not read it.")
    ] = True,
    most_seconds: Annotated[
        float,
        option("S", "Stop a bundle that takes longer, with exit code 2.", min=0.001, max=1e8),
    ] = _PATIENCE,
) -> None:
    """Verify a bundle."""
    published = None if commitment is None else Commitment.from_json(commitment)
    with output.waiting("Auditing again"), _within(most_seconds):
        verification = verify_bundle(folder, commitment=published, canaries=canaries, page=page)
    table = output.grid([("", False), ("", False), ("", False)])
    for check in verification.checks:
        table.add_row(_MARKS[check.passed], check.name, check.words)
    output.say(table)
    output.say(str(verification), "bold" if verification.valid else "bold red")
    raise typer.Exit(0 if verification.valid else REFUTED)


class _TimeIsUpError(BaseException):
    """No `Exception`, which verifying would take for a fault of the bundle."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Stop a block that takes longer, or too much memory: that is bad input, and no verdict."""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except MemoryError:
        message = "there is too little memory for this bundle, and nothing was judged"
        raise OptionError(message) from None
    except _TimeIsUpError:
        message = f"the bundle takes more than {seconds:g} seconds: give it more by --most-seconds"
        raise OptionError(message) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _stop(*_: object) -> None:
    raise _TimeIsUpError
