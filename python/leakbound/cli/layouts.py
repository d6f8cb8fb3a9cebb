"""How a table is laid out: which column says who was a member and in which words, and its signs.

What a file leaves open is refused with the option that says it; nothing is guessed in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound.errors import IncompatibleOptionsError, InputFileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["GROUPED", "Layout", "decimal_sign", "parse_layout", "separator_of"]

_SEPARATORS = {",": ",", ";": ";", "tab": "\t", "\\t": "\t", "\t": "\t"}
_WORDS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MEMBERSHIP = {
    "1": 1,
    "+1": 1,
    "1.0": 1,
    "true": 1,
    "0": 0,
    "0.0": 0,
    "false": 0,
    "-1": -1,
    "-1.0": -1,
}
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")
"""A number whose comma or point may stand between thousands."""


@dataclass(frozen=True)
class Layout:
    """What was said about a table; empty where nothing was."""

    member: str = "member"
    """The column that says who was a member."""
    values: tuple[str, str] | None = None
    """What it says of members, and of others."""
    separator: str = ""
    decimal: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether nothing was said about how text is written."""
        return self.values is None and self.separator in {"", ","} and self.decimal in {"", "."}

    @property
    def membership(self) -> Mapping[str, int]:
        """The numbers that words of membership stand for, in small letters."""
        return _MEMBERSHIP if self.values is None else {self.values[0]: 1, self.values[1]: 0}

    def membership_of(self, text: str) -> int | None:
        """Return what a word says; None if it is not known."""
        word = text.strip()
        return self.membership.get(word.lower() if self.values is None else word)

    @property
    def known(self) -> str:
        """The words that are known, for messages."""
        if self.values is not None:
            return f"{self.values[0]!r} or {self.values[1]!r}, as --member-values says"
        return "0 or 1, -1 or 1, false or true, or what --member-values IN,OUT names"


def parse_layout(member: str, values: str, separator: str, decimal: str) -> Layout:
    """Return a layout from the options of a command.

    Examples
    --------
    >>> parse_layout("label", "in,out", "tab", "").values
    ('in', 'out')
    """
    names = tuple(word.strip() for word in values.split(",")) if values else ()
    if names and (len(names) != 2 or not all(names) or names[0] == names[1]):
        message = (
            "--member-values must name two different words, that of members first, such as in,out; "
            f"got {values!r}"
        )
        raise OptionError(message)
    if separator and separator not in _SEPARATORS:
        message = f"--sep must be one of , ; or tab; got {separator!r}"
        raise OptionError(message)
    if decimal not in {"", ".", ","}:
        message = f"--decimal must be . or ,; got {decimal!r}"
        raise OptionError(message)
    if separator == decimal == ",":
        message = "--sep , and --decimal , cannot both be: a comma is one or the other"
        raise IncompatibleOptionsError(message)
    return Layout(
        member=member.strip() or "member",
        values=(names[0], names[1]) if names else None,
        separator=_SEPARATORS.get(separator, ""),
        decimal=decimal,
    )


def separator_of(header: str, called: Path, layout: Layout) -> str:
    """Return what separates columns: as said, by the suffix .tsv, or the only sign in the header.

    Raise InputFileError where the header has several signs that may separate.
    """
    if layout.separator:
        return layout.separator
    if ".tsv" in [suffix.lower() for suffix in called.suffixes[-2:]]:
        return "\t"
    bare = re.sub(r'"[^"]*"', "", header)
    found = [sign for sign in _WORDS if sign in bare]
    if len(found) > 1:
        listed = " or ".join(f"a {_WORDS[sign]}" for sign in found)
        options = " or ".join(f"--sep {'tab' if s == chr(9) else repr(s)}" for s in found)
        message = f"{called}: its columns may be separated by {listed}: say {options}"
        raise InputFileError(message)
    return found[0] if found else ","


def decimal_sign(texts: Iterable[str], separator: str, called: Path, layout: Layout) -> str:
    """Return the decimal sign of numbers in text, from all of them.

    Raise InputFileError where it may be a comma or a point: a comma or point before three digits
    may stand between thousands, and next to semicolons it often does.
    """
    if layout.decimal or separator == ",":
        return layout.decimal or "."
    signs = dict.fromkeys(",.", False)
    plain = dict(signs)
    example = dict.fromkeys(signs, "")
    for text in texts:
        for sign in signs:
            if sign in text:
                signs[sign] = True
                example[sign] = example[sign] or text.strip()
                plain[sign] |= GROUPED.fullmatch(text.strip()) is None
    if all(signs.values()):
        message = (
            f"{called}: numbers have commas and points ({example[',']!r}, {example['.']!r}): save "
            "them with one decimal sign and nothing between thousands"
        )
        raise InputFileError(message)
    sign = "," if signs[","] else "."
    open_to_doubt = sign == "," or separator == ";"
    if signs[sign] and not plain[sign] and open_to_doubt:
        message = (
            f"{called}: {example[sign]!r} may have a decimal {'comma' if sign == ',' else 'point'} "
            f"or stand for thousands: say --decimal {sign!r} if it is the decimal sign, or save "
            "numbers with nothing between thousands"
        )
        raise InputFileError(message)
    return sign
