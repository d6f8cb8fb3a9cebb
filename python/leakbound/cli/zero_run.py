"""The command for members and non-members that were not randomised."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import typer

from leakbound import ZeroRun, audit
from leakbound._base.checks import check_membership, real, seed_of
from leakbound._base.console import bar
from leakbound.cli import options
from leakbound.cli.audits import scores_of
from leakbound.cli.delivery import BundledDelivery
from leakbound.cli.files import Layout, about, read
from leakbound.cli.options import command, flag, option, refuse
from leakbound.propensity import LogisticPropensity, cross_fit, hold_out

app = typer.Typer()

ZERO_RUN = (
    "FILE has the columns [bold]score[/] and [bold]member[/], optionally [bold]id[/], and either "
    "columns of features for --features or a column [bold]propensity[/] with the probability of "
    "membership given an example's features.\n\nWith --features, a logistic model of membership "
    "is fitted. The bound is the smallest over all logistic models that the labels allow, and "
    "holds if log-odds of membership are linear in the features; the fit is tested. With a column "
    "of propensities, the bound holds if these are correct.\n\n--uncertainty bootstrap follows "
    "the procedure of the paper: propensities are fitted to half of the examples and refitted 600 "
    "times. It is exploratory: it gives no bound and cannot refute a claim."
)


@dataclass(frozen=True)
class WithinGaussian(options.Question):
    """The same, with Gaussian DP as the default family."""

    family: options.Family = "gaussian"


@dataclass(frozen=True)
class Fitting:
    """How propensities are fitted to features."""

    holdout: Annotated[
        float | None,
        option(
            "SHARE",
            "Share of rows used only for fitting. Default: 0, or 0.5 for a bootstrap.",
        ),
    ] = None
    folds: Annotated[
        int, option("K", "For a bootstrap: cross-fit in K folds and audit all rows.", min=0)
    ] = 0
    uncertainty: Annotated[
        Literal["set", "bootstrap"],
        option("", "Confidence set of propensity models (a bound), or bootstrap (exploratory)."),
    ] = "set"

    def __post_init__(self) -> None:
        real(self.share, "--holdout", least=0, below=1)

    @property
    def share(self) -> float:
        """Share of the rows that are held out."""
        default = 0.5 if self.uncertainty == "bootstrap" else 0.0
        return default if self.holdout is None else self.holdout


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
    fitting: Fitting,
    correction: Correction,
    attacks: options.Attacks = "score",
    sides: options.Sides = "both",
    question: WithinGaussian,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of members and non-members in a file."""
    # 1. Propensities are a column, or fitted to features.
    names, common = options.parse_columns(attacks, "--score-col"), question.options()
    columns = options.parse_columns(features, "--features")
    if not columns and fitting != Fitting():
        refuse("--holdout, --folds and --uncertainty bootstrap need --features to fit propensities")
    if fitting.folds and fitting.uncertainty == "set":
        refuse("--folds needs --uncertainty bootstrap: a confidence set is fitted on all rows")
    known = columns or ["propensity"]
    with bar(f"Reading {file}"):
        table = read(file, [*names, *known, layout.member_col], layout)
    # 2. Fit, and audit the rows that were not used for fitting only.
    with bar(f"Auditing {len(table):,} examples"), about(file):
        seed = common["seed"] = seed_of(question.seed)
        member = check_membership(table.member(), len(table))
        ids, rows, inputs = table.ids, np.arange(len(table)), dict[str, Any]()
        if not columns:
            odds: Any = table.numbers("propensity")
        elif fitting.folds:
            matrix, folds = table.matrix(columns), fitting.folds
            odds = cross_fit(LogisticPropensity(), matrix, member, folds=folds, seed=seed)
        else:
            matrix, odds = table.matrix(columns).astype(np.float64), LogisticPropensity()
            if fitting.share:
                ids, size = rows if ids is None else ids, round(fitting.share * len(table))
                learn, rows = hold_out(ids, size=size, seed=seed)
                odds = odds.fit(matrix[learn], member[learn], ids=ids[learn], seed=seed)
                ids = ids[rows]
            inputs = {"features": matrix[rows]}
        scores, member = scores_of(table, names, rows=rows), member[rows]
        design = ZeroRun(
            member,
            odds,
            uncertainty=fitting.uncertainty if columns else None,
            **vars(correction),
            **inputs,
        )
        result = audit(scores, design, ids=ids, sides=sides, **common)
    inputs |= {"scores": scores, "plan": member, "propensity": odds, "ids": ids}
    delivery.conclude(result, file, question.goal, inputs=inputs)
