"""The command for members and non-members that were not randomised."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from leakbound import ZeroRun, audit
from leakbound._base.checks import check_membership
from leakbound._base.console import bar
from leakbound.cli import options
from leakbound.cli.audits import scores_of
from leakbound.cli.files import Layout, about, read
from leakbound.cli.options import BundledDelivery, command, flag, option
from leakbound.propensity import LogisticPropensity

app = typer.Typer()

ZERO_RUN = (
    "FILE has the columns [bold]score[/] and [bold]member[/], optionally [bold]id[/], and either "
    "columns of features for --features or a column [bold]propensity[/] with the probability of "
    "membership given an example's features.\n\nWith --features, a logistic model of membership "
    "is fitted. The bound is the smallest over all logistic models that the labels allow, and "
    "holds if log-odds of membership are linear in the features; the fit is tested. With a column "
    "of propensities, the bound holds if these are correct."
)


@dataclass(frozen=True)
class WithinGaussian(options.Question):
    """The same, with Gaussian DP as the default family."""

    family: options.Family = "gaussian"


@dataclass(frozen=True)
class Correction:
    """How distribution shift is corrected, and for which examples."""

    correction: Annotated[
        Literal["conditional", "match", "poisson_binomial", "tamper", "composition"],
        option("", "Correction for distribution shift; conditional picks the best for the family."),
    ] = "conditional"
    max_log_odds: Annotated[
        float | None, option("L", "Leave out examples with log-odds beyond ±L.")
    ] = None
    release_refuted: Annotated[
        bool,
        flag("--release-refuted", "Report the bound even if the tests reject the propensities."),
    ] = False


@command(
    app, "zero-run", "leakbound zero-run scores.csv --features age,size --out report", ZERO_RUN
)
def zero_run(
    file: options.File,
    *,
    features: Annotated[str, option("COL,COL", "Feature columns to fit propensities on.")] = "",
    correction: Correction,
    attacks: options.Attacks = "score",
    sides: options.Sides = "both",
    question: WithinGaussian,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of members and non-members in a file."""
    # 1. Propensities are a column, or learnt from features.
    names, common = options.parse_columns(attacks, "--score-col"), question.options()
    columns = options.parse_columns(features, "--features")
    with bar(f"Reading {file}"):
        table = read(file, [*names, *(columns or ["propensity"]), layout.member_col], layout)
    # 2. Audit.
    with bar(f"Auditing {len(table):,} examples"), about(file):
        member = check_membership(table.member(), len(table))
        odds: Any = LogisticPropensity() if columns else table.numbers("propensity")
        inputs = {"features": table.matrix(columns)} if columns else {}
        scores = scores_of(table, names)
        design = ZeroRun(member, odds, **vars(correction), **inputs)
        result = audit(scores, design, ids=table.ids, sides=sides, **common)
    inputs |= {"scores": scores, "plan": member, "propensity": odds, "ids": table.ids}
    delivery.conclude(result, file, question.goal, inputs=inputs)
