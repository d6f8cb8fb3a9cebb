"""The commands that audit one training run: read, call, print, write."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from leakbound import audit_one_run
from leakbound._base.alignment import ExampleOrder
from leakbound._base.validation import check_membership
from leakbound.cli import options, output
from leakbound.cli.delivery import BundledDelivery, auditing
from leakbound.cli.files import Columns, read, whole
from leakbound.cli.layouts import Layout
from leakbound.cli.options import argument, command, flag, option
from leakbound.cli.shards import are_shards, tally_of
from leakbound.errors import IncompatibleOptionsError, MembershipError
from leakbound.planning import InclusionPlan, load_opening
from leakbound.planning.commitment import Coins

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


@command(app, "coins", COINS)
def coins(
    files: Annotated[
        list[Path],
        argument(
            "FILE…",
            f"Table with one row per example: {options.KINDS}. Several files, a folder, a glob, "
            "tallies or - (csv or Arrow on standard input) are counted batch by batch.",
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
    sides: options.Sides = "both",
    attacks: options.Attacks = "score",
    question: options.Question,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of examples that coins decided on."""
    names = options.parse_columns(attacks, "--score-col")
    common = {**question.options(), "sides": sides}
    chance = _prior(prior)
    if are_shards(files):
        if len(names) > 1 or isinstance(chance, str) or plan or opening or delivery.bundle:
            message = (
                "shards are only counted: several --attacks, a column of --prior, --plan, "
                "--opening and --bundle need one file with all examples"
            )
            raise IncompatibleOptionsError(message)
        counted = tally_of(files, names[0], layout)
        with output.waiting(f"Auditing {counted.m:,} examples"):
            result = audit_one_run(counted, prior=chance, **common)
        delivery.conclude(result, files[0], question.goal)
    (file,) = files
    if plan and opening:
        message = "--opening holds a plan: give --plan or --opening, not both"
        raise IncompatibleOptionsError(message)
    opened = None if opening is None else load_opening(opening)
    tossed = InclusionPlan.load(plan) if plan else opened.plan if opened else None
    agreed = None if opened is None else opened.agreed.options.get("seed")
    if agreed is not None and question.seed not in {None, agreed}:
        message = f"--seed {question.seed}: the protocol fixed {agreed} before, leave it out"
        raise IncompatibleOptionsError(message)
    common |= {} if agreed is None else {"seed": agreed}
    wanted = [*names, *([chance] if isinstance(chance, str) else [])]
    needed = [*wanted, *([] if tossed else [layout.member_col])]
    with output.waiting(f"Reading {file}"):
        table = read(file, needed, layout, optional=("id", layout.member_col))
    with auditing(file, len(table)):
        scores = scores_of(table, names, named=opened is not None)
        priors = table.numbers(chance) if isinstance(chance, str) else chance
        ids = table.words("id") if "id" in table else None
        member = table.member() if layout.member_col in table else None
        if tossed is not None:
            ids = whole(ids) if ids is not None and tossed.ids.dtype.kind in "iu" else ids
            member = _tossed(tossed, ids, member, len(table))
        result = audit_one_run(scores, member, prior=priors, ids=ids, **common)
    inputs = {"scores": scores, "plan": member if tossed is None else tossed, "ids": ids}
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
    if not untouched:
        message = (
            "the examples held out must have chosen nothing about the model, by early stopping or "
            "tuning: declare so with --untouched, or leave those that did out of the file"
        )
        raise IncompatibleOptionsError(message)
    names, common = options.parse_columns(attacks, "--score-col"), question.options(relation)
    if question.goal and relation is None:
        message = (
            "the bound of a random split is on replacing one example: say what the claim compares, "
            "--relation add_remove (it is converted: 2ε, 2μ) or --relation replace"
        )
        raise IncompatibleOptionsError(message)
    known = options.parse_columns(features, "--features")
    labels = {"strata": strata, "groups": groups}
    wanted = [*names, *known, *filter(None, labels.values()), layout.member_col]
    with output.waiting(f"Reading {file}"):
        table = read(file, wanted, layout)
    with auditing(file, len(table)):
        scores, member = scores_of(table, names), table.member()
        inputs: dict[str, Any] = {one: table.words(col) for one, col in labels.items() if col}
        inputs |= {"features": table.matrix(known)} if known else {}
        inputs |= {"ids": table.words("id")} if "id" in table else {}
        result = audit_one_run(
            scores,
            member,
            design="random_split",
            aggregate=aggregate,
            **common,
            **inputs,
        )
    inputs |= {"scores": scores, "plan": member}
    delivery.conclude(result, file, question.goal, relation, inputs)


def scores_of(table: Columns, names: list[str], *, named: bool = False) -> Any:
    """Return the scores of one attack, or by name: those of several, and any that is `named`."""
    scores = {name: table.numbers(name) for name in names}
    return scores if named or len(names) > 1 else scores[names[0]]


def _prior(text: str) -> float | str:
    """Return a prior probability, or the name of the column that holds one for each example."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _tossed(plan: Coins, ids: Any, member: Any, examples: int) -> Any:
    """Return who was a member by a plan; raise where the file says otherwise."""
    planned = ExampleOrder(ids).member(plan, examples)
    if member is not None:
        for row in np.flatnonzero(planned != check_membership(member, examples))[:1]:
            message = (
                f"column member is not that of the plan, first at row {row}: the plan was "
                "another one, or the rows have another order and no ids"
            )
            raise MembershipError(message)
    return planned
