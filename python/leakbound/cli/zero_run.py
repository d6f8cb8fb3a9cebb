"""The command that audits given members and non-members: read, fit, call, print, write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from leakbound import audit_zero_run
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_membership, real
from leakbound._base.files import DamagedFileError, read_array_file
from leakbound._base.scores import Scores
from leakbound._base.streams import seed_of
from leakbound.cli import output
from leakbound.cli.audits import (
    AttackColumns,
    Bundle,
    Claimed,
    Confidence,
    Decimal,
    File,
    Json,
    Kept,
    Lenient,
    MemberColumn,
    MemberValues,
    Out,
    Seed,
    Separator,
    auditing,
    conclude,
    score_columns,
    scores_of,
    table_of,
)
from leakbound.cli.layouts import parse_layout
from leakbound.cli.options import (
    CLAIM_OF,
    FAMILIES,
    guarantee_of,
    parse_claim,
    parse_columns,
    parse_cuts,
)
from leakbound.cli.tables import Table, read_columns
from leakbound.errors import IncompatibleOptionsError, InputFileError
from leakbound.propensity import LogisticPropensity, cross_fit, hold_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from leakbound._base.types import ArrayInput, BoolArray, FloatArray
    from leakbound.claims import Claim
    from leakbound.propensity import CrossFit, PropensityFit

app = typer.Typer()

ZERO_RUN = (
    "Audit a model from given members and non-members, without any training.\n\n"
    "FILE has the columns [bold]score[/] (--attacks names several), [bold]member[/] and "
    "[bold]propensity[/] (the probability of membership given an example's features) or, for "
    "--features, columns of features; and optionally [bold]id[/].\n\n"
    "The bound holds if the propensities do; with --features, if log-odds of membership are linear "
    "in them: it is then the least over all logistic models that the labels do not rule out, whose "
    "form is put to the test. Examples that are not "
    "to be audited are learnt from too: a column [bold]split[/] says which, [bold]holdout[/] or "
    "[bold]audit[/], or --holdout how many.\n\n"
    "--uncertainty bootstrap is the procedure of the paper, with propensities fitted to half of "
    "the examples and refitted 600 times: exploratory, no bound, and it refutes nothing.\n\n"
    "[dim]Exit code: 0 claim not refuted or none given, 1 refuted, 2 bad input, 3 out of reach "
    "or in doubt, 70 a crash.[/]"
)

_DELTA = 1e-5
"""δ of --family approx where nothing says another one."""
_CUTS = "auto, fixed:R, geometric, kl, union, outside-in"
"""Cut policies that some audit of given members and non-members takes."""

PropensityFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=(
            "A table with the column propensity, in the order of FILE, or an .npy array with a "
            "propensity for each example or K rows of them."
        ),
    ),
]


@dataclass(frozen=True)
class _Audited:
    """What the audit takes from a file."""

    scores: ArrayInput | dict[str, ArrayInput]
    member: BoolArray
    ids: NDArray[np.generic] | None
    propensity: FloatArray | PropensityFit | CrossFit | LogisticPropensity
    features: FloatArray | None


@dataclass(frozen=True)
class _Fitting:
    """How propensities are fitted, if there are columns of features."""

    columns: list[str]
    holdout: float | None
    folds: int
    seed: int
    uncertainty: Literal["set", "bootstrap"]

    @property
    def held_out(self) -> float:
        """Share of the rows that are learnt from and not audited; half for a bootstrap."""
        if self.holdout is None:
            return 0.5 if self.uncertainty == "bootstrap" else 0.0
        return real(self.holdout, "--holdout", least=0, below=1)


@app.command("zero-run", help=ZERO_RUN)
def zero_run(
    file: File,
    *,
    propensity: PropensityFile = None,
    features: Annotated[
        str,
        typer.Option(metavar="COL,COL", help="Columns of features to fit propensities to."),
    ] = "",
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows to learn propensities from and not to audit, if no column "
            "split says. None unless a bootstrap is asked for, then half.",
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            metavar="K",
            help="For a bootstrap, in place of rows held out: fit propensities of each of K parts "
            "to the others. Every part is audited at its share of the error probability, and the "
            "best wins.",
            min=0,
        ),
    ] = 0,
    uncertainty: Annotated[
        Literal["set", "bootstrap"],
        typer.Option(
            help="With --features: bound over a confidence set of log-odds, or explore with refits."
        ),
    ] = "set",
    family: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"The guarantees whose parameter is bounded: {FAMILIES}. D is a δ, Q the sampling "
            "rate and T the number of steps of DP-SGD; approx alone has the δ of the claim, of "
            "--delta, or 1e-5.",
        ),
    ] = "gaussian",
    delta: Annotated[
        float | None, typer.Option(metavar="D", help="δ of --family approx.", show_default=False)
    ] = None,
    claim: Claimed = "",
    correction: Annotated[
        Literal["conditional", "match", "poisson_binomial", "tamper", "composition"],
        typer.Option(help="How shift is taken out; conditional is the best one for the family."),
    ] = "conditional",
    confidence: Confidence = 0.95,
    cuts: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help=f"Numbers of guesses that are tested: {_CUTS}. auto plans them, and fixed:R makes "
            "R. Over a set of log-odds, and for tampering, there are no others; elsewhere kl "
            "and union are for --family pure, and outside-in for the others.",
        ),
    ] = "auto",
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
    max_log_odds: Annotated[
        float | None,
        typer.Option(metavar="L", help="Leave out examples whose log-odds are beyond ±L."),
    ] = None,
    release_refuted: Annotated[
        bool,
        typer.Option(
            "--release-refuted",
            metavar="",
            help="Report the bound although the propensities were refuted.",
        ),
    ] = False,
    seed: Seed = None,
    out: Out = None,
    json: Json = False,
    lenient: Lenient = False,
    bundle: Bundle = None,
) -> None:
    """Audit the scores of given members and non-members in a file."""
    with output.answering():
        goal = parse_claim(claim, CLAIM_OF) if claim else {}
        guarantee = _guarantee(goal, family, delta)
        policy = parse_cuts(cuts, offered=_CUTS)
        columns = parse_columns(features, "--features") if features else []
        if columns and propensity is not None:
            message = (
                "give --features, to fit propensities, or --propensity, to read them; not both"
            )
            raise IncompatibleOptionsError(message)
        names = score_columns(attacks, score_col)
        layout = parse_layout(member_col, member_values, sep, decimal)
        wanted = {name: (name,) for name in [*names, *columns]}
        if not columns and propensity is None:
            wanted["propensity"] = ("propensity",)
        if folds and not columns:
            message = "--folds is for propensities that are fitted: name columns with --features"
            raise IncompatibleOptionsError(message)
        if folds and uncertainty == "set":
            message = (
                "--folds is for --uncertainty bootstrap: over a confidence set all examples are "
                "audited and learnt from"
            )
            raise IncompatibleOptionsError(message)
        if uncertainty == "bootstrap" and not columns:
            message = "--uncertainty is for propensities that are fitted: name --features"
            raise IncompatibleOptionsError(message)
        optional = ("id", "split") if columns and not folds else ("id",)
        table = table_of(file, wanted, out, optional=optional, layout=layout)
        with auditing(file, table):
            seed = seed_of(seed)
            fitting = _Fitting(columns, holdout, folds, seed, uncertainty)
            audited = _audited(table, names, fitting, propensity)
            result = audit_zero_run(
                audited.scores,
                audited.member,
                audited.propensity,
                claim=guarantee,
                correction=correction,
                confidence=confidence,
                cuts=policy,
                sides=sides,
                uncertainty=uncertainty if columns else None,
                features=audited.features,
                max_log_odds=max_log_odds,
                release_refuted=release_refuted,
                ids=audited.ids,
                seed=seed,
            )
        kept = Kept(
            bundle,
            {
                "scores": audited.scores,
                "plan": audited.member,
                "propensity": audited.propensity,
                "ids": audited.ids,
                **({} if audited.features is None else {"features": audited.features}),
            },
        )
        conclude(result, file, goal, out, json=json, lenient=lenient, kept=kept)


def _guarantee(goal: Mapping[str, float], family: str, delta: float | None) -> Claim:
    """Return what is audited; approx alone has a δ from elsewhere."""
    if family.strip().lower() == "approx":
        return guarantee_of(goal, f"approx:{goal.get('delta') or delta or _DELTA:.17g}")
    if delta is not None:
        message = f"--delta {delta:g} is for --family approx: leave it out for --family {family}"
        raise IncompatibleOptionsError(message)
    return guarantee_of(goal, family)


def _audited(table: Table, names: list[str], fitting: _Fitting, draws: Path | None) -> _Audited:
    """Return what is audited, with propensities read or fitted to rows of the table."""
    member = check_membership(table.member, len(table.member))
    if not fitting.columns:
        given = table.scores["propensity"] if draws is None else _propensities(draws, table.ids)
        return _Audited(scores_of(table, names), member, table.ids, given, None)
    features = np.column_stack([table.scores[name] for name in fitting.columns]).astype(np.float64)
    model, seed = LogisticPropensity(), fitting.seed
    if fitting.folds:
        crossed = cross_fit(model, features, member, folds=fitting.folds, seed=seed)
        return _Audited(scores_of(table, names), member, table.ids, crossed, None)
    ids = np.arange(member.size) if table.ids is None else table.ids
    if table.split is None:
        if not fitting.held_out:
            return _Audited(scores_of(table, names), member, table.ids, model, features)
        learn, rest = hold_out(ids, size=round(fitting.held_out * member.size), seed=seed)
    else:
        learn, rest = _as_split(table.split)
    fit = model.fit(features[learn], member[learn], ids=ids[learn], seed=seed)
    left = Table({name: table.scores[name][rest] for name in names}, member[rest], ids[rest])
    return _Audited(scores_of(left, names), left.member, ids[rest], fit, features[rest])


def _as_split(words: NDArray[np.generic]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to fit to, and the rows to audit."""
    said = np.char.strip(words.astype(np.str_))
    other = np.flatnonzero((said != "holdout") & (said != "audit"))
    if other.size:
        message = (
            f"split must be holdout or audit, got {str(said[other[0]])!r} in row {other[0]} (rows "
            "count from 0)"
        )
        raise InputFileError(message)
    learn, rest = np.flatnonzero(said == "holdout"), np.flatnonzero(said == "audit")
    if not (learn.size and rest.size):
        message = f"split must name rows of both kinds: {learn.size} holdout, {rest.size} audit"
        raise InputFileError(message)
    return learn, rest


def _propensities(path: Path, ids: NDArray[Any] | None) -> NDArray[Any]:
    """Read propensities from a file of their own, in the order of the scores."""
    if path.suffix.lower() == ".npy" and path.is_file():
        return _array(path)
    columns = read_columns(path, {"propensity": ("propensity",)}, optional=("id",))
    if "id" not in columns or ids is None:
        return columns["propensity"]
    # Ids are text in a csv file and may be numbers elsewhere.
    listed = Scores(columns["propensity"], _words(columns["id"]), "propensity")
    return np.asarray(ExampleOrder(_words(ids)).placed(listed, str(path)))


def _words(ids: NDArray[Any]) -> NDArray[np.str_]:
    return np.char.strip(ids.astype(np.str_))


def _array(path: Path) -> NDArray[Any]:
    try:
        array = read_array_file(path)
    except DamagedFileError as error:
        message = f"{path} is not an .npy array of numbers: write it with numpy.save ({error})"
        raise InputFileError(message) from error
    if array.ndim not in {1, 2}:
        message = f"{path} must hold one array of one or two dimensions: write it with numpy.save"
        raise InputFileError(message)
    return array
