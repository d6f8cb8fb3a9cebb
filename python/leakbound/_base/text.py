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
from itertools import filterfalse, permutations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE, shown
from leakbound._base.messages import Message, Option, Ways
from leakbound._base.numerics import log_choose
from leakbound._base.tables import (
    NAMES,
    Column,
    ColumnKind,
    Writing,
    dates_in_utc,
    exact_number,
    objects,
)
from leakbound._base.types import AnyArray, BoolArray, TextArray
from leakbound.errors import InputError

_SAMPLED_CELLS = 32  # cells that are read before all of a column are
_LEAST_SHARE = 0.9  # of cells: a column with at least so many numbers is one of numbers
_LISTED_WORDS = 3  # words that a message names
_MISSING_MARKS = frozenset(
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
_SHARE_TO_NOTE = 0.5  # of cells: words beside so many numbers are worth a note
_FEW_CATEGORIES = 8  # different words that are categories, whatever they look like
_NOTED_CELLS = 1000  # cells that a note looks at
# Dates in other forms than ISO 8601.
_OTHER_DATE = re.compile(
    r"(\d{1,4}[./ -](\d{1,2}|[^\W\d]{3,9})[./ -]\d{2,4}|\d{1,2}[^\W\d]{3}\d{2,4})([ :T].*)?"
)
# A number with a currency before it or a unit after it, and one with other signs than a point.
_NUMBER_WITH_UNIT = re.compile(
    r"([^\w\s.+-]{1,3}\s?|[^\W\d]{1,4}\s)?([+-]?\d[\d.,'\s]*?)\s?([^\d\s,.'+-][^\d\s]{0,7})?"
)
_NUMBER_WITH_SIGNS = re.compile(r"[+-]?(\d{1,3}([,.'\s]\d{3})+([.,]\d+)?|\d+,\d+)")
_MOST_CODES = 3  # different numbers that are codes beside numbers of three decimals
_MANY_NUMBERS = 10  # numbers with a point: so many with three decimals each are no chance
# A number that is known to be smaller or larger.
_DETECTION_LIMIT = re.compile(r"\A[<>\u2264\u2265]=?\s*")
# How codes such as postal codes begin, which are not numbers.
_CODE_START = re.compile(r"[+-]?0\d")


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
    text_columns = [column for column in columns if column.kind == "text"]
    if not text_columns:
        return [*columns]
    other_kinds = {column.kind for column in columns if column.kind not in {"text", "empty"}}
    if kind is not None:
        other_kinds = {kind}
    readings = [*_READINGS]
    if other_kinds:
        readings = [reading for reading in _READINGS if {reading.kind} == other_kinds]
    words = _Words.of(text_columns, name)
    if not codes and _NUMBER in readings:
        words.refuse_thousands()
    settled_columns = next(filter(None, map(words.read, readings)), None)
    if settled_columns is None:
        if not codes:
            for reading in readings:
                words.refuse_few_others(reading)
        settled_columns = [replace(column, kind="word") for column in text_columns]
        if len(text_columns) == len(columns) == 2 and kind is None:
            _check_same_format(text_columns, name)
    remaining_columns = iter(settled_columns)
    return [next(remaining_columns) if column.kind == "text" else column for column in columns]


@dataclass(frozen=True, eq=False)
class _Words:
    """The distinct words of a column of text, in one or more tables.

    `word_of_cell` has the word of each cell, table by table, and `cell_counts` how many cells have
    each word; `is_known` says which words do not mark missing values.
    """

    columns: Sequence[Column]
    name: str
    distinct_words: TextArray
    word_of_cell: NDArray[np.intp]
    cell_counts: NDArray[np.int64]
    is_known: BoolArray

    @classmethod
    def of(cls, columns: Sequence[Column], name: str) -> Self:
        """Count the words of some columns."""
        words_of_cells = np.concatenate([column.values for column in columns])
        distinct_words, word_of_cell, cell_counts = np.unique(
            words_of_cells, return_inverse=True, return_counts=True
        )
        is_known = [not is_mark(word) for word in distinct_words.tolist()]
        return cls(
            columns=columns,
            name=name,
            distinct_words=distinct_words,
            word_of_cell=word_of_cell,
            cell_counts=cell_counts,
            is_known=np.array(is_known, dtype=np.bool_),
        )

    @property
    def known_words(self) -> list[str]:
        """The words that do not mark missing values."""
        words: list[str] = self.distinct_words[self.is_known].tolist()
        return words

    @property
    def writing(self) -> Writing:
        """How values of the column are written, in all tables alike."""
        return self.columns[0].writing

    def read(self, reading: "_Reading") -> list[Column] | None:
        """Read all words as one kind of values; None if some cannot be read."""
        try:
            reading.values(self._sampled_words(), self.writing, self.name)
            known_values = reading.values(self.known_words, self.writing, self.name)
        except InputError:
            raise
        except (ValueError, OverflowError):
            return None
        is_missing = ~self.is_known[self.word_of_cell]
        values_of_cells = self.distinct_words[self.word_of_cell]
        if known_values.size:
            number_of_known_word = np.maximum(np.cumsum(self.is_known) - 1, 0)
            values_of_cells = known_values[number_of_known_word[self.word_of_cell]]
        if values_of_cells.dtype.kind == "U":
            values_of_cells = np.where(is_missing, "", values_of_cells)
        settled_columns = list[Column]()
        for cells_of_table in self._cells_of_tables():
            kind = reading.kind
            if is_missing[cells_of_table].all():
                kind = "empty"
            settled_column = Column(
                values=values_of_cells[cells_of_table],
                missing=is_missing[cells_of_table],
                kind=kind,
                marks=self._counts_of_marks(self.word_of_cell[cells_of_table]),
            )
            settled_columns.append(settled_column)
        return settled_columns

    def refuse_thousands(self) -> None:
        """Refuse numbers with thousands separators that are not named."""
        sampled_words = [typed(word) for word in self._sampled_words()]
        for sign in (",", ".", "'", " "):
            if sign == self.writing.thousands or not any(sign in word for word in sampled_words):
                continue
            if sign == self.writing.decimal:
                grouped_number = thousands_in(self.known_words, sign=sign, decimal=sign)
            else:
                grouped_number = self._number_with_thousands(sign)
            if grouped_number:
                is_grouped_number = self.distinct_words[self.word_of_cell] == grouped_number
                table, row = self._table_and_row(int(is_grouped_number.argmax()))
                raise InputError(
                    f"column {self.name!r} of {table} has thousands separators, such as "
                    f"{shown(grouped_number)} at row {row} (rows count from 0): remove them, or "
                    f"name them with --thousands, or thousands={sign!r} of pandas.read_csv; if "
                    "they are decimal signs, write points"
                )

    def _number_with_thousands(self, sign: str) -> str:
        """Return a number with a separator, if nearly all cells are numbers with or without it."""
        with_thousands = grouped(sign, self.writing.decimal)
        first_grouped_number = ""
        cells_of_numbers = 0
        known_counts = self.cell_counts[self.is_known]
        for word, cells_with_word in zip(self.known_words, known_counts.tolist(), strict=True):
            if with_thousands.fullmatch(typed(word)):
                first_grouped_number = first_grouped_number or word
                cells_of_numbers += cells_with_word
            elif self._is_read_as(word, _NUMBER):
                cells_of_numbers += cells_with_word
        if cells_of_numbers >= _LEAST_SHARE * known_counts.sum():
            return first_grouped_number
        return ""

    def refuse_few_others(self, reading: "_Reading") -> None:
        """Refuse a column of numbers or dates in which few cells have other words."""
        if reading.kind == "flag":  # beside true and false, "unknown" is a third category
            return
        sampled_words = self._sampled_words()
        near_words = sum(self._is_nearly_read_as(word, reading) for word in sampled_words)
        if 2 * near_words < len(sampled_words):
            return
        is_unread = self.is_known.copy()
        is_unread[self.is_known] = [
            not self._is_read_as(word, reading) for word in self.known_words
        ]
        unread_words: list[str] = self.distinct_words[is_unread].tolist()
        is_far = [not self._is_nearly_read_as(word, reading) for word in unread_words]
        far_cells = self.cell_counts[is_unread][is_far].sum()
        share_of_near_cells = 1 - far_cells / self.cell_counts[self.is_known].sum()
        if share_of_near_cells < _LEAST_SHARE or any(map(_is_numeric_code, unread_words)):
            return
        first_unread_cell = int(is_unread[self.word_of_cell].argmax())
        first_unread_word = str(self.distinct_words[self.word_of_cell[first_unread_cell]])
        table, row = self._table_and_row(first_unread_cell)
        unread_words.remove(first_unread_word)
        message = Message(
            "column {name!r} of {table} holds {kind}, but {first} at row {row} (rows count from "
            "0): {remedy}",
            name=self.name,
            table=table,
            kind=NAMES[reading.kind],
            first=shown(first_unread_word),
            row=row,
            remedy=self._remedy(NAMES[reading.kind], [first_unread_word, *unread_words]),
        )
        raise InputError(message)

    def _remedy(self, kind: str, words: list[str]) -> Message:
        """Return what to do about a few words in a column of another kind, such as numbers."""
        listed_words = words[:_LISTED_WORDS]
        more_words = ""
        if len(words) > _LISTED_WORDS:
            more_words = f" and {len(words) - _LISTED_WORDS} more"
        if self.writing.named:
            return Message(
                "if such words mark missing values, pass {missing}{more}; if {kind} are codes "
                "here, {columns}",
                missing=Option("missing", listed_words),
                more=more_words,
                kind=kind,
                columns=Option("columns", {self.name: "codes"}),
            )
        words_in_brackets = f"({', '.join(map(repr, listed_words))}{more_words})"
        return Message(
            "{replaced}; if {kind} are codes here, {coded}",
            replaced=Ways(
                f"replace such words {words_in_brackets} by missing values, as "
                "pandas.to_numeric(column, errors='coerce') does",
                shell=f"name such words {words_in_brackets} in --missing",
            ),
            kind=kind,
            coded=Ways(f"{_CATEGORICAL.python}: .astype('category')", _CATEGORICAL.shell),
        )

    def suspicion(self) -> str:
        """Say what tells that a column of words was meant to hold numbers or dates, if it was."""
        sampled_words = self._sampled_words(_NOTED_CELLS)
        if any(map(_is_numeric_code, sampled_words)):
            return ""
        for reading in _READINGS:
            unread_words = [word for word in sampled_words if not self._is_read_as(word, reading)]
            share_read = 1 - len(unread_words) / max(len(sampled_words), 1)
            if unread_words and reading.kind != "flag" and share_read >= _SHARE_TO_NOTE:
                commonest_word = max(unread_words, key=unread_words.count)
                return (
                    f"has {NAMES[reading.kind]} in {share_read:.0%} of its cells, and "
                    f"{shown(commonest_word)}"
                )
        forms_of_words = list(map(_form_of_word, sampled_words))
        words_with_form = Counter(filter(None, forms_of_words))
        if not words_with_form or self.is_known.sum() <= _FEW_CATEGORIES:
            return ""
        [(commonest_form, words_with_commonest)] = words_with_form.most_common(1)
        if words_with_commonest < _LEAST_SHARE * len(sampled_words):
            return ""
        first_word = sampled_words[forms_of_words.index(commonest_form)]
        if commonest_form == _DATE:
            return f"has dates such as {shown(first_word)}"
        return f"has numbers such as {shown(first_word)}"

    def _sampled_words(self, most: int = _SAMPLED_CELLS) -> list[str]:
        """Return the words of a few cells, at even steps of their order."""
        known_cells_up_to_word = np.cumsum(self.cell_counts * self.is_known)
        number_of_known_cells = known_cells_up_to_word[-1]
        if not number_of_known_cells:
            return []
        evenly_spaced = np.linspace(0, number_of_known_cells - 1, most)
        sampled_cells = np.unique(evenly_spaced.astype(np.int64))
        words_of_cells = np.searchsorted(known_cells_up_to_word, sampled_cells, side="right")
        sampled_words: list[str] = self.distinct_words[words_of_cells].tolist()
        return sampled_words

    def _is_read_as(self, word: str, reading: "_Reading") -> bool:
        return _reader_takes_word(word, lambda one: reading.values([one], self.writing, self.name))

    def _is_nearly_read_as(self, word: str, reading: "_Reading") -> bool:
        """Return whether a word is a value, or a number beyond a limit of detection."""
        if reading.kind == "number":
            word = _DETECTION_LIMIT.sub("", word, count=1)
        return self._is_read_as(word, reading)

    def _cells_of_tables(self) -> Iterator[slice]:
        """Yield which cells belong to each table."""
        first_cell = 0
        for column in self.columns:
            cell_after_last = first_cell + column.values.size
            yield slice(first_cell, cell_after_last)
            first_cell = cell_after_last

    def _counts_of_marks(self, word_of_cell: NDArray[np.intp]) -> dict[str, int]:
        """Count the cells of a table that have a mark of missing values, by the mark."""
        cells_with_word = np.bincount(word_of_cell, minlength=self.distinct_words.size)
        is_mark_here = ~self.is_known & (self.distinct_words != "") & (cells_with_word > 0)
        marks_here = self.distinct_words[is_mark_here].tolist()
        return dict(zip(marks_here, cells_with_word[is_mark_here].tolist(), strict=True))

    def _table_and_row(self, cell: int) -> tuple[str, int]:
        """Return the table and the row of a cell."""
        remaining_columns = iter(self.columns)
        column = next(remaining_columns)
        row = cell
        while row >= column.values.size:
            row -= column.values.size
            column = next(remaining_columns)
        return column.table, row


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
    notes_of_columns = list[str]()
    marks_of_columns = set[str]()
    for column_name, cells_with_mark in columns.items():
        counts_in_words = [
            f"{mark!r} in {cells:,} cells" for mark, cells in cells_with_mark.items()
        ]
        notes_of_columns.append(f"column {column_name!r} has {' and '.join(counts_in_words)}")
        marks_of_columns.update(cells_with_mark)
    note = f"{'; '.join(notes_of_columns)}: read as missing values"
    if not named:
        return note
    return Message(
        "{note}; {missing} says so without a warning",
        note=note,
        missing=Option("missing", sorted(marks_of_columns)),
    )


_CATEGORICAL = Ways("make the column categorical", shell="name the column in --categorical")
_DATE = "a date"


def _form_of_word(word: str) -> str:
    """Return what is around a number, or that a word is a date; empty for other words."""
    if _OTHER_DATE.fullmatch(word):
        return _DATE
    number_in_units = _NUMBER_WITH_UNIT.fullmatch(word)
    if not number_in_units:
        return ""
    before, _, after = number_in_units.groups(default="")
    has_no_unit = not before and not after
    if has_no_unit and not _NUMBER_WITH_SIGNS.fullmatch(word):
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
    thousands = rf"[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+"
    decimals = rf"({re.escape(decimal)}\d*)?"
    return re.compile(rf"\s*[+-]?{thousands}{decimals}\s*")


def _without_thousands(word: str, sign: str, decimal: str) -> str:
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
    other_sign = decimal
    if sign == decimal:
        other_sign = {",": "."}.get(sign, ",")
    with_thousands = grouped(sign, other_sign)
    below_thousand = re.compile(r"\s*[+-]?\d{1,3}\s*")
    first_grouped = ""
    count_of_grouped = 0
    has_several_signs = False
    small_numbers = set[str]()
    for word in words:
        if not any(map(str.isdigit, word)):  # such as inf
            continue
        if sign in word:
            if not with_thousands.fullmatch(word):
                return ""
            first_grouped = first_grouped or word
            count_of_grouped += 1
            has_several_signs = has_several_signs or word.count(sign) > 1
        elif sign == decimal:
            if not below_thousand.fullmatch(word):
                return ""
            small_numbers.add(word)
    if sign != decimal:
        return first_grouped
    # Three decimals in every number are as likely: in either reading numbers have one order.
    are_many = count_of_grouped >= _MANY_NUMBERS
    most_codes = 0
    if are_many:
        most_codes = _MOST_CODES
    are_thousands = has_several_signs or len(small_numbers) > most_codes
    if are_thousands and (decimal == "," or are_many):
        return first_grouped
    return ""


def is_mark(word: str) -> bool:
    """Return whether text marks a missing value, in a column that is not of words."""
    return word.lower() in _MISSING_MARKS


def _is_numeric_code(word: str) -> bool:
    """Return whether text has the digits of a code, such as 01234: numbers beside it are codes."""
    return _CODE_START.match(word) is not None and word.lstrip("+-").isdigit()


@dataclass(frozen=True)
class _Reading:
    """A kind of values, and what reads distinct words as such: ValueError where it cannot."""

    kind: ColumnKind
    values: Callable[[Sequence[str], Writing, str], AnyArray]


def _numbers_in_words(words: Sequence[str], writing: Writing, _: str) -> AnyArray:
    """Read numbers: doubles, or objects where doubles would merge integers."""
    numbers = [_number_in_word(word, writing.decimal, writing.thousands) for word in words]
    if int in map(type, numbers):
        return objects(numbers)
    return np.array(numbers, dtype=np.float64)


def _number_in_word(word: str, decimal: str = ".", thousands: str = "") -> int | float:
    """Read a number: beyond 2^53 a whole one as an integer, with all of its digits."""
    if thousands and thousands in typed(word):
        word = _without_thousands(word, sign=thousands, decimal=decimal)
    has_other_point = decimal == "," and "." in word
    if "_" in word or _CODE_START.match(word) or has_other_point:
        raise ValueError(word)
    word_with_point = word.replace(decimal, ".")
    nearest_double = float(word_with_point)
    if not math.isfinite(nearest_double):  # a name such as Infinity, or a code such as 1e999
        raise ValueError(word)
    if abs(nearest_double) < WHOLE:
        return nearest_double
    # A double is written so that no other one is nearer; what is not is written more exactly.
    exact_value = Decimal(word_with_point)
    has_digits_only = word_with_point.lstrip("+-").isdigit()
    if not has_digits_only and exact_value == Decimal(repr(nearest_double)):
        return nearest_double
    return exact_number(exact_value)


def _flags_in_words(words: Sequence[str], _: Writing, __: str) -> TextArray:
    lowered_words = [word.lower() for word in words]
    if not {"true", "false"}.issuperset(lowered_words):
        raise ValueError(words)
    return np.array([word.capitalize() for word in lowered_words], dtype=np.str_)


def _dates_in_words(words: Sequence[str], _: Writing, name: str) -> AnyArray:
    """Read dates of ISO 8601: those with a time zone as UTC."""
    refusal = (
        f"column {name!r} has dates with a time zone and dates without one: the format would "
        "reveal who is a member; write all dates with a time zone, or none"
    )
    return dates_in_utc([dt.datetime.fromisoformat(word) for word in words], refusal)


_NUMBER = _Reading(kind="number", values=_numbers_in_words)
_READINGS = (
    _NUMBER,
    _Reading(kind="flag", values=_flags_in_words),
    _Reading(kind="date", values=_dates_in_words),
)


def _check_same_format(columns: Sequence[Column], name: str) -> None:
    """Check that two tables do not write a column in two formats, one of them readable."""
    words_of_tables = list[list[str]]()
    for column in columns:
        known_cells = column.values[~column.missing].tolist()
        words_of_tables.append(list(filterfalse(is_mark, known_cells)))
    sizes_of_tables = list(map(len, words_of_tables))
    log_splits = log_choose(sum(sizes_of_tables), sizes_of_tables[0])
    if log_splits < -math.log(_BY_CHANCE):
        return
    # Members and non-members may have been exported by different tools.
    kinds_of_readers: dict[Callable[[str], object], str] = {
        _number_in_word: "numbers",
        partial(_number_in_word, decimal=","): "numbers",
        dt.datetime.fromisoformat: "dates",
    }
    for reader, kind in kinds_of_readers.items():
        for words, other_words in permutations(words_of_tables):
            reads_all_words = all(_reader_takes_word(word, reader) for word in words)
            if reads_all_words and not any(
                _reader_takes_word(word, reader) for word in other_words
            ):
                raise InputError(
                    f"column {name!r} holds {kind} in one of the tables of members and non-members "
                    f"({shown(words[0])}) and text in the other ({shown(other_words[0])}): the "
                    "format would reveal who is a member; write both in the same format"
                )


def _reader_takes_word(word: str, reader: Callable[[str], object]) -> bool:
    try:
        reader(word)
    except (ValueError, OverflowError):
        return False
    return True
