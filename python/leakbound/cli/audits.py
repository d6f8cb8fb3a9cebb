"""The commands that audit one training run: read, call, print, write."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from leakbound import audit_one_run
from leakbound._base.alignment import ExampleOrder
from leakbound._base.validation import check_membership
from leakbound.cli import output
from leakbound.cli.delivery import BundledDelivery, auditing
from leakbound.cli.files import Columns, read, whole
from leakbound.cli.layouts import Layout
from leakbound.cli.options import (
    EXIT_CODES,
    Attacks,
    Claimed,
    Confidence,
    Cuts,
    Family,
    File,
    Relation,
    Seed,
    Sides,
    argument,
    command,
    flag,
    for_replacing,
    guarantee_of,
    option,
    parse_claim,
    parse_columns,
    parse_cuts,
)
from leakbound.cli.shards import are_shards, tally_of
from leakbound.errors import IncompatibleOptionsError, MembershipError
from leakbound.planning import InclusionPlan, load_opening
from leakbound.planning.commitment import Coins

app = typer.Typer()

COINS = (
    "Audit one training run: how much ε do the scores prove?\n\n"
    "A coin decided for each example whether it was trained on. FILE has a column "
    "[bold]score[/] (higher: more likely a member; --score-col names others), a column "
    "[bold]member[/] (0/1, -1/1 or false/true) and optionally [bold]id[/]. A tally will do, and "
    "several files, a folder or a pipe are counted into one.\n\n" + EXIT_CODES
)
SPLIT = (
    "Audit one training run by its training set and test set: how much ε do the scores prove?\n\n"
    "The training set is a random part of the examples, such as that of train_test_split: FILE has "
    "the scores of both parts, as for coins. The bound is on replacing one example.\n\n"
    + EXIT_CODES
)


@command(app, "coins", COINS)
def coins(
    files: Annotated[
        list[Path],
        argument(
            "FILE…",
            "Table with one row per example: .csv, .tsv, .jsonl, these with .gz, .parquet, .arrow "
            "or .npz. Several files, a folder, a glob, tallies or - (csv or Arrow on standard "
            "input) are counted batch by batch.",
        ),
    ],
    *,
    prior: Annotated[
        str,
        option("P", "Probability of each coin to include, or the column that holds one for each."),
    ] = "0.5",
    plan: Annotated[
        Path | None,
        option(
            "FILE",
            "The .npz file of an InclusionPlan, which says who was a member: joined by the column "
            "id, or by the order of rows where there is none.",
        ),
    ] = None,
    opening: Annotated[
        Path | None,
        option(
            "DIR",
            "What `leakbound commit` kept secret, in place of a plan: the bundle opens the "
            "commitment.",
        ),
    ] = None,
    claim: Claimed = "",
    family: Family = "",
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    sides: Sides = "both",
    attacks: Attacks = "score",
    seed: Seed = None,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of examples that coins decided on."""
    goal, names = parse_claim(claim), parse_columns(attacks, "--score-col")
    options: dict[str, Any] = {
        "claim": guarantee_of(goal, family),
        "confidence": confidence,
        "cuts": parse_cuts(cuts),
        "sides": sides,
    }
    chance = _prior(prior)
    if are_shards(files):
        if len(names) > 1 or isinstance(chance, str) or plan or opening or delivery.bundle:
            message = (
                "shards and tallies are only counted: several --attacks, a --prior of a column, "
                "--plan, --opening and --bundle need one file with all examples"
            )
            raise IncompatibleOptionsError(message)
        counted = tally_of(files, names[0], layout)
        with output.waiting(f"Auditing {counted.m:,} examples"):
            result = audit_one_run(counted, prior=chance, seed=seed, **options)
        delivery.conclude(result, files[0], goal)
    (file,) = files
    if plan and opening:
        message = "--opening holds a plan: give --plan or --opening, not both"
        raise IncompatibleOptionsError(message)
    opened = None if opening is None else load_opening(opening)
    tossed = InclusionPlan.load(plan) if plan else opened.plan if opened else None
    agreed = None if opened is None else opened.agreed.options.get("seed")
    if agreed is not None and seed not in {None, agreed}:
        message = f"--seed {seed}: the protocol fixed {agreed} before training, leave it out"
        raise IncompatibleOptionsError(message)
    seed = seed if agreed is None else agreed
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
        result = audit_one_run(scores, member, prior=priors, ids=ids, seed=seed, **options)
    inputs = {"scores": scores, "plan": member if tossed is None else tossed, "ids": ids}
    inputs |= {"prior": priors} if isinstance(chance, str) else {}
    inputs |= {"plan": None, "opening": opened} if opened else {}
    delivery.conclude(result, file, goal, inputs=inputs)


@command(app, "split", SPLIT)
def split(
    file: File,
    *,
    strata: Annotated[
        str, option("COL", "The column that the random split was stratified by.")
    ] = "",
    groups: Annotated[
        str, option("COL", "The column of groups that the split moved as a whole.")
    ] = "",
    aggregate: Annotated[
        Literal["mean", "max", "log_mean_exp"],
        option("", "The score of a group, from those of its rows."),
    ] = "mean",
    features: Annotated[
        str,
        option("COL,COL", "Columns of features that may contradict the randomness of the split."),
    ] = "",
    untouched: Annotated[
        bool,
        flag(
            "--untouched",
            "Declare that the examples held out chose nothing about the model: no early stopping, "
            "checkpoint or option. Without it nothing is audited.",
        ),
    ] = False,
    relation: Relation = None,
    claim: Claimed = "",
    family: Family = "",
    confidence: Confidence = 0.95,
    cuts: Cuts = "auto",
    attacks: Attacks = "score",
    seed: Seed = None,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of a training set and a test set."""
    if not untouched:
        message = (
            "an audit of a random split holds if the examples held out chose nothing about the "
            "model, by early stopping, selection or tuning: declare so with --untouched, or leave "
            "the examples that did out of the file"
        )
        raise IncompatibleOptionsError(message)
    goal, names = parse_claim(claim), parse_columns(attacks, "--score-col")
    if goal and relation is None:
        message = (
            "the bound of a random split is on replacing one example: say what the claim compares, "
            "--relation add_remove (it is converted: 2ε, 2μ) or --relation replace"
        )
        raise IncompatibleOptionsError(message)
    known = parse_columns(features, "--features")
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
            claim=guarantee_of(for_replacing(goal) if relation == "add_remove" else goal, family),
            confidence=confidence,
            cuts=parse_cuts(cuts),
            seed=seed,
            **inputs,
        )
    delivery.conclude(
        result, file, goal, relation, inputs={"scores": scores, "plan": member, **inputs}
    )


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
