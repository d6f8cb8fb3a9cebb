"""The command that counts false claims."""

import importlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound import validity
from leakbound._base.files import write_text
from leakbound.cli import output
from leakbound.cli.options import Json, argument, command, flag, option, refuse
from leakbound.errors import OptionError

app = typer.Typer()

VALIDATE = (
    "An audit at 90 % confidence may do so in a tenth of the games; an exact binomial test judges "
    "each count. A trap should fail. WORDS select cases, "
    "as in [bold]one-run both[/]; none selects all.\n\n"
    "[dim]Exit code: 0 every valid audit holds and every invalid one fails, 1 not so, "
    "2 bad input.[/]"
)


@command(app, "validate", VALIDATE)
def validate(
    words: Annotated[list[str] | None, argument("[WORDS]...", "Words a case must have.")] = None,
    *,
    attack: Annotated[
        str, option("MODULE:FUNCTION", "An attack of yours: attack(member, seed) gives scores.")
    ] = "",
    truth: Annotated[float, option("E", "ε of what the attack looks at; 0 if no member is.")] = 0.0,
    examples: Annotated[int, option("M", "Examples of an attack.", "--examples", "-m")] = 200,
    long: Annotated[bool, flag("--long", "Thousands of games of each case.")] = False,
    repetitions: Annotated[int | None, option("N", "Games of each case, instead.", min=1)] = None,
    workers: Annotated[int, option("N", "Processes; counts do not depend on it.", min=1)] = 1,
    seed: Annotated[int, option("N", "Seed of the games.", min=0)] = 0,
    checkpoint: Annotated[
        Path | None, option("DIR", "Folder that keeps the counts, to go on after an interruption.")
    ] = None,
    table: Annotated[Path | None, option("FILE", "Write the counts as Markdown, too.")] = None,
    json: Json = False,
) -> None:
    """Count how often audits claim more than the truth."""
    if attack and checkpoint:
        refuse("--checkpoint keeps no counts of an --attack, whose code may change: leave it out")
    cases: Sequence[validity.Case]
    if attack:
        mine = validity.attack_cases(_load(attack), truth=truth, m=examples)
        cases = [case for case in mine if set(words or ()) <= set(case.name.split())]
    else:
        cases = validity.cases(" ".join(words or ()))
    with _executor(workers) as executor:
        report = validity.run(
            cases,
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


def _load(name: str) -> Callable[..., Any]:
    """Import a function by the name of its module, which may be in the current folder."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever the module does when it is imported
        message = f"--attack {name!r} cannot be loaded: {error}; give module:function"
        raise OptionError(message) from error
    return found  # type: ignore[no-any-return]


@contextmanager
def _executor(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    if workers == 1:
        yield None
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as executor:
        yield executor


def _grid(report: validity.ValidityReport) -> Any:
    headings = [(name, False) for name in ("Audit", "Claim", "Cuts", "Sides", "Truth")]
    numbers = [(name, True) for name in ("Games", "False", "Allowed", "p")]
    table = output.grid([*headings, *numbers, ("Verdict", False)])
    for rate in report.rates:
        words = (rate.audit, rate.claim, rate.cuts, rate.sides, rate.truth)
        counts = (f"{rate.repetitions:,}", f"{100 * rate.rate:.2f} %", f"{100 * rate.error:g} %")
        cells = (*words, *counts, f"{rate.p_value:.2g}", _verdict(rate))
        table.add_row(*cells, style=None if rate.expected else "red")
    return table


def _verdict(rate: validity.Rate) -> str:
    if not rate.expected:
        return f"{rate.verdict}, not {rate.expectation}".upper()
    return rate.verdict if rate.valid else "fails, as it should"
