"""The command that plans an audit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from leakbound import ApproxDP, GaussianDP, PureDP, planning
from leakbound._base.ending import INCONCLUSIVE
from leakbound._base.formatting import number, percent
from leakbound._base.scalars import real
from leakbound.cli import output
from leakbound.cli.options import guarantee_of, parse_claim, parse_cuts
from leakbound.cli.wording import in_its_words
from leakbound.errors import IncompatibleOptionsError
from leakbound.planning.comparison import FAMILY, FIXED
from leakbound.planning.forecast import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.table import Table

    from leakbound._base.types import Sides, SidesChoice
    from leakbound.planning import Choice, Comparison, Power
    from leakbound.planning.forecast import PlannedClaim, Truth

app = typer.Typer()

_SHORT = {FAMILY: "within the family", FIXED: "fits the assumed truth"}
"""What choices cost, where a table has a column for it."""
_PERFECT = 50.0
"""ε of randomised response that is right in every guess, as far as a double can tell."""
_WEAKER = (4.0, 3.0, 2.0)
"""What weaker attacks find, in units of the target: the weakest finds what targets default to."""

PLAN = (
    "Plan an audit: what it will prove, or how many canaries it takes.\n\n"
    "With [bold]-m[/] it simulates audits of so many canaries, without it looks for the number of "
    "canaries that reaches [bold]--target[/], or refutes [bold]--claim[/]: at a truth that you "
    "assume, or for a perfect attack and three weaker ones. Either way it compares cuts, and "
    "claims from which the target follows, and says which to use and what that costs. No scores "
    "and no labels are needed.\n\n"
    "[dim]Exit code: 0 something reaches the target, 2 bad input, 3 nothing does, 70 a crash.[/]"
    "\n\n"
    "[dim]leakbound plan --target 2[/]\n"
    "[dim]leakbound plan --truth 3 --claim eps=2,delta=1e-5[/]\n"
    "[dim]leakbound plan --truth 3 -m 500[/]"
)


@app.command("plan", help=PLAN)
def plan(
    *,
    truth: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="What is true: ε, or μ of Gaussian DP. With a δ, the Gaussian mechanism with this "
            "ε at δ. If none, a perfect attack and three weaker ones are planned for.",
        ),
    ] = None,
    m: Annotated[
        int | None, typer.Option("--examples", "-m", metavar="M", help="Canaries of the audit.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="B", help="The bound to reach; half the truth if none.")
    ] = None,
    claim: Annotated[
        str,
        typer.Option(
            metavar="eps=E",
            help="The guarantee to refute, in place of a target, as for one-run: eps=E, "
            "eps=E,delta=D or mu=M.",
        ),
    ] = "",
    family: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the target is a bound of, if there is no claim: pure, approx:D or gaussian.",
        ),
    ] = "",
    fraction: Annotated[
        float,
        typer.Option(metavar="F", help="Share of the canaries that leak, for pure DP at a truth."),
    ] = 1.0,
    probability: Annotated[
        float, typer.Option(metavar="P", help="How sure the audit should be to reach the target.")
    ] = 0.8,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability that a bound is not above the truth.")
    ] = 0.95,
    cuts: Annotated[
        str,
        typer.Option(metavar="POLICY", help="A cut policy to compare with others, as for one-run."),
    ] = "auto",
    sides: Annotated[
        Literal["both", "member"],
        typer.Option(help="Guess members and non-members, or members only."),
    ] = "both",
    design: Annotated[
        Literal["coins", "random_split"],
        typer.Option(
            help="Coins for each canary, or a random split: then numbers are of pairs, as many as "
            "the smaller part has examples, and truth, claim and bound are of replacing one."
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
        truth = None if truth is None else real(truth, "--truth", above=0)
        guessed = _guessed(design, sides)
        audited, goal = _claimed(claim, family, target, truth)
        policy, attacks = parse_cuts(cuts), _attacks(truth, goal, audited, fraction)
        with output.waiting(f"Simulating {simulations:,} audits of each choice"):
            found = {
                words: planning.compare(
                    goal,
                    assumed,
                    m=m,
                    probability=probability,
                    claim=audited,
                    confidence=confidence,
                    cuts=policy,
                    sides=guessed,
                    simulations=simulations,
                    most=most,
                    seed=seed,
                )
                for words, assumed in attacks.items()
            }
        first, *others = found.values()
        if json:
            listed = ", ".join(one.to_json() for one in found.values())
            typer.echo(f"[{listed}]" if others else listed)
        elif others:
            _show_attacks(found, guessed, m)
        else:
            _show(first, guessed, m)
        raise typer.Exit(0 if first.best else INCONCLUSIVE)


def _guessed(design: str, sides: SidesChoice) -> Sides:
    """Return which guesses are made."""
    if design == "coins":
        return sides
    if sides != "both":
        message = "--sides member has no meaning in pairs: leave it out for --design random_split"
        raise IncompatibleOptionsError(message)
    return "pairs"


def _claimed(
    claim: str, family: str, target: float | None, truth: float | None
) -> tuple[PlannedClaim, float]:
    """Return what is audited, and the bound to reach: half the truth where none is named."""
    if claim and (family or target is not None):
        message = "--claim names guarantee and target: give it, or --target and --family"
        raise IncompatibleOptionsError(message)
    goal = parse_claim(claim, ("eps", "delta", "mu")) if claim else {}
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


def _show_attacks(found: Mapping[str, Comparison], sides: Sides, m: int | None) -> None:
    """Print what each attack takes, and the audit that does for the weakest that suffices."""
    perfect = next(iter(found.values()))
    if perfect.best is None:
        for line in _refused(perfect, sides, m):
            output.say(line, "bold")
        return
    words, weakest, best = [(words, one, one.best) for words, one in found.items() if one.best][-1]
    output.say(f"A perfect attack: {_proves(perfect.best, sides, perfect.claim)}.", "bold")
    output.say(f"The weakest here that does finds {words}:", "bold")
    for line in _advised(weakest, best, sides):
        output.say(line, "bold")
    output.say("")
    table = output.grid([("an attack that finds", False), *_columns(sides)])
    for words, one in found.items():
        table.add_row(words, *_row(one.best or one.choices[0], m))
    output.say(table)


def _columns(sides: Sides) -> tuple[tuple[str, bool], ...]:
    columns = ("", False), (f"{units(sides)}", True), ("chance", True), ("bound, 5 % to 95 %", True)
    return (*columns, ("guesses", True), ("costs", False))


def _show(found: Comparison, sides: Sides, m: int | None) -> None:
    """Print what to use and what it costs, then what was compared."""
    best = found.best
    for line in _refused(found, sides, m) if best is None else _advised(found, best, sides):
        output.say(line, "bold")
    if found.impossible:
        return
    output.say("")
    table = output.grid(_columns(sides))
    for one in found.choices:
        table.add_row(*_row(one, m))
    output.say(table)
    shown = best or next((one for one in found.choices if one.power), None)
    if shown is not None and shown.power is not None:
        output.say("")
        output.say(_details(shown.power))


def _advised(found: Comparison, best: Choice, sides: Sides) -> Iterator[str]:
    """Yield what to use, what it costs, and what goes without the cost."""
    yield f"{_proves(best, sides, found.claim)}, {_words(best)}."
    if best.costs:
        yield f"It costs: {'; '.join(best.costs)}."
        plain = found.without_costs
        if plain is not None:
            yield f"Without that: {_proves(plain, sides, found.claim)}, {_words(plain)}."
    yield f"Then: {_command(best, sides)}"


def _proves(one: Choice, sides: Sides, asked: PlannedClaim) -> str:
    chance = "" if one.power is None else f" with chance {_chance(one.power)}"
    goal = f"{_symbol(one.claim)} ≥ {number(one.target)}"
    if isinstance(one.claim, GaussianDP) and isinstance(asked, ApproxDP):
        goal += f" (the ε asked for, at δ = {asked.delta:g})"
    return f"{one.m or 0:,} {units(sides)} prove {goal}{chance}"


def _refused(found: Comparison, sides: Sides, m: int | None) -> Iterator[str]:
    """Yield why nothing reaches the target, and the command that would."""
    goal = f"{_symbol(found.claim)} ≥ {number(found.target)}"
    if found.impossible:
        yield f"Impossible: {found.impossible}."
        yield "Take a --target below the truth, or leave it out: then it is half the truth."
        return
    yield f"Out of reach: {goal}. For {_words(found.asked)}, {found.asked.reason}."
    if m is not None:
        yield f"No other choice reaches it; leave out -m to find how many {units(sides)} do."
    else:
        yield "No other choice does better: take a smaller --target, or allow for more by --most."


def _words(one: Choice) -> str:
    """Return a choice in the words of the command line."""
    return f"{one.claim.name}, {in_its_words(f'cuts={one.cuts}')}"


def _command(one: Choice, sides: Sides) -> str:
    """Return the command that audits so."""
    claim = one.claim
    if isinstance(claim, GaussianDP):
        said = f"--claim mu={one.target:.6g}"
    else:
        said = f"--claim eps={one.target:g}" + (f",delta={claim.delta:g}" if claim.delta else "")
    said += " " + in_its_words(f"cuts={one.cuts}")
    if sides == "member":
        said += " --sides member"
    if sides == "pairs":
        said += " --design random_split --relation replace --untouched"
    return f"leakbound one-run scores.csv {said}"


def _row(one: Choice, m: int | None) -> tuple[str, ...]:
    found = one.power
    costs = "; ".join(_SHORT.get(cost, cost) for cost in one.costs) or "-"
    if found is None:
        return _words(one), "-", "-", "out of reach", "-", costs
    guesses = f"{found.guesses:,}"
    if len(found.levels) > 1:
        guesses += f" of {found.levels[0]:,}…{found.levels[-1]:,}"
    return (
        _words(one),
        f"{found.m:,}" if one.m or m else f"> {found.m:,}",
        _chance(found),
        f"{_symbol(one.claim)} {number(found.low)} to {number(found.high)}",
        guesses,
        costs,
    )


def _details(found: Power) -> Table:
    table = output.grid([("", False), ("", True), ("", False)])
    table.show_header = False
    symbol = _symbol(found.claim)
    rows = [
        ("assumed truth", repr(found.truth), ""),
        ("confidence", percent(found.confidence), ""),
        ("bound, median", number(found.median), f"mean {number(found.mean)}"),
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
