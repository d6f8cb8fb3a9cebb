"""How a table is written: signs in text, and which column says in which words who was a member.

Nothing is guessed: text is split by commas, or by tabs in a .tsv, and numbers have a decimal point,
unless options say otherwise.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from leakbound.cli.options import option
from leakbound.errors import IncompatibleOptionsError, OptionError

_SEPARATORS = {",": ",", ";": ";", "tab": "\t", "\\t": "\t", "\t": "\t"}
_MEMBERSHIP = {
    **dict.fromkeys(("1", "+1", "1.0", "true"), 1),
    **dict.fromkeys(("0", "0.0", "false"), 0),
    **dict.fromkeys(("-1", "-1.0"), -1),
}


@dataclass(frozen=True)
class Signs:
    """How text is written: what stands between columns, and in numbers."""

    sep: Annotated[
        str,
        option(
            "SIGN",
            "What separates columns of text: , ; or tab. A comma by default, a tab in a .tsv.",
        ),
    ] = ""
    decimal: Annotated[
        str,
        option(
            "SIGN", "The decimal sign, . or , in text. A point by default; to be said with --sep ;."
        ),
    ] = ""

    def __post_init__(self) -> None:
        if self.sep and self.sep not in _SEPARATORS:
            message = f"--sep must be one of , ; or tab; got {self.sep!r}"
            raise OptionError(message)
        if self.decimal not in {"", ".", ","}:
            message = f"--decimal must be . or ,; got {self.decimal!r}"
            raise OptionError(message)
        if self.sep == self.decimal == ",":
            message = "--sep , and --decimal , cannot both be: a comma is one or the other"
            raise IncompatibleOptionsError(message)
        if self.sep == ";" and not self.decimal:  # where 1.234 may be a thousand and more
            message = "--sep ';' needs --decimal, . or ,: numbers between semicolons have either"
            raise IncompatibleOptionsError(message)

    def separates(self, path: Path) -> str:
        """Return what separates the columns of a file of this name."""
        return _SEPARATORS[self.sep or ("tab" if suffix_of(path) == ".tsv" else ",")]


@dataclass(frozen=True)
class Layout(Signs):
    """The same, and the column that says who was a member."""

    member_col: Annotated[str, option("COL", "The column that says who is a member.")] = "member"
    member_values: Annotated[
        str,
        option(
            "IN,OUT",
            "What that column says of members and of others, such as in,out; 1,0, 1,-1 and "
            "true,false need no word.",
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.member_values and len({word for word in self._words if word}) != 2:
            message = (
                "--member-values must name two different words, that of members first, such as "
                f"in,out; got {self.member_values!r}"
            )
            raise OptionError(message)

    @property
    def _words(self) -> list[str]:
        return [word.strip() for word in self.member_values.split(",", 1)]

    def membership(self, word: str) -> int | None:
        """Return 1 for members, 0 or -1 for others, None for words that say neither."""
        if self.member_values:
            return dict(zip(self._words, (1, 0), strict=True)).get(word)
        return _MEMBERSHIP.get(word.lower())


def suffix_of(path: Path) -> str:
    """Return the suffix that says what a file is, in small letters, without that of gzip."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
