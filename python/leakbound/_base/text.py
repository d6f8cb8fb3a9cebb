"""What text in tables stands for: numbers, booleans, dates or words, settled in one place.

The same rule reads csv files, text in data frames and decimals: so the same table has the same
columns wherever it is kept.
"""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE, shown
from leakbound._base.messages import Message, Option, Ways
from leakbound._base.tables import NAMES, Column, ColumnKind, Writing, exact_number, objects
from leakbound._base.types import AnyArray, BoolArray, TextArray
from leakbound.errors import InputError

_TRIED = 32  # cells that are read before all of a column are
_SHARE = 0.9  # of cells: a column with at least so many numbers is one of numbers
_OTHERS = 3  # words that a message names
_MISSING = frozenset(
    # As databases, pandas, R, SAS, SPSS, Stata, spreadsheets and people write them.
    [
        *("", "na", "<na>", "n/a", "n.a.", "n. a.", "nan", "-nan", "nat", "null", "(null)", "none"),
        *("nil", "missing", "\\n", "?", "-", "--", "---", "\u2013", "\u2014"),
        *(".", "..", "...", "._"),
        *(f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
        *("#n/a", "#n/a n/a", "#na", "#null!", "#value!", "#ref!", "#div/0!", "#num!", "#name?"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
        *("k.a.", "k. a.", "keine angabe", "s.d.", "n.d.", "n. d.", "nd", "0000-00-00"),
    ]
)
"""Words for a missing value in a column of numbers, dates or booleans; in others only the empty."""
_BY_CHANCE = 1e-6  # what a random split does less often is a difference in how tables are written
_NOTED = 0.5  # of cells: words beside so many numbers are worth a note
_FEW = 8  # different words that are categories, whatever they look like
_SAMPLE = 1000  # cells that a note looks at
# Dates in other forms than ISO 8601.
_DATED = re.compile(
    r"(\d{1,4}[./ -](\d{1,2}|[^\W\d]{3,9})[./ -]\d{2,4}|\d{1,2}[^\W\d]{3}\d{2,4})([ :T].*)?"
)
# A number with a currency before it or a unit after it, and one with other signs than a point.
_UNITS = re.compile(
    r"([^\w\s.+-]{1,3}\s?|[^\W\d]{1,4}\s)?([+-]?\d[\d.,'\s]*?)\s?([^\d\s,.'+-][^\d\s]{0,7})?"
)
_SIGNED = re.compile(r"[+-]?(\d{1,3}([,.'\s]\d{3})+([.,]\d+)?|\d+,\d+)")
_CODES = 3  # different numbers that are codes beside numbers of three decimals
_GROUPED = 10  # numbers with a point: so many with three decimals each are no chance
# A number that is known to be smaller or larger.
_LIMITED = re.compile(r"\A[<>\u2264\u2265]=?\s*")
# How codes such as postal codes begin, which are not numbers.
_CODE = re.compile(r"[+-]?0\d")


def settled(
    columns: Sequence[Column], name: str, *, kind: ColumnKind | None = None, codes: bool = False
) -> list[Column]:
    """Return columns of text as what they stand for: the one rule for words, numbers and dates.

    Text is numbers, booleans or dates (ISO 8601) where all words of all these columns are, but for
    marks of missing values, and words otherwise. Where some of the columns are no text, or a `kind`
    is given, text is of that kind or words. So equal values are equal whichever of the tables has
    them, and a value is missing in all of them or in none.

    Nine numbers or dates in ten cells are no words: the other words are refused, unless the column
    holds `codes`.
    """
    texts = [column for column in columns if column.kind == "text"]
    if not texts:
        return [*columns]
    others = {column.kind for column in columns if column.kind not in {"text", "empty"}}
    if kind is not None:
        others = {kind}
    tried = [*_READINGS]
    if others:
        tried = [one for one in _READINGS if {one.kind} == others]
    words = _Words.of(texts, name)
    if not codes and _NUMBER in tried:
        words.refuse_thousands()
    read = next(filter(None, map(words.read, tried)), None)
    if read is None:
        if not codes:
            for reading in tried:
                words.refuse_few_others(reading)
        read = [replace(column, kind="word") for column in texts]
        if len(texts) == len(columns) == 2 and kind is None:
            _check_alike(texts, name)
    turn = iter(read)
    return [next(turn) if column.kind == "text" else column for column in columns]


@dataclass(frozen=True, eq=False)
class _Words:
    """The distinct words of a column of text, in one or more tables.

    `which` has the word of each cell, table by table, and `counts` how many cells have each word;
    `known` are words that do not mark missing values.
    """

    columns: Sequence[Column]
    name: str
    distinct: TextArray
    which: NDArray[np.intp]
    counts: NDArray[np.int64]
    known: BoolArray

    @classmethod
    def of(cls, columns: Sequence[Column], name: str) -> Self:
        """Count the words of some columns."""
        cells = np.concatenate([column.values for column in columns])
        distinct, which, counts = np.unique(cells, return_inverse=True, return_counts=True)
        known = np.array([not is_mark(word) for word in distinct.tolist()], dtype=np.bool_)
        return cls(
            columns=columns,
            name=name,
            distinct=distinct,
            which=which.reshape(-1),
            counts=counts,
            known=known,
        )

    def read(self, reading: "_Reading") -> list[Column] | None:
        """Read all words as one kind of values; None if some cannot be read."""
        known = self.distinct[self.known]
        writing = self.columns[0].writing
        try:
            reading.values(self._few().tolist(), writing, self.name)
            values = reading.values(known.tolist(), writing, self.name)
        except InputError:
            raise
        except (ValueError, OverflowError):
            return None
        place = np.maximum(np.cumsum(self.known) - 1, 0)[self.which]
        missing = ~self.known[self.which]
        read = self.distinct[self.which]
        if values.size:
            read = values[place]
        if read.dtype.kind == "U":
            read = np.where(missing, "", read)
        columns = []
        of_tables = self._split(read), self._split(missing), self._split(self.which)
        for one, gone, cells in zip(*of_tables, strict=True):
            kind = reading.kind
            if gone.all():
                kind = "empty"
            columns.append(Column(one, gone, kind, marks=self._marks(cells)))
        return columns

    def refuse_thousands(self) -> None:
        """Refuse numbers with thousands separators that are not named."""
        writing = self.columns[0].writing
        few = [typed(word) for word in self._few().tolist()]
        for sign in (",", ".", "'", " "):
            if sign == writing.thousands or not any(sign in word for word in few):
                continue
            words = self.distinct[self.known].tolist()
            if sign == writing.decimal:
                found = thousands_in(words, sign=sign, decimal=sign)
            else:
                form = grouped(sign, writing.decimal)
                with_sign = [word for word in words if form.fullmatch(typed(word))]
                read = [form.fullmatch(typed(one)) or self._is_read(one, _NUMBER) for one in words]
                share = self.counts[self.known][np.array(read, dtype=np.bool_)].sum()
                enough = share >= _SHARE * self.counts[self.known].sum()
                found = ""
                if with_sign and enough:
                    found = with_sign[0]
            if found:
                table, row = self._place(int((self.distinct[self.which] == found).argmax()))
                raise InputError(
                    f"column {self.name!r} of {table} has thousands separators, such as "
                    f"{shown(found)} at row {row} (rows count from 0): remove them, or name them "
                    f"with --thousands, or thousands={sign!r} of pandas.read_csv; if they are "
                    "decimal signs, write points"
                )

    def refuse_few_others(self, reading: "_Reading") -> None:
        """Refuse a column of numbers or dates in which few cells have other words."""
        if reading.kind == "flag":  # beside true and false, "unknown" is a third category
            return
        few = self._few().tolist()
        near = sum(self._is_near(word, reading) for word in few)
        if 2 * near < len(few):
            return
        strange = self._strange(reading)
        others = self.distinct[strange].tolist()
        far = [not self._is_near(one, reading) for one in others]
        cells_far = self.counts[strange][far].sum()
        share = 1 - cells_far / self.counts[self.known].sum()
        if share < _SHARE or any(map(_is_code, others)):
            return
        cell = int(strange[self.which].argmax())
        first = str(self.distinct[self.which[cell]])
        table, row = self._place(cell)
        listed = [first, *(one for one in others if one != first)][:_OTHERS]
        more = ""
        if len(others) > _OTHERS:
            more = f" and {len(others) - _OTHERS} more"
        kind = NAMES[reading.kind]
        remedy = self._remedy(listed, more, kind)
        message = (
            "column {name!r} of {table} holds {kind}, but {first} at row {row} (rows count from "
            "0): {remedy}"
        )
        where = {"name": self.name, "table": table, "kind": kind, "first": shown(first)}
        raise InputError(Message(message, row=row, remedy=remedy, **where))

    def _remedy(self, words: list[str], more: str, kind: str) -> Message:
        """Say what to do about some words of a column of numbers or dates, and how many others."""
        if self.columns[0].writing.named:
            return Message(
                "if such words mark missing values, pass {missing}{more}; if {kind} are codes "
                "here, {columns}",
                missing=Option("missing", words),
                more=more,
                kind=kind,
                columns=Option("columns", {self.name: "codes"}),
            )
        listed = f"({', '.join(map(repr, words))}{more})"
        replaced = Ways(
            f"replace such words {listed} by missing values, as "
            "pandas.to_numeric(column, errors='coerce') does",
            shell=f"name such words {listed} in --missing",
        )
        coded = Ways(f"{_CATEGORICAL.python}: .astype('category')", _CATEGORICAL.shell)
        said = "{replaced}; if {kind} are codes here, {coded}"
        return Message(said, replaced=replaced, kind=kind, coded=coded)

    def suspicion(self) -> str:
        """Say what tells that a column of words was meant to hold numbers or dates, if it was."""
        cells = self._few(_SAMPLE).tolist()
        if any(map(_is_code, cells)):
            return ""
        for reading in _READINGS:
            others = [word for word in cells if not self._is_read(word, reading)]
            share = 1 - len(others) / max(len(cells), 1)
            if others and reading.kind != "flag" and share >= _NOTED:
                word = max(others, key=others.count)
                return f"has {NAMES[reading.kind]} in {share:.0%} of its cells, and {shown(word)}"
        forms = Counter(filter(None, map(_form, cells)))
        if not forms or self.known.sum() <= _FEW:
            return ""
        form, count = forms.most_common(1)[0]
        if count < _SHARE * len(cells):
            return ""
        word = next(word for word in cells if _form(word) == form)
        written = "numbers"
        if form == _DATE:
            written = "dates"
        return f"has {written} such as {shown(word)}"

    def _strange(self, reading: "_Reading") -> BoolArray:
        """Return which words are neither marks of missing values nor of a kind."""
        strange = self.known.copy()
        strange[strange] = [not self._is_read(one, reading) for one in self.distinct[self.known]]
        return strange

    def _few(self, most: int = _TRIED) -> TextArray:
        """Return the words of a few cells, at even steps of their order."""
        ends = np.cumsum(np.where(self.known, self.counts, 0))
        if not ends[-1]:
            return self.distinct[:0]
        steps = np.linspace(0, ends[-1] - 1, most).astype(np.int64)
        which = np.searchsorted(ends, np.unique(steps), side="right")
        return self.distinct[which]

    def _is_read(self, word: str, reading: "_Reading") -> bool:
        return _reads(word, lambda one: reading.values([one], self.columns[0].writing, self.name))

    def _is_near(self, word: str, reading: "_Reading") -> bool:
        """Return whether a word is a value, or a number beyond a limit of detection."""
        if reading.kind == "number":
            word = _LIMITED.sub("", word, count=1)
        return self._is_read(word, reading)

    def _split(self, cells: AnyArray) -> list[AnyArray]:
        """Return what belongs to the cells of each table."""
        return np.split(cells, np.cumsum([one.values.size for one in self.columns])[:-1])

    def _marks(self, cells: NDArray[np.intp]) -> dict[str, int]:
        """Count the cells of a table that have a mark of missing values, by the mark."""
        counts = np.bincount(cells, minlength=self.distinct.size)
        marks = np.flatnonzero(~self.known & (self.distinct != "") & (counts > 0))
        return {str(self.distinct[one]): int(counts[one]) for one in marks}

    def _place(self, cell: int) -> tuple[str, int]:
        """Return the table and the row of a cell."""
        ends = np.cumsum([column.values.size for column in self.columns])
        which = int(np.searchsorted(ends, cell, side="right"))
        column = self.columns[which]
        return column.table, int(cell - ends[which] + column.values.size)


def suspicion(column: Column, name: str) -> str:
    """Say what tells that a column of words was meant to hold numbers or dates, if anything."""
    if column.kind == "word":
        return _Words.of([column], name).suspicion()
    return ""


def taken_as_words(column: Column, name: str) -> str:
    """Say what was done with this column, and how it would be read as what it was meant to be."""
    advice = "taken as words; write plain numbers (12.5) or dates (2024-05-31), or "
    if not column.writing.named:
        return Message(f"{advice}{{categorical}}", categorical=_CATEGORICAL)
    return Message(f"{advice}say {{columns}}", columns=Option("columns", {name: "codes"}))


def marked(columns: Mapping[str, Mapping[str, int]], *, named: bool) -> str:
    """Say which words were read as missing values, and in how many cells of which columns.

    `named` is as `Writing` has it.
    """
    counts = {
        name: " and ".join(f"{mark!r} in {count:,} cells" for mark, count in marks.items())
        for name, marks in columns.items()
    }
    listed = "; ".join(f"column {name!r} has {said}" for name, said in counts.items())
    note = f"{listed}: read as missing values"
    if not named:
        return note
    known = sorted({mark for marks in columns.values() for mark in marks})
    missing = Option("missing", known)
    return Message("{note}; {missing} says so without a warning", note=note, missing=missing)


_CATEGORICAL = Ways("make the column categorical", shell="name the column in --categorical")
_DATE = "a date"


def _form(word: str) -> str:
    """Return what is around a number, or that a word is a date; empty for other words."""
    if _DATED.fullmatch(word):
        return _DATE
    found = _UNITS.fullmatch(word)
    if not found:
        return ""
    before, _, after = found.groups(default="")
    alone = not before and not after
    if alone and not _SIGNED.fullmatch(word):
        return ""
    return f"{before}#{after}"


# Thousands separators as typesetters and locales write them, and as they are typed.
TYPED = {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'"}
_TYPED = str.maketrans({**TYPED})


def typed(word: str) -> str:
    """Return text with thousands separators as they are typed."""
    return word.translate(_TYPED)


def grouped(sign: str, decimal: str) -> re.Pattern[str]:
    """Return how numbers with thousands separators are written: 1,234 or -12,345.67."""
    one = re.escape(sign)
    return re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}({one}\d{{3}})+({re.escape(decimal)}\d*)?\s*")


def ungrouped(word: str, sign: str, decimal: str) -> str:
    """Return a number without its thousands separators; ValueError where they separate others."""
    plain = typed(word)
    if not grouped(sign, decimal).fullmatch(plain):
        raise ValueError(word)
    return plain.replace(sign, "")


def thousands_in(words: Iterable[str], sign: str, decimal: str) -> str:
    """Return a number in which a sign separates thousands, if it does so in all numbers.

    The sign may be the decimal one: then it separates thousands where three digits follow it in
    every number that has it, and other numbers have at most three digits, such as 1,234 and 950.
    Few different ones beside many of three decimals are codes, such as -9 for a missing value.
    """
    other = decimal
    if sign == decimal:
        other = {",": "."}.get(sign, ",")
    form = grouped(sign, other)
    small = re.compile(r"\s*[+-]?\d{1,3}\s*")
    found = ""
    count = 0
    several = False
    others = set[str]()
    for word in words:
        if not any(map(str.isdigit, word)):  # such as inf
            continue
        if sign in word and not form.fullmatch(word):
            return ""
        if sign in word:
            found = found or word
            count += 1
            several = several or word.count(sign) > 1
        elif sign == decimal:
            if not small.fullmatch(word):
                return ""
            others.add(word)
    if sign != decimal:
        return found
    # Three decimals in every number are as likely: in either reading numbers have one order.
    many = count >= _GROUPED
    most_codes = 0
    if many:
        most_codes = _CODES
    told = several or len(others) > most_codes
    if told and (decimal == "," or many):
        return found
    return ""


def _there(words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if not is_mark(word))


def is_mark(word: str) -> bool:
    """Return whether text marks a missing value, in a column that is not of words."""
    return word.lower() in _MISSING


def _is_code(word: str) -> bool:
    """Return whether text has the digits of a code, such as 01234: numbers beside it are codes."""
    return _CODE.match(word) is not None and word.lstrip("+-").isdigit()


@dataclass(frozen=True)
class _Reading:
    """A kind of values, and what reads distinct words as such: ValueError where it cannot."""

    kind: ColumnKind
    values: Callable[[Sequence[str], Writing, str], AnyArray]


def _numbers(words: Sequence[str], writing: Writing, _: str) -> AnyArray:
    numbers = [
        _number(word, decimal=writing.decimal, thousands=writing.thousands) for word in words
    ]
    if any(isinstance(value, int) for value in numbers):
        return objects(numbers)
    return np.array(numbers, dtype=np.float64)


def _number(word: str, decimal: str = ".", thousands: str = "") -> int | float:
    """Read a number: beyond 2^53 a whole one as an integer, with all of its digits."""
    if thousands and thousands in typed(word):
        word = ungrouped(word, sign=thousands, decimal=decimal)
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


def _flags(words: Sequence[str], _: Writing, __: str) -> TextArray:
    lowered = [word.lower() for word in words]
    if not {"true", "false"}.issuperset(lowered):
        raise ValueError(words)
    return np.array([word.capitalize() for word in lowered], dtype=np.str_)


def _dates(words: Sequence[str], _: Writing, name: str) -> AnyArray:
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


_NUMBER = _Reading(kind="number", values=_numbers)
_READINGS = (_NUMBER, _Reading(kind="flag", values=_flags), _Reading(kind="date", values=_dates))


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
