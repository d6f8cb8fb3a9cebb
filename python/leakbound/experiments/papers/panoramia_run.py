"""What reproductions of Kazmi et al. (2024) have in common: one run on a table, and words."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from leakbound.experiments.papers.protocol import Cell, Line
from leakbound.panoramia import Spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leakbound.experiments.demos.panoramia import SyntheticReport

__all__ = ["OTHERS", "PAPER", "audited", "census_run", "lines_of", "mean_of", "means_of"]

QUICK: dict[str, Any] = {
    "epochs": (5, 40, 80),
    "epsilons": (1.0, 8.0),
    "private_epochs": 5,
    "members": 6000,
    "seeds": 2,
}
FULL: dict[str, Any] = {"epsilons": (1.0, 8.0, 20.0)}
"""Options of the demo on a table."""

PAPER = "Kazmi et al. 2024 (arXiv 2402.09477)"
OTHERS = (
    "Targets are networks on a made-up census, trained ever longer and with DP-SGD, where the "
    "paper's are image and language models on data that is not shipped here: layout and shapes "
    "compare, figures do not."
)


@cache
def census_run(*, full: bool) -> SyntheticReport:
    """Train and audit the targets once for all that is shown of them."""
    from leakbound.experiments.demos.census import run

    return run(**(FULL if full else QUICK))


def audited(made: SyntheticReport) -> list[str]:
    """Return the names of the targets."""
    return [target.name for target in made.targets]


def lines_of(
    rows: Sequence[tuple[Cell, ...]], panel: str, names: Sequence[str], *, across: int, first: int
) -> tuple[Line, ...]:
    """Return columns of a table as lines."""
    return tuple(
        Line(
            panel,
            name,
            tuple(float(row[across] or 0) for row in rows),
            tuple(float(row[column] or 0) for row in rows),
        )
        for column, name in enumerate(names, start=first)
    )


def mean_of(spread: Spread | None) -> Cell:
    """Return the mean over seeds, or nothing where an audit has no such number."""
    return None if spread is None else spread.mean


def means_of(results: Sequence[Any], *values: Callable[[Any], float]) -> tuple[float, ...]:
    """Return means of several values over results."""
    return tuple(Spread.of([value(result) for result in results]).mean for value in values)
