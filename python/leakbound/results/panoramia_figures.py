"""A figure that only audits by PANORAMIA have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakbound.report.style import MEMBER, MUTED, OTHER, house_style, name_axes, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakbound.results.panoramia import PanoramiaResult

__all__ = ["plot_true_positives"]


def plot_true_positives(result: PanoramiaResult, ax: Axes | None = None) -> Axes:
    """Draw how many members attack and baseline find among their first guesses.

    Parameters
    ----------
    result : PanoramiaResult
        The result.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Guesses of "member" against right ones, both rankings, with the cuts that the bounds come
        from, and the line of guesses that are all right.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    References
    ----------
    Kazmi et al. 2024 (arXiv 2402.09477), Figure 10.
    """
    with house_style():
        ax = new_axes(ax)
        for name, audit, colour in (
            ("with the model", result.attack, MEMBER),
            ("baseline", result.baseline, OTHER),
        ):
            ax.plot(audit.curve.guesses, audit.curve.correct, color=colour, label=name)
            if audit.bound > 0:
                ax.plot(audit.guesses, audit.correct, "o", color=colour, markersize=5)
        members = result.attack.members
        possible = ([0, members, result.m], [0, members, members])
        for guesses, right in (possible, ([0, result.m], [0, members])):
            ax.plot(guesses, right, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)))
        ax.annotate("all right  ", (members, members), color=MUTED, ha="right", va="top")
        ax.annotate("coin toss", (0.6 * result.m, 0.55 * members), color=MUTED, va="top")
        ax.set_xlim(0, result.m)
        ax.set_ylim(bottom=0)
        ax.legend(loc="lower right")
        name_axes(ax, "True positives", "guesses made", "right guesses", result.kind)
    return ax
