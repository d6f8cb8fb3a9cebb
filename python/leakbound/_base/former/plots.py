"""The former place of :mod:`leakbound.report.figures`."""

from leakbound.propensity.overlap import plot_overlap
from leakbound.report.figures import (
    ALERT,
    INK,
    MEMBER,
    MUTED,
    OTHER,
    PAPER,
    PLOTS,
    RULE,
    house_style,
    plot_bound,
    plot_histogram,
    plot_precision_recall,
    plot_profile,
    plot_roc,
)

__all__ = [
    "ALERT",
    "INK",
    "MEMBER",
    "MUTED",
    "OTHER",
    "PAPER",
    "PLOTS",
    "RULE",
    "house_style",
    "plot_bound",
    "plot_histogram",
    "plot_overlap",
    "plot_precision_recall",
    "plot_profile",
    "plot_roc",
]
