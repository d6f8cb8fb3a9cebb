"""Figures of a run: all audits, c against training data, losses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound.panoramia.losses import is_helper
from leakbound.report.description import Figure
from leakbound.report.style import INK, MEMBER, MUTED, OTHER, PAPER, RULE, house_style, new_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from leakbound.panoramia.losses import Losses
    from leakbound.panoramia.table import PanoramiaRow, Saturation

# Marker, colour and filling of a number of some kind: bounds are filled.
_MARKS = {
    "estimate": ("o", MEMBER, PAPER),
    "conditional lower bound": ("s", OTHER, OTHER),
    "lower bound": (">", OTHER, OTHER),
}


def saturation_figure(saturation: Saturation) -> Figure:
    """Return c against the baseline's training data."""
    return Figure(
        "saturation",
        "c against training data",
        partial(_plot_saturation, saturation),
        "Grey lines show individual seeds; dots show their mean. If the line still rises at the "
        "right end, the true c is larger and ε̃ is smaller.",
    )


def _plot_saturation(saturation: Saturation, ax: Axes | None) -> Axes:
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
        "audits",
        "All targets, audit by audit",
        partial(_plot_audits, rows),
        "● lower bound, ■ conditional lower bound, ○ estimate (not a bound). Marks show the mean "
        "over seeds; ticks show individual seeds.",
    )


def _kind(row: PanoramiaRow) -> str:
    if row.epsilon_tilde is not None:
        return "estimate"
    return "conditional lower bound" if row.conditional else "lower bound"


def _plot_audits(rows: Sequence[PanoramiaRow], ax: Axes | None) -> Axes:
    with house_style():
        ax = new_axes(ax)
        for place, row in enumerate(rows):
            spread, (marker, colour, face) = row.epsilon_tilde or row.epsilon, _MARKS[_kind(row)]
            assert spread is not None
            values = [result.bound for result in row.results]
            ax.plot([0, spread.mean], [place] * 2, color=RULE, linewidth=0.9)
            ax.plot(values, [place] * len(values), "|", color=colour, markersize=7)
            ax.plot(spread.mean, place, marker, color=colour, mfc=face, markersize=6.5)
            sign, end = "ε̃ =" if face == PAPER else "ε ≥", (max(spread.mean, *values), place)
            beside: dict[str, Any] = {
                "xytext": (9, 0),
                "textcoords": "offset points",
                "va": "center",
            }
            ax.annotate(f"{row.audit}: {sign} {spread}", end, color=colour, **beside)
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
    return ax


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
    return Figure(name, f"Losses under {of}", partial(_plot_losses, losses), caption)


def _plot_losses(losses: Losses, ax: Axes | None) -> Axes:
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
    return ax
