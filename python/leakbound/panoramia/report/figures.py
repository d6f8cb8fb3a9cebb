"""Figures of a run: c against training data, targets beside each other, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound.errors import OptionError
from leakbound.report import figures as plots
from leakbound.report.style import house_style, name_axes, new_axes
from leakbound.results import PanoramiaResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakbound.panoramia.report.losses import Losses
    from leakbound.panoramia.report.report import PanoramiaReport, PanoramiaRow

__all__ = ["draw", "estimates", "plot_losses", "plot_saturation", "plot_targets"]

_LOOKS = ((plots.MEMBER, "-"), (plots.OTHER, "--"), (plots.INK, ":"))


def draw(found: PanoramiaReport, kind: str, model: str | None, ax: Axes | None) -> Axes:
    """Draw one figure of a run.

    Parameters
    ----------
    found : PanoramiaReport
        What was found.
    kind, model, ax
        As for `PanoramiaReport.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    OptionError
        If there is no such figure or model.
    MissingExtraError
        If matplotlib is not installed.
    """
    models = {one.model: one for one in found.losses}
    if kind == "losses" and (model is None or model in models):
        return plot_losses(models[model] if model else found.losses[0], ax)
    if kind == "losses":
        message = f"model must be one of {', '.join(map(repr, models))}, got {model!r}"
        raise OptionError(message)
    shared = {"targets": plot_targets, "saturation": plot_saturation}
    if kind not in shared:
        message = f"kind must be one of {', '.join([*shared, 'losses'])}, got {kind!r}"
        raise OptionError(message)
    with house_style():
        return shared[kind](found, new_axes(ax))


def plot_losses(losses: Losses, ax: Axes | None = None) -> Axes:
    """Draw the losses of members, generated and real non-members under one model.

    Parameters
    ----------
    losses : Losses
        Histograms.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Loss against the share of each side in a bin.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

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


def plot_saturation(found: PanoramiaReport, ax: Axes) -> Axes:
    """Draw c_lb against the training data of the baseline, one line for each seed and their mean.

    Parameters
    ----------
    found : PanoramiaReport
        What was found.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    saturation = found.saturation
    for line in saturation.c_lb:
        ax.plot(saturation.examples, line, color=plots.MUTED, linewidth=0.8)
    means = [spread.mean for spread in saturation.spreads]
    ax.plot(saturation.examples, means, color=plots.OTHER, marker="o", markersize=3.5)
    ax.set_ylim(0, max(0.2, 1.15 * float(np.max(saturation.c_lb))))
    ax.set_xlim(0, None)
    ax.set_title("c against training data")
    ax.set_xlabel("examples that train the baseline")
    ax.set_ylabel("lower bound on c")
    return ax


def plot_targets(found: PanoramiaReport, ax: Axes) -> Axes:
    """Draw c_lb and what the attack proves beyond it, target by target.

    Parameters
    ----------
    found : PanoramiaReport
        What was found.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    rows = [row for row in found.rows if row.audit == "PANORAMIA"]
    for place, row in enumerate(rows):
        pairs = [(r.c_lb, r.c_plus_epsilon_lb) for r in estimates(row)]
        c, both = np.mean(pairs, axis=0)
        ax.barh(place, c, height=0.5, color=plots.RULE)
        ax.barh(place, max(0.0, both - c), left=c, height=0.5, color=plots.MEMBER)
        ax.plot([value for _, value in pairs], [place] * len(pairs), "|", color=plots.INK)
    ax.set_yticks(range(len(rows)), [row.target for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(0, None)
    ax.set_title("c and ε̃ by target")
    ax.set_xlabel("c proved by the baseline, then ε̃; marks: c + ε of each seed")
    return ax


def estimates(row: PanoramiaRow) -> list[PanoramiaResult]:
    """Return the results of a row of PANORAMIA.

    Parameters
    ----------
    row : PanoramiaRow
        A target under an audit.

    Returns
    -------
    list of PanoramiaResult
        One for each seed.
    """
    return [result for result in row.results if isinstance(result, PanoramiaResult)]
