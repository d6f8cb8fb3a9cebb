"""The command that plans an audit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import typer

from leakbound import GaussianDP, PureDP, planning
from leakbound._base.checks import real
from leakbound._base.console import INCONCLUSIVE, bar
from leakbound._base.formatting import number
from leakbound._base.types import Sides
from leakbound.cli import options, output
from leakbound.cli.options import command, option, refuse
from leakbound.planning import CanariesNeeded, Power
from leakbound.planning.forecast import units, why_short
from leakbound.planning.truths import PlannedClaim, Truth

app = typer.Typer()

# ε of randomised response that is right in every guess, as far as a double can tell.
_PERFECT = 50.0
# What weaker attacks find, in units of the target: the weakest finds what targets default to.
_WEAKER = (4.0, 3.0, 2.0)

PLAN = (
    "With [bold]-m[/] it simulates audits of so many canaries, without it looks for the number of "
    "canaries that reaches [bold]--target[/], or refutes [bold]--claim[/]: at a truth that you "
    "assume, or for a perfect attack and three weaker ones. No scores and no labels are needed."
    "\n\n"
    "[dim]Exit code: 0 the target is reached, 2 bad input, 3 it is not, 70 a crash.[/]\n\n"
    "[dim]leakbound plan --target 2[/]\n"
    "[dim]leakbound plan --truth 3 --claim eps=2,delta=1e-5[/]\n"
    "[dim]leakbound plan --truth 3 -m 500[/]"
)


@dataclass(frozen=True)
class Goal:
    """What is true, and what is to be reached."""

    truth: Annotated[
        float | None,
        option(
            "X",
            "What is true: ε, or μ of Gaussian DP. With a δ, the Gaussian mechanism with this ε at "
            "δ. If none, a perfect attack and three weaker ones are planned for.",
        ),
    ] = None
    target: Annotated[
        float | None, option("E", "The ε to prove, under pure DP; or half the truth.")
    ] = None
    claim: Annotated[str, option("eps=E", "The guarantee to refute, in place of a target.")] = ""

    def bounded(self) -> tuple[PlannedClaim, float]:
        """Return what is audited, and the bound to reach: half the truth where none is named."""
        if self.claim and self.target is not None:
            refuse("--claim names guarantee and target: give it, or --target")
        goal = options.parse_claim(self.claim, ("eps", "eps,delta", "mu"))
        half = None if self.truth is None else real(self.truth, "--truth", above=0) / 2
        bound = goal.get("mu", goal.get("eps", half if self.target is None else self.target))
        if bound is None:
            refuse("name the bound to reach, by --target or --claim, or what is true, by --truth")
        audited = cast("PlannedClaim", options.guarantee_of(goal))
        return audited, real(bound, "--target", above=0, below=math.inf)

    def attacks(self, claim: PlannedClaim, bound: float) -> dict[str, float | Truth]:
        """Return what is assumed, by what an attack would find: four of them without a truth."""
        if self.truth is not None:
            return {repr(self.truth): self.truth}
        attacks: dict[str, float | Truth] = {"all, a perfect one": planning.Response(_PERFECT)}
        for times in _WEAKER:
            strength = real(times * bound, "--target", above=0, below=math.inf)
            words = f"{_symbol(claim)} = {strength:.4g}"
            if isinstance(claim, PureDP):
                words += f", right in {100 / (1 + math.exp(-strength)):.4g} %"
            attacks[words] = strength
        return attacks


@command(app, "plan", PLAN)
def plan(
    *,
    m: Annotated[int | None, option("M", "Canaries of the audit.", "--examples", "-m")] = None,
    goal: Goal,
    probability: Annotated[
        float, option("P", "How sure the audit should be to reach the target.")
    ] = 0.8,
    confidence: options.Confidence = 0.95,
    cuts: options.Cuts = "auto",
    sides: Annotated[
        Literal["auto", "both", "member", "pairs"],
        option(
            "",
            "Guess as coins does: as many of each role as labels suggest, as many of both, or "
            "members only; or within pairs, as for a random split: "
            "then numbers are of pairs, as many as the smaller part has examples, and truth, claim "
            "and bound are of replacing one.",
        ),
    ] = "auto",
    simulations: Annotated[int, option("N", "Simulated audits of each number.", min=1)] = 200,
    most: Annotated[int, option("M", "The most canaries to think of.")] = 100_000,
    seed: Annotated[int, option("N", "Seed of the simulations.", min=0)] = 0,
    json: options.Json = False,
) -> None:
    """Plan an audit."""
    audited, bound = goal.bounded()
    attacks = goal.attacks(audited, bound)
    chance = real(probability, "--probability", above=0, below=1)
    common: dict[str, Any] = {
        "claim": audited,
        "confidence": confidence,
        "cuts": options.parse_cuts(cuts),
        "sides": sides,
        "simulations": simulations,
        "seed": seed,
    }

    def needed(assumed: float | Truth) -> CanariesNeeded:
        if m is None:
            return planning.canaries_needed(bound, assumed, probability=chance, most=most, **common)
        power = planning.power(m, assumed, target=bound, **common)
        if power.probability >= chance:
            return planning.CanariesNeeded(m=m, power=power)
        return planning.CanariesNeeded(m=None, power=power, reason=why_short(m, power, sides))

    with bar(f"Simulating {simulations:,} audits of each number"):
        plans = {words: needed(assumed) for words, assumed in attacks.items()}
    first = next(iter(plans.values()))
    if json:
        listed = ", ".join(one.to_json() for one in plans.values())
        typer.echo(f"[{listed}]" if len(plans) > 1 else listed)
    else:
        _show(plans, audited, bound, units(sides), m)
        if first.m is not None:
            policy = cuts if common["cuts"] else ""
            output.say(f"Then: {_command(audited, bound, policy, sides)}", "bold")
    raise typer.Exit(INCONCLUSIVE if first.m is None else 0)


def _show(
    plans: Mapping[str, CanariesNeeded], claim: PlannedClaim, goal: float, of: str, m: int | None
) -> None:
    """Print what each attack takes, and first the weakest of those that suffice."""
    said = f"{_symbol(claim)} ≥ {number(goal)}, {claim.name}"
    enough = [(words, one.power) for words, one in plans.items() if one.m is not None and one.power]
    if enough:
        words, least = enough[-1]
        weakest = f", for an attack that finds {words}" if len(plans) > 1 else ""
        output.say(f"{least.m:,} {of} prove {said}, with chance {_chance(least)}{weakest}.", "bold")
    else:
        output.say(f"Out of reach: {said}: {next(iter(plans.values())).reason}.", "bold")
        more = "allow for more by --most" if m is None else "leave out -m to find how many do"
        output.say(f"Take a smaller --target, or {more}.")
    headings = (of, "chance", "bound, 5 % to 95 %", "median", "ceiling", "guesses")
    table = output.grid([("an attack that finds", False), *((name, True) for name in headings)])
    for words, one in plans.items():
        power = one.power
        if power is None:
            table.add_row(words, "out of reach", *["-"] * (len(headings) - 1))
            continue
        few = "" if one.m or m else "> "
        between = f"{number(power.low)} to {number(power.high)}"
        levels = f" of {power.levels[0]:,}…{power.levels[-1]:,}" if len(power.levels) > 1 else ""
        ends = (number(power.median), number(power.ceiling), f"{power.guesses:,}{levels}")
        table.add_row(words, f"{few}{power.m:,}", _chance(power), between, *ends)
    output.say("")
    output.say(table)


def _command(claim: PlannedClaim, goal: float, cuts: str, sides: Sides) -> str:
    """Return the command that audits so."""
    if isinstance(claim, GaussianDP):
        said = f"--claim mu={goal:.6g}"
    else:
        said = f"--claim eps={goal:g}" + (f",delta={claim.delta:g}" if claim.delta else "")
    said += f" --cuts {cuts}" if cuts else ""
    said += f" --sides {sides}" if sides in {"both", "member"} else ""
    if sides == "pairs":
        return f"leakbound split scores.csv {said} --relation replace --untouched"
    return f"leakbound coins scores.csv {said}"


def _chance(power: Power) -> str:
    return f"{100 * power.probability:.3g} %"


def _symbol(claim: PlannedClaim) -> str:
    return "μ" if isinstance(claim, GaussianDP) else "ε"
