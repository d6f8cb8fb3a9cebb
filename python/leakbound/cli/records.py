"""Columns of words, as csv files hold them, to numbers and dates where all of them are such."""

from __future__ import annotations

import datetime as dt
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.validation import shown
from leakbound.cli.layouts import GROUPED, Layout, decimal_sign
from leakbound.cli.tables import read_records, separates
from leakbound.errors import FeaturesError, InputFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["read_tables", "typed"]

_MISSING = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "?"})
"""Words that stand for no value in a column of numbers or dates; among words only the empty one."""
_BY_CHANCE = 1e-6
"""Least probability with which values that are written otherwise may all be in one table."""
_CODE = re.compile(r"[+-]?0\d")
"""How codes such as postal codes begin, which are no numbers."""


def read_tables(paths: Sequence[Path], layout: Layout) -> list[dict[str, NDArray[Any]]]:
    """Read tables of records whose values are written alike, such that columns are so in all.

    Where no comma separates columns, it may be the decimal sign: as for scores, from all numbers of
    these files, and refused where it may stand for thousands. `layout.decimal` leaves no doubt.
    """
    tables = [read_records(path, layout) for path in paths]
    separators = [separates(path, layout) for path in paths]
    return typed(tables, lambda columns: _sign(columns, separators, paths[0], layout))


def _sign(
    columns: Sequence[NDArray[np.str_]], separators: Sequence[str], called: Path, layout: Layout
) -> str:
    """Return the decimal sign of those columns of words that are numbers; a point if in doubt."""
    if layout.decimal:
        return layout.decimal
    if "," in separators:
        return "."
    seen = {
        sign: [
            word
            for column in columns
            if _numbers(column, sign) is not None
            for word in column.tolist()
            if sign in word
        ]
        for sign in ".,"
    }
    if all(seen.values()):  # what a point does not explain stays words, and the result says so
        for column in columns:
            word = _grouped(column)
            if word:
                message = (
                    f"{called}: {word!r} may have a decimal point or stand for thousands, as other "
                    f"columns have decimal commas ({seen[','][0]!r}): say --decimal with the sign "
                    "that is the decimal one"
                )
                raise InputFileError(message)
        return "."
    separator = ";" if ";" in separators else separators[0]
    return decimal_sign(seen["."] + seen[","], separator, called, layout)


def _point(_columns: Sequence[NDArray[np.str_]]) -> str:
    return "."


def typed(
    tables: Sequence[dict[str, NDArray[Any]]],
    sign_of: Callable[[Sequence[NDArray[np.str_]]], str] = _point,
) -> list[dict[str, NDArray[Any]]]:
    """Return tables whose columns of words are numbers or dates if they are so in all tables.

    What a column is depends on the values of all tables together: were it decided for each, a value
    would look otherwise in one than in another. A column that is numbers or dates in one of two
    tables, and nothing of the kind in the other, raises FeaturesError. `sign_of` takes the distinct
    words of all columns, and returns the decimal sign.
    """
    found = [dict(table) for table in tables]
    together = {name: _together(tables, name) for name in sorted({n for t in tables for n in t})}
    columns = {name: words for name, words in together.items() if words is not None}
    distincts = {
        name: np.unique(np.concatenate(words), return_inverse=True)
        for name, words in columns.items()
    }
    sign = sign_of([distinct for distinct, _ in distincts.values()])
    for name, words in columns.items():
        distinct, which = distincts[name]
        read: NDArray[Any] | None = _numbers(distinct, sign)
        if read is None and sign == ",":
            read = _plain(distinct, name)
        read = _dates(distinct, name) if read is None else read
        if read is None:
            if len(words) == 2:
                _check_alike(words[0], words[1], name)
            continue
        parts = np.split(read[which], np.cumsum([column.size for column in words])[:-1])
        for table in found:
            if name in table:
                table[name] = parts.pop(0)
    return found


def _together(
    tables: Sequence[dict[str, NDArray[Any]]], name: str
) -> list[NDArray[np.str_]] | None:
    """Return a column of all tables that have it, or None where one of them holds no words."""
    held = [table[name] for table in tables if name in table]
    return held if all(column.dtype.kind == "U" for column in held) else None


def _plain(words: NDArray[np.str_], name: str) -> NDArray[Any] | None:
    """Return numbers with a decimal point; FeaturesError where each may be between thousands."""
    word = _grouped(words)
    if word:
        message = (
            f"column {name!r} has points before three digits, such as {word!r}, where the decimal "
            "sign is a comma: write it with nothing between thousands, with a comma if the point "
            "is its decimal sign, or with a letter in front if it is a code"
        )
        raise FeaturesError(message)
    return _numbers(words, ".")


def _grouped(words: NDArray[np.str_]) -> str:
    """Return one of those numbers whose points may all stand between thousands; "" if none do."""
    points = [word for word in words.tolist() if "." in word]
    grouped = points and all(GROUPED.fullmatch(word) for word in points)
    return points[0] if grouped and _whole_or_grouped(words) else ""


def _whole_or_grouped(words: NDArray[np.str_]) -> bool:
    """Whether all words are numbers once nothing stands between thousands."""
    bare = [word.replace(".", "") if GROUPED.fullmatch(word) else word for word in words.tolist()]
    return _numbers(np.array(bare), ".") is not None


def _check_alike(first: NDArray[np.str_], second: NDArray[np.str_], name: str) -> None:
    """Check that two tables do not write a column in two ways, of which one can be read."""
    tables = [
        [word for word in column.tolist() if word.lower() not in _MISSING]
        for column in (first, second)
    ]
    if math.comb(sum(map(len, tables)), len(tables[0])) * _BY_CHANCE < 1:
        return
    ways: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("numbers", _number),
        ("numbers", partial(_number, sign=",")),
        ("dates", dt.datetime.fromisoformat),
    )
    for kind, read in ways:
        for one, other in (tables, tables[::-1]):
            if all(_reads(word, read) for word in one) and not any(
                _reads(word, read) for word in other
            ):
                message = (
                    f"column {name!r} holds {kind} in one of the tables of members and non-members "
                    f"({shown(one[0])}) and words in the other ({shown(other[0])}): the way in "
                    "which a value is written must not tell who is a member; write both alike"
                )
                raise FeaturesError(message)


def _reads(word: str, read: Callable[[str], object]) -> bool:
    try:
        read(word)
    except (ValueError, OverflowError):
        return False
    return True


def _number(word: str, sign: str = ".") -> float:
    if "_" in word or _CODE.match(word) or (sign == "," and "." in word):
        raise ValueError(word)
    return float(word.replace(sign, "."))


def _numbers(words: NDArray[np.str_], sign: str) -> NDArray[Any] | None:
    return _read(words, partial(_number, sign=sign), np.float64(np.nan))


def _dates(words: NDArray[np.str_], name: str) -> NDArray[Any] | None:
    zoned = set[bool]()

    def date(word: str) -> np.datetime64:
        moment = dt.datetime.fromisoformat(word)
        zoned.add(moment.tzinfo is not None)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        return np.datetime64(moment, "us")

    found = _read(words, date, np.datetime64("NaT", "us"))
    if found is not None and len(zoned) > 1:
        message = (
            f"column {name!r} holds dates with a time zone and dates without: the way in which a "
            "value is written must not tell who is a member; give all of them one, or none"
        )
        raise FeaturesError(message)
    return found


def _read(
    words: NDArray[np.str_], read: Callable[[str], Any], missing: object
) -> NDArray[Any] | None:
    """Return what distinct words stand for, or None if some stand for nothing of the kind."""
    try:
        values = [missing if word.lower() in _MISSING else read(word) for word in words.tolist()]
    except (ValueError, OverflowError):
        return None
    return np.array(values)
