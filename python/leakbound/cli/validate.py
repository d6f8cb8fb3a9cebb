"""The command that counts false claims."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakbound import validity
from leakbound._base.files import write_text
from leakbound.cli import output
from leakbound.errors import IncompatibleOptionsError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

app = typer.Typer()

VALIDATE = (
    "Count how often audits claim more than the truth, on simulated games.\n\n"
    "An audit at 90 % confidence may do so in a tenth of the games; an exact binomial test judges "
    "each count. A trap should fail. WORDS select cases, "
    "as in [bold]one-run both[/]; none selects all.\n\n"
    "[dim]Exit code: 0 every valid audit holds and every invalid one fails, 1 not so, "
    "2 bad input.[/]"
)


@app.command("validate", help=VALIDATE)
def validate(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]...", help="Words a case must have.")
    ] = None,
    *,
    attack: Annotated[
        str,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="An attack of yours, called as attack(member, seed) for scores, under every "
            "audit.",
        ),
    ] = "",
    truth: Annotated[
        float,
        typer.Option(metavar="E", help="ε of what the attack looks at; 0 if members are ignored."),
    ] = 0.0,
    examples: Annotated[
        int, typer.Option("--examples", "-m", metavar="M", help="Examples of an attack's games.")
    ] = 200,
    long: Annotated[
        bool, typer.Option("--long", metavar="", help="Thousands of games of each case.")
    ] = False,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", help="Games of each case, instead.", min=1)
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes; the counts do not depend on it.", min=1)
    ] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the games.", min=0)] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that keeps the counts: run again after an interruption to go on.",
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the counts as Markdown, too.")
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="Print the counts as JSON to stdout, and nothing else there."
        ),
    ] = False,
) -> None:
    """Count how often audits claim more than the truth."""
    with output.answering():
        if attack and checkpoint:
            message = (
                "--checkpoint cannot keep counts of an --attack: it would not see the attack's "
                "code change; leave it out"
            )
            raise IncompatibleOptionsError(message)
        selected = _select(" ".join(words or ()), attack, truth, examples)
        with _executor(workers) as executor:
            report = validity.run(
                selected,
                repetitions=repetitions or ("long" if long else "quick"),
                seed=seed,
                executor=executor,
                checkpoint=checkpoint,
                progress=True,
            )
        if table:
            write_text(table, report.to_markdown())
        if json:
            typer.echo(report.to_json())
        else:
            output.say(_grid(report))
            output.say("")
            output.say(report.summary(), "bold" if report.ok else "bold red")
        raise typer.Exit(0 if report.ok else 1)


def _select(words: str, attack: str, truth: float, examples: int) -> Sequence[validity.Case]:
    if not attack:
        return validity.cases(words)
    wanted = set(words.split())
    mine = validity.attack_cases(_load(attack), truth=truth, m=examples)
    return [case for case in mine if wanted <= set(case.name.split())]


def _load(name: str) -> Callable[..., Any]:
    """Import a function by the name of its module, which may be in the current folder."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever the module does when it is imported
        message = (
            f"--attack {name!r} cannot be loaded: {error}; give module:function, with the module "
            "in the current folder or installed"
        )
        raise OptionError(message) from error
    return found  # type: ignore[no-any-return]


@contextmanager
def _executor(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    if workers == 1:
        yield None
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as executor:
        yield executor


def _grid(report: validity.ValidityReport) -> Table:
    headings = [("Audit", False), ("Claim", False), ("Cuts", False), ("Sides", False)]
    numbers = [("Games", True), ("False", True), ("Allowed", True), ("p", True)]
    table = output.grid([*headings, ("Truth", False), *numbers, ("Verdict", False)])
    for rate in report.rates:
        table.add_row(
            rate.audit,
            rate.claim,
            rate.cuts,
            rate.sides,
            rate.truth,
            f"{rate.repetitions:,}",
            f"{100 * rate.rate:.2f} %",
            f"{100 * rate.error:g} %",
            f"{rate.p_value:.2g}",
            _verdict(rate),
            style=None if rate.expected else "red",
        )
    return table


def _verdict(rate: validity.Rate) -> str:
    if not rate.expected:
        return f"{rate.verdict}, not {rate.expectation}".upper()
    return rate.verdict if rate.valid else "fails, as it should"
