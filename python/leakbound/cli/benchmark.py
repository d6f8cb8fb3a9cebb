"""The command that compares bounds, and counts their false claims."""

import importlib
import json as json_text
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound import benchmark
from leakbound._base.records import encode
from leakbound.benchmark.games import Mechanism
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
    re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower(): kind
    for name in benchmark.__all__
    if isinstance(kind := getattr(benchmark, name), type) and issubclass(kind, Mechanism)
}
"""Kinds of games by name, which are played as they are by default."""

BENCHMARK = (
    "Every bound audits every game. The table has its mean beside the truth and the best fixed "
    "cut, and false claims with exact limits: an audit at 95 % confidence may make them in a "
    "twentieth of the games, and an exact binomial test judges each count.\n\n"
    f"A GAME is one of {', '.join(GAMES)}, a parquet file of scores and members, or "
    "MODULE:FUNCTION of yours: game(m, seed=seed). Without any, all but dpsgd are played.\n\n"
    "[dim]Exit code: 0 no bound is false more often than it may be, 1 one is, 2 bad input.[/]"
)


@command(app, "benchmark", BENCHMARK)
def compare(
    games: Annotated[list[str] | None, argument("[GAME]...", "What is played.")] = None,
    *,
    attack: Annotated[
        str, option("MODULE:FUNCTION", "A game of an attack: attack(member, seed) gives scores.")
    ] = "",
    truth: Annotated[
        float, option("E", "ε of what the attack looks at; 0 if no member is.", min=0)
    ] = 0.0,
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
    json: Json = False,
) -> None:
    """Compare bounds on games of known truth."""
    names = games or ([] if attack else [name for name in GAMES if name != "dpsgd"])
    plays: list[Any] = [_game(name) for name in names]
    if attack:
        plays.append(benchmark.Attack(_load(attack), truth))
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
    if json:
        typer.echo(json_text.dumps(encode(summary.lines), ensure_ascii=False))
    else:
        output.say(str(summary))
        for said in dict.fromkeys(line["error"] for line in summary.lines if line["error"]):
            output.say(f"error: {said}", "yellow")
        count = f"{len(summary.false)} of {len(summary.lines)} bounds are"
        output.say(f"{count} false more often than luck explains, family-wise at 0.001.", "bold")
    raise typer.Exit(1 if summary.false else 0)


def _game(name: str) -> Any:
    if name in GAMES:
        return GAMES[name]()
    if ":" in name:
        return _load(name)
    if not name.endswith(".parquet"):
        refuse(f"{name!r} is no game: one of {', '.join(GAMES)}, a .parquet or module:function")
    return benchmark.Scores(name)


def _bound(name: str) -> Any:
    value = name.partition(":")[2]
    return parse_cuts(name) if value.replace(",", "").isdigit() or not value else _load(name)


def _load(name: str) -> Any:
    """Import a function by the name of its module, which may be in the current folder."""
    module, _, function = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever the module does when it is imported
        refuse(f"{name!r} cannot be loaded: {error!r}; give module:function")
