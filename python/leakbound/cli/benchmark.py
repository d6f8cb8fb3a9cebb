"""The command that compares bounds and counts their false claims."""

import importlib
import json as json_text
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound import benchmark, simulate
from leakbound._base.imports import working_folder_last
from leakbound._base.records import encode
from leakbound.cli import options, output
from leakbound.cli.options import argument, command, option, refuse

app = typer.Typer()

GAMES: dict[str, Any] = {
    "null": simulate.null,
    "gaussian": partial(simulate.gaussian, mu=1.0),
    "mixture": simulate.mixture,
    "randomized-response": partial(simulate.randomized_response, epsilon=1.0),
}
"""Games of `leakbound.simulate` by name."""

BENCHMARK = (
    "Every bound audits every game. The table compares the mean bound with the true ε and with "
    "the best fixed threshold. It also counts bounds above the truth (false claims), with exact "
    "limits: at 95 % confidence, at most one audit in twenty may be false, and an exact binomial "
    "test checks each count.\n\n"
    f"A GAME is one of {', '.join(GAMES)}, a parquet file of scores and members, or your own "
    "MODULE:FUNCTION, called as game(m, seed=seed). Default: the first four."
)
CODES = "[dim]Exit code: 0 every bound keeps its error rate, 1 some bound does not, 2 bad input.[/]"


@command(app, "benchmark", "leakbound benchmark gaussian --bound kl -m 1000", BENCHMARK, CODES)
def compare(
    games: Annotated[list[str] | None, argument("[GAME]...", "Games to play.")] = None,
    *,
    attack: Annotated[
        str,
        option("MODULE:FUNCTION", "Your attack as a game: attack(member, seed) returns scores."),
    ] = "",
    truth: Annotated[
        float, option("E", "True ε of the attacked model; 0 if trained on no member.", min=0)
    ] = 0.0,
    bound: Annotated[
        list[str] | None,
        option(
            "POLICY|MODULE:FUNCTION",
            f"Bound to compare, repeatable: {options.CUTS}, or your own "
            "bound(scores, member, claim, level). Default: kl, outside-in and geometric.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        option("NAME", f"Privacy definition, repeatable: {options.CLAIM_NAMES}. Default: pure."),
    ] = None,
    examples: Annotated[
        list[int] | None,
        option("M", "Number of examples, repeatable. Default: 1000.", "--examples", "-m", min=1),
    ] = None,
    seeds: Annotated[
        int, option("N", "Games of each kind and size, with seeds 0 to N - 1.", min=1)
    ] = 20,
    confidence: options.Confidence = 0.95,
    workers: Annotated[int, option("N", "Number of processes.", min=1)] = 1,
    store: Annotated[Path | None, option("FILE", "Parquet file for the rows.")] = None,
    json: options.Json = False,
) -> None:
    """Compare bounds on games whose true ε is known."""
    plays: list[Any] = [_game_named(name) for name in games or ()]
    if attack:
        plays.append(benchmark.Attack(attack=_loaded_function(attack), truth=truth))
    if not plays:
        plays = [*GAMES.values()]
    bounds = [_bound_named(name) for name in bound or ("kl", "outside-in", "geometric")]
    families = [options.parse_family(name) for name in family or ("pure",)]
    # Processes import what was named again, from where they are told to look as they begin.
    with working_folder_last() if workers > 1 else nullcontext():
        rows = benchmark.run(
            plays,
            bounds=bounds,
            claims=families,
            m=examples or (1000,),
            seeds=range(seeds),
            confidence=confidence,
            processes=workers,
            progress=True,
        )
    if store is not None:
        rows.to_parquet(store)
    summary = rows.summary()
    if all(line["errors"] == line["games"] for line in summary.lines):
        refuse(summary.lines[0]["error"])
    if json:
        typer.echo(json_text.dumps(encode(summary.lines), ensure_ascii=False))
    else:
        output.say(str(summary))
        for said in dict.fromkeys(line["error"] for line in summary.lines if line["error"]):
            output.say(f"error: {said}", "yellow")
        count = f"{len(summary.false)} of {len(summary.lines)} bounds are false"
        output.say(f"{count} more often than chance explains (family-wise level 0.001).", "bold")
    code = 0
    if summary.false:
        code = 1
    raise typer.Exit(code)


def _game_named(name: str) -> Any:
    if name in GAMES:
        return GAMES[name]
    if ":" in name:
        return _loaded_function(name)
    if not name.endswith(".parquet"):
        refuse(f"no game {name!r}: give one of {', '.join(GAMES)}, a .parquet or module:function")
    return benchmark.Scores(name)


def _bound_named(name: str) -> object:
    value = name.partition(":")[2]
    if value.replace(",", "").isdigit() or not value:
        return options.parse_cuts(name)
    return _loaded_function(name)


def _loaded_function(name: str) -> Any:
    """Import a function; its module may be in the working folder, which is searched last."""
    module, _, function = name.partition(":")
    try:
        with working_folder_last():
            return getattr(importlib.import_module(module), function)
    except Exception as error:  # importing a module can raise anything
        refuse(f"{name!r} cannot be loaded: {error!r}; give module:function")
