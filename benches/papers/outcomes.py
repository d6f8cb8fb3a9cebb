"""What a reproduction is: a function that returns a table, and perhaps lines of a figure."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

__all__ = ["Cell", "Compute", "Line", "Outcome", "Reproduction"]

Cell: TypeAlias = str | int | float | None
"""An entry of a table: words, a count, a number, or nothing."""


@dataclass(frozen=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    panel : str
        Title of the axes it is drawn on.
    name : str
        What it shows.
    x, y : tuple of float
        Its points.
    """

    panel: str
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """Ours beside the printed, and the reasons for differences.

    Parameters
    ----------
    columns : tuple of str
        Headings of the table.
    rows : tuple of tuple of `Cell`
        Entries, one for each heading.
    notes : tuple of str
        What was done, and why figures differ from those printed.
    lines : tuple of Line
        What a figure draws, if there is one.
    axes : tuple of str
        Names of its axes; on a logarithmic axis "log " comes first.
    shared : bool
        Whether all panels have the same y axis.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...]
    lines: tuple[Line, ...] = ()
    axes: tuple[str, ...] = ("x", "y")
    shared: bool = False


class Compute(Protocol):
    """A function that computes an outcome."""

    def __call__(self, *, full: bool) -> Outcome:
        """Compute it, with `full` at the paper's sizes."""


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper that can be computed anew.

    Parameters
    ----------
    title : str
        What it shows.
    source : str
        Paper, and number of the table or figure.
    compute : callable
        Takes `full`, whether to use the paper's sizes where they take long, and returns an
        `Outcome`.
    """

    title: str
    source: str
    compute: Compute
