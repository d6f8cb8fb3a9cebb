"""The commands that audit a file of scores: read, call, print, write."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from leakbound import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PureDP,
    TradeOff,
    audit_one_run,
)
from leakbound.cli import output
from leakbound.cli.options import CUTS, parse_claim, parse_columns, parse_cuts, parse_prior
from leakbound.cli.tables import Table, panoramia_columns, read
from leakbound.errors import (
    AbstentionError,
    ArrayTypeError,
    DuplicateIdsError,
    FeaturesError,
    IncompatibleOptionsError,
    InputFileError,
    MembershipError,
    NaNScoresError,
    ShapeError,
)
from leakbound.results.words import DELTA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from leakbound._base.types import ArrayInput, Verdict
    from leakbound.claims import Claim
    from leakbound.results import AuditResult
    from leakbound.results.base import Result

_ABOUT_DATA = (
    AbstentionError,
    ArrayTypeError,
    DuplicateIdsError,
    FeaturesError,
    MembershipError,
    NaNScoresError,
    ShapeError,
)

app = typer.Typer()

ONE_RUN = (
    "Audit one training run: how much ε do the scores prove?\n\n"
    "A fair coin decided for each example whether it was trained on. FILE has a column "
    "[bold]score[/] (higher: more likely a member; --attacks names several), a column "
    "[bold]member[/] (0/1, -1/1 or false/true) and optionally [bold]id[/].\n\n"
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach, "
    "70 a crash.[/]"
)
PANORAMIA = (
    "Audit a trained model against generated points: estimate ε without retraining.\n\n"
    "FILE has the columns [bold]baseline_score[/] (from the example alone), "
    "[bold]attack_score[/] or [bold]score[/] (from the example and the model), [bold]member[/] "
    "(0: generated) and optionally [bold]id[/]. The columns [bold]baseline_pred[/] and "
    "[bold]mia_NAME_pred[/] will do for the scores.\n\n"
    "The estimate ε̃ is not a lower bound on ε: it is the bound on c + ε minus the bound on c, "
    "where c tells how far the generator is from the data. With --features a Zero-Run audit of the "
    "same examples stands beside it: a lower bound if the probability that an example is real is "
    "what a model learnt from features and baseline says.\n\n"
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach. "
    "Only a joint claim can be refuted, or one with real non-members or an upper limit on c.[/]"
)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table with one row per example: .csv, .npz or .parquet.",
    ),
]
Confidence = Annotated[
    float, typer.Option(metavar="P", help="Probability that the bound is not above the truth.")
]
Cuts = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="How the search over the cuts of the ranking is accounted for: "
        f"{CUTS}. The last accounts for nothing and proves nothing.",
    ),
]
AttackColumns = Annotated[
    str,
    typer.Option(
        metavar="COL,COL",
        help="Columns of scores to audit together: the best wins, and the stated confidence covers "
        "the choice.",
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed of what the audit draws: parts of a split, order of ties.", min=0)
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write result.json, report.html and the figures (svg) to this folder.",
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", metavar="", help="Print the result as JSON to stdout, and nothing else there."
    ),
]


@app.command("one-run", help=ONE_RUN)
def one_run(
    file: File,
    *,
    claim: Annotated[
        str,
        typer.Option(
            metavar="eps=E",
            help="A guarantee to check: exit code 1 if refuted. With delta: eps=E,delta=D. "
            "Of Gaussian DP: mu=M.",
        ),
    ] = "",
    family: Annotated[
        Literal["", "gaussian", "laplace"],
        typer.Option(
            metavar="NAME",
            help="Bound a family of trade-off functions in place of ε: gaussian or laplace.",
        ),
    ] = "",
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    sides: Annotated[
        Literal["both", "member"],
        typer.Option(help="Guess members and non-members, or members only."),
    ] = "both",
    attacks: AttackColumns = "score",
    prior: Annotated[
        str,
        typer.Option(
            metavar="P",
            help="Probability of each coin to include, or the column that holds one for each.",
        ),
    ] = "0.5",
    design: Annotated[
        Literal["coins", "fixed_size"],
        typer.Option(
            help="How membership was assigned: by independent fair coins, or a fixed number."
        ),
    ] = "coins",
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Audit the scores of one training run in a file."""
    with output.answering():
        goal = parse_claim(claim, ("eps", "delta", "mu")) if claim else {}
        guarantee = _guarantee(goal, family)
        policy = parse_cuts(cuts)
        names, chance = parse_columns(attacks), parse_prior(prior)
        wanted = [*names, chance] if isinstance(chance, str) else names
        table = table_of(file, {name: (name,) for name in wanted}, out)
        with auditing(file, table):
            result = audit_one_run(
                scores_of(table, names),
                table.member,
                claim=guarantee,
                confidence=confidence,
                cuts=policy,
                sides=sides,
                prior=table.scores[chance] if isinstance(chance, str) else chance,
                design=design,
                ids=table.ids,
                seed=seed,
            )
        conclude(result, file, goal, out, json=json)


def _guarantee(goal: Mapping[str, float], family: str) -> Claim:
    """Return what is audited: what the claim is about, or the family that was named."""
    if family and goal and not (family == "gaussian" and "mu" in goal):
        message = f"--family {family} goes without a claim, or as gaussian with --claim mu=…"
        raise IncompatibleOptionsError(message)
    if family == "laplace":
        return LaplaceDP()
    if family == "gaussian" or "mu" in goal:
        return GaussianDP()
    delta = goal.get("delta", 0.0)
    return ApproxDP(delta=delta) if delta else PureDP()


def conclude(
    result: AuditResult, file: Path, goal: Mapping[str, float], out: Path | None, *, json: bool
) -> None:
    """Print and write a result, and leave with the exit code of a claim about it."""
    verdict = _verdict(result, goal)
    if "mu" in goal:
        goal = {"eps": float(TradeOff.gaussian(goal["mu"]).epsilon(DELTA))}
    _deliver(result, file, goal, out, json=json)
    _end(verdict)


def _verdict(result: AuditResult, goal: Mapping[str, float]) -> Verdict | None:
    if not goal:
        return None
    if "mu" in goal:
        return result.check(parameter=goal["mu"])
    return result.check(epsilon=goal["eps"], delta=goal.get("delta", 0.0))


@app.command("panoramia", help=PANORAMIA)
def panoramia(
    file: File,
    *,
    claim: Annotated[
        str,
        typer.Option(
            metavar="c=C,eps=E",
            help="A joint claim about generator and model: exit code 1 if refuted.",
        ),
    ] = "",
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    tail: Annotated[
        Literal["exact", "hoeffding"],
        typer.Option(help="Limits of the union policies: Clopper-Pearson, or Hoeffding's."),
    ] = "exact",
    gamma: Annotated[
        float,
        typer.Option(metavar="G", help="Mass of real points that the generator may miss."),
    ] = 0.0,
    delta: Annotated[
        float, typer.Option(metavar="D", help="δ of a model that is (ε, δ)-DP.")
    ] = 0.0,
    relaxation: Annotated[
        Literal["knapsack", "published"],
        typer.Option(help="How gamma and δ are allowed for; the published form is for comparison."),
    ] = "knapsack",
    max_recall: Annotated[
        float, typer.Option(metavar="R", help="Test cuts of up to this share of the examples.")
    ] = 1.0,
    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="Whose scores to read from columns mia_NAME_pred."),
    ] = "",
    real_nonmembers: Annotated[
        bool,
        typer.Option(
            "--real-nonmembers",
            metavar="",
            help="The non-members are real and exchangeable with the members: c = 0.",
        ),
    ] = False,
    c_upper: Annotated[
        float | None,
        typer.Option(metavar="C", help="An upper limit on c that you vouch for."),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            metavar="COL,COL",
            help="Columns of features, for a conditional lower bound on ε beside the estimate.",
        ),
    ] = "",
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Audit the scores of members and generated points in a file."""
    from leakbound import audit_panoramia

    with output.answering():
        goal = parse_claim(claim, ("c", "eps", "delta")) if claim else {}
        policy = parse_cuts(cuts)
        columns = parse_columns(features) if features else []
        wanted = panoramia_columns(file, model) | {f"feature {name}": (name,) for name in columns}
        table = table_of(file, wanted, out)
        known = [table.scores[f"feature {name}"] for name in columns]
        with auditing(file, table):
            result = audit_panoramia(
                table.scores["baseline"],
                table.scores["attack"],
                table.member,
                confidence=confidence,
                cuts=policy,
                gamma=gamma,
                delta=delta,
                tail=tail,
                relaxation=relaxation,
                max_recall=max_recall,
                real_nonmembers=real_nonmembers,
                c_upper=c_upper,
                features=np.column_stack(known) if known else None,
                ids=table.ids,
                seed=seed,
            )
        verdict = (
            result.check(epsilon=goal["eps"], delta=goal.get("delta", 0.0), c=goal.get("c"))
            if goal
            else None
        )
        _deliver(result, file, goal, out, json=json)
        _end(verdict)


def table_of(
    file: Path,
    wanted: Mapping[str, tuple[str, ...]],
    out: Path | None,
    *,
    optional: tuple[str, ...] = ("id",),
) -> Table:
    """Read a table, once the folder of the results is known to be writable."""
    if out is not None:
        output.prepare(out)
    with output.waiting(f"Reading {file}"):
        return read(file, wanted, optional=optional)


def scores_of(table: Table, names: Sequence[str]) -> ArrayInput | dict[str, ArrayInput]:
    """Return the scores of one attack, or those of several by name."""
    scores: dict[str, ArrayInput] = {name: table.scores[name] for name in names}
    return scores if len(names) > 1 else scores[names[0]]


@contextmanager
def auditing(file: Path, table: Table) -> Iterator[None]:
    """Show that the audit runs, and name the file in what it says about its columns."""
    try:
        with output.waiting(f"Auditing {len(table.member):,} examples"):
            yield
    except _ABOUT_DATA as error:
        rows = " (rows count from 0, without the header)" if " row" in str(error) else ""
        message = f"{file}: {error}{rows}"
        raise InputFileError(message) from error


def _deliver(
    result: Result, file: Path, goal: Mapping[str, float], out: Path | None, *, json: bool
) -> None:
    """Print the result, as JSON or for people, and write the bundle if asked to."""
    epsilon, c = goal.get("eps"), goal.get("c")
    if out is not None:
        name = file.name.encode(errors="replace").decode()  # names need not be text
        title = f"Privacy audit of {name}"
        with output.waiting("Drawing the report"):
            output.write_bundle(out, result, title=title, epsilon=epsilon, c=c)
    if json:
        typer.echo(result.to_json())
    else:
        output.show(result, epsilon=epsilon, c=c)
    if out is not None:
        output.announce(out, aside=json)


def _end(verdict: Verdict | None) -> None:
    raise typer.Exit(output.exit_code(verdict))
