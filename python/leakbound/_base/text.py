"""What text in tables stands for: numbers, booleans, dates or words, settled in one place.

The same rule reads csv files, text in data frames and decimals: so the same table has the same
columns wherever it is kept.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE, shown
from leakbound._base.tables import Column, ColumnKind, Writing, exact_number, objects
from leakbound.errors import InputError

_TRIED = 32  # words that are read before all of a column are
_MISSING = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "?"})
"""Words for a missing value in a column of numbers, dates or booleans; in others only the empty."""
_BY_CHANCE = 1e-6  # what a random split does less often is a difference in how tables are written
# How codes such as postal codes begin, which are not numbers.
_CODE = re.compile(r"[+-]?0\d")


def settled(
    columns: Sequence[Column], name: str, *, kind: ColumnKind | None = None
) -> list[Column]:
    """Return columns of text as what they stand for: the one rule for words, numbers and dates.

    Text is numbers, booleans or dates (ISO 8601) where all words of all these columns are, and
    words otherwise. Where some of the columns are no text, or a `kind` is given, text is of that
    kind or words. So equal values are equal whichever of the tables has them.
    """
    texts = [column for column in columns if column.kind == "text"]
    if not texts:
        return [*columns]
    others = {column.kind for column in columns if column.kind not in {"text", "empty"}}
    others = others if kind is None else {kind}
    tried = _READINGS if not others else [one for one in _READINGS if {one.kind} == others]
    read = next(filter(None, (_read(texts, name, one) for one in tried)), None)
    if read is None:
        read = [replace(column, kind="word") for column in texts]
        if len(texts) == len(columns) == 2 and kind is None:
            _check_alike(texts, name)
    turn = iter(read)
    return [next(turn) if column.kind == "text" else column for column in columns]


def _read(columns: Sequence[Column], name: str, reading: "_Reading") -> list[Column] | None:
    """Read all words of some columns as one kind of values; None if some cannot be read."""
    writing = columns[0].writing
    try:
        for column in columns:  # a few first: most words are not numbers
            reading.values([*_there(column.values[:_TRIED])], writing, name)
        words = np.concatenate([column.values for column in columns])
        distinct, which = np.unique(words, return_inverse=True)
        known = np.array([not _is_mark(word) for word in distinct.tolist()], dtype=np.bool_)
        values = reading.values(distinct[known].tolist(), writing, name)
    except InputError:
        raise
    except (ValueError, OverflowError):
        return None
    place = np.maximum(np.cumsum(known) - 1, 0)[which]
    missing = ~known[which]
    read = values[place] if values.size else words
    read = np.where(missing, "", read) if read.dtype.kind == "U" else read
    ends = np.cumsum([column.values.size for column in columns])[:-1]
    parts = zip(np.split(read, ends), np.split(missing, ends), strict=True)
    found: ColumnKind = reading.kind if values.size else "empty"
    return [Column(one, gone, "empty" if gone.all() else found) for one, gone in parts]


def _there(words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if not _is_mark(word))


def _is_mark(word: str) -> bool:
    """Return whether text marks a missing value, in a column that is not of words."""
    return word.lower() in _MISSING


@dataclass(frozen=True)
class _Reading:
    """A kind of values, and what reads distinct words as such: ValueError where it cannot."""

    kind: ColumnKind
    values: Callable[[Sequence[str], Writing, str], NDArray[Any]]


def _numbers(words: Sequence[str], writing: Writing, _: str) -> NDArray[Any]:
    numbers = [_number(word, writing.decimal) for word in words]
    if any(isinstance(value, int) for value in numbers):
        return objects(numbers)
    return np.array(numbers, dtype=np.float64)


def _number(word: str, decimal: str = ".") -> int | float:
    """Read a number: beyond 2^53 a whole one as an integer, with all of its digits."""
    if "_" in word or _CODE.match(word) or (decimal == "," and "." in word):
        raise ValueError(word)
    pointed = word.replace(decimal, ".")
    value = float(pointed)
    if not math.isfinite(value):  # a name such as Infinity, or a code such as 1e999
        raise ValueError(word)
    if abs(value) < WHOLE:
        return value
    # A double is written so that no other one is nearer; what is not is written more exactly.
    written = Decimal(pointed)
    if not pointed.lstrip("+-").isdigit() and written == Decimal(repr(value)):
        return value
    return exact_number(written)


def _flags(words: Sequence[str], _: Writing, __: str) -> NDArray[np.str_]:
    lowered = [word.lower() for word in words]
    if not {"true", "false"}.issuperset(lowered):
        raise ValueError(words)
    return np.array([word.capitalize() for word in lowered], dtype=np.str_)


def _dates(words: Sequence[str], _: Writing, name: str) -> NDArray[Any]:
    """Read dates of ISO 8601: those with a time zone as UTC."""
    moments = [dt.datetime.fromisoformat(word) for word in words]
    zoned = {moment.tzinfo is not None for moment in moments}
    if len(zoned) > 1:
        raise InputError(
            f"column {name!r} has dates with a time zone and dates without one: the format would "
            "reveal who is a member; write all dates with a time zone, or none"
        )
    if True in zoned:
        moments = [moment.astimezone(dt.UTC).replace(tzinfo=None) for moment in moments]
    return np.array(moments, dtype="datetime64[us]")


_READINGS = (_Reading("number", _numbers), _Reading("flag", _flags), _Reading("date", _dates))


def _check_alike(columns: Sequence[Column], name: str) -> None:
    """Check that two tables do not write a column in two formats, one of them readable."""
    tables = [[*_there(column.values[~column.missing].tolist())] for column in columns]
    sizes = [len(one) for one in tables]
    splits = math.lgamma(sum(sizes) + 1) - sum(math.lgamma(size + 1) for size in sizes)
    if splits < -math.log(_BY_CHANCE):
        return
    # Members and non-members may have been exported by different tools.
    readers: dict[Callable[[str], object], str] = {
        _number: "numbers",
        partial(_number, decimal=","): "numbers",
        dt.datetime.fromisoformat: "dates",
    }
    for reader, kind in readers.items():
        for one, other in (tables, tables[::-1]):
            if all(_reads(word, reader) for word in one) and not any(
                _reads(word, reader) for word in other
            ):
                raise InputError(
                    f"column {name!r} holds {kind} in one of the tables of members and non-members "
                    f"({shown(one[0])}) and text in the other ({shown(other[0])}): the format "
                    "would reveal who is a member; write both in the same format"
                )


def _reads(word: str, reader: Callable[[str], object]) -> bool:
    try:
        reader(word)
    except (ValueError, OverflowError):
        return False
    return True
