"""Alignment of everything that describes the same examples, by ids."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, Self, TypeAlias
from unicodedata import normalize

import numpy as np

from leakbound._base.checks import (
    check_length,
    check_membership,
    membership_vector,
    vector,
    whole_numbers,
)
from leakbound._base.console import one_line
from leakbound._base.drawn import refuse_copies
from leakbound._base.formatting import listed_first
from leakbound._base.messages import Message
from leakbound._base.reading import array_of, refuse_masked
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    Data,
    IntArray,
    MemberInput,
)
from leakbound.errors import InputError, InputTypeError, LeakboundError

_Kind: TypeAlias = Literal["ids", "index"]
_ID_KINDS = "biufSUOTMm"
# Packages whose arrays and frames are put together by a function of theirs.
_STACKING_PACKAGES = {"pandas", "polars", "pyarrow", "scipy", "torch"}
# How many ids a message names.
_LISTED_IDS = 3
# What ids are called that an audit is given beside scores.
_IDS_OPTION = Message("{ids=}")


@dataclass(frozen=True, eq=False)
class _Ids:
    """Ids of some rows, told as such or the index of a pandas object, and a name for messages.

    The default index of pandas, 0, 1, …, n - 1, tells rows of one table from each other, and need
    not be ids.
    """

    values: AnyArray
    kind: _Kind
    label: str
    is_default_index: bool = False


class ExampleOrder:
    """The order of the audited examples: that of the plan they `follow`, or that of their scores.

    Ids are what is passed as `ids`, the attribute `ids` of scores and plans, and the index of a
    pandas Series or DataFrame. Whatever has ids is joined with the ids known so far; whatever has
    none is read by position. The index 0, 1, …, n - 1 counts only against ids that are these same
    numbers, on whichever side it stands: it is what pandas gives to rows that have no ids.
    """

    def __init__(self, ids: ArrayInput | None = None, name: str = _IDS_OPTION) -> None:
        self._has_given_ids = ids is not None
        self._differs_from_membership = False
        self._ids_of_scores: _Ids | None = None
        self.rows: IntArray | None = None
        """Which rows of the scores are the examples, if these `follow` another order."""
        self._known_ids: list[_Ids] = []
        if ids is not None:
            self._known_ids = _given_ids(ids, name)

    @classmethod
    def of_tables(cls, tables: Sequence[object], name: str) -> Self:
        """Return the order of the rows of tables, put one below the other.

        Tables that all number their rows from 0, or of which one has no index, name no rows.
        """
        order = cls()
        indices_of_tables = list[AnyArray]()
        for table in tables:
            ids_of_table = _carried_ids(table, name)
            if ids_of_table is None or ids_of_table.kind != "index":
                return order
            indices_of_tables.append(ids_of_table.values)
        if not all(map(_counts_from_zero, indices_of_tables)):
            if len({index.dtype.kind for index in indices_of_tables}) > 1:
                indices_of_tables = [index.astype(object) for index in indices_of_tables]
            index_of_all = whole_numbers(np.concatenate(indices_of_tables))
            order._known_ids.append(_Ids(values=index_of_all, kind="index", label=name))
        return order

    def scores(self, values: Data, name: str) -> Data:
        """Return scores in the order of the examples; the first ones set it."""
        ids_of_scores = _carried_ids(values, name)
        if ids_of_scores is None:
            return values
        return self._scores_with_ids(ids_of_scores, values, name)

    def _scores_with_ids(self, ids_of_scores: _Ids, values: Data, name: str) -> Data:
        """Return scores that carry ids in the order of the examples."""
        if not self._has_given_ids:
            self._ids_of_scores = ids_of_scores
            return self.placed(values, name)
        if ids_of_scores.kind == "ids" and _counts_from_zero(ids_of_scores.values):
            return values
        no_index_is_known = all(known.kind == "ids" for known in self._known_ids)
        if ids_of_scores.kind == "index" and no_index_is_known:
            self._known_ids.append(ids_of_scores)
            return values
        return self.placed(values, name)

    def follow(self, plan: object, name: str) -> IntArray | None:
        """Take the order of a plan; return which rows of the scores to take, None for all as given.

        So nothing that a seed draws depends on the order in which scores come.
        """
        ids_of_plan = _carried_ids(plan, name)
        rows_of_plan = None
        if ids_of_plan is not None:
            rows_of_plan = self._joining_rows(ids_of_plan)
        if rows_of_plan is not None:
            self.rows = np.argsort(rows_of_plan)
            self._differs_from_membership = not _counts_from_zero(rows_of_plan)
            self._known_ids = [
                replace(known_ids, values=known_ids.values[self.rows])
                for known_ids in self._known_ids
            ]
        return self.rows

    def member(self, member: MemberInput, examples: int, *, copies: bool = False) -> BoolArray:
        """Return membership in the order of the examples.

        A plan of several `copies` of each member is refused, unless the audit knows them.
        """
        if not copies:
            refuse_copies(member)
        ids_of_membership = _carried_ids(member, "member")
        if ids_of_membership is not None:
            return self._membership_with_ids(ids_of_membership, member, examples)
        if self._ids_of_scores is not None:
            _refuse_shuffled_index(self._ids_of_scores)
        return check_membership(member, examples)

    def _membership_with_ids(self, ids: _Ids, member: MemberInput, examples: int) -> BoolArray:
        """Return membership that carries ids in the order of the examples."""
        rows_in_order = self._rows_with_ids(ids)
        if rows_in_order is None:
            return check_membership(member, examples)
        membership_as_given = membership_vector(member)
        check_length(membership_as_given, examples=examples, name="member")
        self._differs_from_membership = not _counts_from_zero(rows_in_order)
        return check_membership(membership_as_given[rows_in_order], examples)

    def placed(self, values: Data, name: str, *, across: bool = False) -> Data:
        """Return data about the examples in their order."""
        rows_in_order = self.rows_of(values, name, across=across)
        if rows_in_order is None:
            return values
        refuse_masked(values, name=name)
        array_in_given_order = array_of(values, name=name, exact=True)
        if across:
            return array_in_given_order[:, rows_in_order]
        return array_in_given_order[rows_in_order]

    def rows_of(self, values: Data, name: str, *, across: bool = False) -> IntArray | None:
        """Return which rows of data about the examples to take, in order; None for all as given."""
        carried_ids = _carried_ids(values, name, across=across)
        if (
            self._differs_from_membership
            and _has_rows_to_order(values)
            and not self._tell_order(carried_ids)
        ):
            raise InputError(
                f"scores and membership list the examples in different orders, and {name} has no "
                "ids that tell its order: put all in one order, or give it the same ids (a pandas "
                "index)"
            )
        if carried_ids is None:
            return None
        return self._rows_with_ids(carried_ids)

    @property
    def ids(self) -> AnyArray | None:
        """Ids that tell the examples from those of other batches, in their order, if there are any.

        Those passed as `ids`, or numbers and text that an argument carries. Not the numbers
        0, 1, …, n - 1 in any order, which every batch may have.
        """
        if self._has_given_ids:
            return self._known_ids[0].values
        for known in self._known_ids:
            if _are_names_of_rows(known.values, "iufSUT") and not _counts_from_zero(
                np.sort(known.values)
            ):
                return known.values
        return None

    @property
    def distinct_ids(self) -> AnyArray | None:
        """The same, if they are passed as `ids` or none occurs twice.

        An index repeats where tables were put together that each count their rows: it names none.
        """
        ids = self.ids
        if self._has_given_ids or ids is None:
            return ids
        if np.unique(ids).size == ids.size:
            return ids
        return None

    @property
    def told_ids(self) -> AnyArray | None:
        """Ids passed as `ids`, or carried by scores or a plan; an index does not count."""
        for known in self._known_ids:
            if known.kind == "ids" and not _counts_from_zero(known.values):
                return known.values
        return None

    def _rows_with_ids(self, ids: _Ids) -> IntArray | None:
        """Return which rows of values with ids to take, None for all; the ids are known then."""
        joined_rows = self._joining_rows(ids)
        if joined_rows is not None:
            ids = replace(ids, values=ids.values[joined_rows])
        self._known_ids.append(ids)
        return joined_rows

    def _tell_order(self, ids: _Ids | None) -> bool:
        """Return whether ids tell an order: a default index does where these numbers are ids."""
        if ids is None or not ids.is_default_index:
            return ids is not None
        return any(_rows_in_order_of_known_ids(known, ids) is not None for known in self._known_ids)

    def _joining_rows(self, ids: _Ids) -> IntArray | None:
        """Return the rows that put ids in order, from the ids of their own kind if it can be.

        A default index is compared with default ones first, and other ids with other ids.
        """
        known_ids_alike_first = sorted(
            self._known_ids,
            key=lambda known_ids: (
                known_ids.is_default_index != ids.is_default_index,
                known_ids.kind != ids.kind,
            ),
        )
        for known_ids in known_ids_alike_first:
            if np.array_equal(known_ids.values, ids.values):
                return None
            joined_rows = _rows_in_order_of_known_ids(known_ids, ids)
            if joined_rows is not None:
                return joined_rows
        if ids.is_default_index:
            return None
        for known_ids in known_ids_alike_first:
            if not known_ids.is_default_index:
                raise InputError(_message_about_unmatched_ids(known_ids, ids))
        return None


def _given_ids(ids: ArrayInput, name: str) -> list[_Ids]:
    """Return ids that were passed as such, and the index that they have if they are a column."""
    given_ids = whole_numbers(vector(ids, name="ids", kinds=_ID_KINDS))
    known_ids = [_Ids(values=given_ids, kind="ids", label=name)]
    index_of_column = _carried_ids(ids, "ids")
    if index_of_column is not None:
        known_ids.append(index_of_column)
    return known_ids


def _refuse_shuffled_index(ids: _Ids) -> None:
    """Refuse scores that count from 0 in another order, whose membership may be in either."""
    if ids.kind != "index" or ids.is_default_index or not _counts_from_zero(np.sort(ids.values)):
        return
    raise InputError(
        f"{ids.label} lists 0 to {ids.values.size - 1:,} in another order, and member has no "
        "index: give member as a Series with this index or, if rows match as they stand, "
        "scores as .to_numpy()"
    )


def row_numbers(size: int) -> IntArray:
    """Return 0, 1, …, size - 1, in four bytes each where they can be, to spare memory."""
    if size > np.iinfo(np.uint32).max:
        return np.arange(size)
    narrow_numbers: AnyArray = np.arange(size, dtype=np.uint32)
    return narrow_numbers


def row_names(values: object) -> AnyArray | None:
    """Return the index of a pandas object if it names rows: whole numbers or text, each once."""
    carried_ids = _carried_ids(values, "the rows")
    if carried_ids is None or carried_ids.kind != "index" or carried_ids.is_default_index:
        return None
    if not _are_names_of_rows(carried_ids.values, "iuSUT"):
        return None
    if np.unique(carried_ids.values).size == carried_ids.values.size:
        return carried_ids.values
    return None


def picked(items: Data, rows: IntArray) -> Data:
    """Return rows of an array, tensor, sparse matrix, frame or sequence, which becomes a list."""
    if hasattr(items, "iloc"):
        return items.iloc[rows]
    if _package_of_container(items) == "pyarrow":
        return items.take(rows)
    if hasattr(items, "tocsr"):
        items = items.tocsr()
    if hasattr(items, "shape"):
        return items[rows]
    return [items[row] for row in rows.tolist()]


def size_of(items: Data) -> int:
    """Return the number of rows."""
    refuse_masked(items, name="it")
    is_single = isinstance(items, str | bytes | bytearray | Mapping)
    shape = getattr(items, "shape", None)
    is_sequence = hasattr(items, "__len__") and hasattr(items, "__getitem__") and shape != ()
    if is_single or not is_sequence:
        advice = "pass an array, a frame or a list"
        if hasattr(items, "collect"):  # a query of polars, or data of a cluster
            advice = "pass its .collect()"
        raise InputTypeError(f"{type(items).__name__} has no rows: {advice}")
    if shape:
        return int(shape[0])
    return len(items)


def gathered(parts: Sequence[Data], rows: IntArray) -> Data:
    """Return rows of several data of one kind, as if one was put below the other."""
    first_row_of_part = np.cumsum([0, *map(size_of, parts)])
    part_of_each_row = np.searchsorted(first_row_of_part, rows, side="right") - 1
    row_in_own_part = rows - first_row_of_part[part_of_each_row]
    try:
        # No name for the parts, which are large: they are gone once they are stacked.
        stacked_rows = _stacked_rows(
            [
                picked(part, row_in_own_part[part_of_each_row == number])
                for number, part in enumerate(parts)
            ]
        )
        places_by_part = np.argsort(part_of_each_row, kind="stable")
        gathered_rows = picked(stacked_rows, np.argsort(places_by_part))
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # of whatever package the data are
        types_of_parts = " and ".join(type(part).__name__ for part in parts)
        raise InputError(
            f"rows of {types_of_parts} cannot be put in one order ({type(error).__name__}: "
            f"{one_line(error)}): pass arrays, or frames with the same columns and types"
        ) from error
    # An index that counts the rows of each part would tell the parts.
    if hasattr(gathered_rows, "iloc") and not gathered_rows.index.is_unique:
        return gathered_rows.reset_index(drop=True)
    return gathered_rows


def _package_of_container(items: Data) -> str:
    """Return the package of a container, NumPy for what is no array of another."""
    for base in type(items).__mro__:
        package, _, _ = base.__module__.partition(".")
        if package in _STACKING_PACKAGES:
            return package
    return "numpy"


def _stacked_rows(parts: list[Data]) -> Data:
    """Put arrays, tensors, sparse matrices, frames or lists below one another."""
    packages = set(map(_package_of_container, parts))
    row_shapes = [tuple(getattr(part, "shape", ()))[1:] for part in parts]
    if len(packages) > 1 or len({*row_shapes}) > 1:
        types_and_shapes = [
            f"{type(part).__name__} with rows of shape {row_shape}"
            for part, row_shape in zip(parts, row_shapes, strict=True)
        ]
        types_and_shapes_in_words = " and ".join(types_and_shapes)
        raise InputError(f"rows must be of one type and shape, got {types_and_shapes_in_words}")
    if all(isinstance(part, list) for part in parts):
        return list(chain(*parts))
    names_of_parts = list(map(column_names, parts))
    if len(set(map(frozenset, names_of_parts))) > 1:
        names_in_words = " and ".join(map(str, names_of_parts))
        raise InputError(f"tables must have the same columns, got {names_in_words}")
    (common_package,) = packages
    module = sys.modules[common_package]
    if common_package == "scipy":
        return module.sparse.vstack(parts, format="csr")
    if common_package == "pyarrow":
        return _stacked_rows_in_arrow(parts, module)
    if common_package == "pandas":
        return module.concat(parts, join="inner")
    if common_package != "numpy":
        return module.concat(parts)
    numpy_arrays = [np.asarray(part) for part in parts]
    are_text = {array.dtype.kind in "SU" for array in numpy_arrays}
    if len(are_text) > 1:  # 1 and "1" are two values
        numpy_arrays = [array.astype(object) for array in numpy_arrays]
    return np.concatenate(numpy_arrays)


def column_names(table: object) -> list[Data]:
    """Return the names of a frame's columns; none of anything else."""
    names: Data = getattr(table, "column_names", None)  # Arrow's columns are arrays
    if names is None:
        names = getattr(table, "columns", ())
    return list(names)


def _stacked_rows_in_arrow(parts: list[Data], arrow: Data) -> Data:
    """Put tables or columns of Arrow below one another."""
    if hasattr(parts[0], "column_names"):
        return arrow.concat_tables([arrow.table(part) for part in parts])
    chunks_of_parts = list(chain.from_iterable(getattr(part, "chunks", [part]) for part in parts))
    return arrow.chunked_array(chunks_of_parts, type=parts[0].type)


def _carried_ids(values: object, name: str, *, across: bool = False) -> _Ids | None:
    """Return the ids that an argument carries, if any."""
    if hasattr(values, "iloc"):
        return _pandas_index(values, name, across=across)
    ids = None
    if not across:
        ids = getattr(values, "ids", None)
    if ids is None or callable(ids):
        return None
    return _Ids(values=whole_numbers(np.asarray(ids)), kind="ids", label=name)


def _has_rows_to_order(values: Data) -> bool:
    """Return whether data has rows: a table, a mapping of columns, or an array, but no number."""
    is_table = isinstance(values, Mapping) or hasattr(type(values), "columns")
    return is_table or np.ndim(values) > 0


def _pandas_index(values: object, name: str, *, across: bool) -> _Ids | None:
    """Return the ids that a pandas object carries: its index, or its columns across."""
    attribute = "index"
    if across:
        attribute = "columns"
    pandas_index = getattr(values, attribute, None)
    if pandas_index is None:
        return None
    index_values = whole_numbers(np.asarray(pandas_index))
    return _Ids(
        values=index_values,
        kind="index",
        label=f"the {attribute} of {name}",
        is_default_index=_counts_from_zero(index_values),
    )


def _counts_from_zero(values: AnyArray) -> bool:
    return values.dtype.kind in "iu" and np.array_equal(values, np.arange(values.size))


def _are_names_of_rows(values: AnyArray, kinds: str) -> bool:
    """Return whether values are of some types, or integers that no type of NumPy holds."""
    if values.dtype.kind == "O":
        return all(type(value) is int for value in values.tolist())
    return values.dtype.kind in kinds


def _ids_are_text(ids: _Ids) -> bool:
    return ids.values.dtype.kind in "SUT"


def _rows_in_order_of_known_ids(known_ids: _Ids, own_ids: _Ids) -> IntArray | None:
    """Return the rows of `own` in the order of `known`; None if they are not the same set."""
    if known_ids.values.size != own_ids.values.size or _ids_are_text(known_ids) != _ids_are_text(
        own_ids
    ):
        return None
    try:
        known_rows_by_id = np.argsort(known_ids.values, kind="stable")
        own_rows_by_id = np.argsort(own_ids.values, kind="stable")
    except TypeError:
        message = "ids of {known} and of {own} must be all numbers or all text"
        raise InputTypeError(Message(message, known=known_ids.label, own=own_ids.label)) from None
    sorted_ids = own_ids.values[own_rows_by_id]
    if not np.array_equal(sorted_ids, known_ids.values[known_rows_by_id]):
        return None
    repeated_ids = sorted_ids[1:][sorted_ids[1:] == sorted_ids[:-1]]
    if repeated_ids.size:
        message = Message(
            "{own} and {known} list the same ids in different orders, and id {first!s} occurs "
            "twice, so rows cannot be joined: give each example a different id",
            own=own_ids.label,
            known=known_ids.label,
            first=repeated_ids[0],
        )
        raise InputError(message)
    own_row_of_known_row = np.empty(own_rows_by_id.size, dtype=np.int64)
    own_row_of_known_row[known_rows_by_id] = own_rows_by_id
    return own_row_of_known_row


def _message_about_unmatched_ids(known_ids: _Ids, own_ids: _Ids) -> Message:
    """Return a message about ids that occur only once, and what to do."""
    if _ids_are_text(known_ids) != _ids_are_text(own_ids):
        return Message(
            "ids are numbers in one and text in the other: {some} of {known}, {others} of {own}; "
            "give both the same ids",
            some=_first_ids(known_ids.values),
            known=known_ids.label,
            others=_first_ids(own_ids.values),
            own=own_ids.label,
        )
    if _ids_are_text(known_ids) and _have_same_letters(known_ids.values, own_ids.values):
        return Message(
            "ids of {known} and of {own} differ only in how letters such as é are composed (NFC, "
            "NFD): bring all to one form, unicodedata.normalize('NFC', id)",
            known=known_ids.label,
            own=own_ids.label,
        )
    missing_ids = [*_missing_ids(known_ids, own_ids), *_missing_ids(own_ids, known_ids)]
    if not missing_ids:
        message = "ids of {known} and of {own} repeat: give each example a different id"
        return Message(message, known=known_ids.label, own=own_ids.label)
    missing_ids_in_words = missing_ids[0]
    if len(missing_ids) > 1:
        missing_ids_in_words = Message(
            "{one} and {other}", one=missing_ids[0], other=missing_ids[1]
        )
    remark_on_pandas = ""
    if "index" in {known_ids.kind, own_ids.kind}:
        remark_on_pandas = " (.to_numpy() of a pandas object is read by position)"
    return Message(
        "ids do not match: {listed}; score all examples of the plan, or use the same ids{remark}",
        listed=missing_ids_in_words,
        remark=remark_on_pandas,
    )


def _missing_ids(listed_ids: _Ids, other_ids: _Ids) -> list[Message]:
    """Say which ids the other rows lack, if they lack any."""
    is_not_in_other = np.isin(listed_ids.values, other_ids.values, invert=True)
    missing_ids = listed_ids.values[is_not_in_other]
    if not missing_ids.size:
        return []
    return [
        Message(
            "{count} of {one} are not in {other} ({first})",
            count=missing_ids.size,
            one=listed_ids.label,
            other=other_ids.label,
            first=_first_ids(missing_ids),
        )
    ]


def _have_same_letters(ids: AnyArray, other_ids: AnyArray) -> bool:
    """Return whether two sets of text are the same once letters are composed alike."""
    composed_ids = {normalize("NFC", str(example_id)) for example_id in ids.tolist()}
    other_composed_ids = {normalize("NFC", str(example_id)) for example_id in other_ids.tolist()}
    return composed_ids == other_composed_ids and len(composed_ids) == ids.size


def _first_ids(ids: AnyArray) -> str:
    return listed_first(ids[: _LISTED_IDS + 1].tolist(), most=_LISTED_IDS)
