"""The command that audits given members and non-members: read, fit, call, print, write."""

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
    "FILE has the columns [bold]score[/] (--score-col names others), [bold]member[/] and "
    "[bold]propensity[/] (the probability of membership given an example's features) or, for "
    "--features, columns of features; and optionally [bold]id[/].\n\n"
    "The bound holds if the propensities do; with --features, if log-odds of membership are linear "
    "in them: it is then the least over all logistic models that the labels do not rule out, whose "
    "form is put to the test. --holdout says how many examples are only learnt from.\n\n"
    "--uncertainty bootstrap is the procedure of the paper, with propensities fitted to half of "
    "the examples and refitted 600 times: exploratory, no bound, and it refutes nothing.\n\n"
    + options.EXIT_CODES
)


@dataclass(frozen=True)
class WithinGaussian(options.Question):
    """The same, within Gaussian DP if nothing else is said."""

    family: options.Family = "gaussian"


@dataclass(frozen=True)
class Fitting:
    """How propensities are fitted to features."""

    holdout: Annotated[
        float | None,
        option(
            "SHARE",
            "Share of the rows to fit to and not to audit: none, or half for a bootstrap.",
        ),
    ] = None
    folds: Annotated[
        int, option("K", "For a bootstrap: fit each of K parts by the others, audit all.", min=0)
    ] = 0
    uncertainty: Annotated[
        Literal["set", "bootstrap"],
        option("", "Bound over a confidence set of log-odds, or explore with refits."),
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
    """How shift is taken out, and of which examples."""

    correction: Annotated[
        Literal["conditional", "match", "poisson_binomial", "tamper", "composition"],
        option("", "How shift is taken out; conditional is the best one for the family."),
    ] = "conditional"
    max_log_odds: Annotated[
        float | None, option("L", "Leave out examples whose log-odds are beyond ±L.")
    ] = None
    release_refuted: Annotated[
        bool, flag("--release-refuted", "Report the bound of refuted propensities all the same.")
    ] = False


@command(app, "zero-run", ZERO_RUN)
def zero_run(
    file: options.File,
    *,
    features: Annotated[str, option("COL,COL", "Columns to fit propensities to.")] = "",
    fitting: Fitting,
    correction: Correction,
    attacks: options.Attacks = "score",
    sides: options.Sides = "both",
    question: WithinGaussian,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of given members and non-members in a file."""
    # 1. Propensities are a column, or fitted to features.
    names, common = options.parse_columns(attacks, "--score-col"), question.options()
    columns = options.parse_columns(features, "--features")
    if not columns and fitting != Fitting():
        refuse("--holdout, --folds and --uncertainty bootstrap fit propensities: name --features")
    if fitting.folds and fitting.uncertainty == "set":
        refuse("--folds is for --uncertainty bootstrap: a confidence set learns from all rows")
    known = columns or ["propensity"]
    with bar(f"Reading {file}"):
        table = read(file, [*names, *known, layout.member_col], layout)
    # 2. Fit, and audit the rows that were not learnt from.
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
