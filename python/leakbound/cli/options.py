"""Options of the commands: their declarations, and their words made objects."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, get_type_hints

import typer

from leakbound._base.types import Relation as ClaimRelation
from leakbound.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    LaplaceDP,
    PureDP,
    SubsampledGaussianDP,
    replacing,
)
from leakbound.cli.commands import COMMANDS
from leakbound.cli.output import answering
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, UnionBound, Weighted
from leakbound.errors import InputTypeError, OptionError

T = TypeVar("T")

CUTS = "auto, kl, union, geometric, fixed:R, outside-in, weighted"
FAMILIES = "pure, approx:D, gaussian, gaussian:D, laplace, dp-sgd:Q,T"
KINDS = ".csv, .tsv, .jsonl, these with .gz, .parquet or .npz"
ONE_MODEL = ("eps", "eps,delta", "mu", "noise")
"""The numbers that a claim about one model may be made of."""
EXIT_CODES = (
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach "
    "or in doubt, 70 a crash.[/]"
)


def refuse(message: str) -> NoReturn:
    """Refuse options of the command line."""
    raise OptionError(message)


def option(metavar: str, text: str, *names: str, **limits: Any) -> Any:
    """Declare an option; without a metavar, its choices or its type are shown."""
    return typer.Option(*names, metavar=metavar or None, help=text, **limits)


def flag(name: str, text: str) -> Any:
    """Declare an option that takes no value."""
    return typer.Option(name, metavar="", help=text)


def argument(metavar: str, text: str) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=text)


def command(
    app: typer.Typer, name: str, text: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command that ends as `answering` says.

    Its help begins with its line in the list of commands. A parameter whose type is a dataclass is
    a group of options: its fields, and the function gets the object that they make.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        parameters: list[inspect.Parameter] = []
        groups: dict[str, Any] = {}
        for one in inspect.signature(function).parameters.values():
            kind = hints[one.name]
            if not is_dataclass(kind):
                parameters.append(one.replace(annotation=kind))
                continue
            groups[one.name] = kind
            types = get_type_hints(kind, include_extras=True)
            parameters += [
                one.replace(name=field.name, annotation=types[field.name], default=field.default)
                for field in fields(kind)
            ]

        def run(**values: Any) -> None:
            with answering(run.__annotations__):
                for group, kind in groups.items():
                    values[group] = kind(**{one.name: values.pop(one.name) for one in fields(kind)})
                function(**values)

        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        line = COMMANDS[name][1] if name in COMMANDS else ""
        app.command(name, help=f"{line}\n\n{text}".strip())(run)
        return function

    return decorate


File = Annotated[Path, argument("FILE", f"Table with one row per example: {KINDS}.")]
Claimed = Annotated[
    str,
    option(
        "eps=E",
        "A guarantee to check: exit code 1 if refuted. With delta: eps=E,delta=D. "
        "Of Gaussian DP: mu=M. Of DP-SGD, its noise multiplier: noise=S.",
    ),
]
Family = Annotated[
    str,
    option(
        "NAME",
        "The guarantees whose parameter is bounded, if not those that the claim is about: "
        f"{FAMILIES}. D is a δ, Q the sampling rate and T the number of steps of DP-SGD.",
    ),
]
Confidence = Annotated[float, option("P", "Probability that the bound is not above the truth.")]
Cuts = Annotated[str, option("POLICY", f"How the search over cuts is accounted for: {CUTS}.")]
Sides = Annotated[
    Literal["both", "member"], option("", "Guess members and non-members, or members only.")
]
CoinSides = Annotated[
    Literal["both", "member", "auto"],
    option(
        "", "Guess members and non-members, members only, or as many of each as labels suggest."
    ),
]
Attacks = Annotated[
    str,
    option(
        "COL,COL",
        "The column of scores, or several attacks: the best wins, and confidence covers it.",
        "--score-col",
        "--attacks",
    ),
]
ScoreCol = Annotated[str, option("COL", "The column of scores.")]
Relation = Annotated[
    ClaimRelation | None,
    option(
        "",
        "What the claim compares: one example replaced by another, or with and without one. The "
        "bound is on the former; a claim of the latter is converted.",
    ),
]
Seed = Annotated[
    int | None, option("N", "Seed of what the audit draws; a new one if none. Recorded.", min=0)
]
Json = Annotated[bool, flag("--json", "Print the result as JSON, and nothing else there.")]
Lenient = Annotated[
    bool, flag("--lenient", "Let a claim pass in spite of warnings and contradicted assumptions.")
]


def parse_cuts(text: str) -> CutPolicy | None:
    """Return the cut policy of a word such as kl or fixed:120."""
    policies: dict[str, Callable[..., CutPolicy | None]] = {
        "auto": lambda: None,
        "kl": KLScan,
        "union": UnionBound,
        "geometric": lambda: UnionBound(grid="geometric"),
        "hoeffding": lambda: UnionBound(tail="hoeffding"),
        "weighted": Weighted,
        "outside-in": lambda *levels: OutsideIn(levels or None),
        "fixed": lambda guesses: Fixed(guesses=guesses),
    }
    return _made(text, policies, "--cuts", CUTS)


def parse_family(text: str) -> Claim:
    """Return the guarantees that a word stands for, such as laplace or dp-sgd:0.01,1000."""
    families: dict[str, Callable[..., Claim]] = {
        "pure": PureDP,
        "laplace": LaplaceDP,
        "gaussian": lambda delta=0.0: GaussianDP(delta=delta),
        "approx": lambda delta: ApproxDP(delta=delta),
        "dp-sgd": lambda rate, steps: SubsampledGaussianDP(sampling_rate=rate, steps=steps),
    }
    return _made(text, families, "--family", FAMILIES)


def _made(text: str, kinds: Mapping[str, Callable[..., T]], name: str, known: str) -> T:
    """Make what a word and its numbers stand for."""
    word, _, value = text.strip().lower().partition(":")
    try:
        return kinds[word](*(_given(part) for part in value.split(",") if part))
    except (OptionError, InputTypeError) as error:
        message = f"{name} {text}: {error}"
    except (KeyError, TypeError):
        message = f"{name} must be one of {known}; got {text!r}"
    raise OptionError(message)


def parse_claim(text: str, forms: tuple[str, ...] = ONE_MODEL) -> dict[str, float]:
    """Return the numbers of a claim such as eps=2 or c=1.5,eps=2; none of no claim."""
    parts = [part.partition("=") for part in text.split(",")] if text else []
    names = [name.strip().lower() for name, _, _ in parts]
    claim = {name: _number(value) for name, (_, _, value) in zip(names, parts, strict=True)}
    known = sorted(names) in [sorted(form.split(",")) for form in forms]
    if text and not (known and all(map(math.isfinite, claim.values())) and claim.get("noise") != 0):
        listed = " or ".join(form.replace(",", "=…,") + "=…" for form in forms)
        refuse(f"--claim {text!r} must be {listed}, in numbers of at least 0")
    return claim


def guarantee_of(goal: Mapping[str, float], family: str = "") -> Claim:
    """Return what is audited: the family that was named, or what the claim is about."""
    own = {"mu": GaussianDP, "noise": SubsampledGaussianDP}
    delta = goal.get("delta", 0.0)
    if family:
        named = parse_family(family)
    elif "mu" in goal:
        named = GaussianDP()
    else:
        named = ApproxDP(delta=delta) if delta else PureDP()
    for key, kind in own.items():
        if key in goal and not isinstance(named, kind):
            refuse(f"--claim {key}=… is not about {named.name}: name another --family: {FAMILIES}")
    unlimited = isinstance(named, GaussianDP | SubsampledGaussianDP)
    if unlimited and "eps" in goal and delta <= named.delta:
        above = f" above {named.delta:g}" if named.delta else ""
        refuse(f"within {named.name} no ε holds without a δ{above}: name eps and delta in --claim")
    return named


def for_replacing(goal: Mapping[str, float]) -> Mapping[str, float]:
    """Return a claim about adding or removing one example as one about replacing one."""
    if not goal or "noise" in goal:  # noise is noise, whatever is compared
        return goal
    if "mu" in goal:
        return {"mu": 2 * goal["mu"]}
    epsilon, delta = replacing(goal["eps"], goal.get("delta", 0.0))
    return {"eps": epsilon, "delta": delta} if delta else {"eps": epsilon}


@dataclass(frozen=True)
class Search:
    """How cuts are searched: options of every audit."""

    confidence: Confidence = 0.95
    cuts: Cuts = "auto"
    seed: Seed = None

    def options(self) -> dict[str, Any]:
        """Return options of the audit."""
        policy = parse_cuts(self.cuts)
        return {"confidence": self.confidence, "cuts": policy, "seed": self.seed}


@dataclass(frozen=True)
class Question(Search):
    """The same, and what is audited."""

    claim: Claimed = ""
    family: Family = ""

    @property
    def goal(self) -> dict[str, float]:
        """The numbers of the claim."""
        return parse_claim(self.claim)

    def options(self, relation: str | None = None) -> dict[str, Any]:
        """Return options of the audit; the claim compares as `relation` says."""
        goal = for_replacing(self.goal) if relation == "add_remove" else self.goal
        return {"claim": guarantee_of(goal, self.family), **super().options()}


def parse_columns(text: str, name: str) -> list[str]:
    """Return what an option lists, separated by commas: nothing, or names that differ."""
    names = [part.strip() for part in text.split(",")] if text else []
    if not all(names) or len(set(names)) < len(names):
        refuse(f"{name} must name different columns, such as one,other; got {text!r}")
    return names


def _given(text: str) -> float | str:
    """Return an integer or another number, or the text, which who takes numbers refuses."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _number(text: str) -> float:
    """Return a number of at least 0, or NaN."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if number >= 0 else math.nan
