"""Figures that only Zero-Run audits have, and which figures a result has at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound.propensity.overlap import plot_overlap
from leakbound.report.figures import PLOTS
from leakbound.report.style import ALERT, MEMBER, MUTED, house_style, name_axes, new_axes
from leakbound.results.panoramia import PanoramiaResult
from leakbound.results.panoramia_figures import plot_true_positives
from leakbound.results.words import symbol
from leakbound.results.zero_run import ZeroRunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakbound.report.figures import Plot
    from leakbound.results.words import Result
    from leakbound.results.zero_run import Bootstrap, ShiftCurve

__all__ = ["plot_bootstrap", "plot_shift", "plots_of"]


def plot_bootstrap(bootstrap: Bootstrap, reported: float, ax: Axes | None = None) -> Axes:
    """Draw how a Zero-Run bound moves with the propensities.

    Parameters
    ----------
    bootstrap : Bootstrap
        The bounds under replicates of the propensities.
    reported : float
        The bound that is reported.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Bound against number of replicates, with the estimate and what is reported.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    with house_style():
        ax = new_axes(ax)
        finite = bootstrap.bounds[np.isfinite(bootstrap.bounds)]
        ax.hist(finite, bins=30, color=MEMBER, alpha=0.35, linewidth=0)
        ax.axvline(reported, color=MEMBER, linestyle="--", label="reported")
        ax.axvline(bootstrap.estimate, color=MUTED, linestyle=":", label="at the estimate")
        ax.legend(frameon=False)
        title = f"Bound under {bootstrap.bounds.size:,} replicates of the propensities"
        name_axes(ax, title, "bound", "replicates per bin")
    return ax


def plot_shift(curve: ShiftCurve, reported: float, parameter: str, ax: Axes | None = None) -> Axes:
    """Draw how the bound moves as examples that features tell much about are left out.

    Parameters
    ----------
    curve : ShiftCurve
        Bounds of ever larger shares of the examples.
    reported : float
        The bound that is reported.
    parameter : str
        What is bounded.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Bound against the largest |λ| left, with the naive bound and what is reported.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    with house_style():
        ax = new_axes(ax)
        places = np.arange(curve.examples.size)
        for values, name, colour in (
            (curve.naive, "naive: shift not corrected for", ALERT),
            (curve.bound, "corrected", MEMBER),
        ):
            shown = np.where(np.isfinite(values), values, np.nan)
            ax.plot(places, shown, color=colour, marker="o", markersize=3, label=name)
        if np.isfinite(reported):
            ax.axhline(reported, color=MUTED, linestyle="--", label="reported")
        labels = [
            f"{limit:.2g}\n{left:,}"
            for limit, left in zip(curve.max_log_odds, curve.examples.tolist(), strict=True)
        ]
        ax.set_xticks(places, labels)
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)
        name_axes(
            ax,
            "Bound as examples of large |log-odds| are left out",
            "largest |log-odds| left, and number of examples left",
            f"bound on {parameter}",
            tag="exploratory: choosing among these is not paid for",
        )
    return ax


def plots_of(result: Result) -> dict[str, Plot]:
    """Return the figures that a result has, by name.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        The result.

    Returns
    -------
    dict of str to callable
        `PLOTS`, for PANORAMIA true positives, and for Zero-Run the overlap, bounds against shift
        unless the bound is withheld, and, if there is one, the bootstrap.
    """
    if isinstance(result, PanoramiaResult):
        compared = result

        def counted(result: Result, ax: Axes | None = None) -> Axes:  # noqa: ARG001
            return plot_true_positives(compared, ax)

        return PLOTS | {"true_positives": counted}
    if not isinstance(result, ZeroRunResult):
        return PLOTS
    found = result

    def overlapping(result: Result, ax: Axes | None = None) -> Axes:  # noqa: ARG001
        return plot_overlap(found.overlap, ax)

    more: dict[str, Plot] = {"overlap": overlapping}
    if not found.withheld:

        def shifted(result: Result, ax: Axes | None = None) -> Axes:  # noqa: ARG001
            assert found.shift_curve is not None
            return plot_shift(found.shift_curve, found.bound, symbol(found), ax)

        more["shift"] = shifted
    bootstrap = found.bootstrap
    if bootstrap is not None:

        def replicated(result: Result, ax: Axes | None = None) -> Axes:  # noqa: ARG001
            return plot_bootstrap(bootstrap, found.bound, ax)

        more["bootstrap"] = replicated
    return PLOTS | more
