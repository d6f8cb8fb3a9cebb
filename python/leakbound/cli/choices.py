"""The command that audits draws of candidates, one of k for each secret."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound import ChoicePlan, Choices, audit
from leakbound.cli import options, output
from leakbound.cli.delivery import BundledDelivery
from leakbound.cli.files import Signs, about, names_of, read, whole
from leakbound.cli.options import command, option, refuse
from leakbound.planning import load_opening

app = typer.Typer()

CHOICES = (
    "For each secret one of k candidates was drawn and trained on. FILE has a row for each secret: "
    "columns [bold]score_0[/], [bold]score_1[/], … with a score of each candidate (higher: more "
    "likely trained on; --score-col names others), [bold]chosen[/] with the number of the one that "
    "was drawn, from 0, and optionally [bold]id[/]. The bound is on replacing one candidate by "
    "another.\n\n" + options.EXIT_CODES
)


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
    # 1. Options, before anything is read.
    names, common = options.parse_columns(attacks, "--score-col"), question.options(relation)
    if question.goal and relation is None:
        refuse("the bound is on replacing one candidate: say what the claim compares by --relation")
    if plan and opening:
        refuse("--opening holds a plan: give --plan or --opening, not both")
    opened = None if opening is None else load_opening(opening)
    planned: Any = ChoicePlan.load(plan) if plan else opened.plan if opened else None
    common |= {} if opened is None else {"seed": opened.agreed.options.get("seed", question.seed)}
    # 2. The scores of each attack side by side, as many as there are columns of the first.
    there = names_of(file, signs)
    k = next(k for k in range(len(there) + 1) if f"{names[0]}_{k}" not in there)
    columns = {name: [f"{name}_{i}" for i in range(max(2, k))] for name in names}
    wanted = [one for listed in columns.values() for one in listed]
    wanted += [] if planned is not None else ["chosen"]
    with output.waiting(f"Reading {file}"):
        table = read(file, wanted, signs)
    with output.waiting(f"Auditing {len(table):,} secrets"), about(file):
        named = {name: table.matrix(listed) for name, listed in columns.items()}
        scores = named if len(names) > 1 or opened is not None else named[names[0]]
        ids = table.words("id") if "id" in table else None
        if planned is None:
            chosen = table.numbers("chosen")
        else:
            chosen = planned
            ids = whole(ids) if ids is not None and planned.ids.dtype.kind in "iu" else ids
        result = audit(scores, Choices(chosen, len(columns[names[0]])), ids=ids, **common)
    inputs = {"scores": scores, "plan": None if opened else chosen, "ids": ids}
    inputs |= {"opening": opened} if opened else {}
    delivery.conclude(result, file, question.goal, relation, inputs)
