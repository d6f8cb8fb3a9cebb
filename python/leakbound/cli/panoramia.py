"""The command that audits scores of real and generated points: read, call, print, write."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from leakbound import audit_panoramia
from leakbound.cli import options, output
from leakbound.cli.delivery import BundledDelivery, auditing
from leakbound.cli.files import names_of, read
from leakbound.cli.layouts import Layout
from leakbound.cli.options import command, flag, option
from leakbound.errors import InputFileError

app = typer.Typer()

PANORAMIA = (
    "FILE has the columns [bold]baseline_score[/] (from the example alone), "
    "[bold]attack_score[/] or [bold]score[/] (from the example and the model), [bold]member[/] "
    "(0: generated) and optionally [bold]id[/]. The columns [bold]baseline_pred[/] and "
    "[bold]mia_NAME_pred[/] will do for the scores.\n\n"
    "The estimate ε̃ is not a lower bound on ε: it is the bound on c + ε minus the bound on c, "
    "where c tells how far the generator is from the data. With --features a Zero-Run audit of the "
    "same examples stands beside it: a lower bound if the probability that an example is real is "
    "what a model learnt from features and baseline says.\n\n"
    + options.EXIT_CODES
    + " [dim]Only a joint claim can be refuted, or one with real non-members or an upper limit on "
    "c.[/]"
)


@command(app, "panoramia", PANORAMIA)
def panoramia(
    file: options.File,
    *,
    tail: Annotated[
        Literal["exact", "hoeffding"],
        option("", "Limits of the union policies: Clopper-Pearson, or Hoeffding's."),
    ] = "exact",
    gamma: Annotated[float, option("G", "Mass of real points that the generator may miss.")] = 0.0,
    delta: Annotated[float, option("D", "δ of a model that is (ε, δ)-DP.")] = 0.0,
    relaxation: Annotated[
        Literal["knapsack", "published"],
        option("", "How gamma and δ are allowed for; the published form is for comparison."),
    ] = "knapsack",
    max_recall: Annotated[float, option("R", "Test cuts of up to this share of examples.")] = 1.0,
    model: Annotated[str, option("NAME", "Whose scores to read from columns mia_NAME_pred.")] = "",
    real_nonmembers: Annotated[
        bool, flag("--real-nonmembers", "Non-members are real, exchangeable with members: c = 0.")
    ] = False,
    c_upper: Annotated[float | None, option("C", "An upper limit on c that you vouch for.")] = None,
    features: Annotated[
        str, option("COL,COL", "Columns of features, for a conditional lower bound on ε beside it.")
    ] = "",
    claim: Annotated[
        str, option("c=C,eps=E", "A joint claim about generator and model: exit code 1 if refuted.")
    ] = "",
    confidence: options.Confidence = 0.95,
    cuts: options.Cuts = "auto",
    seed: options.Seed = None,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of members and generated points in a file."""
    goal = options.parse_claim(claim, ("eps", "eps,delta", "c,eps", "c,eps,delta"))
    policy, known = options.parse_cuts(cuts), options.parse_columns(features, "--features")
    baseline, attack = _rankings(file, model, layout)
    with output.waiting(f"Reading {file}"):
        table = read(file, [baseline, attack, *known, layout.member_col], layout)
    with auditing(file, len(table)):
        member, told = table.member(), table.matrix(known)
        columns = {"baseline_scores": baseline, "attack_scores": attack}
        scores = {name: table.numbers(column) for name, column in columns.items()}
        ids = table.words("id") if "id" in table else None
        result = audit_panoramia(
            **scores,
            member=member,
            confidence=confidence,
            cuts=policy,
            gamma=gamma,
            delta=delta,
            tail=tail,
            relaxation=relaxation,
            max_recall=max_recall,
            real_nonmembers=real_nonmembers,
            c_upper=c_upper,
            features=told,
            ids=ids,
            seed=seed,
        )
    inputs = {"scores": scores, "plan": member, "ids": ids}
    inputs |= {} if told is None else {"features": told}
    delivery.conclude(result, file, goal, inputs=inputs)


def _rankings(file: Path, model: str, layout: Layout) -> tuple[str, str]:
    """Return the columns that hold the scores of baseline and attack."""
    names = names_of(file, layout)
    models = [name for name in names if name.startswith("mia_") and name.endswith("_pred")]
    if len(models) > 1 and not model:
        listed = ", ".join(name.removeprefix("mia_").removesuffix("_pred") for name in models)
        message = f"{file} has scores of several models: choose one by --model, of {listed}"
        raise InputFileError(message)
    attacks = [f"mia_{model}_pred"] if model else ["attack_score", "score", *models]
    wanted = (["baseline_score", "baseline_pred"], attacks)
    baseline, attack = (next((one for one in some if one in names), some[0]) for some in wanted)
    return baseline, attack
