"""Figures of a run: c against training data, targets beside each other, losses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from leakbound.panoramia.losses import is_helper
from leakbound.report import style
from leakbound.report.description import Figure
from leakbound.report.style import house_style, name_axes, new_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from leakbound.panoramia.losses import Losses
    from leakbound.panoramia.table import PanoramiaRow, Saturation

_MARKS = {
    "estimate": ("o", style.MEMBER, False),
    "conditional lower bound": ("s", style.OTHER, True),
    "lower bound": (">", style.OTHER, True),
}
"""Marker and colour of a number of some kind, and whether it is filled: bounds are."""
_LOOKS = ((style.MEMBER, "-"), (style.OTHER, "--"), (style.INK, ":"))


def saturation_figure(saturation: Saturation) -> Figure:
    """Return c against the baseline's training data, as a page shows it."""
    spreads = zip(saturation.examples, saturation.spreads, strict=True)
    grown = ", ".join(f"{spread.mean:.2f} at {examples:,}" for examples, spread in spreads)
    return Figure(
        "saturation",
        "c against training data",
        partial(_plot_saturation, saturation),
        f"Lower bound on c against training examples of the baseline: {grown}.",
        "Each grey line is a seed, the dots their mean. Where the line still rises at the right "
        "end, c is larger than shown, and ε̃ smaller.",
    )


def target_figure(rows: Sequence[PanoramiaRow]) -> Figure:
    """Return estimates target by target, as a page shows them."""
    targets = "; ".join(f"{row.target}: {row.epsilon_tilde}" for row in rows)
    return Figure(
        "targets",
        "c and ε̃ by target",
        partial(_plot_targets, rows),
        f"Estimates by target: {targets}.",
        "Grey: the bound on c of the baseline, without the model. Blue: what the attack adds to "
        "it. Grey that fills the axis is a generator that is easily told from real data, and "
        "leaves no room for ε̃.",
    )


def audits_figure(rows: Sequence[PanoramiaRow]) -> Figure:
    """Return every audit of every target, as a page opens with them."""
    said = "; ".join(
        f"{row.target}, {row.audit}: {_kind(row)} {row.epsilon_tilde or row.epsilon}"
        for row in rows
    )
    return Figure(
        "audits",
        "All targets, audit by audit",
        partial(_plot_audits, rows),
        f"Estimates and lower bounds on ε. {said}.",
        "Filled marks are lower bounds on ε, open ones estimates, which bound nothing; a filled "
        "square holds on a condition. Each is the mean over seeds, ticks are the seeds.",
    )


def _kind(row: PanoramiaRow) -> str:
    if row.epsilon_tilde is not None:
        return "estimate"
    return "conditional lower bound" if row.conditional else "lower bound"


def loss_figure(losses: Losses) -> Figure:
    """Return the losses under one of the models, as a page shows them."""
    medians = ", ".join(f"{side} {value:.3g}" for side, value in losses.medians.items())
    caption = (
        "What the attack learns from: members whose losses are smaller than those of real "
        "non-members were learnt by heart. Where generated examples differ from real non-members, "
        "it is the generator that shows."
    )
    of = f"“{losses.model}”"
    if is_helper(losses.model):
        of = f"the {losses.model}"
        caption = (
            "What the baseline learns from. The helper saw no member that is audited: where "
            "generated examples differ from the others, they can be told from real data, and c is "
            "large."
        )
    return Figure(
        f"losses of {losses.model}",
        f"Losses under {of}",
        partial(_plot_losses, losses),
        f"Histograms of losses under {of}; medians in nats: {medians}.",
        caption,
    )


def _plot_losses(losses: Losses, ax: Axes | None) -> Axes:
    """Draw the losses of members, generated and real non-members under one model.

    References
    ----------
    Kazmi et al. 2024 (arXiv 2402.09477), Figures 13 and 14.
    """
    with house_style():
        ax = new_axes(ax)
        for (name, counts), (colour, dashes) in zip(losses.sides.items(), _LOOKS, strict=False):
            shares = counts / max(1, counts.sum())
            ax.stairs(shares, losses.edges, fill=True, color=colour, alpha=0.15, linewidth=0)
            ax.stairs(shares, losses.edges, color=colour, linestyle=dashes, label=name)
        if losses.logarithmic:
            ax.set_xscale("log")
        ax.set_xlim(float(losses.edges[0]), float(losses.edges[-1]))
        ax.set_ylim(bottom=0)
        ax.grid(visible=False, axis="x")
        ax.legend(loc="best")
        name_axes(ax, f"Losses of “{losses.model}”", "loss, nats", "share of examples per bin")
    return ax


def _plot_audits(rows: Sequence[PanoramiaRow], ax: Axes | None) -> Axes:
    """Draw every audit of every target: estimates by open marks, lower bounds by filled ones."""
    with house_style():
        ax = new_axes(ax)
        targets = list(dict.fromkeys(row.target for row in rows))
        place, middles = 0.0, []
        for target in targets:
            own = [row for row in rows if row.target == target]
            middles.append(place + (len(own) - 1) / 2)
            for row in own:
                spread, kind = row.epsilon_tilde or row.epsilon, _kind(row)
                assert spread is not None
                marker, colour, filled = _MARKS[kind]
                values = [result.bound for result in row.results]
                if len(values) > 1:
                    ax.plot(values, [place] * len(values), "|", color=colour, markersize=7)
                ax.plot([0, spread.mean], [place] * 2, color=style.RULE, linewidth=0.9)
                face = colour if filled else style.PAPER
                ax.plot(spread.mean, place, marker, color=colour, mfc=face, markersize=6.5)
                ax.annotate(
                    f"{row.audit}: {'ε̃ =' if not filled else 'ε ≥'} {spread}",
                    (max(spread.mean, *values), place),
                    xytext=(9, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                )
                place += 1
            place += 0.6
        ax.set_yticks(middles, targets)
        ax.set_ylim(place - 0.9, -0.7)
        right = max(one.bound for row in rows for one in row.results)
        ax.set_xlim(0, 1.35 * max(right, 0.1))
        ax.grid(visible=False, axis="y")
        kinds = list(dict.fromkeys(_kind(row) for row in rows))
        for kind in kinds:
            marker, colour, filled = _MARKS[kind]
            face = colour if filled else style.PAPER
            ax.plot([], [], marker, color=colour, mfc=face, markersize=6.5, label=kind)
        colours = [_MARKS[kind][1] for kind in kinds]
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, labelcolor=colours)
        ax.set_title("All targets, audit by audit")
        ax.set_xlabel("ε")
    return ax


def _plot_saturation(saturation: Saturation, ax: Axes | None) -> Axes:
    """Draw c_lb against the training data of the baseline: every seed, and their mean."""
    with house_style():
        ax = new_axes(ax)
        for line in saturation.c_lb:
            ax.plot(saturation.examples, line, color=style.MUTED, linewidth=0.8)
        means = [spread.mean for spread in saturation.spreads]
        ax.plot(saturation.examples, means, color=style.OTHER, marker="o", markersize=3.5)
        ax.set_ylim(0, max(0.2, 1.15 * float(np.max(saturation.c_lb))))
        ax.set_xlim(0, None)
        ax.set_title("c against training data")
        ax.set_xlabel("examples that train the baseline")
        ax.set_ylabel("lower bound on c")
    return ax


def _plot_targets(rows: Sequence[PanoramiaRow], ax: Axes | None) -> Axes:
    """Draw c_lb and what the attack finds beyond it, target by target."""
    with house_style():
        ax = new_axes(ax)
        for place, row in enumerate(rows):
            pairs = [(one.c_lb, one.c_plus_epsilon_lb) for one in row.estimates]
            c, both = np.mean(pairs, axis=0)
            ax.barh(place, c, height=0.5, color=style.RULE)
            ax.barh(place, max(0.0, both - c), left=c, height=0.5, color=style.MEMBER)
            ax.plot([value for _, value in pairs], [place] * len(pairs), "|", color=style.INK)
        ax.set_yticks(range(len(rows)), [row.target for row in rows])
        ax.invert_yaxis()
        ax.set_xlim(0, None)
        ax.set_title("c and ε̃ by target")
        ax.set_xlabel("c of the baseline, then ε̃; marks: c + ε of each seed")
    return ax
