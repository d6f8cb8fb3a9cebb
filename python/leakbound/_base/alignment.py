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
_KINDS = "biufSUOTMm"
# Packages whose arrays and frames are put together by a function of theirs.
_STACKED = {"pandas", "polars", "pyarrow", "scipy", "torch"}
# How many ids a message names.
_LISTED = 3
# What ids are called that an audit is given beside scores.
_IDS = Message("{ids=}")


@dataclass(frozen=True, eq=False)
class _Ids:
    """Ids of some rows, told as such or the index of a pandas object, and a name for messages.

    They are plain if they are the default index of pandas, 0, 1, …, n - 1: then they tell rows of
    one table from each other, and need not be ids.
    """

    values: AnyArray
    kind: _Kind
    of: str
    plain: bool = False


class ExampleOrder:
    """The order of the audited examples: that of the plan they `follow`, or that of their scores.

    Ids are what is passed as `ids`, the attribute `ids` of scores and plans, and the index of a
    pandas Series or DataFrame. Whatever has ids is joined with the ids known so far; whatever has
    none is read by position. The index 0, 1, …, n - 1 counts only against ids that are these same
    numbers, on whichever side it stands: it is what pandas gives to rows that have no ids.
    """

    def __init__(self, ids: ArrayInput | None = None, name: str = _IDS) -> None:
        self._named = ids is not None
        self._moved = False
        self._scored: _Ids | None = None
        self.rows: IntArray | None = None
        """Which rows of the scores are the examples, if these `follow` another order."""
        self._known: list[_Ids] = []
        if ids is not None:
            self._known = _told(ids, name)

    @classmethod
    def of_tables(cls, tables: Sequence[object], name: str) -> Self:
        """Return the order of the rows of tables, put one below the other.

        Tables that all number their rows from 0, or of which one has no index, name no rows.
        """
        order = cls()
        parts = [_own(table, name) for table in tables]
        indices = [part.values for part in parts if part is not None and part.kind == "index"]
        if len(indices) == len(parts) and not all(map(_is_range, indices)):
            alike = len({one.dtype.kind for one in indices}) == 1
            together = indices
            if not alike:
                together = [one.astype(object) for one in indices]
            order._known.append(
                _Ids(values=whole_numbers(np.concatenate(together)), kind="index", of=name)
            )
        return order

    def scores(self, values: Data, name: str) -> Data:
        """Return scores in the order of the examples; the first ones set it."""
        own = _own(values, name)
        if own is None:
            return values
        return self._scores_of(own, values, name)

    def _scores_of(self, own: _Ids, values: Data, name: str) -> Data:
        """Return scores that carry ids in the order of the examples."""
        if not self._named:
            self._scored = own
            return self.placed(values, name)
        if own.kind == "ids" and _is_range(own.values):
            return values
        if own.kind == "index" and all(known.kind == "ids" for known in self._known):
            self._known.append(own)
            return values
        return self.placed(values, name)

    def follow(self, plan: object, name: str) -> IntArray | None:
        """Take the order of a plan; return which rows of the scores to take, None for all as given.

        So nothing that a seed draws depends on the order in which scores come.
        """
        own = _own(plan, name)
        there = None
        if own is not None:
            there = self._joined(own)
        if there is not None:
            self.rows = np.argsort(there)
            self._moved = not _is_range(there)
            self._known = [replace(one, values=one.values[self.rows]) for one in self._known]
        return self.rows

    def member(self, member: MemberInput, examples: int, *, copies: bool = False) -> BoolArray:
        """Return membership in the order of the examples.

        A plan of several `copies` of each member is refused, unless the audit knows them.
        """
        if not copies:
            refuse_copies(member)
        own = _own(member, "member")
        if own is None:
            if self._scored is not None:
                _refuse_shuffled(self._scored)
            return check_membership(member, examples)
        return self._member_of(own, member, examples)

    def _member_of(self, own: _Ids, member: MemberInput, examples: int) -> BoolArray:
        """Return membership that carries ids in the order of the examples."""
        rows = self._rows_of(own)
        if rows is None:
            return check_membership(member, examples)
        values = membership_vector(member)
        check_length(values, examples=examples, name="member")
        self._moved = not _is_range(rows)
        return check_membership(values[rows], examples)

    def placed(self, values: Data, name: str, *, across: bool = False) -> Data:
        """Return data about the examples in their order."""
        rows = self.rows_of(values, name, across=across)
        if rows is None:
            return values
        refuse_masked(values, name=name)
        array = array_of(values, name=name, exact=True)
        if across:
            return array[:, rows]
        return array[rows]

    def rows_of(self, values: Data, name: str, *, across: bool = False) -> IntArray | None:
        """Return which rows of data about the examples to take, in order; None for all as given."""
        if self._moved and _has_rows(values) and not self._tells(_own(values, name, across=across)):
            raise InputError(
                f"scores and membership list the examples in different orders, and {name} has no "
                "ids that tell its order: put all in one order, or give it the same ids (a pandas "
                "index)"
            )
        return self._rows(values, name, across=across)

    @property
    def ids(self) -> AnyArray | None:
        """Ids that tell the examples from those of other batches, in their order, if there are any.

        Those passed as `ids`, or numbers and text that an argument carries. Not the numbers
        0, 1, …, n - 1 in any order, which every batch may have.
        """
        if self._named:
            return self._known[0].values
        carried = (known.values for known in self._known if _are_names(known.values, "iufSUT"))
        return next((values for values in carried if not _is_range(np.sort(values))), None)

    @property
    def distinct_ids(self) -> AnyArray | None:
        """The same, if they are passed as `ids` or none occurs twice.

        An index repeats where tables were put together that each count their rows: it names none.
        """
        ids = self.ids
        distinct = self._named or ids is None or np.unique(ids).size == ids.size
        if distinct:
            return ids
        return None

    @property
    def told_ids(self) -> AnyArray | None:
        """Ids passed as `ids`, or carried by scores or a plan; an index does not count."""
        told = (known.values for known in self._known if known.kind == "ids")
        return next((values for values in told if not _is_range(values)), None)

    def _rows(self, values: object, name: str, *, across: bool = False) -> IntArray | None:
        """Return which rows of `values` to take, in order; None for all as they are."""
        own = _own(values, name, across=across)
        if own is None:
            return None
        return self._rows_of(own)

    def _rows_of(self, own: _Ids) -> IntArray | None:
        """Return the same of values that carry ids, which are known from then on."""
        rows = self._joined(own)
        if rows is not None:
            own = replace(own, values=own.values[rows])
        self._known.append(own)
        return rows

    def _tells(self, own: _Ids | None) -> bool:
        """Return whether ids tell an order: a plain index does where these numbers are ids."""
        if own is None or not own.plain:
            return own is not None
        return any(_order(known, own) is not None for known in self._known)

    def _joined(self, own: _Ids) -> IntArray | None:
        """Return the rows that put `own` in order, from the ids of its own kind if it can be.

        A plain index is compared with plain ones first, and other ids with other ids.
        """
        listed = sorted(
            self._known, key=lambda known: (known.plain != own.plain, known.kind != own.kind)
        )
        for known in listed:
            if np.array_equal(known.values, own.values):
                return None
            rows = _order(known, own)
            if rows is not None:
                return rows
        others = []
        if not own.plain:
            others = [known for known in listed if not known.plain]
        if others:
            raise InputError(_unmatched(others[0], own))
        return None


def _told(ids: ArrayInput, name: str) -> list[_Ids]:
    """Return ids that were passed as such, and the index that they have if they are a column."""
    values = whole_numbers(vector(ids, name="ids", kinds=_KINDS))
    named = _Ids(values=values, kind="ids", of=name)
    return [one for one in (named, _own(ids, "ids")) if one is not None]


def _refuse_shuffled(own: _Ids) -> None:
    """Refuse scores that count from 0 in another order, whose membership may be in either."""
    if own.kind != "index" or own.plain or not _is_range(np.sort(own.values)):
        return
    raise InputError(
        f"{own.of} lists 0 to {own.values.size - 1:,} in another order, and member has no "
        "index: give member as a Series with this index or, if rows match as they stand, "
        "scores as .to_numpy()"
    )


def row_numbers(size: int) -> IntArray:
    """Return 0, 1, …, size - 1, in four bytes each where they can be, to spare memory."""
    if size > np.iinfo(np.uint32).max:
        return np.arange(size)
    narrow: AnyArray = np.arange(size, dtype=np.uint32)
    return narrow


def row_names(values: object) -> AnyArray | None:
    """Return the index of a pandas object if it names rows: whole numbers or text, each once."""
    own = _own(values, "the rows")
    if own is None or own.kind != "index" or own.plain or not _are_names(own.values, "iuSUT"):
        return None
    if np.unique(own.values).size == own.values.size:
        return own.values
    return None


def picked(items: Data, rows: IntArray) -> Data:
    """Return rows of an array, tensor, sparse matrix, frame or sequence, which becomes a list."""
    if hasattr(items, "iloc"):
        return items.iloc[rows]
    if _package(items) == "pyarrow":
        return items.take(rows)
    if hasattr(items, "tocsr"):
        items = items.tocsr()
    if hasattr(items, "shape"):
        return items[rows]
    return [items[row] for row in rows.tolist()]


def size_of(items: Data) -> int:
    """Return the number of rows."""
    refuse_masked(items, name="it")
    words = isinstance(items, str | bytes | bytearray | Mapping)
    shape = getattr(items, "shape", None)
    rows = hasattr(items, "__len__") and hasattr(items, "__getitem__") and shape != ()
    if words or not rows:
        lazy = hasattr(items, "collect")  # a query of polars, or data of a cluster
        hint = "pass an array, a frame or a list"
        if lazy:
            hint = "pass its .collect()"
        raise InputTypeError(f"{type(items).__name__} has no rows: {hint}")
    if shape:
        return int(shape[0])
    return len(items)


def gathered(parts: Sequence[Data], rows: IntArray) -> Data:
    """Return rows of several data of one kind, as if one was put below the other."""
    ends = np.cumsum([0, *map(size_of, parts)])
    which = np.searchsorted(ends, rows, side="right") - 1
    try:
        # No name for the parts, which are large: they are gone once they are stacked.
        stacked = _stacked(
            [picked(part, rows[which == i] - ends[i]) for i, part in enumerate(parts)]
        )
        together = picked(stacked, np.argsort(np.argsort(which, kind="stable")))
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # of whatever package the data are
        listed = " and ".join(type(part).__name__ for part in parts)
        raise InputError(
            f"rows of {listed} cannot be put in one order ({type(error).__name__}: "
            f"{one_line(error)}): pass arrays, or frames with the same columns and types"
        ) from error
    # An index that counts the rows of each part would tell the parts.
    plain = hasattr(together, "iloc") and not together.index.is_unique
    if plain:
        return together.reset_index(drop=True)
    return together


def _package(items: Data) -> str:
    """Return the package of a container, NumPy for what is no array of another."""
    roots = (one.__module__.partition(".")[0] for one in type(items).__mro__)
    return next((root for root in roots if root in _STACKED), "numpy")


def _stacked(parts: list[Data]) -> Data:
    """Put arrays, tensors, sparse matrices, frames or lists below one another."""
    kinds = {_package(part) for part in parts}
    shapes = [tuple(getattr(part, "shape", ()))[1:] for part in parts]
    if len(kinds) > 1 or len({*shapes}) > 1:
        pairs = zip(parts, shapes, strict=True)
        listed = " and ".join(f"{type(part).__name__} with rows of shape {s}" for part, s in pairs)
        raise InputError(f"rows must be of one type and shape, got {listed}")
    if all(isinstance(part, list) for part in parts):
        return list(chain(*parts))
    kind = kinds.pop()
    names = [column_names(part) for part in parts]
    if any({*one} != {*names[0]} for one in names):
        raise InputError(f"tables must have the same columns, got {' and '.join(map(str, names))}")
    module = sys.modules[kind]
    if kind == "scipy":
        return module.sparse.vstack(parts, format="csr")
    if kind == "pyarrow":
        return _arrow_stacked(parts, module)
    if kind == "numpy":
        parts = [np.asarray(part) for part in parts]
        if len({part.dtype.kind in "SU" for part in parts}) > 1:  # 1 and "1" are two values
            parts = [part.astype(object) for part in parts]
    options = {}
    if kind == "pandas":
        options = {"join": "inner"}
    return (getattr(module, "concatenate", None) or module.concat)(parts, **options)


def column_names(table: object) -> list[Data]:
    """Return the names of a frame's columns; none of anything else."""
    names: Data = getattr(table, "column_names", None)  # Arrow's columns are arrays
    if names is None:
        names = getattr(table, "columns", ())
    return list(names)


def _arrow_stacked(parts: list[Data], arrow: Data) -> Data:
    """Put tables or columns of Arrow below one another."""
    if hasattr(parts[0], "column_names"):
        return arrow.concat_tables([arrow.table(part) for part in parts])
    chunks = chain(*(getattr(part, "chunks", [part]) for part in parts))
    return arrow.chunked_array(list(chunks), type=parts[0].type)


def _own(values: object, name: str, *, across: bool = False) -> _Ids | None:
    """Return the ids that an argument carries, if any."""
    if hasattr(values, "iloc"):
        return _index_of(values, name, across=across)
    ids = None
    if not across:
        ids = getattr(values, "ids", None)
    if ids is None or callable(ids):
        return None
    return _Ids(values=whole_numbers(np.asarray(ids)), kind="ids", of=name)


def _has_rows(values: Data) -> bool:
    """Return whether data has rows: a table, a mapping of columns, or an array, but no number."""
    table = isinstance(values, Mapping) or hasattr(type(values), "columns")
    return table or np.ndim(values) > 0


def _index_of(values: object, name: str, *, across: bool) -> _Ids | None:
    """Return the ids that a pandas object carries: its index, or its columns across."""
    along = "index"
    if across:
        along = "columns"
    index = getattr(values, along, None)
    if index is None:
        return None
    numbers = whole_numbers(np.asarray(index))
    of = f"the {along} of {name}"
    return _Ids(values=numbers, kind="index", of=of, plain=_is_range(numbers))


def _is_range(values: AnyArray) -> bool:
    return values.dtype.kind in "iu" and np.array_equal(values, np.arange(values.size))


def _are_names(values: AnyArray, kinds: str) -> bool:
    """Return whether values are of some types, or integers that no type of NumPy holds."""
    if values.dtype.kind == "O":
        return all(type(value) is int for value in values.tolist())
    return values.dtype.kind in kinds


def _are_text(ids: _Ids) -> bool:
    return ids.values.dtype.kind in "SUT"


def _order(known: _Ids, own: _Ids) -> IntArray | None:
    """Return the rows of `own` in the order of `known`; None if they are not the same set."""
    if known.values.size != own.values.size or _are_text(known) != _are_text(own):
        return None
    try:
        there, here = (np.argsort(ids.values, kind="stable") for ids in (known, own))
    except TypeError:
        message = "ids of {known} and of {own} must be all numbers or all text"
        raise InputTypeError(Message(message, known=known.of, own=own.of)) from None
    listed = own.values[here]
    if not np.array_equal(listed, known.values[there]):
        return None
    twice = np.flatnonzero(listed[1:] == listed[:-1])
    if twice.size:
        message = (
            "{own} and {known} list the same ids in different orders, and id {first!s} occurs "
            "twice, so rows cannot be joined: give each example a different id"
        )
        first = listed[twice[0]]
        raise InputError(Message(message, own=own.of, known=known.of, first=first))
    rows = np.empty(here.size, dtype=np.int64)
    rows[there] = here
    return rows


def _unmatched(known: _Ids, own: _Ids) -> Message:
    """Return a message about ids that occur only once, and what to do."""
    if _are_text(known) != _are_text(own):
        message = (
            "ids are numbers in one and text in the other: {some} of {known}, {others} of {own}; "
            "give both the same ids"
        )
        some = _first(known.values)
        return Message(message, some=some, known=known.of, others=_first(own.values), own=own.of)
    sides = [
        (one.of, other.of, one.values[~np.isin(one.values, other.values)])
        for one, other in ((known, own), (own, known))
    ]
    if _are_text(known) and _same_letters(known.values, own.values):
        message = (
            "ids of {known} and of {own} differ only in how letters such as é are composed (NFC, "
            "NFD): bring all to one form, unicodedata.normalize('NFC', id)"
        )
        return Message(message, known=known.of, own=own.of)
    missing = "{count} of {one} are not in {other} ({first})"
    differing = [
        Message(missing, count=left.size, one=one, other=other, first=_first(left))
        for one, other, left in sides
        if left.size
    ]
    if not differing:
        message = "ids of {known} and of {own} repeat: give each example a different id"
        return Message(message, known=known.of, own=own.of)
    listed = differing[0]
    if len(differing) > 1:
        listed = Message("{one} and {other}", one=differing[0], other=differing[1])
    message = (
        "ids do not match: {listed}; score all examples of the plan, or use the same ids{remark}"
    )
    remark = ""
    if "index" in {known.kind, own.kind}:
        remark = " (.to_numpy() of a pandas object is read by position)"
    return Message(message, listed=listed, remark=remark)


def _same_letters(one: AnyArray, other: AnyArray) -> bool:
    """Return whether two sets of text are the same once letters are composed alike."""
    sets = [{normalize("NFC", str(id_)) for id_ in ids.tolist()} for ids in (one, other)]
    return sets[0] == sets[1] and len(sets[0]) == one.size


def _first(values: AnyArray) -> str:
    listed = ", ".join(str(one) for one in values[:_LISTED].tolist())
    if values.size > _LISTED:
        listed += ", …"
    return listed
