"""The command that plans an audit."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

import typer

from leakbound import ApproxDP, GaussianDP, PureDP, planning
from leakbound._base.ending import INCONCLUSIVE
from leakbound._base.formatting import number, percent
from leakbound._base.scalars import real
from leakbound._base.types import Sides
from leakbound.cli import output
from leakbound.cli.options import (
    Confidence,
    Cuts,
    Json,
    command,
    guarantee_of,
    option,
    parse_claim,
    parse_cuts,
)
from leakbound.errors import IncompatibleOptionsError
from leakbound.planning import CanariesNeeded, Power
from leakbound.planning.forecast import PlannedClaim, Truth, units, why_short

app = typer.Typer()

_PERFECT = 50.0
"""ε of randomised response that is right in every guess, as far as a double can tell."""
_WEAKER = (4.0, 3.0, 2.0)
"""What weaker attacks find, in units of the target: the weakest finds what targets default to."""

PLAN = (
    "Plan an audit: what it will prove, or how many canaries it takes.\n\n"
    "With [bold]-m[/] it simulates audits of so many canaries, without it looks for the number of "
    "canaries that reaches [bold]--target[/], or refutes [bold]--claim[/]: at a truth that you "
    "assume, or for a perfect attack and three weaker ones. No scores and no labels are needed."
    "\n\n"
    "[dim]Exit code: 0 the target is reached, 2 bad input, 3 it is not, 70 a crash.[/]\n\n"
    "[dim]leakbound plan --target 2[/]\n"
    "[dim]leakbound plan --truth 3 --claim eps=2,delta=1e-5[/]\n"
    "[dim]leakbound plan --truth 3 -m 500[/]"
)


@command(app, "plan", PLAN)
def plan(
    *,
    truth: Annotated[
        float | None,
        option(
            "X",
            "What is true: ε, or μ of Gaussian DP. With a δ, the Gaussian mechanism with this "
            "ε at δ. If none, a perfect attack and three weaker ones are planned for.",
        ),
    ] = None,
    m: Annotated[int | None, option("M", "Canaries of the audit.", "--examples", "-m")] = None,
    target: Annotated[
        float | None, option("B", "The bound to reach; half the truth if none.")
    ] = None,
    claim: Annotated[
        str,
        option(
            "eps=E",
            "The guarantee to refute, in place of a target: eps=E, eps=E,delta=D or mu=M.",
        ),
    ] = "",
    family: Annotated[
        str,
        option(
            "NAME",
            "What the target is a bound of, if there is no claim: pure, approx:D or gaussian.",
        ),
    ] = "",
    fraction: Annotated[
        float, option("F", "Share of the canaries that leak, for pure DP at a truth.")
    ] = 1.0,
    probability: Annotated[
        float, option("P", "How sure the audit should be to reach the target.")
    ] = 0.8,
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    sides: Annotated[
        Literal["both", "member", "pairs"],
        option(
            "",
            "Guess members and non-members, members only, or within pairs, as for a random split: "
            "then numbers are of pairs, as many as the smaller part has examples, and truth, claim "
            "and bound are of replacing one.",
        ),
    ] = "both",
    simulations: Annotated[
        int, option("N", "Simulated audits of each number of canaries.", min=1)
    ] = 200,
    most: Annotated[int, option("M", "The most canaries to think of.")] = 100_000,
    seed: Annotated[int, option("", "Seed of the simulations.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Plan an audit."""
    truth = None if truth is None else real(truth, "--truth", above=0)
    audited, goal = _claimed(claim, family, target, truth)
    goal = real(goal, "--target", above=0, below=math.inf)
    chance = real(probability, "--probability", above=0, below=1)
    policy, attacks = parse_cuts(cuts), _attacks(truth, goal, audited, fraction)
    options: dict[str, Any] = {
        "claim": audited,
        "confidence": confidence,
        "cuts": policy,
        "sides": sides,
        "simulations": simulations,
        "seed": seed,
    }

    def needed(assumed: float | Truth) -> CanariesNeeded:
        if m is None:
            return planning.canaries_needed(goal, assumed, probability=chance, most=most, **options)
        power = planning.power(m, assumed, target=goal, **options)
        if power.probability >= chance:
            return planning.CanariesNeeded(m=m, power=power)
        return planning.CanariesNeeded(m=None, power=power, reason=why_short(m, power, sides))

    with output.waiting(f"Simulating {simulations:,} audits of each number"):
        found = {words: needed(assumed) for words, assumed in attacks.items()}
    first = next(iter(found.values()))
    if json:
        listed = ", ".join(one.to_json() for one in found.values())
        typer.echo(f"[{listed}]" if len(found) > 1 else listed)
    else:
        goal_said = f"{_symbol(audited)} ≥ {number(goal)}"
        command = _command(audited, goal, cuts if policy else "", sides)
        _show(found, f"{goal_said}, {audited.name}", command, sides, m)
    raise typer.Exit(INCONCLUSIVE if first.m is None else 0)


def _claimed(
    claim: str, family: str, target: float | None, truth: float | None
) -> tuple[PlannedClaim, float]:
    """Return what is audited, and the bound to reach: half the truth where none is named."""
    if claim and (family or target is not None):
        message = "--claim names guarantee and target: give it, or --target and --family"
        raise IncompatibleOptionsError(message)
    goal = parse_claim(claim, ("eps", "eps,delta", "mu"))
    audited = guarantee_of(goal, family)
    if not isinstance(audited, PureDP | ApproxDP | GaussianDP):
        message = f"--family {family} is not planned for: take pure, approx:D or gaussian"
        raise IncompatibleOptionsError(message)
    if goal:
        return audited, goal["mu"] if "mu" in goal else goal["eps"]
    if target is None and truth is None:
        message = "name the bound to reach, by --target or --claim, or what is true, by --truth"
        raise IncompatibleOptionsError(message)
    return audited, cast("float", truth) / 2 if target is None else target


def _attacks(
    truth: float | None, goal: float, claim: PlannedClaim, fraction: float
) -> dict[str, float | Truth]:
    """Return what is assumed, by what an attack would find: four of them without a truth."""
    if fraction != 1 and (truth is None or not isinstance(claim, PureDP)):
        message = f"--fraction {fraction:g} is for pure DP, and for a truth: name it by --truth"
        raise IncompatibleOptionsError(message)
    if truth is not None:
        leaks = truth if fraction == 1 else replace(planning.Response(truth), fraction=fraction)
        return {"": leaks}
    found: dict[str, float | Truth] = {"all, a perfect one": planning.Response(_PERFECT)}
    for times in _WEAKER:
        strength = real(times * goal, "--target", above=0, below=math.inf)
        right = f", right in {100 / (1 + math.exp(-strength)):.4g} %"
        words = f"{_symbol(claim)} = {strength:.4g}" + (right if isinstance(claim, PureDP) else "")
        found[words] = strength
    return found


def _show(
    found: Mapping[str, CanariesNeeded], goal: str, command: str, sides: Sides, m: int | None
) -> None:
    """Print what each attack takes, and the audit that does for the weakest that suffices."""
    enough = [(words, one.power) for words, one in found.items() if one.m is not None and one.power]
    if not enough:
        first = next(iter(found.values()))
        output.say(f"Out of reach: {goal}: {first.reason}.", "bold")
        more = "allow for more by --most" if m is None else "leave out -m to find how many do"
        output.say(f"Take a smaller --target, or {more}.")
    else:
        words, power = enough[-1]
        weakest = f", for an attack that finds {words}" if len(found) > 1 else ""
        output.say(
            f"{power.m:,} {units(sides)} prove {goal}, with chance {_chance(power)}{weakest}.",
            "bold",
        )
        output.say(f"Then: {command}", "bold")
    shown = {words: one.power for words, one in found.items() if one.power}
    if shown and len(found) == 1:
        output.say("")
        output.say(_details(*shown.values()))
    if len(found) > 1:
        output.say("")
        headings = ("chance", "bound, 5 % to 95 %", "guesses")
        table = output.grid([("an attack that finds", False), (units(sides), True)])
        for heading in headings:
            table.add_column(heading, justify="right")
        for words, one in found.items():
            table.add_row(words, *_row(one, m))
        output.say(table)


def _command(claim: PlannedClaim, goal: float, cuts: str, sides: Sides) -> str:
    """Return the command that audits so."""
    if isinstance(claim, GaussianDP):
        said = f"--claim mu={goal:.6g}"
    else:
        said = f"--claim eps={goal:g}" + (f",delta={claim.delta:g}" if claim.delta else "")
    said += f" --cuts {cuts}" if cuts else ""
    said += " --sides member" if sides == "member" else ""
    if sides == "pairs":
        return f"leakbound split scores.csv {said} --relation replace --untouched"
    return f"leakbound coins scores.csv {said}"


def _row(needed: CanariesNeeded, m: int | None) -> tuple[str, ...]:
    found = needed.power
    if found is None:
        return "out of reach", "-", "-", "-"
    few = "" if needed.m or m else "> "
    between = f"{number(found.low)} to {number(found.high)}"
    return f"{few}{found.m:,}", _chance(found), between, _guesses(found)


def _guesses(found: Power) -> str:
    levels = f" of {found.levels[0]:,}…{found.levels[-1]:,}" if len(found.levels) > 1 else ""
    return f"{found.guesses:,}{levels}"


def _details(found: Power) -> Any:
    table = output.grid([("", False), ("", True), ("", False)])
    table.show_header = False
    symbol = _symbol(found.claim)
    rows = [
        ("assumed truth", repr(found.truth), ""),
        ("confidence", percent(found.confidence), ""),
        ("bound, median", number(found.median), f"mean {number(found.mean)}"),
        ("bound, 5 % to 95 %", f"{number(found.low)} to {number(found.high)}", ""),
        ("guesses", _guesses(found), ""),
        ("ceiling", f"{symbol} = {number(found.ceiling)}", "a perfect attack"),
        ("simulated audits", f"{found.simulations:,}", f"seed {found.seed}"),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def _chance(found: Power) -> str:
    return f"{100 * found.probability:.3g} %"


def _symbol(claim: PlannedClaim) -> str:
    return "μ" if isinstance(claim, GaussianDP) else "ε"
