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
        claim_numbers = self._claim_numbers
        target = self.target
        if self.truth is not None:
            half_of_truth = real(self.truth, name="--truth", above=0) / 2
            if target is None:
                target = half_of_truth
        bound = claim_numbers.get("mu", claim_numbers.get("eps", target))
        if bound is None and m is not None:
            half_of_ceiling = planning.ceiling(m, **tested) / 2
            bound = math.floor(100 * half_of_ceiling) / 100
        if bound is None:
            refuse("give the bound with --target or --claim, a truth with --truth, or -m")
        audited_claim = options.guarantee_of(claim_numbers, copies=tested["copies"])
        checked_bound = real(bound, name="--target", above=0, below=math.inf)
        return cast("PlannedClaim", audited_claim), checked_bound

    @property
    def _claim_numbers(self) -> dict[str, float]:
        return options.parse_claim(self.claim, ("eps", "eps,delta", "mu"))

    @property
    def stated(self) -> PlannedClaim:
        """The claim as it was stated, about one record."""
        return cast("PlannedClaim", options.guarantee_of(self._claim_numbers))

    def attacks(self, bound: float) -> dict[str, Truth]:
        """Return the assumed truths by name: one, or four attacks if none is given.

        They are about one record, whatever is tested.
        """
        claim = self.stated
        if self.truth is not None:
            return {f"{_symbol_of_claim(claim)} = {self.truth:g}": truth_of(self.truth, claim)}
        attacks: dict[str, Truth] = {_ALWAYS_RIGHT: planning.Response(_PERFECT)}
        for multiple in _WEAKER:
            attack_strength = real(multiple * bound, name="--target", above=0, below=math.inf)
            attack_in_words = f"{_symbol_of_claim(claim)} = {attack_strength:.4g}"
            if isinstance(claim, PureDP):
                attack_in_words += (
                    f" (right {100 / (1 + math.exp(-attack_strength)):.4g} % of the time)"
                )
            attacks[attack_in_words] = truth_of(attack_strength, claim)
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
        each = _ceilings_of_subgroups(subgroups, confidence, audited, cuts, sides)
        _print_subgroup_ceilings(each, bound, goal.stated, of=of)
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
        typer.echo(_plans_as_json(plans))
    else:
        if canary.copies > 1:
            of += f", each inserted {canary.copies} times"
        _print_plans(plans, claim=goal.stated, goal=bound, of=of, m=m)
        if first.m is not None:
            policy = ""
            if common["cuts"]:
                policy = cuts
            following = _command_of_planned_audit(
                audited, goal=bound, cuts=policy, sides=sides, stated=goal.claim, canary=canary
            )
            output.say(f"Next: {following}", "bold")
    _exit_if_reached(reached=first.m is not None)


def _plans_as_json(plans: Mapping[str, CanariesNeeded]) -> str:
    """Return plans as JSON: one, or a list of several."""
    listed = ", ".join(one.to_json() for one in plans.values())
    if len(plans) > 1:
        return f"[{listed}]"
    return listed


def _exit_if_reached(*, reached: bool) -> NoReturn:
    """End with 0 if the goal is reached."""
    code = INCONCLUSIVE
    if reached:
        code = 0
    raise typer.Exit(code)


def _subgroup_sizes(text: str) -> list[int]:
    """Return the sizes of subgroups, which an option lists."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= _MOST_OF_ONE for word in words):
        refuse(f"--subgroups must list numbers from 1 to {_MOST_OF_ONE:,}, such as 400,60")
    return [int(word) for word in words]


def _ceilings_of_subgroups(
    sizes: str, confidence: float, claim: PlannedClaim, cuts: str, sides: Sides
) -> list[tuple[int, float]]:
    """Return sizes of subgroups, and what a perfect attack proves of each."""
    listed = _subgroup_sizes(sizes)
    by = np.repeat(np.arange(len(listed)), listed)
    tested = options.parse_cuts(cuts)
    each = planning.ceilings(by, confidence, claim, cuts=tested, sides=sides)
    return [*zip(listed, each.values(), strict=True)]


def _print_subgroup_ceilings(
    ceilings_of_subgroups: list[tuple[int, float]], goal: float, stated: PlannedClaim, of: str
) -> NoReturn:
    """Print what each subgroup can prove at most; end with 0 if each can reach the goal."""
    rows = []
    for subgroup_size, ceiling_of_subgroup in ceilings_of_subgroups:
        subgroup_verdict = "can reach it"
        if not ceiling_of_subgroup:
            subgroup_verdict = "too few to prove anything"
        elif ceiling_of_subgroup < goal:
            subgroup_verdict = "out of reach"
        rows.append((f"{subgroup_size:,}", number(ceiling_of_subgroup), subgroup_verdict))
    able_subgroups = sum(
        ceiling_of_subgroup >= goal for _, ceiling_of_subgroup in ceilings_of_subgroups
    )
    bound_in_words = f"{_symbol_of_claim(stated)} ≥ {number(goal)}, {stated.name}"
    output.say(
        f"{able_subgroups} of {len(ceilings_of_subgroups)} subgroups can prove {bound_in_words}, "
        f"each at 1/{len(ceilings_of_subgroups)} of the error probability.",
        "bold",
    )
    output.say("")
    output.say(output.grid([(of, True), ("ceiling", True), ("", False)], rows))
    _exit_if_reached(reached=able_subgroups == len(ceilings_of_subgroups))


def _print_plans(
    plans: Mapping[str, CanariesNeeded], claim: PlannedClaim, goal: float, of: str, m: int | None
) -> None:
    """Print a row for each attack, after a sentence about the weakest that suffices."""
    bound_in_words = f"{_symbol_of_claim(claim)} ≥ {number(goal)}, {claim.name}"
    sufficient_attacks = [
        (attack_in_words, attack_plan.power)
        for attack_in_words, attack_plan in plans.items()
        if attack_plan.m is not None and attack_plan.power
    ]
    if sufficient_attacks:
        attack_in_words, least_power = sufficient_attacks[-1]
        weakest_attack = f"an attack of strength {attack_in_words}"
        if attack_in_words == _ALWAYS_RIGHT:
            weakest_attack = "a perfect attack"
        output.say(
            f"With {least_power.m:,} {of}, {weakest_attack} proves {bound_in_words}, in "
            f"{_probability_in_words(least_power)} of audits.",
            "bold",
        )
    else:
        output.say(f"Out of reach: {bound_in_words}: {next(iter(plans.values())).reason}.", "bold")
        other_remedy = "leave out -m to find how many are needed"
        if m is None:
            other_remedy = "raise --most"
        output.say(f"Choose a smaller --target, or {other_remedy}.")
    headings = (
        of.partition(",")[0],
        "probability",
        "bound, 5 % to 95 %",
        "median",
        "ceiling",
        "guesses",
    )
    rows: list[tuple[str, ...]] = []
    for attack_in_words, attack_plan in plans.items():
        if attack_plan.power is None:
            rows.append((attack_in_words, "out of reach", *["-"] * (len(headings) - 1)))
        else:
            rows.append(
                (
                    attack_in_words,
                    *_numbers_of_plan(attack_plan.power, enough=bool(attack_plan.m or m)),
                )
            )
    output.say("")
    columns = [("attack strength", False), *((name, True) for name in headings)]
    output.say(output.grid(columns, rows))


def _numbers_of_plan(power: Power, *, enough: bool) -> tuple[str, ...]:
    """Return numbers of a plan for one attack, as printed."""
    canaries_in_words = f"{power.m:,}"
    if not enough:
        canaries_in_words = f"> {canaries_in_words}"
    guesses_in_words = f"{power.guesses:,}"
    if len(power.levels) > 1:
        guesses_in_words += f" (tried {power.levels[0]:,} to {power.levels[-1]:,})"
    return (
        canaries_in_words,
        _probability_in_words(power),
        f"{number(power.low)} to {number(power.high)}",
        number(power.median),
        number(power.ceiling),
        guesses_in_words,
    )


def _command_of_planned_audit(
    claim: PlannedClaim, goal: float, cuts: str, sides: Sides, stated: str, canary: Canary
) -> str:
    """Return the command of the audit that was planned, for the claim as it was stated."""
    if stated:
        options_of_audit = f"--claim {stated}"
    elif isinstance(claim, GaussianDP):
        options_of_audit = f"--claim mu={goal:.6g}"
    else:
        options_of_audit = f"--claim eps={goal:g}"
        if claim.delta:
            options_of_audit += f",delta={claim.delta:g}"
    if canary.copies > 1:
        options_of_audit += f" --copies {canary.copies}"
    if canary.unit:
        options_of_audit += f" --unit {canary.unit}"
    if cuts:
        options_of_audit += f" --cuts {cuts}"
    if sides in {"both", "member"}:
        options_of_audit += f" --sides {sides}"
    if sides == "pairs":
        return f"leakbound split scores.csv {options_of_audit} --relation replace --untouched"
    return f"leakbound coins scores.csv {options_of_audit}"


def _probability_in_words(power: Power) -> str:
    return f"{100 * power.probability:.3g} %"


def _symbol_of_claim(claim: PlannedClaim) -> str:
    if isinstance(claim, GaussianDP):
        return "μ"
    return "ε"
