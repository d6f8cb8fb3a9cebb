"""Columns of words, as csv files hold them, to numbers and dates where all of them are such."""

from __future__ import annotations

import datetime as dt
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.checks import shown
from leakbound.cli.tables import opened
from leakbound.errors import FeaturesError, InputFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from leakbound.cli.layouts import Layout

    Columns = dict[str, NDArray[Any]]

_MISSING = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "?"})
"""Words that stand for no value in a column of numbers or dates; among words only the empty one."""
_BY_CHANCE = 1e-6
"""Least probability with which values that are written otherwise may all be in one table."""
_CODE = re.compile(r"[+-]?0\d")
"""How codes such as postal codes begin, which are no numbers."""


def read_tables(paths: Sequence[Path], layout: Layout) -> list[Columns]:
    """Read tables of records whose values are written alike, such that columns are so in all."""
    return typed([_records(path, layout) for path in paths], layout.decimal or ".")


def _records(path: Path, layout: Layout) -> Columns:
    """Read all columns of a table of records: words from text, otherwise what the file holds."""
    with opened(path, layout, filled=False) as (names, load):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            message = f"{path} has {names.count(twice[0])} columns named {twice[0]!r}: keep one"
            raise InputFileError(message)
        columns = load(dict.fromkeys(names, str.strip))
    if not columns or 0 in {len(values) for values in columns.values()}:
        message = f"{path} has a header and no rows: it needs one row for each record"
        raise InputFileError(message)
    return columns


def typed(tables: Sequence[Columns], sign: str = ".") -> list[Columns]:
    """Return tables whose columns of words are numbers or dates if they are so in all tables.

    What a column is depends on the values of all tables together: were it decided for each, a value
    would look otherwise in one than in another. A column that is numbers or dates in one of two
    tables, and nothing of the kind in the other, raises FeaturesError. `sign` is the decimal one.
    """
    found = [dict(table) for table in tables]
    for name in sorted({name for table in tables for name in table}):
        words = [table[name] for table in tables if name in table]
        if any(column.dtype.kind != "U" for column in words):
            continue
        distinct, which = np.unique(np.concatenate(words), return_inverse=True)
        read = _read(distinct, partial(_number, sign=sign), np.float64(np.nan))
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
