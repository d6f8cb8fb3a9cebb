"""Figures of an audit: each function draws one figure from a `Drawing` and returns its Axes.

The figures share one style, applied while they are drawn and never left in matplotlib's settings.
The colours are told apart by colour-blind readers and in grey; every line is also named in words.

Sources
-------
Precision against recall: Kazmi et al. 2024 (arXiv 2402.09477), Figures 3 and 4. ROC on logarithmic
axes: Carlini et al. 2022 (arXiv 2112.03570).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.formatting import number
from leakbound._base.types import FloatArray, Named
from leakbound.report import style
from leakbound.report.description import Drawing, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Axes end here: beyond it, their arithmetic overflows
_FARTHEST = 1e300
# Cuts up to which each is marked, so that a policy which tests few of them shows which
_FEW = 60
# Lines of bounds
_DASHED: Named = {"linewidth": 0.9, "linestyle": (0, (4, 2))}
# Lines of what chance gives, or a perfect attack
_CHANCE: Named = {"color": style.MUTED, "linewidth": 0.9, "linestyle": (0, (1, 2))}


def plot_bound(drawing: Drawing, ax: "Axes | None" = None) -> "Axes":
    """Draw the bound that every cut would give, with the final bound and the ceiling."""
    if drawing.family:
        return _draw_privacy_profiles(drawing, ax)
    with style.house_style():
        ax = style.new_axes(ax)
        series = drawing.series
        relation = "≥"
        if drawing.kind == "exploratory_lower_bound":
            relation = "≈"
        for one in series:
            _draw_bounds_at_thresholds(ax, one, relation=relation, alone=len(series) == 1)
        ceiling = series[0].ranking.ceiling
        ax.axhline(
            min(ceiling, _FARTHEST), label=f"ceiling {number(ceiling)}: a perfect attack", **_CHANCE
        )
        highest = max(one.ranking.bound for one in series)
        top = max(ceiling, highest, 0.1)
        if 0 < 4 * highest < ceiling:  # a ceiling far above is named, and not shown
            top = 1.6 * highest
        top = min(top, _FARTHEST)
        ax.set_ylim(-0.03 * top, (1.15 + 0.12 * (len(series) + 1)) * top)  # room for the legend
        largest = max((int(x) for one in series for x in one.ranking.curve.guesses[-1:]), default=1)
        ax.set(xscale="log", xlim=(1, largest * 1.05))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.legend(loc="upper left")
        what = f"lower bound on {', '.join(one.symbol for one in reversed(series))}"
        style.name_axes(
            ax, title="Bound against guesses", x="guesses made", y=what, kind=drawing.kind
        )
    return ax


def _draw_bounds_at_thresholds(ax: "Axes", series: Series, *, relation: str, alone: bool) -> None:
    """Draw the bound that each cut would give, and the chosen one."""
    ranking = series.ranking
    curve = ranking.curve
    colour = series.colour
    tested = np.isfinite(curve.bound)
    marker = ""
    if np.count_nonzero(tested) <= _FEW:
        marker = "o"
    ax.plot(curve.guesses[tested], curve.bound[tested], color=colour, marker=marker, markersize=3)
    text = f"{series.prefix}{series.symbol} {relation} {series.bound}"
    if ranking.bound <= 0:
        text += ": nothing refuted"
    elif alone:
        text += f"; {ranking.correct:,} of {ranking.guesses:,} guesses right"
    ax.axhline(ranking.bound, color=colour, label=text, **_DASHED)
    if ranking.bound > 0:
        ax.plot(ranking.guesses, ranking.bound, "o", color=colour, markersize=5, zorder=4)


def _draw_privacy_profiles(drawing: Drawing, ax: "Axes | None") -> "Axes":
    """Draw ε against δ of the curve that an audit of a family rejects, and of the ceiling."""
    with style.house_style():
        ax = style.new_axes(ax)
        delta = np.geomspace(1e-12, 1.0, 241)[:-1]
        for name, curve, colour, line in (
            ("rejected", drawing.rejected, style.MEMBER, "-"),
            ("a perfect attack", drawing.rejectable, style.MUTED, ":"),
        ):
            if curve is not None:
                epsilon = np.asarray(curve.epsilon(delta))
                known = np.isfinite(epsilon)
                ax.plot(delta[known], epsilon[known], color=colour, linestyle=line, label=name)
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        if drawing.rejectable is not None:
            ax.legend(loc="upper right")
        style.name_axes(ax, title="ε against δ", x="δ", y="lower bound on ε", kind=drawing.kind)
    return ax


def plot_precision_recall(drawing: Drawing, ax: "Axes | None" = None) -> "Axes":
    """Draw precision against recall, with the cut that the bound is from."""
    with style.house_style():
        ax = style.new_axes(ax)
        series = drawing.series
        low = 0.5
        ax.axhline(0.5, label="coin toss", **_CHANCE)
        for one in series:
            curve = one.ranking.curve
            ax.plot(curve.recall, curve.precision, color=one.colour, label=one.name)
            low = min(low, float(curve.precision[curve.guesses >= 10].min(initial=0.5)))
            if drawing.family or one.ranking.bound > 0:
                _mark_chosen_threshold(ax, one)
        ax.set_ylim(low - 0.06, 1.06)
        ax.set_yticks([tick for tick in np.arange(0.0, 1.01, 0.1) if tick >= low - 0.06])
        ax.set_xlim(-0.01, 1.01)
        ax.legend(loc="best")
        what = "share of correct guesses"
        style.name_axes(ax, title="Precision and recall", x="recall", y=what, kind=drawing.kind)
    return ax


def plot_roc(drawing: Drawing, ax: "Axes | None" = None) -> "Axes":
    """Draw the ROC curve on logarithmic axes, with the most that ε-DP allows at the bound.

    An ε-DP model allows at most TPR = min(e^ε FPR, 1 - e^-ε (1 - FPR)), and one that obeys the
    trade-off function f at most 1 - f(FPR): drawn for the rejected curve of a family. The measured
    curve carries sampling error, which the bound allows for: it may lie above its own line.
    """
    with style.house_style():
        ax = style.new_axes(ax)
        series = drawing.series
        rocs = [one.ranking.roc for one in series]
        steps = np.concatenate(
            [x for one in rocs for x in (one.false_positive_rate, one.true_positive_rate)]
        )
        # where a rate of zero is drawn
        floor = 0.5 * float(steps[steps > 0].min(initial=1.0))
        grid = np.geomspace(floor, 1.0, 400)
        for one, roc in zip(series, rocs, strict=True):
            false_positive = np.maximum([0.0, *roc.false_positive_rate], floor)
            true_positive = np.maximum([0.0, *roc.true_positive_rate], floor)
            ax.plot(false_positive, true_positive, color=one.colour, label=one.name)
        for one in series:
            most = _largest_true_positive_rates(
                drawing, bound=one.ranking.bound, false_positive_rates=grid
            )
            if most is not None:
                several = ""
                if drawing.copies > 1:
                    several = f", {drawing.copies} copies"
                label = f"most for {one.symbol} = {one.bound}{several}"
                ax.plot(grid, most, color=one.colour, label=label, **_DASHED)
        ax.plot(grid, grid, label="coin toss", **_CHANCE)
        ax.set(xscale="log", yscale="log", xlim=(floor, 1.0), ylim=(floor, 1.15))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:g}")
        ax.legend(loc="lower right")
        rates_of = ("false-positive rate", "true-positive rate")
        style.name_axes(ax, "ROC, logarithmic", *rates_of, drawing.kind)
    return ax


def _largest_true_positive_rates(
    drawing: Drawing, bound: float, false_positive_rates: FloatArray
) -> FloatArray | None:
    """Return the largest true positive rates that a bound allows; None if there is no bound."""
    rejected = drawing.together or drawing.rejected
    if rejected is not None:
        return 1 - np.asarray(rejected.f(false_positive_rates))
    if drawing.family or bound <= 0:
        return None
    of_all = drawing.copies * bound
    by_ratio = np.exp(of_all) * false_positive_rates
    by_complement = 1 - np.exp(-of_all) * (1 - false_positive_rates)
    most: FloatArray = np.minimum(by_ratio, by_complement)
    return most


def plot_histogram(drawing: Drawing, ax: "Axes | None" = None) -> "Axes":
    """Draw the scores of members and of non-members."""
    with style.house_style():
        ax = style.new_axes(ax)
        histogram = drawing.series[0].ranking.histogram
        style.draw_classes(
            ax, edges=histogram.edges, members=histogram.members, others=histogram.non_members
        )
        per_bin = f"{drawing.series[0].units} per bin"
        style.name_axes(ax, title="Scores", x="score (higher: more likely a member)", y=per_bin)
        ax.set_title("Scores", pad=20)
    return ax


@dataclass(frozen=True)
class Plot:
    """A figure that every audit of a ranking has: how to draw it, and its words.

    A function draws it on the axes that it is given, or on new ones, and returns them. Title and
    caption are made from the same `Drawing`, whose first series has the result as `ranking`.
    """

    draw: Callable[[Drawing, "Axes | None"], "Axes"]
    title: Callable[[Drawing], str]
    caption: Callable[[Drawing], str]


def _title_of_bound(drawing: Drawing) -> str:
    if drawing.family:
        return "ε against δ"
    return "Bound against guesses"


def _caption_of_bound(drawing: Drawing) -> str:
    if drawing.family:
        return (
            "The ε at each δ of the least private curve that is ruled out. Dotted: the curve that "
            "a perfect attack would have ruled out."
        )
    if drawing.batches:
        return (
            "The bound after each batch, by the guesses of one sequence. Dashed: the final bound. "
            "Dotted: what a perfect attack would have reached."
        )
    return (
        "The bound that each tested threshold would give if it were the best one. Dashed: the "
        "final bound. Dotted: what a perfect attack would have reached."
    )


def _caption_of_precision(drawing: Drawing) -> str:
    caption = "Precision of guesses by recall. Dotted: guessing."
    if drawing.family or any(one.ranking.bound > 0 for one in drawing.series):
        caption += " The dot marks the guesses that the report counts."
        ranking = drawing.series[0].ranking
        if ranking.path == "ends" and ranking.options.get("correction") != "tamper":
            caption += " The curve has as many of members as of non-members."
    return caption


def _caption_of_roc(drawing: Drawing) -> str:
    caption = "Dotted: guessing. Rates of 0 are drawn at the edge."
    if drawing.series[0].ranking.bound > 0 and drawing.has_epsilon:
        caption = (
            "Dashed: the best ROC curve possible if ε equalled the bound. The measured curve may "
            "lie above it by chance; the bound accounts for that."
        )
    if drawing.kind in {"conditional_lower_bound", "exploratory_lower_bound"}:
        caption += " This curve is not corrected for distribution shift."
    return caption


def _caption_of_histogram(drawing: Drawing) -> str:
    return (
        f"Scores used to rank {drawing.series[0].units}. Leakage shows where the two groups "
        "separate, most often in the right tail. The outermost bins include all scores beyond them."
    )


PLOTS: dict[str, Plot] = {
    "bound": Plot(plot_bound, _title_of_bound, _caption_of_bound),
    "precision_recall": Plot(
        plot_precision_recall, lambda _drawing: "Precision and recall", _caption_of_precision
    ),
    "roc": Plot(plot_roc, lambda _drawing: "ROC on logarithmic axes", _caption_of_roc),
    "histogram": Plot(plot_histogram, lambda _drawing: "Scores", _caption_of_histogram),
}
"""The figures of audits by name, in the order of pages. Add your own: each carries its words."""


def _mark_chosen_threshold(ax: "Axes", series: Series) -> None:
    """Mark the guesses of the bound, with a rim that sets the mark off from the lines.

    Labels may have chosen how many guesses are of each role: the curve shows equal numbers.
    """
    ranking = series.ranking
    curve = series.ranking.curve
    chosen = np.flatnonzero(curve.guesses == ranking.guesses)
    rim: Named = {"markeredgewidth": 1.3, "markersize": 8.5}
    more = ranking.correct / np.maximum(1, curve.correct[chosen])
    at = (curve.recall[chosen] * more, curve.precision[chosen] * more)
    ax.plot(*at, "o", color=series.colour, zorder=6, markeredgecolor=style.PAPER, **rim)


@dataclass(frozen=True)
class RiskBar:
    """One bar: shares of members and of others, the limit of the latter, and what is proved."""

    name: str
    members: float
    others: float
    limit: float | None
    proved: str


def plot_risks(bars: Sequence[RiskBar], ax: "Axes | None" = None) -> "Axes":
    """Draw a bar for each risk, the share of members, and a mark for others with their limit."""
    with style.house_style():
        ax = style.new_axes(ax)
        bar_places = range(len(bars))
        ax.barh(
            bar_places,
            [100 * risk_bar.members for risk_bar in bars],
            height=0.5,
            facecolor=style.MEMBER,
            alpha=0.45,
            label="members",
        )
        ax.plot(
            [100 * risk_bar.others for risk_bar in bars],
            bar_places,
            linestyle="",
            marker="D",
            markersize=5,
            color=style.OTHER,
            label="held-out people, with their limit",
        )
        largest_share = max(
            max(risk_bar.members, risk_bar.others, risk_bar.limit or 0.0) for risk_bar in bars
        )
        for bar_place, risk_bar in zip(bar_places, bars, strict=True):
            if risk_bar.limit is not None:
                ends_of_limit = [100 * risk_bar.others, 100 * risk_bar.limit]
                ax.plot(ends_of_limit, [bar_place, bar_place], color=style.OTHER, linewidth=1.3)
            end_of_bar = (
                max(risk_bar.members, risk_bar.limit or risk_bar.others) + 0.02 * largest_share
            )
            ax.text(100 * end_of_bar, bar_place, risk_bar.proved, va="center", fontsize=8)
        ax.set_xlim(0, 150 * largest_share or 1.0)
        ax.set_yticks(bar_places, [risk_bar.name for risk_bar in bars])
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=2, borderaxespad=0.1)
        style.name_axes(ax, title="", x="attack succeeds, % of people", y="")
        ax.set_title("Three questions", pad=22)  # above the legend
    return ax
