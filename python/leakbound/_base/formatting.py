"""Numbers as text: printed bounds are rounded so that they never exceed what was proved."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

# The last decimal that is printed, and where a number has all digits of a double before it.
_LAST_DECIMAL = Decimal("0.01")
_MOST_WITH_DECIMALS = Decimal(10**15)
# Characters of a percentage that nobody chose.
_SPURIOUS_CHARACTERS = 9


def number(value: float) -> str:
    """Format a bound with two decimals, rounded down.

    Examples
    --------
    >>> number(2.619), number(0.0), number(0.0037), number(float("inf"))
    ('2.61', '0.00', '0.003', '∞')
    """
    if value == math.inf:
        return "∞"
    exact_value = Decimal(repr(float(value)))
    if 0 < exact_value < _LAST_DECIMAL:
        return str(_rounded_to_digits(exact_value, digits=1, direction=ROUND_FLOOR))
    return _with_two_decimals(exact_value, direction=ROUND_FLOOR)


def _with_two_decimals(exact_value: Decimal, direction: str) -> str:
    """Return a number with two decimals, or with three digits where it has too many."""
    if abs(exact_value) < _MOST_WITH_DECIMALS:
        return str(exact_value.quantize(_LAST_DECIMAL, rounding=direction))
    return f"{_rounded_to_digits(exact_value, digits=3, direction=direction):.2e}"


def _rounded_to_digits(exact_value: Decimal, digits: int, direction: str) -> Decimal:
    """Return a number with its first digits only, from the first that is not 0."""
    last_digit = Decimal(1).scaleb(exact_value.adjusted() - digits + 1)
    return exact_value.quantize(last_digit, rounding=direction)


def percent(share: float) -> str:
    """Format a share as a percentage without spurious digits: 1 - 0.95 is 5 %.

    A long one is rounded to a thousandth of its distance from 0 and from 100 %.

    Examples
    --------
    >>> percent(1 - 0.95), percent(1 - 0.05 / 3), percent(0.05 / 3)
    ('5 %', '98.333 %', '1.667 %')
    """
    percentage = 100 * share
    shortest_percentage = f"{percentage:.10g}"
    if len(shortest_percentage) > _SPURIOUS_CHARACTERS:
        largest_error = 1e-3 * min(abs(percentage), abs(100 - percentage))
        for digits in range(9, 3, -1):
            rounded_percentage = f"{percentage:.{digits}g}"
            if abs(float(rounded_percentage) - percentage) <= largest_error:
                shortest_percentage = rounded_percentage
    return f"{shortest_percentage} %"


def share(part: float, *, up: bool = False) -> str:
    """Format a share as a percentage with one decimal, rounded down unless `up`."""
    tenths_of_percent = round(1_000 * part, 6)
    rounded_tenths = math.floor(tenths_of_percent)
    if up:
        rounded_tenths = math.ceil(tenths_of_percent)
    return f"{rounded_tenths / 10:.1f} %"


def down(value: float, direction: str = ROUND_FLOOR) -> str:
    """Format a number with two decimals, rounded down by default; infinity is "no limit"."""
    if math.isinf(value):
        return "no limit"
    return _with_two_decimals(Decimal(repr(float(value))), direction=direction)


def up(value: float) -> str:
    """Format an upper bound with two decimals, rounded up."""
    return down(value, ROUND_CEILING)


def plural(word: str) -> str:
    """Return the plural of a regular noun.

    Examples
    --------
    >>> plural("user"), plural("company"), plural("box"), plural("essay")
    ('users', 'companies', 'boxes', 'essays')
    """
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and not word.endswith(("ay", "ey", "iy", "oy", "uy")):
        return f"{word.removesuffix('y')}ies"
    return f"{word}s"


def listed_first(values: Sequence[object], most: int) -> str:
    """Return the first of some values as a message lists them, with an ellipsis if there are more.

    Examples
    --------
    >>> listed_first([4, 8], most=2), listed_first([4, 8, 9], most=2)
    ('4, 8', '4, 8, …')
    """
    listed_values = ", ".join(map(str, values[:most]))
    if len(values) > most:
        return f"{listed_values}, …"
    return listed_values


def shortened(text: str, most_characters: int) -> str:
    """Return text, its end replaced by an ellipsis where it is too long."""
    if len(text) <= most_characters:
        return text
    return text[: most_characters - 1] + "…"


# Characters of one line.
_LONGEST_LINE = 2000


def _escaped_character(character: str) -> str:
    if character.isprintable() or character == "\xa0":
        return character
    return ascii(character)[1:-1]


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return text with invisible characters escaped.

    These are control characters (which can move the cursor or erase what a terminal shows), marks
    that change the direction of writing, halves of surrogate pairs and line separators. Line feeds
    are escaped too, unless `lines` is true.

    Examples
    --------
    >>> printable("a\x1b[2J\u202eb\n"), printable("μ ≥ 1\n", lines=True)
    ('a\\x1b[2J\\u202eb\\n', 'μ ≥ 1\n')
    """
    if lines:
        return "\n".join(map(printable, text.split("\n")))
    if not text.isprintable():
        text = "".join(map(_escaped_character, text))
    return shortened(text, most_characters=_LONGEST_LINE)
