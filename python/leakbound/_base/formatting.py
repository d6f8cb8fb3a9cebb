"""Numbers as text: bounds rounded so that what is printed is never more than what was proved."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def number(value: float) -> str:
    """Format a bound with two decimals, rounded down: what is printed is never above it.

    Examples
    --------
    >>> number(2.619), number(0.0), number(0.0037), number(float("inf"))
    ('2.61', '0.00', '0.003', '∞')
    """
    if value == float("inf"):
        return "∞"
    exact = Decimal(repr(float(value)))
    step = Decimal("0.01")
    if 0 < exact < step:
        step = Decimal(1).scaleb(exact.adjusted())
    return str(exact.quantize(step, rounding=ROUND_FLOOR))


def percent(share: float) -> str:
    """Format a share as a percentage, with no more digits than it has: 1 - 0.95 is 5 %."""
    return f"{100 * share:.10g} %"


def share(part: float) -> str:
    """Format a share that was counted as a percentage with one decimal, rounded down."""
    return percent(math.floor(round(1_000 * part, 6)) / 1_000)


def down(value: float, direction: str = ROUND_FLOOR) -> str:
    """Return two decimals, rounded down: what is printed is never more than what was proved."""
    if math.isinf(value):
        return "no limit"
    return str(Decimal(repr(float(value))).quantize(Decimal("0.01"), rounding=direction))


def up(value: float) -> str:
    """Return two decimals, rounded up, for a bound from above."""
    return down(value, ROUND_CEILING)


# Characters of one line.
_LONGEST = 2000


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return text with escapes in place of what is no character to see.

    Escaped are control characters (which move the cursor, rename the window or erase what a
    terminal shows), marks that turn the direction of writing, other invisible ones, halves of
    surrogate pairs, and separators of lines; line feeds too, unless `lines`.

    Examples
    --------
    >>> printable("a\x1b[2J\u202eb\n"), printable("μ ≥ 1\n", lines=True)
    ('a\\x1b[2J\\u202eb\\n', 'μ ≥ 1\n')
    """
    if lines:
        return "\n".join(map(printable, text.split("\n")))
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\xa0" else ascii(c)[1:-1] for c in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
