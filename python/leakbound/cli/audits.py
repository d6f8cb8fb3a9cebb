"""The commands that audit a table of scores: read, call, print, write."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import typer

from leakbound import ApproxDP, Coins, PureDP, audit
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_membership
from leakbound._base.console import bar
from leakbound.cli import options
from leakbound.cli.delivery import BundledDelivery
from leakbound.cli.files import Columns, Layout, Signs, about, check_names, read, whole
from leakbound.cli.options import argument, command, flag, option, refuse
from leakbound.cli.shards import are_shards, tally_of
from leakbound.errors import InputError
from leakbound.planning import InclusionPlan, load_opening
from leakbound.planning.commitment import Opening
from leakbound.planning.inclusion import ChoicePlan

P = TypeVar("P", InclusionPlan, ChoicePlan)

app = typer.Typer()

COINS = (
    "A coin decided for each example whether it was trained on. FILE has a column "
    "[bold]score[/] (higher: more likely a member; --score-col names others), a column "
    "[bold]member[/] (0/1, -1/1 or false/true) and optionally [bold]id[/]. A tally will do, and "
    "several files, a folder or a pipe are counted into one.\n\n" + options.EXIT_CODES
)
SPLIT = (
    "The training set is a random part of the examples, such as that of train_test_split: FILE has "
    "the scores of both parts, as for coins. The bound is on replacing one example.\n\n"
    + options.EXIT_CODES
)
CHOICES = (
    "For each secret one of k candidates was drawn and trained on. FILE has a row for each secret: "
    "columns [bold]score_0[/], [bold]score_1[/], … of the candidates (higher: likelier trained on; "
    "--score-col names others), [bold]chosen[/], the number of the one drawn, from 0, and "
    "optionally [bold]id[/]. The bound is on replacing one candidate by another.\n\n"
    + options.EXIT_CODES
)
PANORAMIA = (
    "FILE has the columns [bold]baseline_score[/] (from the example alone; --baseline-col names "
    "another), [bold]score[/] (from the example and the model), [bold]member[/] (0: generated) and "
    "optionally [bold]id[/].\n\n"
    "The estimate ε̃ is not a lower bound on ε: it is the bound on c + ε minus the bound on c, "
    "where c tells how far the generator is from the data. With --features a Zero-Run audit of the "
    "same examples stands beside it: a lower bound if the probability that an example is real is "
    "what a model learnt from features and baseline says.\n\n"
    + options.EXIT_CODES
    + " [dim]Only a joint claim can be refuted, or one with real non-members or an upper limit on "
    "c.[/]"
)


@command(app, "coins", COINS)
def coins(
    files: Annotated[
        list[Path],
        argument(
            "FILE…",
            f"Table with one row per example: {options.KINDS}. Several files, a folder, a glob, "
            "tallies or - (csv on standard input) are counted batch by batch.",
        ),
    ],
    *,
    prior: Annotated[
        str, option("P", "Probability of each coin to include, or a column of them.")
    ] = "0.5",
    plan: Annotated[
        Path | None,
        option(
            "FILE", "The InclusionPlan that says who was a member, joined by id if there is one."
        ),
    ] = None,
    opening: Annotated[
        Path | None, option("DIR", "What `leakbound commit` kept secret, in place of a plan.")
    ] = None,
    sides: options.CoinSides = "auto",
    attacks: options.Attacks = "score",
    question: options.Question,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of examples that coins decided on."""
    # 1. Options, before anything is read.
    names = options.parse_columns(attacks, "--score-col")
    common = {**question.options(), "sides": sides}
    chance = _prior(prior)
    # 2. Shards are counted, and counts audited.
    if are_shards(files):
        if len(names) > 1 or chance != 0.5 or plan or opening or delivery.bundle:
            refuse(
                "shards are only counted: several --attacks, --prior, --plan, --opening "
                "and --bundle need one file with all examples"
            )
        counted = tally_of(files, names[0], layout)
        with bar(f"Auditing {counted.m:,} examples"):
            result = audit(counted, Coins(), **common)
        delivery.conclude(result, files[0], question.goal)
    # 3. One file is read whole, and joined with the plan or with what a protocol fixed.
    (file,) = files
    planned, opened, agreed = _drawn(InclusionPlan, plan, opening, question.seed)
    common |= agreed
    wanted = [*names, *([chance] if isinstance(chance, str) else [])]
    needed = [*wanted, *([] if planned else [layout.member_col])]
    with bar(f"Reading {file}"):
        table = read(file, needed, layout, optional=("id", layout.member_col))
    with bar(f"Auditing {len(table):,} examples"), about(file):
        scores = scores_of(table, names, named=opened is not None)
        priors = table.numbers(chance) if isinstance(chance, str) else chance
        ids = _ids_of(table, planned)
        member = table.member() if layout.member_col in table else None
        if planned is not None:
            member = _member_of(planned, ids, member, len(table))
        result = audit(scores, Coins(member, prior=priors), ids=ids, **common)
    # 4. What a bundle needs besides the result.
    inputs = {"scores": scores, "plan": member if planned is None else planned, "ids": ids}
    inputs |= {"prior": priors} if isinstance(chance, str) else {}
    inputs |= {"plan": None, "opening": opened} if opened else {}
    delivery.conclude(result, file, question.goal, inputs=inputs)


@command(app, "split", SPLIT)
def split(
    file: options.File,
    *,
    strata: Annotated[str, option("COL", "The column that the split was stratified by.")] = "",
    groups: Annotated[str, option("COL", "The column of groups that moved as a whole.")] = "",
    aggregate: Annotated[
        Literal["mean", "max", "log_mean_exp"], option("", "How rows of a group make its score.")
    ] = "mean",
    features: Annotated[
        str, option("COL,COL", "Columns of features that may contradict the split's randomness.")
    ] = "",
    untouched: Annotated[
        bool,
        flag(
            "--untouched",
            "Declare that the examples held out chose nothing about the model: no early stopping, "
            "checkpoint or option. Without it nothing is audited.",
        ),
    ] = False,
    relation: options.Relation = None,
    attacks: options.Attacks = "score",
    question: options.Question,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of a training set and a test set."""
    from leakbound import RandomSplit

    # What was tuned on is no random part any more, and no number says so.
    if not untouched:
        refuse(
            "the examples held out must have chosen nothing about the model, by early stopping or "
            "tuning: declare so with --untouched, or leave those that did out of the file"
        )
    names, common = options.parse_columns(attacks, "--score-col"), question.options(relation)
    if question.goal and relation is None:
        refuse(
            "the bound of a random split is on replacing one example: say what the claim compares, "
            "--relation add_remove (it is converted: 2ε, 2μ) or --relation replace"
        )
    known = options.parse_columns(features, "--features")
    labels = {"strata": strata, "groups": groups}
    wanted = [*names, *known, *filter(None, labels.values()), layout.member_col]
    with bar(f"Reading {file}"):
        table = read(file, wanted, layout)
    with bar(f"Auditing {len(table):,} examples"), about(file):
        scores, member = scores_of(table, names), table.member()
        inputs: dict[str, Any] = {one: table.words(col) for one, col in labels.items() if col}
        inputs |= {"features": table.matrix(known)} if known else {}
        design = RandomSplit(member, aggregate=aggregate, **inputs)
        result = audit(scores, design, ids=table.ids, **common)
    inputs |= {"scores": scores, "plan": member, "ids": table.ids}
    delivery.conclude(result, file, question.goal, relation, inputs)


@command(app, "choices", CHOICES)
def choices(
    file: options.File,
    *,
    plan: Annotated[
        Path | None, option("FILE", "The ChoicePlan that drew, joined by id if there is one.")
    ] = None,
    opening: Annotated[
        Path | None, option("DIR", "What `leakbound commit` kept secret: the plan and the seed.")
    ] = None,
    relation: options.Relation = None,
    attacks: options.Attacks = "score",
    question: options.Question,
    signs: Signs,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of candidates, of which one was drawn."""
    from leakbound import Choices

    # 1. Options, before anything is read.
    names, common = options.parse_columns(attacks, "--score-col"), question.options(relation)
    if question.goal and relation is None:
        refuse("the bound is on replacing one candidate: say what the claim compares by --relation")
    planned, opened, agreed = _drawn(ChoicePlan, plan, opening, question.seed)
    common |= agreed
    with bar(f"Reading {file}"):
        table = read(file, None, signs)
    # 2. The scores of each attack side by side, as many as there are columns of the first.
    k = next(k for k in range(len(table.stored) + 1) if f"{names[0]}_{k}" not in table)
    columns = {name: [f"{name}_{i}" for i in range(max(2, k))] for name in names}
    wanted = [one for listed in columns.values() for one in listed]
    check_names(file, [*table.stored], wanted if planned is not None else [*wanted, "chosen"])
    with bar(f"Auditing {len(table):,} secrets"), about(file):
        named = {name: table.matrix(listed) for name, listed in columns.items()}
        scores = named if len(names) > 1 or opened else named[names[0]]
        ids, k = _ids_of(table, planned), len(columns[names[0]])
        chosen: Any = table.numbers("chosen") if planned is None else planned
        result = audit(scores, Choices(chosen, k), ids=ids, **common)
    inputs = {"scores": scores, "plan": chosen, "ids": ids}
    inputs |= {"plan": None, "opening": opened} if opened else {}
    delivery.conclude(result, file, question.goal, relation, inputs)


@dataclass(frozen=True)
class Relaxations:
    """What PANORAMIA allows for."""

    gamma: Annotated[float, option("G", "Mass of real points that the generator may miss.")] = 0.0
    delta: Annotated[float, option("D", "δ of a model that is (ε, δ)-DP.")] = 0.0
    relaxation: Annotated[
        Literal["knapsack", "published"],
        option("", "How gamma and δ are allowed for; the published form is for comparison."),
    ] = "knapsack"
    max_recall: Annotated[float, option("R", "Test cuts of up to this share of examples.")] = 1.0
    real_nonmembers: Annotated[
        bool, flag("--real-nonmembers", "Non-members are real, exchangeable with members: c = 0.")
    ] = False
    c_upper: Annotated[float | None, option("C", "An upper limit on c that you vouch for.")] = None


@command(app, "panoramia", PANORAMIA)
def panoramia(
    file: options.File,
    *,
    score_col: options.ScoreCol = "score",
    baseline_col: Annotated[
        str, option("COL", "The column of scores from the example alone.")
    ] = "baseline_score",
    features: Annotated[
        str, option("COL,COL", "Columns of features, for a conditional lower bound on ε beside it.")
    ] = "",
    claim: Annotated[
        str, option("c=C,eps=E", "A joint claim about generator and model: exit code 1 if refuted.")
    ] = "",
    relaxations: Relaxations,
    search: options.Search,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of members and generated points in a file."""
    from leakbound import Panoramia

    goal = options.parse_claim(claim, ("eps", "eps,delta", "c,eps", "c,eps,delta"))
    common, columns = search.options(), options.parse_columns(features, "--features")
    with bar(f"Reading {file}"):
        table = read(file, [baseline_col, score_col, *columns, layout.member_col], layout)
    with bar(f"Auditing {len(table):,} examples"), about(file):
        member, matrix = table.member(), table.matrix(columns)
        scores, known = table.numbers(score_col), table.numbers(baseline_col)
        allowed = vars(relaxations).copy()
        delta = allowed.pop("delta")
        design = Panoramia(member, baseline=known, features=matrix, **allowed)
        guarantee = ApproxDP(delta=delta) if delta else PureDP()
        result = audit(scores, design, claim=guarantee, ids=table.ids, **common)
    inputs = {"scores": scores, "baseline": known, "plan": member, "ids": table.ids}
    inputs |= {} if matrix is None else {"features": matrix}
    delivery.conclude(result, file, goal, inputs=inputs)


def scores_of(
    table: Columns, names: list[str], *, named: bool = False, rows: Any = slice(None)
) -> Any:
    """Return the scores of one attack, or by name: those of several, and any that is `named`."""
    scores = {name: table.numbers(name)[rows] for name in names}
    return scores if named or len(names) > 1 else scores[names[0]]


def _prior(text: str) -> float | str:
    """Return a prior probability, or the name of the column that holds one for each example."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _drawn(
    kind: type[P], plan: Path | None, opening: Path | None, seed: int | None
) -> tuple[P | None, Opening | None, dict[str, int]]:
    """Return the plan, the opening that it is from, and the seed that a protocol fixed."""
    if plan and opening:
        refuse("--opening holds a plan: give --plan or --opening, not both")
    if opening is None:
        return kind.load(plan) if plan else None, None, {}
    opened = load_opening(opening)
    if not isinstance(opened.plan, kind):
        refuse(f"--opening holds a {type(opened.plan).__name__}, and a {kind.__name__} is needed")
    agreed = opened.agreed.options.get("seed")
    if agreed is not None and seed not in {None, agreed}:
        refuse(f"--seed {seed}: the protocol fixed {agreed} before, leave it out")
    return opened.plan, opened, {} if agreed is None else {"seed": agreed}


def _ids_of(table: Columns, plan: InclusionPlan | ChoicePlan | None) -> Any:
    """Return the column of ids, as whole numbers where those of the plan are."""
    ids = table.ids
    numbered = plan is not None and plan.ids.dtype.kind in "iu"
    return whole(ids) if ids is not None and numbered else ids


def _member_of(plan: InclusionPlan, ids: Any, member: Any, examples: int) -> Any:
    """Return who was a member by a plan; raise where the file says otherwise."""
    planned = ExampleOrder(ids).member(plan, examples)
    if member is not None:
        for row in np.flatnonzero(planned != check_membership(member, examples))[:1]:
            message = (
                f"column member is not that of the plan, first at row {row}: the plan was "
                "another one, or the rows have another order and no ids"
            )
            raise InputError(message)
    return planned
