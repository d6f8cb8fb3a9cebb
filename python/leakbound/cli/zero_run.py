"""The command that audits given members and non-members: read, call, print, write."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from leakbound import ZeroRun, audit
from leakbound._base.console import bar
from leakbound.cli import options
from leakbound.cli.audits import scores_of
from leakbound.cli.delivery import BundledDelivery
from leakbound.cli.files import Layout, about, read
from leakbound.cli.options import command, flag, option
from leakbound.propensity import LogisticPropensity

app = typer.Typer()

ZERO_RUN = (
    "FILE has the columns [bold]score[/] (--score-col names others), [bold]member[/] and "
    "[bold]propensity[/] (the probability of membership given an example's features) or, for "
    "--features, columns of features; and optionally [bold]id[/].\n\n"
    "The bound holds if the propensities do; with --features, if log-odds of membership are linear "
    "in them: it is then the least over all logistic models that the labels do not rule out, whose "
    "form is put to the test.\n\n" + options.EXIT_CODES
)


@dataclass(frozen=True)
class WithinGaussian(options.Question):
    """The same, within Gaussian DP if nothing else is said."""

    family: options.Family = "gaussian"


@command(app, "zero-run", ZERO_RUN)
def zero_run(
    file: options.File,
    *,
    features: Annotated[str, option("COL,COL", "Columns to learn propensities from.")] = "",
    correction: Annotated[
        Literal["conditional", "match", "poisson_binomial", "tamper", "composition"],
        option("", "How shift is taken out; conditional is the best one for the family."),
    ] = "conditional",
    release_refuted: Annotated[
        bool, flag("--release-refuted", "Report the bound of refuted propensities all the same.")
    ] = False,
    attacks: options.Attacks = "score",
    sides: options.Sides = "both",
    question: WithinGaussian,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of given members and non-members in a file."""
    names, common = options.parse_columns(attacks, "--score-col"), question.options()
    columns = options.parse_columns(features, "--features")
    with bar(f"Reading {file}"):
        table = read(file, [*names, *(columns or ["propensity"]), layout.member_col], layout)
    with bar(f"Auditing {len(table):,} examples"), about(file):
        scores, member, matrix = scores_of(table, names), table.member(), table.matrix(columns)
        odds: Any = LogisticPropensity() if columns else table.numbers("propensity")
        inputs = {"features": matrix} if columns else {}
        design = ZeroRun(
            member, odds, correction=correction, release_refuted=release_refuted, **inputs
        )
        result = audit(scores, design, ids=table.ids, sides=sides, **common)
    inputs |= {"scores": scores, "plan": member, "propensity": odds, "ids": table.ids}
    delivery.conclude(result, file, question.goal, inputs=inputs)
