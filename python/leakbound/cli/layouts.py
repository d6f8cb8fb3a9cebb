"""What was said about a table: the column of membership and its words, and signs in text.

Text is split by commas, or by tabs in a .tsv, and numbers have a decimal point, unless options say
otherwise: nothing is guessed. Where the option is missing, a refusal names it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound.errors import IncompatibleOptionsError, OptionError

if TYPE_CHECKING:
    from pathlib import Path

IN_TEXT = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
"""Suffixes of tables in text."""
_SEPARATORS = {",": ",", ";": ";", "tab": "\t", "\\t": "\t", "\t": "\t"}
_MEMBERS = ("1", "+1", "1.0", "true")
_NONMEMBERS = {"0": 0, "0.0": 0, "false": 0, "-1": -1, "-1.0": -1}
_MEMBERSHIP = {**dict.fromkeys(_MEMBERS, 1), **_NONMEMBERS}
_QUOTED = 60
"""Most characters of a value that a message quotes: a cell may hold megabytes."""


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

    def separates(self, called: Path) -> str:
        """Return what separates the columns of a file of this name."""
        return self.separator or ("\t" if suffix_of(called) == ".tsv" else ",")

    def number(self, text: str) -> float:
        """Return what text stands for; ValueError says what is wrong with it."""
        sign = self.decimal or "."
        between = "_" in text or (sign == "," and "." in text)  # would stand between thousands
        try:
            value = math.nan if between else float(text.replace(sign, "."))
        except ValueError:
            value = math.nan
        if math.isinf(value) and any(character.isdigit() for character in text):
            message = f"is {quoted(text)}, which is beyond a double: write inf if it is meant"
            raise ValueError(message)
        if math.isnan(value) and text.strip().lower().lstrip("+-") != "nan":
            other = "," if sign == "." else "."
            hint = f" (--decimal {other} if that is the decimal sign)" if other in text else ""
            message = f"must be a number, such as -0.5 or inf; it is {quoted(text)}{hint}"
            raise ValueError(message)
        return value

    def membership(self, text: str) -> int:
        """Return 1 for members and 0 or -1 for others; ValueError says what is wrong with text."""
        word = text.strip()
        if self.values is None:
            found = _MEMBERSHIP.get(word.lower())
            known = "0 or 1, -1 or 1, false or true, or what --member-values IN,OUT names"
        else:
            found = {self.values[0]: 1, self.values[1]: 0}.get(word)
            known = f"{self.values[0]!r} or {self.values[1]!r}, as --member-values says"
        if found is None:
            message = f"must be {known}; it is {quoted(text)}"
            raise ValueError(message)
        return found


def suffix_of(path: Path) -> str:
    """Return the suffix that says what a file is, in small letters, without that of gzip."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def quoted(text: str) -> str:
    """Return a value as messages quote it, cut off where it is long."""
    if not text.strip():
        return "empty"
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}…"


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
    if separator == ";" and not decimal:  # 1.234 may be a thousand and more there, and 1,234 too
        message = "--sep ';' needs --decimal, . or ,: numbers between semicolons have either sign"
        raise IncompatibleOptionsError(message)
    return Layout(
        member=member.strip() or "member",
        values=(names[0], names[1]) if names else None,
        separator=_SEPARATORS.get(separator, ""),
        decimal=decimal,
    )
