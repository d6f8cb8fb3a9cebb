"""The report of a run: its audits, their figures, and their description."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leakbound._base.formatting import number, percent
from leakbound._base.records import IF_ANY, unstored
from leakbound._base.types import Verdict
from leakbound.errors import OptionError
from leakbound.panoramia.losses import Losses, is_helper
from leakbound.panoramia.models.attack import StackedAttack
from leakbound.panoramia.scores import CORRECTIONS, GameScores
from leakbound.panoramia.table import (
    HEADINGS,
    REAL,
    Audit,
    NonMembers,
    PanoramiaRow,
    Saturation,
    estimate,
    note_of,
    row_of_largest_estimate,
)
from leakbound.report.description import Description, Figure, Metric, Overview, Section, estimated
from leakbound.report.parts import Checked
from leakbound.report.style import (
    INK,
    MEMBER,
    MUTED,
    OTHER,
    PAPER,
    RULE,
    house_style,
    new_axes,
    plain_words,
)
from leakbound.results import PanoramiaResult
from leakbound.results.base import Composed
from leakbound.results.descriptions import next_steps
from leakbound.results.descriptions.panoramia import NOTHING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaReport(Composed):
    """What `panoramia.run` returns: its number is the largest estimate, a mean over seeds."""

    _words: ClassVar[str] = "leakbound.panoramia.report"

    rows: tuple[PanoramiaRow, ...]
    """Each target under each audit."""
    saturation: Saturation
    """How c_lb depends on the baseline's training data."""
    seeds: tuple[int, ...]
    """Of splits, coins and training."""
    sizes: dict[str, int]
    """Examples in each part."""
    options: dict[str, Any]
    """Every option in force."""
    warnings: tuple[str, ...]
    """Warnings for the reader; none of them changes a bound."""
    losses: tuple[Losses, ...]
    """Histograms of losses under each target, and under the helper if there is one."""
    scores: tuple[GameScores, ...] = unstored()
    """Coins and scores of each seed, against generated and, if there are some, real non-members.
    They are left out of JSON: a report read from there has none."""
    checked: Checked | None = field(default=None, metadata=IF_ANY)
    """A claimed guarantee that was checked, by `with_check`."""

    def row(self, target: str, audit: Audit = "PANORAMIA") -> PanoramiaRow:
        """Return the row of the table that has this target and this audit of it."""
        rows = {(row.target, row.audit): row for row in self.rows}
        if (target, audit) not in rows:
            raise OptionError(
                f"there is no row ({target!r}, {audit!r}); rows: {', '.join(map(str, rows))}"
            )
        return rows[target, audit]

    def games(self, nonmembers: NonMembers = "generated") -> tuple[GameScores, ...]:
        """Return coins and scores, one game for each seed, to audit again without training.

        In all of them members were compared with generated, or with real, non-members.
        """
        games = tuple(game for game in self.scores if game.nonmembers == nonmembers)
        if not games:
            raise OptionError(
                f"there are no scores of games with {nonmembers} non-members: the run had none, or "
                "this report was read from JSON, which has no scores"
            )
        return games

    def table(self) -> list[tuple[str, ...]]:
        """Return the table of the paper (its Table 3) in words.

        It has target, audit, examples, c, c + ε, ε̃ and ε; "-" where an audit has no such number.
        """
        lines = []
        for row in self.rows:
            spreads = (row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde, row.epsilon)
            cells = [str(spread or "-") for spread in spreads]
            lines.append((row.target, row.audit, f"{row.m:,}", *cells))
        return lines

    def check(self, *, epsilon: float, delta: float = 0.0, c: float | None = None) -> Verdict:
        """Check a claimed guarantee of all targets, as `PanoramiaResult.check` does of one.

        It is refuted if the audit of any target with any seed refutes it: PANORAMIA the pair
        (c, ε), so that it takes a claimed c, and RM;RN, where c is 0, ε alone. Other rows are not
        asked: the union bound has the same scores, O(1) is weaker, Zero-Run holds on a condition.

        Each of these k audits holds at `confidence` by itself. A true claim is refuted by any of
        them with probability at most k (1 - confidence): for a verdict at 95 %, run with
        ``Options(confidence=1 - 0.05 / k)``. "inconclusive" means that none could have refuted it.
        """
        verdicts = {
            verdict for *_, verdict in _verdicts_of_audits(self, epsilon=epsilon, delta=delta, c=c)
        }
        ranked: tuple[Verdict, ...] = ("refuted", "not refuted")
        return next((verdict for verdict in ranked if verdict in verdicts), "inconclusive")

    def _flaw(self) -> str:
        return self._flaw_of_check()

    @property
    def _lead(self) -> PanoramiaResult:
        return next(row.estimates[0] for row in self.rows if row.audit == "PANORAMIA")

    @property
    def bound(self) -> float:
        """The largest estimate, a mean over seeds."""
        return estimate(row_of_largest_estimate(self.rows))

    @property
    def ceiling(self) -> float:
        """Mean over seeds of the largest ε̃ that a perfect attack would have given."""
        return float(np.mean([one.ceiling for one in row_of_largest_estimate(self.rows).estimates]))

    @property
    def confidence(self) -> float:
        """Of every result separately."""
        return self._lead.confidence

    def __str__(self) -> str:
        """Return the table and the meaning of its numbers."""
        columns_of_table = zip(HEADINGS, *self.table(), strict=True)
        padded_columns = [
            [cell.ljust(max(map(len, column))) for cell in column] for column in columns_of_table
        ]
        lines = ("  ".join(line).rstrip() for line in zip(*padded_columns, strict=True))
        warning_lines = (f"warning: {text}" for text in self.warnings)
        return "\n".join([*lines, "", note_of(self.rows), *warning_lines])

    def __repr__(self) -> str:
        targets = len({row.target for row in self.rows})
        return f"PanoramiaReport(targets={targets}, rows={len(self.rows)}, seeds={self.seeds})"


def describe(report: PanoramiaReport) -> Description:
    """Describe a run: the target with the largest estimate, and all targets in an overview."""
    lead = row_of_largest_estimate(report.rows)
    description_of_lead = lead.estimates[0].summary()
    assert lead.c_lb is not None
    assert lead.c_plus_epsilon_lb is not None
    c_of_baseline = lead.c_lb
    c_plus_epsilon = lead.c_plus_epsilon_lb
    estimated_epsilon = str(lead.epsilon_tilde)
    steps_after_run = next_steps.steps_after_estimate(
        lead.estimates[0], more_bounds=_ways_to_lower_bounds(report)
    )
    grounds_of_estimate = Section(
        title="Why the bounds hold",
        paragraphs=description_of_lead.sections[0].paragraphs[:1],
        assumptions=report.assumptions,
    )
    conditional_grounds = _conditional_grounds(report, lead)
    papers = ["PANORAMIA"]
    if conditional_grounds:
        papers.append("Zero-Run")
    return replace(
        description_of_lead,
        title="PANORAMIA",
        warnings=report.warnings,
        claim=f"{report.claim.name} for replacing one example, each bound by itself",
        epsilon=report.bound,
        ceiling=report.ceiling,
        next_steps=next_steps.most_urgent_steps(steps_after_run),
        formula=f"ε̃ = {number(report.bound)}, estimate",
        headline=_headline_of_lead(report, lead),
        answer=_answer_to_claim(report),
        paragraphs=(_evidence_on_lead(report),),
        metrics=(
            Metric(name="Estimate ε̃", value=estimated_epsilon, note="estimate, not a lower bound"),
            Metric(name="c + ε at least", value=str(c_plus_epsilon), note="attack, with the model"),
            Metric(name="c at least", value=str(c_of_baseline), note="baseline, without the model"),
            Metric(
                name="Examples",
                value=f"{lead.m:,}",
                note=f"tested with each of {len(report.seeds)} seeds",
            ),
        ),
        levels=estimated(
            str(c_of_baseline),
            c_lb=c_of_baseline.mean,
            both=str(c_plus_epsilon),
            both_lb=c_plus_epsilon.mean,
            epsilon=estimated_epsilon,
        ),
        figures=(saturation_figure(report.saturation), *map(loss_figure, report.losses)),
        sections=(grounds_of_estimate, *conditional_grounds),
        numbers=description_of_lead.numbers
        | {"epsilon": report.bound, "epsilon_ceiling": report.ceiling},
        papers=tuple(papers),
        about={"Parts": ", ".join(f"{count:,} {part}" for part, count in report.sizes.items())},
        overview=Overview(
            title="All targets",
            table=[HEADINGS, *report.table()],
            note=note_of(report.rows),
            figure=audits_figure(report.rows),
        ),
    )


def _conditional_grounds(report: PanoramiaReport, lead: PanoramiaRow) -> list[Section]:
    """Return why the conditional bounds hold, if there are any: those of the lead if it has one."""
    conditional_rows = [row for row in report.rows if row.conditional]
    if not conditional_rows:
        return []
    row_of_lead = min(conditional_rows, key=lambda row: row.target != lead.target)
    conditional_bound = row_of_lead.conditional[0]
    grounds = Section(
        title="Grounds of the conditional lower bounds",
        paragraphs=(conditional_bound.theorem,),
        assumptions=conditional_bound.assumptions,
    )
    return [grounds]


def _headline_of_lead(report: PanoramiaReport, lead: PanoramiaRow) -> str:
    """Return the largest estimate in a sentence, or that nothing was found."""
    largest_estimate = estimate(lead)
    if largest_estimate <= 0:
        return NOTHING
    target_count = sum(row.audit == "PANORAMIA" for row in report.rows)
    of_target = ""
    if target_count > 1:
        of_target = f" for “{lead.target}”, the largest of {target_count} targets"
    return (
        f"Estimated leakage{of_target}: ε̃ = {number(largest_estimate)} in "
        f"the mean over {len(report.seeds)} seeds. This is not a lower bound on ε."
    )


def _ways_to_lower_bounds(report: PanoramiaReport) -> str:
    """Say what to pass to `run` for the lower bounds on ε that the table does not have."""
    audits = {row.audit for row in report.rows}
    ways = []
    is_text = report.options.get("attack") == repr(StackedAttack("text"))
    if audits.isdisjoint(CORRECTIONS) and not is_text:
        ways.append(
            f"Run with Options(conditional=True, seeds={report.seeds}) to get a conditional lower "
            "bound from the same examples."
        )
    if audits.isdisjoint(REAL):
        ways.append(
            "Real non-members, passed as nonmembers=(x, y), give lower bounds without a condition."
        )
    return " ".join(ways)


def _verdicts_of_audits(
    report: PanoramiaReport, epsilon: float, delta: float, c: float | None
) -> list[tuple[PanoramiaRow, PanoramiaResult, float | None, Verdict]]:
    """Return what each audit that `check` asks says, and the c that it was asked about."""
    c_of_audits: dict[Audit, float | None] = {"PANORAMIA": c, "RM;RN": None}
    verdicts_of_audits = []
    for row in report.rows:
        if row.audit not in c_of_audits:
            continue
        claimed_c = c_of_audits[row.audit]
        for result in row.estimates:
            verdict = result.check(epsilon=epsilon, delta=delta, c=claimed_c)
            verdicts_of_audits.append((row, result, claimed_c, verdict))
    return verdicts_of_audits


def _answer_to_claim(report: PanoramiaReport) -> str:
    """Return what the first audit with the verdict says, and how many were asked."""
    claimed = report.checked
    if claimed is None:
        return ""
    delta = claimed.delta or 0.0
    verdicts_of_audits = _verdicts_of_audits(
        report, epsilon=claimed.value, delta=delta, c=claimed.c
    )
    # The first that has the verdict speaks for the run.
    row, result, limit, _ = next(
        check for check in verdicts_of_audits if check[-1] == claimed.verdict
    )
    answer = result.with_check(epsilon=claimed.value, delta=delta, c=limit).summary().answer
    if len(verdicts_of_audits) == 1:
        return answer
    return (
        f"{answer} This is {row.audit} of “{row.target}”, one of {len(verdicts_of_audits)} audits, "
        f"each at {percent(report.confidence)} by itself."
    )


def _evidence_on_lead(report: PanoramiaReport) -> str:
    """Return the bounds of the largest estimate, and what other audits of its target say."""
    lead = row_of_largest_estimate(report.rows)
    sentences = [
        f"The bound of the baseline, without the model, is c ≥ {lead.c_lb}; that of the attack, "
        f"with it, is c + ε ≥ {lead.c_plus_epsilon_lb}."
    ]
    rows_of_target = {row.audit: row for row in report.rows if row.target == lead.target}
    if conditional_bounds := [
        f"{rows_of_target[name].epsilon} by {name}"
        for name in CORRECTIONS
        if name in rows_of_target
    ]:
        sentences.append(
            "If membership depends on an example only through the baseline's score, ε is at least "
            f"{' and '.join(conditional_bounds)}, on the same examples."
        )
    if "RM;RN" in rows_of_target:
        sentences.append(
            "Against real non-members, where c = 0, the same kind of attack gives ε ≥ "
            f"{rows_of_target['RM;RN'].epsilon}, and guesses by the loss alone give "
            f"ε ≥ {rows_of_target['O(1)'].epsilon}."
        )
    return " ".join(sentences)


# Marker, colour and filling of a number of some kind: bounds are filled.
_MARKS = {
    "estimate": ("o", MEMBER, PAPER),
    "conditional lower bound": ("s", OTHER, OTHER),
    "lower bound": (">", OTHER, OTHER),
}


def saturation_figure(saturation: Saturation) -> Figure:
    """Return c against the baseline's training data."""
    return Figure(
        name="saturation",
        title="c against training data",
        draw=partial(_plot_saturation, saturation),
        caption="Grey lines show individual seeds; dots show their mean. If the line still rises "
        "at the right end, the true c is larger and ε̃ is smaller.",
    )


def _plot_saturation(saturation: Saturation, ax: "Axes | None") -> "Axes":
    with house_style():
        ax = new_axes(ax)
        for bounds_of_seed in saturation.c_lb:
            ax.plot(saturation.examples, bounds_of_seed, color=MUTED, linewidth=0.8)
        means_over_seeds = [spread.mean for spread in saturation.spreads]
        ax.plot(saturation.examples, means_over_seeds, color=OTHER, marker="o", markersize=3.5)
        ax.set(xlim=(0, None), ylim=(0, max(0.2, 1.15 * float(np.max(saturation.c_lb)))))
        ax.set(title="c against training data", ylabel="lower bound on c")
        ax.set_xlabel("examples that train the baseline")
    return ax


def audits_figure(rows: Sequence[PanoramiaRow]) -> Figure:
    """Return every audit of every target, as a page opens with them."""
    return Figure(
        name="audits",
        title="All targets, audit by audit",
        draw=partial(_plot_audits, rows),
        caption="● lower bound, ■ conditional lower bound, ○ estimate (not a bound). Marks show "
        "the mean over seeds; ticks show individual seeds.",
    )


def _kind_of_bound(row: PanoramiaRow) -> str:
    if row.epsilon_tilde is not None:
        return "estimate"
    if row.conditional:
        return "conditional lower bound"
    return "lower bound"


def _plot_audits(rows: Sequence[PanoramiaRow], ax: "Axes | None") -> "Axes":
    with house_style():
        ax = new_axes(ax)
        first_row_of_target = dict[str, int]()
        for row_number, row in enumerate(rows):
            _draw_row(ax, row, row_number)
            first_row_of_target.setdefault(row.target, row_number)
        ax.set_yticks([*first_row_of_target.values()], [*first_row_of_target])
        ax.set(xlabel="ε", ylim=(len(rows) - 0.4, -0.7))
        ax.set_xlim(0, 1.35 * max(0.1, *(one.bound for row in rows for one in row.results)))
        ax.grid(visible=False, axis="y")
        for kind in dict.fromkeys(map(_kind_of_bound, rows)):
            marker, colour, face_colour = _MARKS[kind]
            ax.plot([], [], marker, color=colour, mfc=face_colour, markersize=6.5, label=kind)
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        ax.set_title("All targets, audit by audit")
        plain_words(ax, ax.get_yticklabels())
    return ax


def _draw_row(ax: "Axes", row: PanoramiaRow, place: int) -> None:
    """Draw the mean of an audit, the value of each seed, and both in words."""
    spread = row.epsilon_tilde or row.epsilon
    assert spread is not None
    kind = _kind_of_bound(row)
    marker, colour, face_colour = _MARKS[kind]
    bounds_of_seeds = [result.bound for result in row.results]
    ax.plot([0, spread.mean], [place] * 2, color=RULE, linewidth=0.9)
    ax.plot(bounds_of_seeds, [place] * len(bounds_of_seeds), "|", color=colour, markersize=7)
    ax.plot(spread.mean, place, marker, color=colour, mfc=face_colour, markersize=6.5)
    relation_sign = "ε ≥"
    if kind == "estimate":
        relation_sign = "ε̃ ="
    ax.annotate(
        f"{row.audit}: {relation_sign} {spread}",
        (max(spread.mean, *bounds_of_seeds), place),
        color=colour,
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
    )


def loss_figure(losses: Losses) -> Figure:
    """Return the losses of members, generated and real non-members under one of the models."""
    model_in_words = f"“{losses.model}”"
    caption = (
        "Training data of the attack. Members with smaller losses than real non-members were "
        "memorised. A difference between generated examples and real non-members is due to the "
        "generator."
    )
    if is_helper(losses.model):
        model_in_words = f"the {losses.model}"
        caption = (
            "Training data of the baseline. The helper was not trained on audited members. If "
            "generated examples differ from the others, they can be recognised without the target, "
            "and c is large."
        )
    name = f"losses of {losses.model}"
    return Figure(
        name=name,
        title=f"Losses under {model_in_words}",
        draw=partial(_plot_losses, losses),
        caption=caption,
    )


def _plot_losses(losses: Losses, ax: "Axes | None") -> "Axes":
    """Draw Figures 13 and 14 of Kazmi et al. 2024 (arXiv 2402.09477)."""
    with house_style():
        ax = new_axes(ax)
        styles_of_sides = ((MEMBER, "-"), (OTHER, "--"), (INK, ":"))
        for (side_name, counts_in_bins), (colour, line_style) in zip(
            losses.sides.items(), styles_of_sides, strict=False
        ):
            shares_in_bins = counts_in_bins / max(1, counts_in_bins.sum())
            ax.stairs(
                shares_in_bins, losses.edges, fill=True, color=colour, alpha=0.15, linewidth=0
            )
            ax.stairs(
                shares_in_bins, losses.edges, color=colour, linestyle=line_style, label=side_name
            )
        if losses.logarithmic:
            ax.set_xscale("log")
        ax.set(xlim=(float(losses.edges[0]), float(losses.edges[-1])), ylim=(0, None))
        ax.grid(visible=False, axis="x")
        ax.legend(loc="best")
        ax.set(title=f"Losses of “{losses.model}”", xlabel="loss, nats")
        ax.set_ylabel("share of examples per bin")
        plain_words(ax)
    return ax
