"""The command that plans an audit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leakbound import ApproxDP, GaussianDP, PureDP, planning
from leakbound._base.formatting import number, percent
from leakbound.cli import output
from leakbound.cli.options import parse_cuts
from leakbound.errors import IncompatibleOptionsError

if TYPE_CHECKING:
    from leakbound._base.types import Sides, SidesChoice
    from leakbound.planning import CanariesNeeded, Power
    from leakbound.planning.forecast import PlannedClaim, Truth

PLAN = (
    "Plan an audit: what it will prove, or how many canaries it takes.\n\n"
    "With [bold]-m[/] it simulates audits of so many canaries, at a truth that you assume. "
    "Without, it looks for the number of canaries that reaches [bold]--target[/]. "
    "No scores and no labels are needed.\n\n"
    "[dim]leakbound plan --truth 3 --target 2[/]\n"
    "[dim]leakbound plan --truth 3 -m 500[/]"
)


def plan(
    *,
    truth: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="What is true: ε, or μ for --claim gdp. With --delta the Gaussian mechanism with "
            "this ε at δ.",
        ),
    ],
    m: Annotated[
        int | None, typer.Option("--examples", "-m", metavar="M", help="Canaries of the audit.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="B", help="The bound to reach; half the truth if none.")
    ] = None,
    claim: Annotated[Literal["dp", "gdp"], typer.Option(help="(ε, δ)-DP, or Gaussian DP.")] = "dp",
    delta: Annotated[
        float, typer.Option(metavar="D", help="δ of the claim; 0 is pure DP.", min=0.0)
    ] = 0.0,
    fraction: Annotated[
        float,
        typer.Option(metavar="F", help="Share of the canaries that leak, for pure DP."),
    ] = 1.0,
    probability: Annotated[
        float, typer.Option(metavar="P", help="How sure the audit should be to reach the target.")
    ] = 0.8,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability that a bound is not above the truth.")
    ] = 0.95,
    cuts: Annotated[
        str, typer.Option(metavar="POLICY", help="Cut policy, as for one-run.")
    ] = "auto",
    sides: Annotated[
        Literal["both", "member"],
        typer.Option(help="Guess members and non-members, or members only."),
    ] = "both",
    design: Annotated[
        Literal["coins", "random_split"],
        typer.Option(
            help="Coins for each canary, or a random split: then numbers are of pairs, as many as "
            "the smaller part has examples, and truth and bound are of replacing one."
        ),
    ] = "coins",
    simulations: Annotated[
        int, typer.Option(metavar="N", help="Simulated audits of each number of canaries.", min=1)
    ] = 200,
    most: Annotated[
        int, typer.Option(metavar="M", help="The most canaries to think of.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.", min=0)] = 0,
    json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="Print the plan as JSON to stdout, and nothing else there."
        ),
    ] = False,
) -> None:
    """Plan an audit."""
    with output.answering():
        guessed = _guessed(design, sides)
        audited = _claim(claim, delta)
        assumed = _assumed(truth, audited, fraction)
        goal = truth / 2 if target is None else target
        policy = parse_cuts(cuts)
        if m is None:
            needed = planning.canaries_needed(
                goal,
                assumed,
                probability=probability,
                claim=audited,
                confidence=confidence,
                cuts=policy,
                sides=guessed,
                simulations=simulations,
                most=most,
                seed=seed,
                progress=True,
            )
            if json:
                typer.echo(needed.to_json())
            else:
                _show(needed.power, _headline(needed, probability, guessed), guessed)
            return
        with output.waiting(f"Simulating {simulations:,} audits"):
            found = planning.power(
                m,
                assumed,
                target=goal,
                claim=audited,
                confidence=confidence,
                cuts=policy,
                sides=guessed,
                simulations=simulations,
                seed=seed,
            )
        if json:
            typer.echo(found.to_json())
        else:
            reached = percent(found.probability)
            text = (
                f"{m:,} {_UNITS[guessed]} prove {_symbol(found)} ≥ {number(goal)} with chance "
                f"{reached}."
            )
            _show(found, text, guessed)


_UNITS: dict[Sides, str] = {"both": "canaries", "member": "canaries", "pairs": "pairs"}
"""What is counted."""


def _guessed(design: str, sides: SidesChoice) -> Sides:
    """Return which guesses are made."""
    if design == "coins":
        return sides
    if sides != "both":
        message = "--sides member has no meaning in pairs: leave it out for --design random_split"
        raise IncompatibleOptionsError(message)
    return "pairs"


def _claim(name: str, delta: float) -> PlannedClaim:
    if name == "gdp":
        return GaussianDP(delta=delta)
    return ApproxDP(delta=delta) if delta else PureDP()


def _assumed(truth: float, claim: PlannedClaim, fraction: float) -> float | Truth:
    if fraction == 1:
        return truth
    if not isinstance(claim, PureDP):
        message = f"--fraction {fraction:g} is for pure DP: leave out --delta and --claim gdp"
        raise IncompatibleOptionsError(message)
    return replace(planning.Response(truth), fraction=fraction)


def _symbol(found: Power) -> str:
    return "μ" if isinstance(found.claim, GaussianDP) else "ε"


def _headline(needed: CanariesNeeded, probability: float, guessed: Sides) -> str:
    found, units = needed.power, _UNITS[guessed]
    goal = f"{_symbol(found)} ≥ {number(found.target)}"
    if needed.m is None:
        return (
            f"{found.m:,} {units} prove {goal} with chance {percent(found.probability)} only, "
            f"not {percent(probability)}; allow for more with --most."
        )
    return f"{needed.m:,} {units} prove {goal} with chance {percent(found.probability)}."


def _show(found: Power, text: str, sides: Sides) -> None:
    output.say(text, "bold")
    output.say("")
    table = output.grid([("", False), ("", True), ("", False)])
    table.show_header = False
    symbol = _symbol(found)
    best = planning.best_guesses(
        found.m, found.confidence, found.claim, truth=found.truth, sides=sides
    )
    rows = [
        (_UNITS[sides], f"{found.m:,}", ""),
        ("claim", found.claim.name, f"at {percent(found.confidence)} confidence"),
        ("assumed truth", repr(found.truth), ""),
        ("cut policy", found.cuts, ""),
        ("bound, median", number(found.median), f"mean {number(found.mean)}"),
        ("bound, 5 % to 95 %", f"{number(found.low)} to {number(found.high)}", ""),
        ("ceiling", f"{symbol} = {number(found.ceiling)}", "a perfect attack"),
        ("best fixed guesses", f"{best:,}", "at the assumed truth"),
        ("simulated audits", f"{found.simulations:,}", f"seed {found.seed}"),
    ]
    for row in rows:
        table.add_row(*row)
    output.say(table)
