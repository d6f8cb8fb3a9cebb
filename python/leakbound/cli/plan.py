"""The command that plans an audit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, cast

import numpy as np
import typer

from leakbound import GaussianDP, PureDP, planning
from leakbound._base.checks import real
from leakbound._base.console import INCONCLUSIVE, track
from leakbound._base.drawn import check_unit
from leakbound._base.formatting import number, plural
from leakbound._base.types import Sides
from leakbound.cli import options, output
from leakbound.cli.options import command, option, refuse
from leakbound.planning import CanariesNeeded, Power
from leakbound.planning.forecast import units, why_short
from leakbound.planning.truths import PlannedClaim, Truth, truth_of

app = typer.Typer()

# ε of randomised response that is correct in every guess, to double precision.
_PERFECT = 50.0
# Canaries of a subgroup, at most.
_MOST_OF_ONE = 10**6
_ALWAYS_RIGHT = "perfect"
# ε that weaker attacks find, as multiples of the target; a truth defaults to the smallest.
_WEAKER = (4.0, 3.0, 2.0)

PLAN = (
    "Simulates audits; no scores are needed. With [bold]-m[/], the command shows what an audit of "
    "that many canaries proves. Without it, the command finds how many canaries are needed to "
    "prove [bold]--target[/] or to refute [bold]--claim[/]. Results are for the [bold]--truth[/] "
    "that you assume, or for a perfect attack and three weaker ones. With [bold]-m[/] alone, the "
    "target is half of what a perfect attack proves. Next, before training, "
    "[bold]leakbound commit[/] flips the coins of the canaries and commits to the audit."
)
EXAMPLES = """leakbound plan --target 2
leakbound plan --truth 3 --claim eps=2,delta=1e-5
leakbound plan -m 500"""
CODES = "[dim]Exit code: 0 target reached, 2 bad input, 3 not reached, 70 internal error.[/]"


@dataclass(frozen=True)
class Goal:
    """The assumed truth, and the bound to reach."""

    truth: Annotated[
        float | None,
        option(
            "X",
            "True ε to assume, or true μ for Gaussian DP. If the claim has a δ: the Gaussian "
            "mechanism with this ε at δ. Default: a perfect attack and three weaker ones.",
        ),
    ] = None
    target: Annotated[
        float | None,
        option("E", "ε to prove, under pure DP. Default: half of --truth, or of the ceiling."),
    ] = None
    claim: Annotated[str, option("eps=E", "Guarantee to refute, instead of a target.")] = ""

    def bounded(self, m: int | None, tested: Mapping[str, Any]) -> tuple[PlannedClaim, float]:
        """Return the family to audit and the bound to reach, by default half the truth.

        Without a truth it is half of the ceiling of m canaries.

        It tests what the claim implies for all `copies` of a canary at once.
        """
        if self.claim and self.target is not None:
            refuse("--claim already sets the target: give either --claim or --target")
        goal = options.parse_claim(self.claim, ("eps", "eps,delta", "mu"))
        half = None
        if self.truth is not None:
            half = real(self.truth, name="--truth", above=0) / 2
        aim = self.target
        if self.target is None:
            aim = half
        bound = goal.get("mu", goal.get("eps", aim))
        if bound is None and m is not None:
            bound = math.floor(50 * planning.ceiling(m, **tested)) / 100
        if bound is None:
            refuse("give the bound with --target or --claim, a truth with --truth, or -m")
        audited = cast("PlannedClaim", options.guarantee_of(goal, copies=tested["copies"]))
        return audited, real(bound, name="--target", above=0, below=math.inf)

    @property
    def stated(self) -> PlannedClaim:
        """The claim as it was stated, about one record."""
        goal = options.parse_claim(self.claim, ("eps", "eps,delta", "mu"))
        return cast("PlannedClaim", options.guarantee_of(goal))

    def attacks(self, bound: float) -> dict[str, Truth]:
        """Return the assumed truths by name: one, or four attacks if none is given.

        They are about one record, whatever is tested.
        """
        claim = self.stated
        if self.truth is not None:
            return {f"{_symbol(claim)} = {self.truth:g}": truth_of(self.truth, claim)}
        attacks: dict[str, Truth] = {_ALWAYS_RIGHT: planning.Response(_PERFECT)}
        for times in _WEAKER:
            strength = real(times * bound, name="--target", above=0, below=math.inf)
            words = f"{_symbol(claim)} = {strength:.4g}"
            if isinstance(claim, PureDP):
                words += f" (right {100 / (1 + math.exp(-strength)):.4g} % of the time)"
            attacks[words] = truth_of(strength, claim)
        return attacks


@dataclass(frozen=True)
class Canary:
    """What a canary is, and how often it is inserted."""

    copies: Annotated[
        int,
        option(
            "R",
            "How often each canary is inserted; truth, target and bound are for one record.",
            min=1,
        ),
    ] = 1
    unit: Annotated[
        str,
        option(
            "WORD",
            "What a coin, or the split, decides on, such as user: then -m counts users, or pairs "
            "of users.",
        ),
    ] = ""

    def counted(self, sides: Sides) -> str:
        """Return what m counts, in the word that is stated."""
        several = units(sides)
        if self.unit:
            several = plural(check_unit(self.unit))
        if self.unit and sides == "pairs":
            return f"pairs of {several}"
        return several


@command(app, "plan", EXAMPLES, PLAN, CODES)
def plan(
    *,
    m: Annotated[int | None, option("M", "Number of canaries.", "--examples", "-m")] = None,
    goal: Goal,
    canary: Canary,
    probability: Annotated[
        float, option("P", "Probability with which the audit should reach the target.")
    ] = 0.8,
    confidence: options.Confidence = 0.95,
    cuts: options.Cuts = "auto",
    sides: Annotated[
        Literal["auto", "both", "member", "pairs"],
        option(
            "",
            "Guesses of the audit, as for coins. Use pairs for split: then -m counts pairs (the "
            "size of the smaller part), and truth, claim and bound are for replacing one example.",
        ),
    ] = "auto",
    subgroups: Annotated[
        str,
        option(
            "N,N",
            "Sizes of subgroups, such as 400,60: shows what a perfect attack proves of each, in "
            "an audit with --by.",
        ),
    ] = "",
    simulations: Annotated[
        int, option("N", "Simulated audits for each number of canaries.", min=1)
    ] = 200,
    most: Annotated[int, option("M", "Maximum number of canaries to consider.")] = 100_000,
    seed: Annotated[int, option("N", "Random seed of the simulations.", min=0)] = 0,
    json: options.Json = False,
) -> None:
    """Plan an audit."""
    tested: dict[str, Any] = {
        "confidence": confidence,
        "cuts": options.parse_cuts(cuts),
        "sides": sides,
        "copies": canary.copies,
    }
    audited, bound = goal.bounded(m, tested)
    of = canary.counted(sides)
    if subgroups:
        each = _ceilings(subgroups, confidence, audited, cuts, sides)
        _show_subgroups(each, bound, goal.stated, of=of)
    attacks = goal.attacks(bound)
    chance = real(probability, name="--probability", above=0, below=1)
    common: dict[str, Any] = {
        "claim": audited,
        **tested,
        "simulations": simulations,
        "seed": seed,
    }

    def needed(assumed: Truth) -> CanariesNeeded:
        if m is None:
            return planning.canaries_needed(bound, assumed, probability=chance, most=most, **common)
        power = planning.power(m, assumed, target=bound, **common)
        if power.probability >= chance:
            return planning.CanariesNeeded(m=m, power=power)
        return planning.CanariesNeeded(
            m=None, power=power, reason=why_short(m, forecast=power, sides=sides)
        )

    simulated = track(attacks.items(), "Planning", total=len(attacks), shown=True)
    plans = {words: needed(assumed) for words, assumed in simulated}
    first = next(iter(plans.values()))
    if json:
        typer.echo(_listed(plans))
    else:
        if canary.copies > 1:
            of += f", each inserted {canary.copies} times"
        _show(plans, claim=goal.stated, goal=bound, of=of, m=m)
        if first.m is not None:
            policy = ""
            if common["cuts"]:
                policy = cuts
            following = _command(
                audited, goal=bound, cuts=policy, sides=sides, stated=goal.claim, canary=canary
            )
            output.say(f"Next: {following}", "bold")
    _exit(reached=first.m is not None)


def _listed(plans: Mapping[str, CanariesNeeded]) -> str:
    """Return plans as JSON: one, or a list of several."""
    listed = ", ".join(one.to_json() for one in plans.values())
    if len(plans) > 1:
        return f"[{listed}]"
    return listed


def _exit(*, reached: bool) -> NoReturn:
    """End with 0 if the goal is reached."""
    code = INCONCLUSIVE
    if reached:
        code = 0
    raise typer.Exit(code)


def _sizes(text: str) -> list[int]:
    """Return the sizes of subgroups, which an option lists."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= _MOST_OF_ONE for word in words):
        refuse(f"--subgroups must list numbers from 1 to {_MOST_OF_ONE:,}, such as 400,60")
    return [int(word) for word in words]


def _ceilings(
    sizes: str, confidence: float, claim: PlannedClaim, cuts: str, sides: Sides
) -> list[tuple[int, float]]:
    """Return sizes of subgroups, and what a perfect attack proves of each."""
    listed = _sizes(sizes)
    by = np.repeat(np.arange(len(listed)), listed)
    tested = options.parse_cuts(cuts)
    each = planning.ceilings(by, confidence, claim, cuts=tested, sides=sides)
    return [*zip(listed, each.values(), strict=True)]


def _show_subgroups(
    most: list[tuple[int, float]], goal: float, stated: PlannedClaim, of: str
) -> NoReturn:
    """Print what each subgroup can prove at most; end with 0 if each can reach the goal."""
    rows = []
    for size, proved in most:
        verdict = "can reach it"
        if not proved:
            verdict = "too few to prove anything"
        elif proved < goal:
            verdict = "out of reach"
        rows.append((f"{size:,}", number(proved), verdict))
    able = sum(proved >= goal for _, proved in most)
    said = f"{_symbol(stated)} ≥ {number(goal)}, {stated.name}"
    output.say(
        f"{able} of {len(most)} subgroups can prove {said}, each at 1/{len(most)} of the error "
        "probability.",
        "bold",
    )
    output.say("")
    output.say(output.grid([(of, True), ("ceiling", True), ("", False)], rows))
    _exit(reached=able == len(most))


def _show(
    plans: Mapping[str, CanariesNeeded], claim: PlannedClaim, goal: float, of: str, m: int | None
) -> None:
    """Print a row for each attack, after a sentence about the weakest that suffices."""
    said = f"{_symbol(claim)} ≥ {number(goal)}, {claim.name}"
    enough = [(words, one.power) for words, one in plans.items() if one.m is not None and one.power]
    if enough:
        words, least = enough[-1]
        attack = f"an attack of strength {words}"
        if words == _ALWAYS_RIGHT:
            attack = "a perfect attack"
        output.say(
            f"With {least.m:,} {of}, {attack} proves {said}, in {_chance(least)} of audits.", "bold"
        )
    else:
        output.say(f"Out of reach: {said}: {next(iter(plans.values())).reason}.", "bold")
        more = "leave out -m to find how many are needed"
        if m is None:
            more = "raise --most"
        output.say(f"Choose a smaller --target, or {more}.")
    headings = (
        of.partition(",")[0],
        "probability",
        "bound, 5 % to 95 %",
        "median",
        "ceiling",
        "guesses",
    )
    rows: list[tuple[str, ...]] = []
    for words, one in plans.items():
        if one.power is None:
            rows.append((words, "out of reach", *["-"] * (len(headings) - 1)))
        else:
            rows.append((words, *_row(one.power, enough=bool(one.m or m))))
    output.say("")
    columns = [("attack strength", False), *((name, True) for name in headings)]
    output.say(output.grid(columns, rows))


def _row(power: Power, *, enough: bool) -> tuple[str, ...]:
    """Return numbers of a plan for one attack, as printed."""
    canaries = f"{power.m:,}"
    if not enough:
        canaries = f"> {canaries}"
    guesses = f"{power.guesses:,}"
    if len(power.levels) > 1:
        guesses += f" (tried {power.levels[0]:,} to {power.levels[-1]:,})"
    return (
        canaries,
        _chance(power),
        f"{number(power.low)} to {number(power.high)}",
        number(power.median),
        number(power.ceiling),
        guesses,
    )


def _command(
    claim: PlannedClaim, goal: float, cuts: str, sides: Sides, stated: str, canary: Canary
) -> str:
    """Return the command of the audit that was planned, for the claim as it was stated."""
    if stated:
        said = f"--claim {stated}"
    elif isinstance(claim, GaussianDP):
        said = f"--claim mu={goal:.6g}"
    else:
        said = f"--claim eps={goal:g}"
        if claim.delta:
            said += f",delta={claim.delta:g}"
    if canary.copies > 1:
        said += f" --copies {canary.copies}"
    if canary.unit:
        said += f" --unit {canary.unit}"
    if cuts:
        said += f" --cuts {cuts}"
    if sides in {"both", "member"}:
        said += f" --sides {sides}"
    if sides == "pairs":
        return f"leakbound split scores.csv {said} --relation replace --untouched"
    return f"leakbound coins scores.csv {said}"


def _chance(power: Power) -> str:
    return f"{100 * power.probability:.3g} %"


def _symbol(claim: PlannedClaim) -> str:
    if isinstance(claim, GaussianDP):
        return "μ"
    return "ε"
