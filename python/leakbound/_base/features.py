"""Features of examples as columns of numbers, whatever table holds them.

What a column holds is settled by `tables` and `text`. Here it becomes numbers that a linear model
can use: words become indicators of all but the most frequent word. All of it follows from the rows
of a table; who is a member has no part in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_features, shown
from leakbound._base.messages import Message
from leakbound._base.reading import array_of
from leakbound._base.tables import NAMES, Column, ColumnKind, Writing, kinds_of, read_columns
from leakbound._base.text import marked, settled, suspicion, taken_as_words
from leakbound._base.types import ArrayInput, BoolArray, Data, FloatArray, IntArray, Strings
from leakbound.errors import InputError, InputTypeError

FEW = 20
"""Rows that a word, or missing values, need for an indicator: of fewer all may be members."""
POOLED = 0.02
"""Share of rows whose words may count as one: of more, features would be others than were given."""
CONVERTED = (
    "Words are indicators of all but the most frequent one, dates are days, and a missing value is "
    "the median or the most frequent word, with an indicator where many are. The conversion "
    "follows from the rows of all examples together; membership has no part in it"
)
"""How tables are converted, for assumptions."""
_IN_FRAMES = Writing(named=False)
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features as numbers, one row for each example.

    `names` has the name of each column, which for an array is its number. `encoding` is how a table
    was converted, and `unmarked` says which rows have a word or lack a value that no number tells;
    both are None for an array.
    """

    rows: FloatArray
    names: Strings
    encoding: "Encoding | None" = None
    unmarked: BoolArray | None = None

    @property
    def form(self) -> str:
        """How a table was converted, for assumptions; nothing for an array."""
        if self.encoding is None:
            return ""
        return self.encoding.said

    @property
    def warnings(self) -> Strings:
        """What is in doubt, and which words and missing values have no indicator."""
        if self.encoding is None:
            return ()
        return (*self.encoding.doubts, *self.encoding.unmarked)

    @property
    def told(self) -> BoolArray:
        """Which rows have nothing that no number tells."""
        if self.unmarked is None:
            return np.ones(len(self.rows), dtype=np.bool_)
        return ~self.unmarked

    def taken(self, rows: IntArray | None) -> "FeatureTable":
        """Return some rows in an order; all as they are if None."""
        if rows is None:
            return self
        unmarked = self.unmarked
        if unmarked is not None:
            unmarked = unmarked[rows]
        return replace(self, rows=self.rows[rows], unmarked=unmarked)


@dataclass(frozen=True)
class _Rule:
    """How one column becomes numbers.

    `words` have an indicator each; `rare` says whether one more stands for all other words than
    `usual`, the most frequent one. `gap` says whether missing values have an indicator; without
    one, `filled` rows of the first table are missing, and `marks` counts the words for it. Numbers
    are counted from `origin`, and `middle` stands for missing ones.
    """

    name: str
    kind: ColumnKind
    coded: bool
    words: Strings = ()
    usual: str = ""
    pooled: Strings = ()
    rare: bool = False
    gap: bool = False
    filled: int = 0
    origin: Data = 0
    middle: float = 0.0
    marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> Strings:
        """The names of the columns of numbers."""
        names = [f"{self.name} = {word}" for word in self.words]
        if self.kind not in {"word", "empty"}:
            names = [self.name]
        if self.rare:
            names.append(f"{self.name} = other")
        if self.gap:
            names.append(f"{self.name} is missing")
        return tuple(names)

    @property
    def needless(self) -> str:
        """Why no number comes of the column, if none does."""
        if self.kind == "empty":
            return "missing in all rows"
        return "the same in nearly all rows"

    def apart(self, column: Column) -> BoolArray:
        """Return which rows have a word without an indicator of its own."""
        known = np.isin(column.values, [*self.words, self.usual])
        return np.asarray(~known & ~column.missing)

    def columns(self, column: Column) -> list[FloatArray]:
        """Return the columns of numbers of a column of the same kind."""
        found = [(column.values == word).astype(np.float64) for word in self.words]
        if self.kind not in {"word", "empty"}:
            numbers = _as_numbers(column, self.origin)
            found = [np.where(column.missing, self.middle, numbers)]
        if self.rare:
            found.append(self.apart(column).astype(np.float64))
        if self.gap:
            found.append(column.missing.astype(np.float64))
        return found


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become numbers, settled by the rows of one table.

    `doubts` says which columns were perhaps read wrongly, and which are left out.
    """

    rules: tuple[_Rule, ...]
    doubts: Strings = ()

    @property
    def names(self) -> Strings:
        """The names of the columns of numbers."""
        return tuple(name for rule in self.rules for name in rule.names)

    @property
    def left_out(self) -> Strings:
        """Columns of the table of which no number comes, and why."""
        return tuple(f"{rule.name!r} ({rule.needless})" for rule in self.rules if not rule.names)

    @property
    def said(self) -> str:
        """How the table was converted, for assumptions; nothing where all columns are numbers."""
        plain = {"number", "flag"}
        if all(rule.kind in plain and not (rule.gap or rule.filled) for rule in self.rules):
            return ""
        kinds = kinds_of({rule.name: rule.kind for rule in self.rules})
        details = [CONVERTED, *self.unmarked]
        marks = {rule.name: rule.marks for rule in self.rules if rule.marks}
        if marks:
            details.append(marked(marks, named=False))
        told = f" Columns were read {kinds}. {'; '.join(details)}."
        if self.unmarked:
            told += " Rows with a rare word or gap are not audited."
        return told

    @property
    def unmarked(self) -> Strings:
        """Which words and missing values have no indicator of their own, column by column."""
        words = [_pooling(rule) for rule in self.rules if rule.pooled]
        gaps = [_filling(rule) for rule in self.rules if rule.filled]
        return (*words, *gaps)

    @classmethod
    def of(cls, table: Mapping[str, Column], name: str) -> Self:
        """Settle how the columns of a table are converted, and say which are in doubt."""
        rules = list[_Rule]()
        doubts = list[str]()
        for label, column in table.items():
            read = _settled(column, label)
            meant = ""
            if not column.categorical:
                meant = suspicion(read, label)
            if meant:
                done = taken_as_words(read, label)
                said = "column {label!r} of {name} {meant}: {done}"
                doubts.append(Message(said, label=label, name=name, meant=meant, done=done))
            rules.append(_rule(label, read, name, coded=column.categorical))
        found = cls(tuple(rules))
        if not found.names:
            raise InputError(
                f"no column of {name} says anything: {', '.join(found.left_out)}. Pass columns in "
                "which members and non-members may differ"
            )
        if found.left_out:
            doubts.append(f"columns of {name} left out: {', '.join(found.left_out)}")
        return replace(found, doubts=tuple(doubts))

    def rows(self, table: Mapping[str, Column], name: str) -> tuple[FloatArray, BoolArray]:
        """Convert a table with the same columns, and say which rows have what no number tells.

        InputError says what differs.
        """
        self._check_names(table, name)
        columns = list[FloatArray]()
        filled = list[BoolArray]()
        strange = list[BoolArray]()
        for rule in self.rules:
            column = self._alike(table[rule.name], rule, name)
            columns += rule.columns(column)
            if not rule.gap and rule.names:
                filled.append(column.missing)
            if rule.kind == "word":
                strange.append(rule.apart(column))
        _check_filled(filled, name)
        rows = np.ascontiguousarray(np.column_stack(columns))
        unmarked = np.zeros(len(rows), dtype=np.bool_)
        for part in (*filled, *strange):
            unmarked |= part
        return rows, unmarked

    def _check_names(self, table: Mapping[str, Column], name: str) -> None:
        known = [rule.name for rule in self.rules]
        lacking = [one for one in known if one not in table]
        extra = [one for one in table if one not in known]
        if lacking or extra:
            words = f"lacks {', '.join(map(repr, lacking))}"
            if not lacking:
                words = f"has {', '.join(map(repr, extra))} besides"
            raise InputError(
                f"{name} {words}: the model was fitted to the columns "
                f"{', '.join(map(repr, known))}, and needs the same ones"
            )

    def _alike(self, column: Column, rule: _Rule, name: str) -> Column:
        """Return a column as what it was where the rule was settled."""
        read = column
        if rule.coded:
            read = column.as_codes()
        read = settled([read], rule.name, kind=rule.kind, codes=rule.coded)[0]
        if read.kind == "empty" and rule.kind != "empty":
            read = replace(read, kind=rule.kind, values=_blanks(rule, read.missing.size))
        if read.kind != rule.kind:
            raise InputError(
                f"column {rule.name!r} of {name} holds {NAMES[read.kind]}, and the model was "
                f"fitted to {NAMES[rule.kind]}: give both the same type"
            )
        if rule.kind == "word":
            self._check_words(read, rule, name)
        return read

    def _check_words(self, column: Column, rule: _Rule, name: str) -> None:
        """Refuse words that are frequent here and were not there, by themselves or together."""
        known = [*rule.words, rule.usual, *rule.pooled]
        strange = ~np.isin(column.values, known) & ~column.missing
        if not strange.any() or (rule.rare and strange.sum() < FEW):
            _check_pooled(column, rule, name, FEW, " of those that the model was fitted to")
            return
        row = int(strange.argmax())
        raise InputError(
            f"column {rule.name!r} of {name} has {shown(str(column.values[row]))} at row {row} "
            f"({int(strange.sum()):,} such rows), a word that the model was not fitted to: leave "
            "these rows out, or fit the model to records that have it"
        )


def read_features(
    values: ArrayInput, name: str = "features", encoding: Encoding | None = None
) -> FeatureTable:
    """Read features of any form: an array of numbers as it is, a table column by column.

    With an `encoding`, a table is converted as the one that it was made from.
    """
    table = table_of(values, name)
    if table is None:
        rows = check_features(values, name)
        return FeatureTable(rows, tuple(map(str, range(rows.shape[1]))))
    if encoding is None:
        encoding = Encoding.of(table, name)
    rows, unmarked = encoding.rows(table, name)
    return FeatureTable(rows, encoding.names, encoding, unmarked)


def placed_features(
    order: ExampleOrder,
    values: ArrayInput,
    name: str = "features",
    encoding: Encoding | None = None,
) -> FeatureTable:
    """Read features of examples, in their order."""
    rows = order.rows_of(values, name)
    return read_features(values, name, encoding).taken(rows)


def table_of(values: Data, name: str) -> dict[str, Column] | None:
    """Return the columns of a table, or of an array of objects; None for an array of numbers."""
    if type(values) is np.ndarray and values.ndim == 2 and values.dtype.kind in "biuf":
        return None
    return _columns_of(values, name)


def _columns_of(values: Data, name: str) -> dict[str, Column] | None:
    """Return the columns of a table, or of an array of objects; None if it holds numbers only."""
    given = values
    records = isinstance(given, list | tuple) and bool(given)
    fields = getattr(getattr(given, "dtype", None), "names", None)
    _refuse_several(given, name)
    # Asked of the type: a lazy frame would run its query.
    named = isinstance(given, Mapping) or hasattr(type(given), "columns") or bool(fields)
    if not named and not (records and all(isinstance(one, Mapping) for one in given)):
        given = array_of(values, name, exact=True)
        if given.ndim == 1 and given.dtype.kind in "OSU":
            raise InputTypeError(
                f"{name} must have a column for each feature: for one column of words pass a "
                "frame, such as series.to_frame()"
            )
        if given.dtype.kind in "biufc" or given.ndim != 2:
            return None
    return read_columns(given, name, _IN_FRAMES)


def _refuse_several(given: Data, name: str) -> None:
    """Refuse a table for members and another one for the others."""
    parts: list[Data] = []
    if isinstance(given, list | tuple):
        parts = list(given)
    elif isinstance(given, Mapping):
        parts = list(given.values())
    if parts and all(getattr(part, "ndim", 0) == 2 for part in parts):
        raise InputError(
            f"{name} must be one table with a row for each example, in the order of the scores, "
            f"got {len(parts)} tables: put them one below the other, as pandas.concat does, with "
            "the same columns"
        )


def _settled(column: Column, name: str) -> Column:
    """Return a column as numbers, dates, booleans or words."""
    if column.categorical:
        return column.as_codes()
    return settled([column], name)[0]


def _rule(name: str, column: Column, table: str, *, coded: bool) -> _Rule:
    """Return how a column is converted."""
    gap = _is_frequent(column.missing)
    filled = 0
    if not gap and column.kind != "empty":
        filled = int(column.missing.sum())
    rule = _Rule(name, column.kind, coded, gap=gap, filled=filled, marks=column.marks)
    if column.kind == "word":
        return _of_words(rule, column, table)
    if column.kind == "empty":
        return rule
    known = column.values[~column.missing]
    origin: Data = 0
    if column.kind in {"date", "zoned"} or column.is_exact:
        origin = known.min()
    middle = float(np.median(_as_numbers(column, origin)[~column.missing]))
    return replace(rule, origin=origin, middle=middle)


def _of_words(rule: _Rule, column: Column, table: str) -> _Rule:
    """Give indicators to words that are frequent enough, but for the most frequent one."""
    words, counts = np.unique(column.values[~column.missing], return_counts=True)
    usual = int(counts.argmax())  # of equally frequent ones, the first in the alphabet
    if words.size > 2 and counts[usual] < FEW:
        raise InputError(
            f"column {rule.name!r} of {table} has {words.size:,} different words, none of them in "
            f"{FEW} rows or more, such as {shown(str(words[usual]))}. Leave names, ids and texts "
            "out of the features (ids may be the index of the frame), and put other words into "
            "fewer groups, such as towns into regions"
        )
    frequent = (counts >= FEW) | (words.size == 2)  # of two words, one is an indicator
    others = ~frequent
    for chosen in (frequent, others):
        chosen[usual] = False
    pooled = tuple(words[others].tolist())
    found = replace(
        rule,
        words=tuple(words[frequent].tolist()),
        usual=str(words[usual]),
        pooled=pooled,
        rare=bool(counts[others].sum() >= FEW),
    )
    _check_pooled(column, found, table)
    return found


def _check_pooled(column: Column, rule: _Rule, table: str, least: int = 1, where: str = "") -> None:
    """Refuse words without an indicator in many rows: what they say would be lost.

    Fewer rows than `least` are not counted. `where` says in which rows they are rare.
    """
    apart = rule.apart(column)
    rows = int(apart.sum())
    share = rows / max(1, apart.size)
    if rows < least or share <= POOLED:
        return
    words = np.unique(column.values[apart])
    raise InputError(
        f"words of column {rule.name!r} of {table} that are in fewer than {FEW} rows each{where} "
        f"({words.size:,}, such as {shown(str(words[0]))}) are together {100 * share:.3g} % of the "
        f"rows ({rows:,} of {apart.size:,}). As one word they would be another feature, and what "
        "they say about membership would be taken for leakage: put rare words into groups by a "
        "rule without membership, such as towns into regions, or pass indicators as columns of "
        f"numbers (up to {100 * POOLED:g} % of the rows may hold such words)"
    )


def _check_filled(columns: Sequence[BoolArray], table: str) -> None:
    """Refuse missing values without an indicator in many rows, of whatever columns they are."""
    if not columns:
        return
    rows = np.logical_or.reduce(columns)
    count = int(rows.sum())
    if count < FEW or count <= POOLED * rows.size:
        return
    raise InputError(
        f"{count:,} of {rows.size:,} rows of {table} have values that are missing in fewer than "
        f"{FEW} rows of their column. Filled in, what their absence says about membership would be "
        "taken for leakage: leave out these columns, drop these rows by a rule without membership, "
        f"or pass indicators as columns of numbers (up to {100 * POOLED:g} % of the rows may have "
        "such values)"
    )


def _filling(rule: _Rule) -> str:
    """Say how many missing values have no indicator."""
    usual = "the median"
    if rule.kind == "word":
        usual = "the most frequent word"
    rows = "row"
    verb = "counts"
    if rule.filled > 1:
        rows = "rows"
        verb = "count"
    return (
        f"column {rule.name!r} is missing in {rule.filled:,} {rows}, too few for an indicator, "
        f"which {verb} as {usual}"
    )


def _pooling(rule: _Rule) -> str:
    """Say which words have no indicator of their own."""
    first = ", ".join(repr(word) for word in rule.pooled[:3])
    if len(rule.pooled) > 3:
        first += ", …"
    joined = f"count as {rule.usual!r}, the most frequent word"
    if rule.rare:
        joined = "count as one word"
    verb = "words"
    if len(rule.pooled) == 1:
        verb = "word"
        joined = joined.replace("count", "counts")
    return (
        f"column {rule.name!r} has {len(rule.pooled):,} {verb} in fewer than {FEW} rows "
        f"({first}), which {joined}"
    )


def _is_frequent(marked: BoolArray) -> bool:
    """Return whether rows that are marked, and others, are enough for an indicator."""
    count = int(marked.sum())
    return min(count, marked.size - count) >= FEW


def _as_numbers(column: Column, origin: Data) -> FloatArray:
    """Return numbers, days since an origin, or 0 and 1; anything where values are missing."""
    values = column.values
    if column.kind == "flag":
        values = values == "True"
    if column.kind in {"date", "zoned"} or column.is_exact:
        values = np.where(column.missing, origin, values) - origin
    if column.kind in {"date", "zoned"}:
        values = values / _DAY
    numbers: FloatArray = values.astype(np.float64)
    return numbers


def _blanks(rule: _Rule, size: int) -> Data:
    """Return values of a column that is missing in all rows."""
    if rule.kind == "word":
        return np.full(size, "", dtype=np.str_)
    return np.full(size, rule.origin)
