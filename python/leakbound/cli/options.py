"""Options of the commands: their declarations, and how their text is parsed."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, get_args, get_type_hints

import typer

from leakbound import claims
from leakbound._base.console import bar, tell
from leakbound._base.messages import Message
from leakbound._base.types import Relation as ClaimRelation
from leakbound._base.types import Verdict
from leakbound.claims.families import check_epsilon_at
from leakbound.claims.names import CLAIM_NAMES, claim_named, named, number_or_text
from leakbound.cli import output
from leakbound.cli.commands import COMMANDS, HELP
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, SecondLook, UnionBound, Weighted
from leakbound.errors import OptionError

T = TypeVar("T")

CUTS = "auto, second-look, outside-in, kl, union, geometric, fixed:R, weighted"
KINDS = ".csv, .tsv, .jsonl, these with .gz, .parquet or .npz"
ONE_MODEL = ("eps", "eps,delta", "mu", "rho", "noise")
"""The forms that a claim about one model can take."""
EXIT_CODES = (
    "[dim]Exit code: 0 claim not refuted or no claim, 1 refuted, 2 bad input, 3 inconclusive or "
    "withheld, 70 internal error.[/]"
)
_PANELS = {
    "Input": "files file table scores protocol members nonmembers reference plan score_col attacks "
    "baseline_col features member_col member_values sep decimal thousands encoding most_rows "
    "categorical missing inputs label keep source ids",
    "Design": "",
    "Runs": "python workers timeout most_runs",
    "Claim": "claim truth target probability family relation confidence cuts sides lenient",
    "Output": "out model auditor json json_full store",
    "Evidence": "seed opening bundle secret commitment page most_seconds model_sha256",
}
"""Groups of options in the order of every help; what is listed nowhere is about the design."""


def refuse(message: str) -> NoReturn:
    """Refuse options of the command line."""
    raise OptionError(message)


def panel_of(name: str) -> str:
    """Return the group of an option."""
    return next(
        (panel for panel, names_in_panel in _PANELS.items() if name in names_in_panel.split()),
        "Design",
    )


SYNONYMS = {
    **dict.fromkeys(("--train", "--training", "--records", "--member"), "--members"),
    **dict.fromkeys(("--holdout", "--test", "--non-members", "--nonmember"), "--nonmembers"),
    **dict.fromkeys(("--generated", "--fake"), "--synthetic"),
    **dict.fromkeys(("--epsilon", "--eps", "--delta", "--mu"), "--claim"),
    **dict.fromkeys(("--output", "--report", "--dir"), "--out"),
    **dict.fromkeys(("--threshold", "--thresholds", "--cut"), "--cuts"),
    **dict.fromkeys(("--alpha", "--level"), "--confidence"),
    **dict.fromkeys(("--canaries", "--n", "--size"), "--examples"),
    **dict.fromkeys(("--score", "--scores"), "--score-col"),
    **dict.fromkeys(("--label", "--labels"), "--member-col"),
}
"""Other words for options, and what the package calls them."""


@dataclass(frozen=True, eq=False)
class Declared:
    """How an option of a command is declared, but for the group of its help."""

    declare: Callable[..., Any]

    def within(self, panel: str) -> Any:
        """Return the declaration of an option whose help is in a group."""
        return self.declare(rich_help_panel=panel)


def option(metavar: str, text: str, *names: str, **limits: Any) -> Declared:
    """Declare an option; without a metavar, help shows its choices or its type."""
    return Declared(partial(typer.Option, *names, metavar=metavar or None, help=text, **limits))


def flag(name: str, text: str) -> Declared:
    """Declare an option that takes no value."""
    return Declared(partial(typer.Option, name, metavar="", help=text))


def argument(metavar: str, text: str) -> Any:
    """Declare an argument, which is in a group of its own."""
    return typer.Argument(metavar=metavar, help=text)


def _print_help(context: typer.Context, wanted: bool) -> None:  # noqa: FBT001 (typer passes it so)
    if wanted:
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit


_HELP = inspect.Parameter(
    "help_",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            *HELP,
            metavar="",
            callback=_print_help,
            is_eager=True,
            help="Show this message and exit.",
            rich_help_panel="Output",
        ),
    ],
)
"""The option for help, in a group like the others."""


def command(
    app: typer.Typer, name: str, example: str, text: str, codes: str = EXIT_CODES
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command that ends as `output.answering` describes.

    Its help has its line in the list of commands, an example, the text and the exit codes. A
    parameter whose type is a dataclass adds one option for each field, and the function gets the
    object.
    """
    paragraphs = [
        "\n".join(f"[dim]{line}[/]" for line in example.splitlines()),
        text,
        codes,
    ]
    if name in COMMANDS:
        paragraphs.insert(0, COMMANDS[name][1])
    help_text = "\n\n".join(filter(None, paragraphs))

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        parameters: list[inspect.Parameter] = []
        option_groups: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            parameter_type = hints[parameter.name]
            if not is_dataclass(parameter_type):
                parameters.append(parameter.replace(annotation=parameter_type))
                continue
            option_groups[parameter.name] = parameter_type
            field_types = get_type_hints(parameter_type, include_extras=True)
            parameters += [
                parameter.replace(
                    name=field.name, annotation=field_types[field.name], default=field.default
                )
                for field in fields(parameter_type)
            ]

        def run(**values: object) -> None:
            values.pop(_HELP.name)  # which has printed help, and ended the program
            with output.answering(run.__annotations__):
                for option_group, parameter_type in option_groups.items():
                    values[option_group] = parameter_type(
                        **{field.name: values.pop(field.name) for field in fields(parameter_type)}
                    )
                function(**values)

        parameters.sort(
            key=lambda parameter: (parameter.kind, [*_PANELS].index(panel_of(parameter.name)))
        )
        parameters = [
            parameter.replace(annotation=_in_its_panel(parameter)) for parameter in parameters
        ]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__dict__["__signature__"] = inspect.Signature([*parameters, _HELP])
        app.command(name, add_help_option=False, help=help_text)(run)
        return function

    return decorate


def _in_its_panel(parameter: inspect.Parameter) -> Any:
    """Return the annotation of a parameter as Typer reads it."""
    parameter_type, *declarations = get_args(parameter.annotation)
    panel = panel_of(parameter.name)
    for position, declaration in enumerate(declarations):
        if isinstance(declaration, Declared):
            declarations[position] = declaration.within(panel)
    return Annotated[(parameter_type, *declarations)]


File = Annotated[Path, argument("FILE", f"Table with one row per example: {KINDS}.")]
Claimed = Annotated[
    str,
    option(
        "eps=E",
        "Guarantee to check, of the whole training: all rounds, epochs and clients together. Exit "
        "code 1 if refuted. Also eps=E,delta=D, or mu=M (Gaussian DP), or rho=R (zCDP, "
        "which has no eps), or noise=S (noise multiplier of DP-SGD).",
    ),
]
Family = Annotated[
    str,
    option(
        "NAME",
        f"Privacy definition to bound (default: that of --claim): {CLAIM_NAMES}. D is a δ, Q the "
        "sampling rate and T the number of steps of DP-SGD.",
    ),
]
Confidence = Annotated[float, option("P", "Confidence level of the bound.")]
Cuts = Annotated[str, option("POLICY", f"Correction for searching over thresholds: {CUTS}.")]
Sides = Annotated[
    Literal["both", "member"], option("", "Guess both members and non-members, or members only.")
]
CoinSides = Annotated[
    Literal["auto", "both", "member"],
    option(
        "",
        "Guess members and non-members in a ratio chosen from the data (auto), equally often "
        "(both), or members only.",
    ),
]
Attacks = Annotated[
    str,
    option(
        "COL,COL",
        "Column of scores. If you name several, the audit reports the best, corrected for the "
        "choice.",
        "--score-col",
        "--attacks",
    ),
]
ScoreCol = Annotated[str, option("COL", "Column of scores.")]
Relation = Annotated[
    ClaimRelation | None,
    option(
        "",
        "Whether the claim is for replacing one example, or for adding or removing one. The bound "
        "is for replacing; a claim for adding or removing is converted.",
    ),
]
Copies = Annotated[
    int | None,
    option(
        "R",
        "How often each canary that was trained on is in the training data (default: as the plan "
        "says, or 1). The bound is converted to one record.",
    ),
]
Unit = Annotated[
    str,
    option(
        "WORD",
        "Word for what was drawn, such as hospital, in the sentences of the result. Default: "
        "user with --groups, otherwise example.",
    ),
]
Seed = Annotated[
    int | None,
    option("N", "Random seed of the audit. Default: a new seed, recorded in the result.", min=0),
]
Json = Annotated[bool, flag("--json", "Print JSON on standard output, and nothing else.")]
Lenient = Annotated[
    bool, flag("--lenient", "Do not treat warnings or contradicted assumptions as inconclusive.")
]


def parse_cuts(text: str) -> CutPolicy | None:
    """Return the cut policy named by text such as kl or fixed:120."""
    policies: dict[str, Callable[..., CutPolicy | None]] = {
        "auto": lambda: None,
        "kl": KLScan,
        "union": UnionBound,
        "geometric": lambda: UnionBound(grid="geometric"),
        "hoeffding": lambda: UnionBound(tail="hoeffding"),
        "weighted": Weighted,
        "outside-in": lambda *levels: OutsideIn(levels or None),
        "second-look": SecondLook,
        "fixed": lambda guesses: Fixed(guesses=guesses),
    }
    return _of_option("--cuts", lambda: named(text, policies, CUTS))


def parse_family(text: str) -> claims.Claim:
    """Return the family of guarantees named by text such as laplace or dp-sgd:0.01,1000."""
    return _of_option("--family", lambda: claim_named(text))


def _of_option(name: str, make: Callable[[], T]) -> T:
    """Make an object of the text of an option, which errors name."""
    try:
        return make()
    except OptionError as error:
        raise OptionError(Message("{name} {error}", name=name, error=error)) from error


# Other words for the parts of a claim
_MEANT = {"epsilon": "eps", "e": "eps", "ε": "eps", "δ": "delta", "d": "delta", "μ": "mu"}
_MEANT |= {"sigma": "noise", "noise_multiplier": "noise", "noise-multiplier": "noise"}


def parse_claim(text: str, forms: tuple[str, ...] = ONE_MODEL) -> dict[str, float]:
    """Return the numbers of a claim such as eps=2 or c=1.5,eps=2; empty without a claim."""
    if not text:
        return {}
    parameters_of_forms = [sorted(form.split(",")) for form in forms]
    stated_parameters = []
    meant_parameters = []
    meant_claim = []
    claim = {}
    for part in text.split(","):
        name, _, stated_number = part.partition("=")
        parameter = name.strip().lower()
        meant_parameter = _MEANT.get(parameter, parameter)
        stated_parameters.append(parameter)
        meant_parameters.append(meant_parameter)
        meant_claim.append(f"{meant_parameter}={stated_number.strip()}")
        claim[parameter] = _number_or_nan(stated_number.strip())
    are_possible = all(map(math.isfinite, claim.values())) and claim.get("noise") != 0
    if are_possible and sorted(stated_parameters) in parameters_of_forms:
        return claim
    listed_forms = " or ".join(form.replace(",", "=…,") + "=…" for form in forms)
    hint = ""
    if are_possible and sorted(meant_parameters) in parameters_of_forms:
        hint = f"; did you mean --claim {','.join(meant_claim)}?"
    refuse(f"--claim {text!r} must have the form {listed_forms}, with numbers of at least 0{hint}")


def guarantee_of(goal: Mapping[str, float], family: str = "", copies: int = 1) -> claims.Claim:
    """Return the family to audit: the one named, or that of the claim, for all copies at once."""
    family_of_parameter = {
        "mu": claims.GaussianDP,
        "rho": claims.ZeroConcentratedDP,
        "noise": claims.SubsampledGaussianDP,
    }
    delta = goal.get("delta", 0.0)
    if delta and copies > 1:
        delta = claims.grouped(goal["eps"], delta, copies=copies)[1]
        if delta >= 1 and not family:
            refuse(
                f"a claim of ε = {goal['eps']:g} at δ = {goal['delta']:g} for one record says "
                f"nothing about {copies} copies of it: their δ is {delta:.3g}"
            )
    if family:
        audited_family = parse_family(family)
    elif "mu" in goal:
        audited_family = claims.GaussianDP()
    elif "rho" in goal:
        audited_family = claims.ZeroConcentratedDP()
    elif delta:
        audited_family = claims.ApproxDP(delta=delta)
    else:
        audited_family = claims.PureDP()
    for parameter, parameter_family in family_of_parameter.items():
        if parameter in goal and not isinstance(audited_family, parameter_family):
            refuse(
                f"--claim {parameter}=… does not fit {audited_family.name}; choose another "
                f"--family: {CLAIM_NAMES}"
            )
    if "eps" in goal:
        check_epsilon_at(audited_family, delta)
    return audited_family


def for_replacing(goal: Mapping[str, float]) -> Mapping[str, float]:
    """Convert a claim about adding or removing one example into one about replacing one."""
    if not goal or "noise" in goal:  # a noise multiplier is the same for both
        return goal
    if "mu" in goal:
        return {"mu": 2 * goal["mu"]}
    if "rho" in goal:
        return {"rho": 4 * goal["rho"]}
    epsilon, delta = claims.replacing(goal["eps"], goal.get("delta", 0.0))
    if delta:
        return {"eps": epsilon, "delta": delta}
    return {"eps": epsilon}


@dataclass(frozen=True)
class Search:
    """Options of every audit: confidence, cuts, seed."""

    confidence: Confidence = 0.95
    cuts: Cuts = "auto"
    seed: Seed = None

    def options(self) -> dict[str, Any]:
        """Return options of the audit."""
        policy = parse_cuts(self.cuts)
        return {"confidence": self.confidence, "cuts": policy, "seed": self.seed}


@dataclass(frozen=True)
class Question(Search):
    """The same, with the claim and the family to audit."""

    claim: Claimed = ""
    family: Family = ""

    @property
    def goal(self) -> dict[str, float]:
        """The numbers of the claim."""
        return parse_claim(self.claim)

    def options(
        self, relation: str | None = None, *, replaced: str = "", copies: int = 1
    ) -> dict[str, Any]:
        """Return options of the audit; `relation` is that of the claim.

        It must be stated where the bound is for replacing one example or candidate: `replaced`.
        The audit tests what the claim implies for all `copies` of a record at once.
        """
        if replaced and self.goal and relation is None:
            refuse(
                f"the bound is for replacing one {replaced}: add --relation replace if the claim "
                "is too, or --relation add_remove to convert it (2ε, 2μ)"
            )
        goal: Mapping[str, float] = self.goal
        if relation == "add_remove":
            goal = for_replacing(goal)
        return {"claim": guarantee_of(goal, self.family, copies), **super().options()}


@dataclass(frozen=True)
class Delivery:
    """How a result is printed, how strictly a claim is judged, and where the report is written."""

    json: Json = False
    json_full: Annotated[
        bool,
        flag("--json-full", "Print all of result.json, with curves and lists of examples."),
    ] = False
    lenient: Lenient = False
    out: Annotated[
        Path | None, option("DIR", "Folder for result.json, report.html and figures (SVG).")
    ] = None
    title: Annotated[str, option("TEXT", "Title of the report.")] = ""
    model: Annotated[str, option("TEXT", "Name of the model in the report.")] = ""
    auditor: Annotated[str, option("TEXT", "Name of the auditor in the report.")] = ""

    def __post_init__(self) -> None:
        if self.out is not None:  # before hours of work
            output.prepare(self.out)
        elif self.title or self.model or self.auditor:
            refuse("--title, --model and --auditor are for the report: add --out DIR")

    def conclude(
        self,
        result: Any,
        file: Path,
        goal: Mapping[str, float],
        relation: ClaimRelation | None = None,
        inputs: Mapping[str, Any] | None = None,
        further: tuple[Verdict, str] | None = None,
    ) -> NoReturn:
        """Check a claim, print and write the result, and end with its exit code.

        `inputs` is what a bundle holds besides the result. `further` is the verdict on another
        claim, and the sentence about it.
        """
        # 1. The claim.
        if goal:
            result = result.with_check(**claimed(goal, relation))
        # 2. Files first, so that they exist once the verdict is printed.
        bundle = getattr(self, "bundle", None)
        if bundle is not None:
            with bar("Auditing again, for the bundle"):
                result.bundle(bundle, **inputs or {})
            tell(f"Bundle: {bundle}")
        if self.out is not None:
            file_name = file.name.encode(errors="replace").decode()  # names need not be text
            title = self.title or f"Privacy audit of {file_name}"
            facts_for_report = {"title": title, "model": self.model, "auditor": self.auditor}
            with bar("Drawing the report"):
                output.write_files(self.out, result, **facts_for_report)
        # 3. The verdict.
        verdict, sentence = further or (None, "")
        write_line: Callable[[str], None] = tell
        if self.json_full:
            typer.echo(result.to_json())
        elif self.json:
            typer.echo(output.brief(result, lenient=self.lenient, further=verdict))
        else:
            output.show(result)
            write_line = typer.echo
        if self.out is not None:
            write_line(f"Report: {self.out / 'report.html'}")
        if sentence:
            write_line(sentence)
        output.end(result, lenient=self.lenient, further=verdict)


def claimed(goal: Mapping[str, float], relation: ClaimRelation | None) -> dict[str, object]:
    """Return a claim as arguments of `check`."""
    arguments_of_check: dict[str, object]
    if "noise" in goal:
        arguments_of_check = {"parameter": 1 / goal["noise"]}
    elif "mu" in goal or "rho" in goal:
        arguments_of_check = {"parameter": goal.get("mu", goal.get("rho"))}
    else:
        arguments_of_check = {"epsilon": goal["eps"], "delta": goal.get("delta", 0.0)}
    if "c" in goal:
        arguments_of_check["c"] = goal["c"]
    if relation is not None:
        arguments_of_check["relation"] = relation
    return arguments_of_check


@dataclass(frozen=True)
class BundledDelivery(Delivery):
    """The same, and a bundle."""

    bundle: Annotated[
        Path | None,
        option("DIR", "Folder for everything needed to recompute the result: `leakbound verify`."),
    ] = None


def parse_columns(text: str, name: str) -> list[str]:
    """Return the different names that an option lists, separated by commas."""
    if not text:
        return []
    column_names = [part.strip() for part in text.split(",")]
    if not all(column_names) or len(set(column_names)) < len(column_names):
        refuse(f"{name} must list different columns, such as one,other; got {text!r}")
    return column_names


def _number_or_nan(text: str) -> float:
    """Return a number of at least 0, or NaN."""
    number = number_or_text(text)
    if isinstance(number, str) or number < 0:
        return math.nan
    return number
