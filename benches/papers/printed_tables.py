"""Tables that benches print: a line for each row, with bars between its cells."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

__all__ = ["Row", "print_row", "print_tables"]

Row: TypeAlias = Sequence[object]


def print_tables(tables: dict[str, Callable[[], Iterable[Row]]], columns: str) -> None:
    """Print the tables that the command line names, all of them if it names none."""
    for name in sys.argv[1:] or tables:
        print(f"\n{name}: {columns}")
        for row in tables[name]():
            print_row(row)


def print_row(row: Row) -> None:
    """Print a row at once: the next may take minutes."""
    print(*map(_formatted_cell, row), sep=" | ", flush=True)


def _formatted_cell(cell: object) -> str:
    """Return a float with two digits after the point, and an integer with separated thousands."""
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return str(cell)
