"""The commands that audit a table of scores: read, call, print, write."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

import typer

from leakbound import ApproxDP, Coins, PureDP, audit
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_membership
from leakbound._base.console import bar
from leakbound._base.scores import TOKENS
from leakbound._base.types import AnyArray, BoolArray, IntArray
from leakbound.audits.pair_tally import PairTally
from leakbound.cli import options
from leakbound.cli.drawn import Draw, Drawn, DrawnChoices
from leakbound.cli.features import Reading, features_in, tokens_in
from leakbound.cli.files import Layout, Signs, about, check_names, read
from leakbound.cli.grouped import Grouped, as_ids_of
from leakbound.cli.joined import Joined, Roles, Table, TwoFiles, ids_of, read_parts
from leakbound.cli.options import BundledDelivery, argument, command, flag, option, refuse
from leakbound.cli.shards import are_shards, pairs_of, tally_of
from leakbound.cli.subgroups import conclude
from leakbound.errors import InputError
from leakbound.planning import InclusionPlan
from leakbound.planning.inclusion import ChoicePlan
from leakbound.results import AuditResult

Scores: TypeAlias = AnyArray | dict[str, AnyArray]
"""Of one attack, or of attacks by name."""
Rows: TypeAlias = IntArray | slice
Membership: TypeAlias = InclusionPlan | AnyArray | None

app = typer.Typer()
COINS = (
    "A coin flip decided for each example whether the model was trained on it. FILE has one row "
    "per example, with columns [bold]score[/] (higher means more likely a member), [bold]member[/] "
    "(0/1, -1/1 or false/true) and optionally [bold]id[/]. FILE can also be a tally. Several "
    "files, a folder or a pipe are counted together."
)
SPLIT = (
    "The training set is a random part of the examples, for example from train_test_split. FILE "
    "has the scores of the training set and the test set, with the same columns as for coins. "
    "Several files, a folder or a pipe are read as one table. FILE can also be a tally of pairs "
    "(lb.PairTally), and several of these are added up. Both parts must be prepared and scored by "
    "the same code: never pack texts, and use one template. The bound is on ε for replacing one "
    "example."
)
CHOICES = (
    "For each secret, one of k candidates was drawn at random and trained on. FILE has one row per "
    "secret, with columns [bold]score_0[/], [bold]score_1[/], … for the candidates (higher means "
    "more likely trained on), [bold]chosen[/] (the number of the candidate drawn, from 0) and "
    "optionally [bold]id[/]. The bound is on ε for replacing one candidate by another."
)
PANORAMIA = (
    "The non-members are generated examples. FILE has the columns [bold]baseline_score[/] "
    "(computed from the example only), [bold]score[/] (computed from the example and the model), "
    "[bold]member[/] (0 means generated) and optionally [bold]id[/].\n\nThe estimate ε̃ is not a "
    "lower bound on ε. It is the bound on c + ε minus the bound on c, where c measures how far "
    "generated data differ from real data. With --features, a Zero-Run audit of the same examples "
    "is added. Its lower bound holds if the fitted model of membership is correct."
)
ZERO_RUN = (
    "FILE has the columns [bold]score[/] and [bold]member[/], optionally [bold]id[/], and either "
    "columns of features for --features or a column [bold]propensity[/] with the probability of "
    "membership given an example's features.\n\nWith --features, a logistic model of membership "
    "is fitted. The bound is the smallest over all logistic models that the labels allow, and "
    "holds if log-odds of membership are linear in the features; the fit is tested. With a column "
    "of propensities, the bound holds if these are correct."
)
# What a claim must say to be refutable by PANORAMIA.
_REFUTABLE = options.EXIT_CODES + (
    " [dim]A claim can be refuted only if it includes c, or with --real-nonmembers or --c-upper.[/]"
)


@dataclass(frozen=True)
class Parts:
    """Two files of scores, in place of one with a column of membership."""

    members: Annotated[
        Path | None, option("FILE", "Scores of members, with --nonmembers, instead of FILE.")
    ] = None
    nonmembers: Annotated[
        Path | None, option("FILE", "Scores of non-members: the same columns.")
    ] = None

    def files(self, files: list[Path] | None, *, planned: bool = False) -> list[Path]:
        """Return the files that were given; those of both parts, if they were, are two."""
        if self.members and planned:
            refuse(
                "--members and --nonmembers say who was a member: leave out --plan and --opening"
            )
        both = [part for part in (self.members, self.nonmembers) if part is not None]
        if files and not both:
            return files
        if files or len(both) != 2:
            refuse("give FILE, or both --members and --nonmembers")
        return both

    def read(
        self,
        given: list[Path],
        wanted: list[str],
        layout: Layout,
        *,
        optional: Sequence[str] = ("id",),
        planned: bool = False,
    ) -> Table:
        """Read one file, in which membership may be missing with a plan, or both parts."""
        with bar(f"Reading {given[0]}"):
            if self.members:
                return read_parts(given, wanted, layout, optional=optional)
            if planned:
                return read(given[0], wanted, layout, optional=[*optional, layout.member_col])
            return read(given[0], [*wanted, layout.member_col], layout, optional=optional)


@command(app, "coins", "leakbound coins scores.csv --claim eps=2 --out report", COINS)
def coins(
    files: Annotated[
        list[Path] | None,
        argument(
            "FILE…",
            f"Table with one row per example: {options.KINDS}. Several files, a folder, a glob, "
            "tallies, or - for csv on standard input are counted in batches.",
        ),
    ] = None,
    *,
    parts: Parts,
    prior: Annotated[
        str, option("P", "Probability of being a member, or the column with this probability.")
    ] = "0.5",
    drawn: Drawn,
    grouped: Grouped,
    sides: options.CoinSides = "auto",
    attacks: options.Attacks = "score",
    question: options.Question,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of examples whose membership coins decided."""
    # 1. Options, before anything is read.
    names = options.parse_columns(attacks, "--score-col")
    draw = drawn.read(InclusionPlan, question.seed)
    common = {**question.options(copies=draw.copies or 1), "sides": sides}
    chance, prior_col = _prior_or_column(prior)
    given = parts.files(files, planned=draw.plan is not None)
    file = given[0]
    # 2. Shards are counted, and counts audited.
    grouped.refuse(delivery.bundle)
    if not parts.members and are_shards(given):
        alone = draw.plan is not None or delivery.bundle or grouped.columns
        if len(names) > 1 or prior_col or chance != 0.5 or alone:
            _refuse_counted()
        design = Coins(copies=draw.copies, unit=grouped.unit or None)
        result = _audited_counts(given, names[0], layout, design, common)
        delivery.conclude(result, file, question.goal)
    # 3. One file is read whole, and joined with the plan or the protocol; or one of each part.
    wanted = [*names, *filter(None, [prior_col]), *grouped.columns]
    table = parts.read(given, wanted, layout, planned=draw.plan is not None)
    with auditing(table, file):
        scores, member, ids, rows = _joined_with_plan(table, names, layout, draw, grouped)
        inputs = grouped.inputs(table, rows, draw.plan)
        if prior_col:
            inputs["prior"] = table.numbers(prior_col)[rows]
        named = {"prior": chance, "copies": draw.copies, **grouped.options, **inputs}
        asked = {"ids": ids, "by": grouped.labels(table, rows), **common, **draw.agreed}
        found: Any = audit(scores, Coins(member, **named), **asked)
    # 4. A bundle needs the inputs too.
    inputs |= {"scores": scores, "plan": draw.opening or member, "ids": ids}
    conclude(delivery, found, file, question, inputs)


def _audited_counts(
    files: list[Path], score: str, layout: Layout, design: Coins, common: dict[str, Any]
) -> AuditResult:
    """Count shards, and audit the counts."""
    counted = tally_of(files, score=score, layout=layout)
    with bar(f"Auditing {counted.m:,} examples"):
        result: AuditResult = audit(counted, design, **common)
    return result


def _refuse_counted() -> NoReturn:
    """Refuse shards where single examples are needed."""
    refuse(
        "several files or a tally are only counted: use one file with all examples for "
        "several --attacks, --prior, --plan, --opening, --groups, --by or --bundle"
    )


@command(app, "split", "leakbound split scores.csv --untouched --out report", SPLIT)
def split(
    files: Annotated[
        list[Path] | None,
        argument(
            "FILE…",
            f"Table with one row per example: {options.KINDS}. Several files, a folder, a glob or "
            "- for csv on standard input are one table. Or tallies of pairs.",
        ),
    ] = None,
    *,
    parts: Parts,
    strata: Annotated[str, option("COL", "Column that the split was stratified by.")] = "",
    grouped: Grouped,
    features: Annotated[
        str,
        option(
            "COL,COL",
            "Feature columns used to test whether the split looks random, of numbers, words, dates "
            "or true/false, such as the number of tokens of each text; n_tokens, which `leakbound "
            "score` writes, is used by itself.",
        ),
    ] = "",
    reading: Reading,
    untouched: Annotated[
        bool,
        flag(
            "--untouched",
            "Required: declare that nothing was removed, added or changed in one part only after "
            "the split (no cleaning, deduplication, oversampling of one part), and that the test "
            "set was not used to choose the model: no early stopping, no tuning, no choice of a "
            "checkpoint.",
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

    # A part that was tuned on is not random any more, and the data cannot show it.
    if not untouched:
        _refuse_touched()
    names = options.parse_columns(attacks, "--score-col")
    common = question.options(relation, replaced=grouped.word)
    given = parts.files(files)
    grouped.refuse(delivery.bundle)
    known = options.parse_columns(features, "--features")
    columns = [*grouped.columns, *({strata} - {"", grouped.by})]
    # 1. Tallies of pairs are added; tables are read as one.
    shards: list[Path] = []
    if not parts.members and are_shards(given):
        tallies = pairs_of(given)
        if isinstance(tallies, PairTally):
            if len(names) > 1 or columns or known or delivery.bundle:
                refuse(
                    "tallies of pairs only have counts: use tables with all examples for several "
                    "--attacks, --strata, --groups, --by, --features or --bundle"
                )
            result = _audited_pairs(tallies, grouped, common)
            delivery.conclude(result, given[0], question.goal, relation)
        shards = tallies
    roles = Roles(names, columns, features=known, optional=("id", TOKENS))
    table, counted = _table_of_shards_or_parts(parts, given, shards, roles, layout)
    # 2. The audit.
    with auditing(table, given[0], rows_counted=counted):
        scores = scores_of(table, names)
        member = table.member()
        read_as: dict[str, Any] = features_in(table, known, reading)
        if TOKENS in roles.free:
            read_as |= tokens_in(table)
        inputs = _features_of_design(read_as)
        if strata:
            inputs["strata"] = table.words(strata)
        inputs |= grouped.inputs(table)
        design = RandomSplit(member, **grouped.options, **inputs)
        found: Any = audit(scores, design, by=grouped.labels(table), ids=ids_of(table), **common)
    inputs |= {"scores": scores, "plan": member, "ids": ids_of(table)}
    conclude(delivery, found, given[0], question, inputs, relation)


def _audited_pairs(tally: PairTally, grouped: Grouped, common: dict[str, Any]) -> AuditResult:
    """Audit pairs that are counted."""
    from leakbound import RandomSplit

    with bar(f"Auditing {tally.pairs:,} pairs"):
        result: AuditResult = audit(tally, RandomSplit(unit=grouped.unit or None), **common)
    return result


def _refuse_touched() -> NoReturn:
    """Refuse a split about which nothing is declared."""
    refuse(
        "nothing may have been removed, added or changed in one part only after the split, and "
        "the test set must not have been used for early stopping or tuning: confirm this with "
        "--untouched, or leave the examples that were used out of the file"
    )


def _table_of_shards_or_parts(
    parts: Parts, given: list[Path], shards: list[Path], roles: Roles, layout: Layout
) -> tuple[Table, str]:
    """Return shards as one table, or what else was given, and how messages count its rows."""
    if shards:
        return Joined(shards, roles, layout), "through all files in order"
    table = parts.read(given, roles.needed, layout, optional=roles.free)
    return table, "without the header"


def _features_of_design(features: dict[str, Any]) -> dict[str, Any]:
    """Return columns of features as data of a design, if there are any."""
    if not features:
        return {}
    return {"features": features}


@command(app, "choices", "leakbound choices scores.csv --plan plan.npz --out report", CHOICES)
def choices(
    file: options.File,
    *,
    drawn: DrawnChoices,
    relation: options.Relation = None,
    attacks: options.Attacks = "score",
    question: options.Question,
    signs: Signs,
    delivery: BundledDelivery,
) -> None:
    """Audit scores of candidates, one of which was drawn for each secret."""
    from leakbound import Choices

    # 1. Options, before anything is read.
    names = options.parse_columns(attacks, "--score-col")
    draw = drawn.read(ChoicePlan, question.seed)
    common = question.options(relation, replaced="candidate", copies=draw.copies or 1)
    with bar(f"Reading {file}"):
        table = read(file, None, signs)
    # 2. Each attack has as many columns of scores as the first.
    k = 0
    while f"{names[0]}_{k}" in table:
        k += 1
    k = max(2, k)
    columns = {name: [f"{name}_{i}" for i in range(k)] for name in names}
    wanted = [one for listed in columns.values() for one in listed]
    if draw.plan is None:
        wanted.append("chosen")
    check_names(file, [*table.stored], wanted)
    with auditing(table, file, records="secrets"):
        scores: Any = {name: table.matrix(listed) for name, listed in columns.items()}
        if len(names) == 1 and draw.opening is None:
            scores = scores[names[0]]
        ids = _ids_of(table, draw.plan)
        chosen: Any = draw.plan
        if draw.plan is None:
            chosen = table.numbers("chosen")
        design = Choices(chosen, k, copies=draw.copies)
        result = audit(scores, design, ids=ids, **(common | draw.agreed))
    inputs = {"scores": scores, "plan": draw.opening or chosen, "ids": ids}
    delivery.conclude(result, file, question.goal, relation, inputs)


@dataclass(frozen=True)
class Relaxations:
    """Relaxations of PANORAMIA."""

    gamma: Annotated[
        float, option("G", "Share of real points that the generator may never produce.")
    ] = 0.0
    delta: Annotated[float, option("D", "δ of the (ε, δ)-DP guarantee.")] = 0.0
    max_recall: Annotated[
        float, option("R", "Largest share of examples that a threshold may select.")
    ] = 1.0
    real_nonmembers: Annotated[
        bool,
        flag("--real-nonmembers", "Non-members are real and exchangeable with members: c = 0."),
    ] = False
    c_upper: Annotated[float | None, option("C", "Upper limit on c that you can justify.")] = None


@command(
    app,
    "panoramia",
    "leakbound panoramia scores.csv --claim c=0.5,eps=2 --out report",
    PANORAMIA,
    _REFUTABLE,
)
def panoramia(
    file: options.File,
    *,
    score_col: options.ScoreCol = "score",
    baseline_col: Annotated[
        str, option("COL", "Column of scores computed from the example only.")
    ] = "baseline_score",
    features: Annotated[
        str,
        option(
            "COL,COL",
            "Feature columns, for an additional Zero-Run bound on ε: numbers, words, dates or "
            "true/false.",
        ),
    ] = "",
    reading: Reading,
    claim: Annotated[
        str,
        option("c=C,eps=E", "Claim about generator and model to check. Exit code 1 if refuted."),
    ] = "",
    relaxations: Relaxations,
    search: options.Search,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of members and generated points in a file."""
    from leakbound import Panoramia

    goal = options.parse_claim(claim, ("eps", "eps,delta", "c,eps", "c,eps,delta"))
    common = search.options()
    columns = options.parse_columns(features, "--features")
    with bar(f"Reading {file}"):
        table = read(file, [baseline_col, score_col, *columns, layout.member_col], layout)
    with auditing(table, file):
        member = table.member()
        inputs = _features_of_design(features_in(table, columns, reading))
        scores = table.numbers(score_col)
        known = table.numbers(baseline_col)
        allowed = vars(relaxations).copy()
        delta = allowed.pop("delta")
        design = Panoramia(member, baseline=known, **inputs, **allowed)
        guarantee: ApproxDP | PureDP = PureDP()
        if delta:
            guarantee = ApproxDP(delta=delta)
        result = audit(scores, design, claim=guarantee, ids=ids_of(table), **common)
    inputs |= {"scores": scores, "baseline": known, "plan": member, "ids": ids_of(table)}
    delivery.conclude(result, file, goal, inputs=inputs)


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
    features: Annotated[
        str,
        option(
            "COL,COL",
            "Feature columns to fit propensities on: numbers, words, dates or true/false.",
        ),
    ] = "",
    reading: Reading,
    correction: Correction,
    attacks: options.Attacks = "score",
    sides: options.Sides = "both",
    question: WithinGaussian,
    layout: Layout,
    delivery: BundledDelivery,
) -> None:
    """Audit the scores of members and non-members in a file."""
    from leakbound import ZeroRun
    from leakbound.propensity import LogisticPropensity

    # 1. Propensities are a column, or learnt from features.
    names = options.parse_columns(attacks, "--score-col")
    common = question.options()
    columns = options.parse_columns(features, "--features")
    with bar(f"Reading {file}"):
        table = read(file, [*names, *(columns or ["propensity"]), layout.member_col], layout)
    # 2. Audit.
    with auditing(table, file):
        member = table.member()
        odds: Any = LogisticPropensity()
        if not columns:
            odds = table.numbers("propensity")
        inputs = _features_of_design(features_in(table, columns, reading))
        scores = scores_of(table, names)
        design = ZeroRun(member, odds, **vars(correction), **inputs)
        result = audit(scores, design, ids=ids_of(table), sides=sides, **common)
    inputs |= {"scores": scores, "plan": member, "propensity": odds, "ids": ids_of(table)}
    delivery.conclude(result, file, question.goal, inputs=inputs)


@contextmanager
def auditing(
    table: Table, file: Path, records: str = "examples", rows_counted: str = "without the header"
) -> Iterator[None]:
    """Show that a table is audited, and name its file in messages."""
    with bar(f"Auditing {len(table):,} {records}"), about(file, rows_counted):
        yield


def scores_of(
    table: Table, names: list[str], *, named: bool = False, rows: Rows = slice(None)
) -> Scores:
    """Return the scores of one attack; of several, or if `named`, by the name of the attack."""
    scores = {name: table.numbers(name)[rows] for name in names}
    if named or len(names) > 1:
        return scores
    return scores[names[0]]


def _prior_or_column(text: str) -> tuple[float, str]:
    """Return a prior probability, and the column that holds one for each example, if named."""
    try:
        return float(text), ""
    except ValueError:
        return 0.5, text.strip()


def _ids_of(table: Table, plan: InclusionPlan | ChoicePlan | None) -> AnyArray | None:
    """Return the column of ids, as whole numbers if the ids of the plan are."""
    ids = ids_of(table)
    if ids is None:
        return None
    return as_ids_of(plan, ids)


def _joined_with_plan(
    table: Table, names: list[str], layout: Layout, draw: Draw[InclusionPlan], grouped: Grouped
) -> tuple[Scores, Membership, AnyArray | None, Rows]:
    """Return scores, membership and ids in the order of the plan, and which rows these are.

    A plan of groups has no order of rows, and is joined by the audit.
    """
    if grouped.groups and draw.plan is not None:
        scores = scores_of(table, names, named=draw.opening is not None)
        _check_membership_of_plan(table, layout, grouped.planned(table, draw.plan))
        return scores, draw.plan, grouped.ids(table), slice(None)
    ids = _ids_of(table, draw.plan)
    if grouped.groups == "id":
        ids = None
    rows: Rows | None = None
    if draw.plan is not None:
        rows = ExampleOrder(ids).follow(draw.plan, "member")
    if rows is None:
        rows = slice(None)
    scores = scores_of(table, names, named=draw.opening is not None, rows=rows)
    member = _membership_in_file_or_plan(table, layout, ids, draw.plan)
    if ids is not None:
        ids = ids[rows]
    return scores, member, ids, rows


def _membership_in_file_or_plan(
    table: Table, layout: Layout, ids: AnyArray | None, plan: InclusionPlan | None
) -> Membership:
    """Return the plan, with which the file must agree about membership, or what the file says."""
    if plan is None:
        return table.member()
    _check_membership_of_plan(
        table, layout, ExampleOrder(ids).member(plan, len(table), copies=True)
    )
    return plan


def _check_membership_of_plan(table: Table, layout: Layout, planned: BoolArray) -> None:
    """Check that the file, if it says who was a member, agrees with the plan."""
    if not isinstance(table, TwoFiles) and layout.member_col not in table:
        return
    differs = planned != check_membership(table.member(), len(table))
    if differs.any():
        raise InputError(
            f"column member differs from the plan, first at row {differs.argmax()}: use the "
            "plan that was trained with, or add a column id if the rows were reordered"
        )
