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
    largest,
    note_of,
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

    from leakbound.results import ZeroRunResult


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaReport(Composed):
    """The report of `Panoramia.run`: its number is the largest estimate, a mean over seeds."""

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
        verdicts = {verdict for *_, verdict in _checks(self, epsilon=epsilon, delta=delta, c=c)}
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
        return estimate(largest(self.rows))

    @property
    def ceiling(self) -> float:
        """Mean over seeds of the largest ε̃ that a perfect attack would have given."""
        return float(np.mean([one.ceiling for one in largest(self.rows).estimates]))

    @property
    def confidence(self) -> float:
        """Of every result separately."""
        return self._lead.confidence

    def __str__(self) -> str:
        """Return the table and the meaning of its numbers."""
        columns = zip(HEADINGS, *self.table(), strict=True)
        padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
        lines = ("  ".join(line).rstrip() for line in zip(*padded, strict=True))
        warnings = (f"warning: {text}" for text in self.warnings)
        return "\n".join([*lines, "", note_of(self.rows), *warnings])

    def __repr__(self) -> str:
        targets = len({row.target for row in self.rows})
        return f"PanoramiaReport(targets={targets}, rows={len(self.rows)}, seeds={self.seeds})"


def describe(report: PanoramiaReport) -> Description:
    """Describe a run: the target with the largest estimate, and all targets in an overview."""
    lead = largest(report.rows)
    said = lead.estimates[0].summary()
    assert lead.c_lb is not None
    assert lead.c_plus_epsilon_lb is not None
    c = lead.c_lb
    both = lead.c_plus_epsilon_lb
    estimated_epsilon = str(lead.epsilon_tilde)
    steps = next_steps.steps_after_estimate(
        lead.estimates[0], more_bounds=_ways_to_lower_bounds(report)
    )
    # Grounds of the estimate first, then those of the conditional bounds.
    sections = [
        Section(
            title="Why the bounds hold",
            paragraphs=said.sections[0].paragraphs[:1],
            assumptions=report.assumptions,
        )
    ]
    papers = ["PANORAMIA"]
    conditional = [row for row in report.rows if row.conditional]
    if conditional:
        papers.append("Zero-Run")
        first = min(conditional, key=lambda row: row.target != lead.target)
        sections.append(_conditional_grounds(first.conditional[0]))
    return replace(
        said,
        title="PANORAMIA",
        warnings=report.warnings,
        claim=f"{report.claim.name} for replacing one example, each bound by itself",
        epsilon=report.bound,
        ceiling=report.ceiling,
        next_steps=next_steps.most_urgent_steps(steps),
        formula=f"ε̃ = {number(report.bound)}, estimate",
        headline=_headline(report, lead),
        answer=_answer(report),
        paragraphs=(_evidence(report),),
        metrics=(
            Metric(name="Estimate ε̃", value=estimated_epsilon, note="estimate, not a lower bound"),
            Metric(name="c + ε at least", value=str(both), note="attack, with the model"),
            Metric(name="c at least", value=str(c), note="baseline, without the model"),
            Metric(
                name="Examples",
                value=f"{lead.m:,}",
                note=f"tested with each of {len(report.seeds)} seeds",
            ),
        ),
        levels=estimated(
            str(c), c_lb=c.mean, both=str(both), both_lb=both.mean, epsilon=estimated_epsilon
        ),
        figures=(saturation_figure(report.saturation), *map(loss_figure, report.losses)),
        sections=tuple(sections),
        numbers=said.numbers | {"epsilon": report.bound, "epsilon_ceiling": report.ceiling},
        papers=tuple(papers),
        about={"Parts": ", ".join(f"{count:,} {part}" for part, count in report.sizes.items())},
        overview=Overview(
            title="All targets",
            table=[HEADINGS, *report.table()],
            note=note_of(report.rows),
            figure=audits_figure(report.rows),
        ),
    )


def _headline(report: PanoramiaReport, lead: PanoramiaRow) -> str:
    """Return the largest estimate in a sentence, or that nothing was found."""
    if estimate(lead) <= 0:
        return NOTHING
    targets = sum(row.audit == "PANORAMIA" for row in report.rows)
    of = ""
    if targets > 1:
        of = f" for “{lead.target}”, the largest of {targets} targets"
    return (
        f"Estimated leakage{of}: ε̃ = {number(estimate(lead))} in "
        f"the mean over {len(report.seeds)} seeds. This is not a lower bound on ε."
    )


def _ways_to_lower_bounds(report: PanoramiaReport) -> str:
    """Say what to pass to `run` for the lower bounds on ε that the table does not have."""
    audits = {row.audit for row in report.rows}
    ways = []
    is_text = report.options["attack"] == repr(StackedAttack("text"))
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


def _conditional_grounds(result: "ZeroRunResult") -> Section:
    """Return why a conditional bound holds."""
    return Section(
        title="Grounds of the conditional lower bounds",
        paragraphs=(result.theorem,),
        assumptions=result.assumptions,
    )


def _checks(
    report: PanoramiaReport, epsilon: float, delta: float, c: float | None
) -> list[tuple[PanoramiaRow, PanoramiaResult, float | None, Verdict]]:
    """Return what each audit that `check` asks says, and the c that it was asked about."""
    limits: dict[Audit, float | None] = {"PANORAMIA": c, "RM;RN": None}
    checks = []
    for row in report.rows:
        if row.audit not in limits:
            continue
        limit = limits[row.audit]
        for result in row.estimates:
            verdict = result.check(epsilon=epsilon, delta=delta, c=limit)
            checks.append((row, result, limit, verdict))
    return checks


def _answer(report: PanoramiaReport) -> str:
    """Return what the first audit with the verdict says, and how many were asked."""
    one = report.checked
    if one is None:
        return ""
    delta = one.delta or 0.0
    checks = _checks(report, epsilon=one.value, delta=delta, c=one.c)
    # The first that has the verdict speaks for the run.
    row, result, limit, _ = next(check for check in checks if check[-1] == one.verdict)
    answer = result.with_check(epsilon=one.value, delta=delta, c=limit).summary().answer
    if len(checks) == 1:
        return answer
    return (
        f"{answer} This is {row.audit} of “{row.target}”, one of {len(checks)} audits, each at "
        f"{percent(report.confidence)} by itself."
    )


def _evidence(report: PanoramiaReport) -> str:
    """Return the bounds of the largest estimate, and what other audits of its target say."""
    lead = largest(report.rows)
    said = [
        f"The bound of the baseline, without the model, is c ≥ {lead.c_lb}; that of the attack, "
        f"with it, is c + ε ≥ {lead.c_plus_epsilon_lb}."
    ]
    rows = {row.audit: row for row in report.rows if row.target == lead.target}
    if proved := [f"{rows[name].epsilon} by {name}" for name in CORRECTIONS if name in rows]:
        said.append(
            "If membership depends on an example only through the baseline's score, ε is at least "
            f"{' and '.join(proved)}, on the same examples."
        )
    if "RM;RN" in rows:
        said.append(
            "Against real non-members, where c = 0, the same kind of attack gives ε ≥ "
            f"{rows['RM;RN'].epsilon}, and guesses by the loss alone give "
            f"ε ≥ {rows['O(1)'].epsilon}."
        )
    return " ".join(said)


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
        for line in saturation.c_lb:
            ax.plot(saturation.examples, line, color=MUTED, linewidth=0.8)
        means = [spread.mean for spread in saturation.spreads]
        ax.plot(saturation.examples, means, color=OTHER, marker="o", markersize=3.5)
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


def _kind(row: PanoramiaRow) -> str:
    if row.epsilon_tilde is not None:
        return "estimate"
    if row.conditional:
        return "conditional lower bound"
    return "lower bound"


def _plot_audits(rows: Sequence[PanoramiaRow], ax: "Axes | None") -> "Axes":
    with house_style():
        ax = new_axes(ax)
        for place, row in enumerate(rows):
            _draw_row(ax, row, place)
        targets = [row.target for row in rows]
        first = [targets.index(name) for name in dict.fromkeys(targets)]
        ax.set_yticks(first, [targets[place] for place in first])
        ax.set(xlabel="ε", ylim=(len(rows) - 0.4, -0.7))
        ax.set_xlim(0, 1.35 * max(0.1, *(one.bound for row in rows for one in row.results)))
        ax.grid(visible=False, axis="y")
        for kind in dict.fromkeys(map(_kind, rows)):
            marker, colour, face = _MARKS[kind]
            ax.plot([], [], marker, color=colour, mfc=face, markersize=6.5, label=kind)
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        ax.set_title("All targets, audit by audit")
        plain_words(ax, ax.get_yticklabels())
    return ax


def _draw_row(ax: "Axes", row: PanoramiaRow, place: int) -> None:
    """Draw the mean of an audit, the value of each seed, and both in words."""
    spread = row.epsilon_tilde or row.epsilon
    assert spread is not None
    kind = _kind(row)
    marker, colour, face = _MARKS[kind]
    values = [result.bound for result in row.results]
    ax.plot([0, spread.mean], [place] * 2, color=RULE, linewidth=0.9)
    ax.plot(values, [place] * len(values), "|", color=colour, markersize=7)
    ax.plot(spread.mean, place, marker, color=colour, mfc=face, markersize=6.5)
    sign = "ε ≥"
    if kind == "estimate":
        sign = "ε̃ ="
    ax.annotate(
        f"{row.audit}: {sign} {spread}",
        (max(spread.mean, *values), place),
        color=colour,
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
    )


def loss_figure(losses: Losses) -> Figure:
    """Return the losses of members, generated and real non-members under one of the models."""
    of = f"“{losses.model}”"
    caption = (
        "Training data of the attack. Members with smaller losses than real non-members were "
        "memorised. A difference between generated examples and real non-members is due to the "
        "generator."
    )
    if is_helper(losses.model):
        of = f"the {losses.model}"
        caption = (
            "Training data of the baseline. The helper was not trained on audited members. If "
            "generated examples differ from the others, they can be recognised without the target, "
            "and c is large."
        )
    name = f"losses of {losses.model}"
    return Figure(
        name=name, title=f"Losses under {of}", draw=partial(_plot_losses, losses), caption=caption
    )


def _plot_losses(losses: Losses, ax: "Axes | None") -> "Axes":
    """Draw Figures 13 and 14 of Kazmi et al. 2024 (arXiv 2402.09477)."""
    with house_style():
        ax = new_axes(ax)
        looks = ((MEMBER, "-"), (OTHER, "--"), (INK, ":"))
        for (name, counts), (colour, dashes) in zip(losses.sides.items(), looks, strict=False):
            shares = counts / max(1, counts.sum())
            ax.stairs(shares, losses.edges, fill=True, color=colour, alpha=0.15, linewidth=0)
            ax.stairs(shares, losses.edges, color=colour, linestyle=dashes, label=name)
        if losses.logarithmic:
            ax.set_xscale("log")
        ax.set(xlim=(float(losses.edges[0]), float(losses.edges[-1])), ylim=(0, None))
        ax.grid(visible=False, axis="x")
        ax.legend(loc="best")
        ax.set(title=f"Losses of “{losses.model}”", xlabel="loss, nats")
        ax.set_ylabel("share of examples per bin")
        plain_words(ax)
    return ax
