"""What the generators share: long decimals and the file format."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import mpmath
from mpmath import mpf

GOLDEN = Path(__file__).parent.parent
DIGITS = 25


def decimal(value: mpf) -> str:
    """Return `value` to 25 digits, as a decimal that any parser reads."""
    return str(mpmath.nstr(value, DIGITS, min_fixed=-3, max_fixed=20))


def write(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write `tests/golden/<name>.csv`: a header line, then a line a row.

    Floats are inputs and tolerances, written so that reading gives the same double back; numbers
    of mpmath are values, written by `decimal`.
    """
    lines = [",".join(columns)]
    for row in rows:
        if len(row) != len(columns):
            message = f"{name}: {row} does not match the columns {columns}"
            raise ValueError(message)
        lines.append(",".join(cell(value) for value in row))
    (GOLDEN / f"{name}.csv").write_text("\n".join(lines) + "\n")


def cell(value: object) -> str:
    """Return one cell of a row."""
    if isinstance(value, mpf):
        return decimal(value)
    return repr(value) if isinstance(value, float) else str(value)
