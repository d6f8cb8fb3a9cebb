"""A report as a page of Markdown tables, one for each audit."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leakbound.validity.suite import Rate, ValidityReport

__all__ = ["render"]

_HEADINGS = (
    "claim",
    "cuts",
    "sides",
    "truth",
    "games",
    "counted",
    "rate",
    "nominal",
    "p-value",
    "expected",
    "verdict",
)
_NUMBERS = {"games", "counted", "rate", "nominal", "p-value"}


def render(report: ValidityReport) -> str:
    """Return the page: what was run, and a table for each audit, cases in order.

    Parameters
    ----------
    report : ValidityReport
        The counts.

    Returns
    -------
    str
        Markdown, without a date: the same run gives the same text.
    """
    return "\n".join(_lines(report))


def _lines(report: ValidityReport) -> Iterator[str]:
    rates = sorted(report.rates, key=lambda rate: rate.audit)
    games = sum(rate.repetitions for rate in rates)
    commit = f", commit {report.commit}" if report.commit else ""
    yield "# False claims, counted"
    yield ""
    yield f"leakbound {report.leakbound}{commit}, seed {report.seed}:"
    yield f"{games:,} games of {len(rates):,} cases. {report.summary()}"
    for audit, group in groupby(rates, lambda rate: rate.audit):
        yield ""
        yield f"## {audit}"
        yield ""
        yield f"| {' | '.join(_HEADINGS)} |"
        yield f"|{'|'.join('--:' if name in _NUMBERS else '---' for name in _HEADINGS)}|"
        yield from map(_row, group)
    yield ""


def _row(rate: Rate) -> str:
    cells = (
        rate.claim,
        rate.cuts,
        rate.sides,
        rate.truth,
        f"{rate.repetitions:,}",
        f"{rate.errors:,}",
        f"{100 * rate.rate:.2f} %",
        f"{100 * rate.error:g} %",
        f"{rate.p_value:.2g}",
        rate.expectation,
        rate.outcome if rate.expected else f"**{rate.outcome}**",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
