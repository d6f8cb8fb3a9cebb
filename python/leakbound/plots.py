"""The former place of :mod:`leakbound.report.figures`."""

from leakbound.report.figures import (
    plot_bound,
    plot_histogram,
    plot_precision_recall,
    plot_profile,
    plot_roc,
)

__all__ = ["plot_bound", "plot_histogram", "plot_precision_recall", "plot_profile", "plot_roc"]
