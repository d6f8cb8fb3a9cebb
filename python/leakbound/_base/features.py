"""Features of examples as columns of numbers, whatever table holds them.

What a column holds is settled by `tables` and `text`. Here it becomes numbers that a linear model
can use: words become indicators of all but the most frequent word. All of it follows from the rows
of a table; who is a member has no part in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_features, shown
from leakbound._base.formatting import listed_first
from leakbound._base.messages import Message
from leakbound._base.reading import are_records, array_of
from leakbound._base.tables import (
    NAMES,
    Column,
    ColumnKind,
    Writing,
    kinds_of,
    read_columns,
)
from leakbound._base.text import marked, settled, suspicion, taken_as_words
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    Data,
    FloatArray,
    IntArray,
    Strings,
)
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
        return self.encoding.sentences

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
        unmarked_rows = self.unmarked
        if unmarked_rows is not None:
            unmarked_rows = unmarked_rows[rows]
        return replace(self, rows=self.rows[rows], unmarked=unmarked_rows)


@dataclass(frozen=True)
class _EncodingRule:
    """How one column becomes numbers.

    `indicator_words` have an indicator each; `has_rare_indicator` says whether one more stands for
    all other words than the `most_frequent` one. `has_missing_indicator` says whether missing
    values have an indicator; without one, they are missing in `filled_rows` of the first table.
    `missing_marks` counts the words for missing values. Numbers are counted from `origin`, and
    their `median` stands for missing ones.
    """

    name: str
    kind: ColumnKind
    is_categorical: bool
    indicator_words: Strings = ()
    most_frequent: str = ""
    pooled_words: Strings = ()
    has_rare_indicator: bool = False
    has_missing_indicator: bool = False
    filled_rows: int = 0
    origin: Data = 0
    median: float = 0.0
    missing_marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> Strings:
        """The names of the columns of numbers."""
        column_names = [f"{self.name} = {word}" for word in self.indicator_words]
        if self.kind not in {"word", "empty"}:
            column_names = [self.name]
        if self.has_rare_indicator:
            column_names.append(f"{self.name} = other")
        if self.has_missing_indicator:
            column_names.append(f"{self.name} is missing")
        return tuple(column_names)

    @property
    def why_no_columns(self) -> str:
        """Why no number comes of the column, if none does."""
        if self.kind == "empty":
            return "missing in all rows"
        return "the same in nearly all rows"

    def has_no_indicator(self, column: Column) -> BoolArray:
        """Return which rows have a word without an indicator of its own."""
        told_words = [*self.indicator_words, self.most_frequent]
        has_untold_word = np.isin(column.values, told_words, invert=True)
        return np.asarray(has_untold_word & ~column.missing)

    def columns(self, column: Column) -> list[AnyArray]:
        """Return the columns of numbers and of indicators of a column of the same kind."""
        columns_of_numbers: list[AnyArray] = [
            column.values == word for word in self.indicator_words
        ]
        if self.kind not in {"word", "empty"}:
            numbers_of_column = _numbers_of_column(column, self.origin)
            columns_of_numbers.append(np.where(column.missing, self.median, numbers_of_column))
        if self.has_rare_indicator:
            columns_of_numbers.append(self.has_no_indicator(column))
        if self.has_missing_indicator:
            columns_of_numbers.append(column.missing)
        return columns_of_numbers


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become numbers, settled by the rows of one table.

    `doubts` says which columns were perhaps read wrongly, and which are left out.
    """

    rules: tuple[_EncodingRule, ...]
    doubts: Strings = ()

    @property
    def names(self) -> Strings:
        """The names of the columns of numbers."""
        return tuple(name for rule in self.rules for name in rule.names)

    @property
    def left_out(self) -> Strings:
        """Columns of the table of which no number comes, and why."""
        return tuple(
            f"{rule.name!r} ({rule.why_no_columns})" for rule in self.rules if not rule.names
        )

    @property
    def sentences(self) -> str:
        """How the table was converted, for assumptions; nothing where all columns are numbers."""
        are_plain_numbers = all(
            rule.kind in {"number", "flag"}
            and not rule.has_missing_indicator
            and not rule.filled_rows
            for rule in self.rules
        )
        if are_plain_numbers:
            return ""
        kinds_in_words = kinds_of({rule.name: rule.kind for rule in self.rules})
        details_of_conversion = [CONVERTED, *self.unmarked]
        marks_of_columns = {
            rule.name: rule.missing_marks for rule in self.rules if rule.missing_marks
        }
        if marks_of_columns:
            details_of_conversion.append(marked(marks_of_columns, named=False))
        sentences = f" Columns were read {kinds_in_words}. {'; '.join(details_of_conversion)}."
        if self.unmarked:
            sentences += " Rows with a rare word or gap are not audited."
        return sentences

    @property
    def unmarked(self) -> Strings:
        """Which words and missing values have no indicator of their own, column by column."""
        about_words = [_about_pooled_words(rule) for rule in self.rules if rule.pooled_words]
        about_gaps = [_about_filled_values(rule) for rule in self.rules if rule.filled_rows]
        return (*about_words, *about_gaps)

    @classmethod
    def of(cls, table: Mapping[str, Column], name: str) -> Self:
        """Settle how the columns of a table are converted, and say which are in doubt."""
        rules = list[_EncodingRule]()
        doubts = list[str]()
        for column_name, column_as_stored in table.items():
            settled_column = _settled_column(column_as_stored, column_name)
            suspicion_in_words = ""
            if not column_as_stored.categorical:
                suspicion_in_words = suspicion(settled_column, column_name)
            if suspicion_in_words:
                doubt = Message(
                    "column {label!r} of {name} {meant}: {done}",
                    label=column_name,
                    name=name,
                    meant=suspicion_in_words,
                    done=taken_as_words(settled_column, column_name),
                )
                doubts.append(doubt)
            rules.append(
                _encoding_rule(
                    column_name, settled_column, name, coded=column_as_stored.categorical
                )
            )
        encoding = cls(tuple(rules))
        if not encoding.names:
            raise InputError(
                f"no column of {name} says anything: {', '.join(encoding.left_out)}. Pass columns "
                "in which members and non-members may differ"
            )
        if encoding.left_out:
            doubts.append(f"columns of {name} left out: {', '.join(encoding.left_out)}")
        return replace(encoding, doubts=tuple(doubts))

    def rows(self, table: Mapping[str, Column], name: str) -> tuple[FloatArray, BoolArray]:
        """Convert a table with the same columns, and say which rows have what no number tells.

        InputError says what differs.
        """
        self._check_column_names(table, name)
        (number_of_rows,) = {column.missing.size for column in table.values()}
        is_filled = np.zeros(number_of_rows, dtype=np.bool_)
        has_rare_word = np.zeros(number_of_rows, dtype=np.bool_)
        columns_of_numbers: list[AnyArray] = []
        for rule in self.rules:
            settled_column = self._column_as_settled(table[rule.name], rule, name)
            columns_of_numbers += rule.columns(settled_column)
            if not rule.has_missing_indicator and rule.names:
                is_filled |= settled_column.missing
            if rule.kind == "word":
                has_rare_word |= rule.has_no_indicator(settled_column)
        _check_filled_rows(is_filled, name)
        rows_of_numbers = np.column_stack(columns_of_numbers)
        return np.ascontiguousarray(rows_of_numbers, np.float64), is_filled | has_rare_word

    def _check_column_names(self, table: Mapping[str, Column], table_name: str) -> None:
        fitted_names = [rule.name for rule in self.rules]
        lacking_names = [name for name in fitted_names if name not in table]
        extra_names = [name for name in table if name not in fitted_names]
        if not lacking_names and not extra_names:
            return
        difference = f"has {', '.join(map(repr, extra_names))} besides"
        if lacking_names:
            difference = f"lacks {', '.join(map(repr, lacking_names))}"
        raise InputError(
            f"{table_name} {difference}: the model was fitted to the columns "
            f"{', '.join(map(repr, fitted_names))}, and needs the same ones"
        )

    def _column_as_settled(
        self, stored_column: Column, rule: _EncodingRule, table_name: str
    ) -> Column:
        """Return a column as what it was where the rule was settled."""
        if rule.is_categorical:
            stored_column = stored_column.as_codes()
        (settled_column,) = settled(
            [stored_column], rule.name, kind=rule.kind, codes=rule.is_categorical
        )
        if settled_column.kind == "empty" and rule.kind != "empty":
            filling = rule.origin
            if rule.kind == "word":
                filling = ""
            filled_values = np.full(settled_column.missing.size, filling)
            settled_column = replace(settled_column, kind=rule.kind, values=filled_values)
        if settled_column.kind != rule.kind:
            raise InputError(
                f"column {rule.name!r} of {table_name} holds {NAMES[settled_column.kind]}, and the "
                f"model was fitted to {NAMES[rule.kind]}: give both the same type"
            )
        if rule.kind == "word":
            self._check_known_words(settled_column, rule, table_name)
        return settled_column

    def _check_known_words(self, column: Column, rule: _EncodingRule, table_name: str) -> None:
        """Refuse words that are frequent here and were not there, by themselves or together."""
        known_words = [*rule.indicator_words, rule.most_frequent, *rule.pooled_words]
        is_unknown = ~np.isin(column.values, known_words) & ~column.missing
        unknown_rows = int(is_unknown.sum())
        if not unknown_rows or (rule.has_rare_indicator and unknown_rows < FEW):
            _check_pooled_words(
                column,
                rule,
                table_name,
                least=FEW,
                where=" of those that the model was fitted to",
            )
            return
        first_row = int(is_unknown.argmax())
        raise InputError(
            f"column {rule.name!r} of {table_name} has {shown(str(column.values[first_row]))} at "
            f"row {first_row} ({unknown_rows:,} such rows), a word that the model was not fitted "
            "to: leave these rows out, or fit the model to records that have it"
        )


def read_features(
    values: ArrayInput, name: str = "features", encoding: Encoding | None = None
) -> FeatureTable:
    """Read features of any form: an array of numbers as it is, a table column by column.

    With an `encoding`, a table is converted as the one that it was made from.
    """
    columns_by_name = table_of(values, name)
    if columns_by_name is None:
        rows_of_array = check_features(values, name)
        column_numbers = range(rows_of_array.shape[1])
        return FeatureTable(rows_of_array, names=tuple(map(str, column_numbers)))
    if encoding is None:
        encoding = Encoding.of(columns_by_name, name)
    rows_of_numbers, is_unmarked = encoding.rows(columns_by_name, name)
    return FeatureTable(rows_of_numbers, encoding.names, encoding, is_unmarked)


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
    _refuse_several_tables(values, name)
    field_names = getattr(getattr(values, "dtype", None), "names", None)
    # Asked of the type: a lazy frame would run its query.
    has_columns = isinstance(values, Mapping) or hasattr(type(values), "columns")
    if has_columns or field_names or are_records(values):
        return read_columns(values, name, _IN_FRAMES)
    array = array_of(values, name, exact=True)
    if array.ndim == 1 and array.dtype.kind in "OSU":
        raise InputTypeError(
            f"{name} must have a column for each feature: for one column of words pass a "
            "frame, such as series.to_frame()"
        )
    if array.dtype.kind in "biufc" or array.ndim != 2:
        return None
    return read_columns(array, name, _IN_FRAMES)


def _refuse_several_tables(table: Data, table_name: str) -> None:
    """Refuse a table for members and another one for the others."""
    parts: list[Data] = []
    if isinstance(table, list | tuple):
        parts = list(table)
    elif isinstance(table, Mapping):
        parts = list(table.values())
    if parts and all(getattr(part, "ndim", 0) == 2 for part in parts):
        raise InputError(
            f"{table_name} must be one table with a row for each example, in the order of the "
            f"scores, got {len(parts)} tables: put them one below the other, as pandas.concat "
            "does, with the same columns"
        )


def _settled_column(column: Column, name: str) -> Column:
    """Return a column as numbers, dates, booleans or words."""
    if column.categorical:
        return column.as_codes()
    (settled_column,) = settled([column], name)
    return settled_column


def _encoding_rule(
    column_name: str, column: Column, table_name: str, *, coded: bool
) -> _EncodingRule:
    """Return how a column is converted."""
    has_missing_indicator = _are_enough_for_indicator(column.missing)
    filled_rows = 0
    if not has_missing_indicator and column.kind != "empty":
        filled_rows = int(column.missing.sum())
    rule_without_values = _EncodingRule(
        name=column_name,
        kind=column.kind,
        is_categorical=coded,
        has_missing_indicator=has_missing_indicator,
        filled_rows=filled_rows,
        missing_marks=column.marks,
    )
    if column.kind == "word":
        return _encoding_rule_of_words(rule_without_values, column, table_name)
    if column.kind == "empty":
        return rule_without_values
    is_known = ~column.missing
    origin_of_numbers: Data = 0
    if column.kind in {"date", "zoned"} or column.is_exact:
        origin_of_numbers = column.values[is_known].min()
    known_numbers = _numbers_of_column(column, origin_of_numbers)[is_known]
    return replace(
        rule_without_values, origin=origin_of_numbers, median=float(np.median(known_numbers))
    )


def _encoding_rule_of_words(rule: _EncodingRule, column: Column, table_name: str) -> _EncodingRule:
    """Give indicators to words that are frequent enough, but for the most frequent one."""
    words, rows_with_word = np.unique(column.values[~column.missing], return_counts=True)
    # Of equally frequent words, the first in the alphabet
    most_frequent = int(rows_with_word.argmax())
    if words.size > 2 and rows_with_word[most_frequent] < FEW:
        raise InputError(
            f"column {rule.name!r} of {table_name} has {words.size:,} different words, none of "
            f"them in {FEW} rows or more, such as {shown(str(words[most_frequent]))}. Leave names, "
            "ids and texts out of the features (ids may be the index of the frame), and put other "
            "words into fewer groups, such as towns into regions"
        )
    is_less_frequent = np.arange(words.size) != most_frequent
    # Of two words, one is an indicator.
    is_frequent_enough = (rows_with_word >= FEW) | (words.size == 2)
    is_pooled = is_less_frequent & ~is_frequent_enough
    rule = replace(
        rule,
        indicator_words=tuple(words[is_less_frequent & is_frequent_enough].tolist()),
        most_frequent=str(words[most_frequent]),
        pooled_words=tuple(words[is_pooled].tolist()),
        has_rare_indicator=bool(rows_with_word[is_pooled].sum() >= FEW),
    )
    _check_pooled_words(column, rule, table_name)
    return rule


def _check_pooled_words(
    column: Column, rule: _EncodingRule, table_name: str, least: int = 1, where: str = ""
) -> None:
    """Refuse words without an indicator in many rows: what they say would be lost.

    Fewer rows than `least` are not counted. `where` says in which rows they are rare.
    """
    is_pooled = rule.has_no_indicator(column)
    pooled_rows = int(is_pooled.sum())
    share_of_rows = pooled_rows / max(1, is_pooled.size)
    if pooled_rows < least or share_of_rows <= POOLED:
        return
    pooled_words = np.unique(column.values[is_pooled])
    raise InputError(
        f"words of column {rule.name!r} of {table_name} that are in fewer than {FEW} rows "
        f"each{where} ({pooled_words.size:,}, such as {shown(str(pooled_words[0]))}) are together "
        f"{100 * share_of_rows:.3g} % of the rows ({pooled_rows:,} of {is_pooled.size:,}). As one "
        "word they would be another feature, and what they say about membership would be taken "
        "for leakage: put rare words into groups by a rule without membership, such as towns into "
        f"regions, or pass indicators as columns of numbers (up to {100 * POOLED:g} % of the rows "
        "may hold such words)"
    )


def _check_filled_rows(is_filled: BoolArray, table_name: str) -> None:
    """Refuse missing values without an indicator in many rows, of whatever columns they are."""
    filled_rows = int(is_filled.sum())
    if filled_rows < FEW or filled_rows <= POOLED * is_filled.size:
        return
    raise InputError(
        f"{filled_rows:,} of {is_filled.size:,} rows of {table_name} have values that are missing "
        f"in fewer than {FEW} rows of their column. Filled in, what their absence says about "
        "membership would be taken for leakage: leave out these columns, drop these rows by a rule "
        "without membership, or pass indicators as columns of numbers (up to "
        f"{100 * POOLED:g} % of the rows may have such values)"
    )


def _about_filled_values(rule: _EncodingRule) -> str:
    """Say how many missing values have no indicator."""
    filling = "the median"
    if rule.kind == "word":
        filling = "the most frequent word"
    rows = "row"
    verb = "counts"
    if rule.filled_rows > 1:
        rows = "rows"
        verb = "count"
    return (
        f"column {rule.name!r} is missing in {rule.filled_rows:,} {rows}, too few for an "
        f"indicator, which {verb} as {filling}"
    )


def _about_pooled_words(rule: _EncodingRule) -> str:
    """Say which words have no indicator of their own."""
    first_words = listed_first(list(map(repr, rule.pooled_words)), most=3)
    noun = "words"
    verb = "count"
    if len(rule.pooled_words) == 1:
        noun = "word"
        verb = "counts"
    counted_as = f"{rule.most_frequent!r}, the most frequent word"
    if rule.has_rare_indicator:
        counted_as = "one word"
    return (
        f"column {rule.name!r} has {len(rule.pooled_words):,} {noun} in fewer than {FEW} rows "
        f"({first_words}), which {verb} as {counted_as}"
    )


def _are_enough_for_indicator(is_missing: BoolArray) -> bool:
    """Return whether enough rows have a value, and enough have none, for an indicator."""
    rows_with_and_without = np.bincount(is_missing, minlength=2)
    return bool(rows_with_and_without.min() >= FEW)


def _numbers_of_column(column: Column, origin: Data) -> FloatArray:
    """Return numbers, days since an origin, or 0 and 1; anything where values are missing."""
    are_dates = column.kind in {"date", "zoned"}
    numbers = column.values
    if column.kind == "flag":
        numbers = numbers == "True"
    if are_dates or column.is_exact:
        numbers = np.where(column.missing, origin, numbers) - origin
    if are_dates:
        numbers = numbers / _DAY
    float_numbers: FloatArray = numbers.astype(np.float64)
    return float_numbers
