"""The command that compares bounds, and counts their false claims."""

import importlib
import json as json_text
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound import benchmark
from leakbound._base.files import replacing, write_text
from leakbound._base.records import encode
from leakbound.cli import output
from leakbound.cli.options import (
    CUTS,
    FAMILIES,
    Confidence,
    Json,
    argument,
    command,
    option,
    parse_cuts,
    parse_family,
    refuse,
)

app = typer.Typer()

GAMES = {
    "noise": benchmark.Noise(),
    "gaussian": benchmark.Gaussian(),
    "mixture": benchmark.Mixture(),
    "response": benchmark.RandomizedResponse(),
    "failures": benchmark.Failures(),
    "ties": benchmark.Ties(),
    "laplace": benchmark.Laplace(),
    "one-sided-tail": benchmark.OneSidedTail(),
    "two-sided-tail": benchmark.TwoSidedTail(),
    "sparse-tails": benchmark.SparseTails(),
    "losses-near-zero": benchmark.LossesNearZero(),
    "shifted": benchmark.Shifted(),
    "panoramia": benchmark.Rankings(),
    "dp-sgd": benchmark.DPSGD(),
}
"""Games by name, as they are by default."""

BENCHMARK = (
    "Every bound audits every game. The table has its mean beside the truth and the best fixed "
    "cut, and false claims with exact limits: an audit at 95 % confidence may make them in a "
    "twentieth of the games, and an exact binomial test judges each count.\n\n"
    f"A GAME is one of {', '.join(GAMES)}, a parquet file of scores and members, or "
    "MODULE:FUNCTION of yours: game(m, seed=seed). Without any, all but dp-sgd are played.\n\n"
    "[dim]Exit code: 0 no bound is false more often than it may be, 1 one is, 2 bad input.[/]"
)


@dataclass(frozen=True)
class Mine:
    """An attack of the user's own, and the ε that what it attacks keeps."""

    attack: Annotated[
        str, option("MODULE:FUNCTION", "A game of an attack: attack(member, seed) gives scores.")
    ] = ""
    truth: Annotated[float, option("E", "ε of what the attack looks at; 0 if no member is.")] = 0.0


@dataclass(frozen=True)
class Files:
    """What is written beside the table."""

    table: Annotated[Path | None, option("FILE", "Write the table as Markdown, too.")] = None
    plot: Annotated[Path | None, option("FILE", "Draw bounds against m: .png, .svg, .pdf.")] = None


@command(app, "benchmark", BENCHMARK)
def compare(
    games: Annotated[list[str] | None, argument("[GAME]...", "What is played.")] = None,
    *,
    mine: Mine = Mine(),
    bound: Annotated[
        list[str] | None,
        option(
            "POLICY|MODULE:FUNCTION",
            f"A bound, again for each: {CUTS}, or one of yours, "
            "bound(scores, member, claim, level). By default kl, outside-in and geometric.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None, option("NAME", f"A claim, again for each: {FAMILIES}; pure by default.")
    ] = None,
    examples: Annotated[
        list[int] | None,
        option("M", "Examples, again for each; 1000 by default.", "--examples", "-m", min=1),
    ] = None,
    seeds: Annotated[
        int, option("N", "Games of each kind and size: seeds 0 to N - 1.", min=1)
    ] = 20,
    confidence: Confidence = 0.95,
    workers: Annotated[int, option("N", "Processes; bounds do not depend on it.", min=1)] = 1,
    store: Annotated[
        Path | None, option("DIR", "Folder that keeps the rows, to go on after an interruption.")
    ] = None,
    files: Files = Files(),
    json: Json = False,
) -> None:
    """Compare bounds on games of known truth."""
    names = games or ([] if mine.attack else [name for name in GAMES if name != "dp-sgd"])
    plays: list[Any] = [_game(name) for name in names]
    if mine.attack:
        plays.append(benchmark.Attack(_load(mine.attack), mine.truth))
    rows = benchmark.run(
        plays,
        [_bound(name) for name in bound or ("kl", "outside-in", "geometric")],
        [parse_family(name) for name in family or ("pure",)],
        m=examples or (1000,),
        seeds=range(seeds),
        confidence=confidence,
        store=store,
        processes=workers,
        progress=True,
    )
    summary = rows.summary()
    if all(line["errors"] == line["games"] for line in summary.lines):
        refuse(summary.lines[0]["error"])
    if files.table:
        write_text(files.table, summary.to_markdown())
    if files.plot:
        with replacing(files.plot) as file:
            rows.plot().savefig(file, format=files.plot.suffix.removeprefix(".") or "png")
    if json:
        typer.echo(json_text.dumps(encode(summary.lines), ensure_ascii=False))
    else:
        _show(summary)
    raise typer.Exit(1 if summary.false else 0)


def _game(name: str) -> Any:
    if name in GAMES:
        return GAMES[name]
    if ":" in name:
        return _load(name)
    if not name.endswith(".parquet"):
        refuse(f"{name!r} is no game: one of {', '.join(GAMES)}, a .parquet or module:function")
    return benchmark.Scores(name)


def _bound(name: str) -> Any:
    module, _, rest = name.partition(":")
    mine = rest and not rest.replace(",", "").isdigit()
    return _load(f"{module}:{rest}") if mine else parse_cuts(name)


def _load(name: str) -> Any:
    """Import a function by the name of its module, which may be in the current folder."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever the module does when it is imported
        refuse(f"{name!r} cannot be loaded: {error!r}; give module:function")


def _show(summary: benchmark.Summary) -> None:
    names, *rows = summary.cells()
    grid = output.grid([(name, index > 2) for index, name in enumerate(names)])
    for line, cells in zip(summary.lines, rows, strict=True):
        grid.add_row(*cells, style="red" if line in summary.false else None)
    output.say(grid)
    for said in dict.fromkeys(line["error"] for line in summary.lines if line["error"]):
        output.say(f"error: {said}", "yellow")
    false = summary.false
    judged = f"{len(false)} of {len(summary.lines)} bounds" if false else "No bound"
    output.say(
        f"\n{judged} false more often than luck explains, family-wise at 0.001.",
        "bold red" if false else "bold",
    )
