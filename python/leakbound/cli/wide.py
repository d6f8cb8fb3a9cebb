"""Tables with many columns, printed so that they can be read where lines are short."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["show"]

_GAP = 2
_WORDS = 24
"""Characters of a column of words that are not broken, if its longest word is not longer."""
_KEYS = 3
"""Most columns that are repeated to say which row is which."""


@dataclass(frozen=True)
class _Column:
    """A heading, what stands under it, and the characters that it needs."""

    heading: str
    cells: tuple[str, ...]
    numeric: bool

    @property
    def width(self) -> int:
        cells = max(map(len, self.cells), default=0)
        longest = max(map(len, [*self.heading.split(), ""]))
        return max(longest, cells if self.numeric else min(cells, _WORDS))

    @property
    def wrapped(self) -> str:
        lines = textwrap.wrap(
            self.heading, self.width, break_long_words=False, break_on_hyphens=False
        )
        return "\n".join(lines)


def show(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """Print a table whose headings are broken into lines and never cut.

    Where it is too wide for the page, columns that do not fit follow below, after those which tell
    the rows apart.
    """
    columns = [
        _Column(heading, tuple(cells), number)
        for heading, cells, number in zip(headings, zip(*rows, strict=True), numeric, strict=True)
    ]
    for place, block in enumerate(_blocks(columns, _keys(rows), output.page())):
        if place:
            output.say("")
        table = output.grid((column.wrapped, column.numeric) for column in block)
        for row in zip(*(column.cells for column in block), strict=True):
            table.add_row(*row)
        output.say(table)


def _keys(rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns, from the first on, tell rows apart; 1 where few do not."""
    tried = range(1, min(_KEYS, len(rows[0])) + 1)
    return next((n for n in tried if len({tuple(row[:n]) for row in rows}) == len(rows)), 1)


def _blocks(columns: list[_Column], keys: int, page: int) -> Iterator[list[_Column]]:
    """Yield the columns that stand beside each other, as many as fit but at least one new."""
    repeated, rest = columns[:keys], columns[keys:]
    if not rest:
        yield repeated
    while rest:
        left = page - sum(column.width + _GAP for column in repeated)
        fitting = [n for n in range(1, len(rest) + 1) if _together(rest[:n]) <= left]
        taken = max(fitting, default=1)
        yield repeated + rest[:taken]
        rest = rest[taken:]


def _together(columns: list[_Column]) -> int:
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)
