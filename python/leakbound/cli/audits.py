"""The commands that audit a file of scores: read, call, print, write."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from leakbound import audit_one_run
from leakbound._base.ending import tell
from leakbound.cli import output
from leakbound.cli.layouts import Layout, parse_layout
from leakbound.cli.options import (
    CLAIM_OF,
    CUTS,
    FAMILIES,
    for_replacing,
    guarantee_of,
    parse_claim,
    parse_columns,
    parse_cuts,
    parse_prior,
)
from leakbound.cli.shards import are_shards, tally_of
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
    NoPairsError,
    ShapeError,
    UnmatchedIdsError,
)
from leakbound.planning import InclusionPlan, load_opening

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from leakbound._base.types import ArrayInput, Relation
    from leakbound.planning import Opening
    from leakbound.planning.commitment import Coins
    from leakbound.results import AuditResult
    from leakbound.results.audited import Audit

_ABOUT_DATA = (
    AbstentionError,
    ArrayTypeError,
    DuplicateIdsError,
    FeaturesError,
    MembershipError,
    NaNScoresError,
    NoPairsError,
    ShapeError,
    UnmatchedIdsError,
)

app = typer.Typer()

ONE_RUN = (
    "Audit one training run: how much ε do the scores prove?\n\n"
    "A fair coin decided for each example whether it was trained on. FILE has a column "
    "[bold]score[/] (higher: more likely a member; --attacks names several), a column "
    "[bold]member[/] (0/1, -1/1 or false/true) and optionally [bold]id[/].\n\n"
    "With --design random_split the training set is a random part of the examples, such as that of "
    "train_test_split: scores of both parts, and the bound is on replacing one example.\n\n"
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach "
    "or in doubt, 70 a crash.[/]"
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
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach "
    "or in doubt, 70 a crash. Only a joint claim can be refuted, or one with real non-members or "
    "an upper limit on c.[/]"
)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table with one row per example: .csv, .tsv, .jsonl, these with .gz, .npz or "
        ".parquet.",
    ),
]
Claimed = Annotated[
    str,
    typer.Option(
        metavar="eps=E",
        help="A guarantee to check: exit code 1 if refuted. With delta: eps=E,delta=D. "
        "Of Gaussian DP: mu=M. Of DP-SGD, its noise multiplier: noise=S.",
    ),
]
Family = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The guarantees whose parameter is bounded, if not those that the claim is about: "
        f"{FAMILIES}. D is a δ, Q the sampling rate and T the number of steps of DP-SGD.",
    ),
]
Confidence = Annotated[
    float, typer.Option(metavar="P", help="Probability that the bound is not above the truth.")
]
Cuts = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help=f"How the search over the cuts of the ranking is accounted for: {CUTS}.",
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
MemberColumn = Annotated[
    str, typer.Option("--member-col", metavar="COL", help="The column that says who is a member.")
]
MemberValues = Annotated[
    str,
    typer.Option(
        metavar="IN,OUT",
        help="What that column says of members and of others, such as in,out; 1,0, 1,-1 and "
        "true,false need no word.",
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--sep",
        metavar="SIGN",
        help="What separates columns of text: , ; or tab. A comma by default, a tab in a .tsv.",
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        metavar="SIGN",
        help="The decimal sign, . or , in text. A point by default; to be said with --sep ;.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Seed of what the audit draws; by default a new one, which the result records.", min=0
    ),
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
Lenient = Annotated[
    bool,
    typer.Option(
        "--lenient",
        metavar="",
        help="Let a claim pass (0) in spite of warnings and contradicted assumptions, which "
        "otherwise end in 3.",
    ),
]
Bundle = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write all that it takes to recompute the result to this folder, for `leakbound "
        "verify`.",
    ),
]
_RANKINGS = ("baseline_scores", "attack_scores")


@dataclass(frozen=True)
class Kept:
    """What goes into a bundle beside the result, and where it goes, if anywhere."""

    folder: Path | None
    content: Mapping[str, Any]

    def write(self, result: Audit) -> None:
        """Write the bundle, if one was asked for."""
        if self.folder is not None:
            with output.waiting("Auditing again, for the bundle"):
                result.bundle(self.folder, **self.content)
            tell(f"Bundle: {self.folder}")


@app.command("one-run", help=ONE_RUN)
def one_run(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Table with one row per example: .csv, .tsv, .jsonl, these with .gz, .npz or "
            ".parquet. Several files, a folder, a glob, tallies or - (csv or Arrow on standard "
            "input) are counted batch by batch.",
        ),
    ],
    *,
    claim: Claimed = "",
    family: Family = "",
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    sides: Annotated[
        Literal["both", "member"],
        typer.Option(help="Guess members and non-members, or members only."),
    ] = "both",
    attacks: AttackColumns = "score",
    score_col: Annotated[
        str, typer.Option(metavar="COL", help="The column of scores, if --attacks names none.")
    ] = "",
    member_col: MemberColumn = "member",
    member_values: MemberValues = "",
    sep: Separator = "",
    decimal: Decimal = "",
    prior: Annotated[
        str,
        typer.Option(
            metavar="P",
            help="Probability of each coin to include, or the column that holds one for each.",
        ),
    ] = "0.5",
    design: Annotated[
        Literal["coins", "random_split"],
        typer.Option(
            help="How membership was assigned: by independent coins, or by a random split into "
            "training and test set, of any shares."
        ),
    ] = "coins",
    strata: Annotated[
        str,
        typer.Option(metavar="COL", help="The column that the random split was stratified by."),
    ] = "",
    groups: Annotated[
        str,
        typer.Option(metavar="COL", help="The column of groups that the split moved as a whole."),
    ] = "",
    aggregate: Annotated[
        Literal["mean", "max", "log_mean_exp"],
        typer.Option(help="The score of a group, from those of its rows."),
    ] = "mean",
    features: Annotated[
        str,
        typer.Option(
            metavar="COL,COL",
            help="Columns of features that may contradict the randomness of the split.",
        ),
    ] = "",
    untouched: Annotated[
        bool,
        typer.Option(
            "--untouched",
            metavar="",
            help="Declare that the examples held out chose nothing about the model: no early "
            "stopping, checkpoint or option. Needed for a random split.",
        ),
    ] = False,
    relation: Annotated[
        Literal["", "add_remove", "replace"],
        typer.Option(
            metavar="R",
            help="What the claim compares: add_remove or replace. Needed for a random split, whose "
            "bound is on replacing one example; the claim is converted.",
        ),
    ] = "",
    seed: Seed = None,
    out: Out = None,
    json: Json = False,
    lenient: Lenient = False,
    bundle: Bundle = None,
    opening: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="What `leakbound commit` kept secret: its plan says who was a member, and the "
            "bundle opens the commitment.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The .npz file of an InclusionPlan, which says who was a member: joined by the "
            "column id, or by the order of rows where there is none.",
        ),
    ] = None,
) -> None:
    """Audit the scores of one training run in a file."""
    with output.answering():
        goal = parse_claim(claim, CLAIM_OF) if claim else {}
        _check_design(design, strata, groups, features, untouched=untouched)
        compares = _compared(goal, relation, design)
        own = for_replacing(goal) if compares == "add_remove" else goal
        guarantee = guarantee_of(own, family)
        policy = parse_cuts(cuts)
        names, chance = score_columns(attacks, score_col), parse_prior(prior)
        layout = parse_layout(member_col, member_values, sep, decimal)
        if are_shards(files):
            _check_counted(design, names, chance, layout, opening or plan, bundle)
            if out is not None:
                output.prepare(out)
            counted = tally_of(files, score=names[0], member=layout.member)
            with output.waiting(f"Auditing {counted.m:,} examples"):
                result = audit_one_run(
                    counted,
                    claim=guarantee,
                    confidence=confidence,
                    cuts=policy,
                    sides=sides,
                    prior=chance,
                    seed=seed,
                )
            conclude(result, files[0], goal, out, json=json, lenient=lenient, relation=compares)
            return
        (file,) = files
        opened, coins = _coins_of(opening, plan)
        seed = _agreed_seed(seed, opened)
        known = parse_columns(features, "--features") if features else []
        wanted = [*names, *known, *([chance] if isinstance(chance, str) else [])]
        columns = tuple(dict.fromkeys(name for name in (strata, groups) if name))
        needed = {name: (name,) for name in wanted}
        table = table_of(file, needed, out, words=columns, layout=layout, coins=coins)
        with auditing(file, table):
            scores = scores_of(table, names, named=opened is not None)
            chances = table.scores[chance] if isinstance(chance, str) else chance
            within = table.words[strata] if strata else None
            units = table.words[groups] if groups else None
            told = np.column_stack([table.scores[name] for name in known]) if known else None
            result = audit_one_run(
                scores,
                table.member if coins is None else coins,
                claim=guarantee,
                confidence=confidence,
                cuts=policy,
                sides=sides,
                prior=chances,
                design="coins" if design == "coins" else "random_split",
                strata=within,
                groups=units,
                aggregate=aggregate,
                features=told,
                ids=table.ids,
                seed=seed,
            )
        given = table.member if coins is None else coins
        inputs = {"ids": table.ids, "strata": within, "groups": units, "features": told}
        inputs |= {"prior": chances} if isinstance(chances, np.ndarray) else {}
        members = {"plan": given if opened is None else None, "opening": opened}
        kept = Kept(bundle, {"scores": scores, **members, **inputs})
        conclude(result, file, goal, out, json=json, lenient=lenient, relation=compares, kept=kept)


def _check_counted(
    design: str,
    names: Sequence[str],
    chance: float | str,
    layout: Layout,
    coins: Path | None,
    bundle: Path | None,
) -> None:
    """Raise where an option tells apart examples that are only counted."""
    if not layout.is_plain:
        message = (
            "--member-values, --sep and --decimal are for one file with all examples: shards have "
            "commas, points, and membership in 0 and 1"
        )
        raise IncompatibleOptionsError(message)
    several = {
        f"--design {design}": design != "coins",
        "--attacks of several columns": len(names) > 1,
        "--prior of a column": isinstance(chance, str),
        "--opening and --plan": coins is not None,
        "--bundle": bundle is not None,
    }
    named = [option for option, given in several.items() if given]
    if named:
        message = (
            f"{named[0]}: examples are told apart, and shards are only counted: give one .csv, "
            ".npz or .parquet file with all examples"
        )
        raise IncompatibleOptionsError(message)


def _coins_of(opening: Path | None, plan: Path | None) -> tuple[Opening | None, Coins | None]:
    """Return what a commitment or a plan says of the coins."""
    if opening is not None and plan is not None:
        message = "--opening holds a plan: give --plan or --opening, not both"
        raise IncompatibleOptionsError(message)
    if plan is not None:
        return None, InclusionPlan.load(plan)
    opened = None if opening is None else load_opening(opening)
    return opened, None if opened is None else opened.plan


def _agreed_seed(seed: int | None, opened: Opening | None) -> int | None:
    """Return the seed of the protocol, if it has one."""
    agreed: int | None = None if opened is None else opened.agreed.options.get("seed")
    if None not in {seed, agreed} and seed != agreed:
        message = f"--seed {seed}: the protocol fixed {agreed} before training, leave it out"
        raise IncompatibleOptionsError(message)
    return seed if agreed is None else agreed


def score_columns(attacks: str, score_col: str) -> list[str]:
    """Return the names of the columns of scores."""
    if not score_col:
        return parse_columns(attacks, "--attacks")
    if attacks != "score":
        message = "--score-col names one column and --attacks several: give one of them"
        raise IncompatibleOptionsError(message)
    return [score_col.strip()]


def _check_design(design: str, strata: str, groups: str, features: str, *, untouched: bool) -> None:
    """Raise where options do not suit a design, or a random split lacks what has to be declared."""
    if design == "coins":
        columns = {"--strata": strata, "--groups": groups, "--features": features}
        named = [name for name, value in columns.items() if value]
        named += ["--untouched"] if untouched else []
        if named:
            message = f"{named[0]} is for --design random_split: name the design, or leave it out"
            raise IncompatibleOptionsError(message)
        return
    if not untouched:
        message = (
            "an audit of a random split holds if the examples held out chose nothing about the "
            "model, by early stopping, selection or tuning: declare so with --untouched, or leave "
            "the examples that did out of the file"
        )
        raise IncompatibleOptionsError(message)


def _compared(
    goal: Mapping[str, float], relation: Literal["", "add_remove", "replace"], design: str
) -> Relation | None:
    """Return what a claim about the bound of a random split compares; raise if that is unsaid."""
    if design == "coins":
        if relation == "replace":
            message = (
                "--relation replace is for --design random_split: coins decide whether an example "
                "is there, which is to add or remove one"
            )
            raise IncompatibleOptionsError(message)
        return None
    if goal and not relation:
        message = (
            "the bound of a random split is on replacing one example: say what the claim compares, "
            "--relation add_remove (it is converted: 2ε, 2μ) or --relation replace"
        )
        raise IncompatibleOptionsError(message)
    return relation or None


def conclude(
    result: AuditResult,
    file: Path,
    goal: Mapping[str, float],
    out: Path | None,
    *,
    json: bool,
    lenient: bool,
    relation: Relation | None = None,
    kept: Kept | None = None,
) -> None:
    """Print and write a result, and leave with the exit code of a claim about it."""
    own = next((goal[name] for name in ("mu", "noise") if name in goal), None)
    if own is not None:
        result = result.with_check(parameter=own, relation=relation)
    elif goal:
        delta = goal.get("delta", 0.0)
        result = result.with_check(epsilon=goal["eps"], delta=delta, relation=relation)
    if kept is not None:
        kept.write(result)
    _deliver(result, file, out, json=json)
    output.end(result, lenient=lenient)


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
    member_col: MemberColumn = "member",
    member_values: MemberValues = "",
    sep: Separator = "",
    decimal: Decimal = "",
    seed: Seed = None,
    out: Out = None,
    json: Json = False,
    lenient: Lenient = False,
    bundle: Bundle = None,
) -> None:
    """Audit the scores of members and generated points in a file."""
    from leakbound import audit_panoramia

    with output.answering():
        goal = parse_claim(claim, ("c", "eps", "delta")) if claim else {}
        policy = parse_cuts(cuts)
        columns = parse_columns(features, "--features") if features else []
        layout = parse_layout(member_col, member_values, sep, decimal)
        wanted = panoramia_columns(file, model, layout) | {
            f"feature {name}": (name,) for name in columns
        }
        table = table_of(file, wanted, out, layout=layout)
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
        if goal:
            result = result.with_check(
                epsilon=goal["eps"], delta=goal.get("delta", 0.0), c=goal.get("c")
            )
        both = {name: table.scores[name.removesuffix("_scores")] for name in _RANKINGS}
        inputs = {"ids": table.ids} | ({"features": np.column_stack(known)} if known else {})
        Kept(bundle, {"scores": both, "plan": table.member, **inputs}).write(result)
        _deliver(result, file, out, json=json)
        output.end(result, lenient=lenient)


def table_of(
    file: Path,
    wanted: Mapping[str, tuple[str, ...]],
    out: Path | None,
    *,
    optional: tuple[str, ...] = ("id",),
    words: tuple[str, ...] = (),
    layout: Layout | None = None,
    coins: Coins | None = None,
) -> Table:
    """Read a table, once the folder of the results is known to be writable."""
    if out is not None:
        output.prepare(out)
    with output.waiting(f"Reading {file}"):
        return read(
            file, wanted, optional=optional, words=words, layout=layout or Layout(), coins=coins
        )


def scores_of(
    table: Table, names: Sequence[str], *, named: bool = False
) -> ArrayInput | dict[str, ArrayInput]:
    """Return the scores of one attack, or by name: those of several, and any that is `named`."""
    scores: dict[str, ArrayInput] = {name: table.scores[name] for name in names}
    return scores if named or len(names) > 1 else scores[names[0]]


@contextmanager
def auditing(file: Path, table: Table) -> Iterator[None]:
    """Show that the audit runs, and name the file in what it says about its columns."""
    try:
        examples = len(next(iter(table.scores.values())))
        with output.waiting(f"Auditing {examples:,} examples"):
            yield
    except _ABOUT_DATA as error:
        rows = " (rows count from 0, without the header)" if " row" in str(error) else ""
        message = f"{file}: {error}{rows}"
        raise InputFileError(message) from error


def _deliver(result: Audit, file: Path, out: Path | None, *, json: bool) -> None:
    """Print the result, as JSON or for people, and write the files if asked to."""
    if out is not None:
        name = file.name.encode(errors="replace").decode()  # names need not be text
        title = f"Privacy audit of {name}"
        with output.waiting("Drawing the report"):
            output.write_files(out, result, title=title)
    if json:
        typer.echo(result.to_json())
    else:
        output.show(result)
    if out is not None:
        output.announce(out, aside=json)
