r"""Columns of tables as coordinates, and which rows have equal values.

Numbers and dates are in units of a spread, beyond which they grow as logarithms do; words count 0
or 1, and of many words each has a random vector.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakbound._base.messages import Message
from leakbound._base.streams import Purpose
from leakbound._base.tables import Column
from leakbound._base.text import marked, settled, suspicion, taken_as_words
from leakbound._base.types import FloatArray, IntArray
from leakbound.attacks.synthetic.columns import joined
from leakbound.errors import InputError

ONE_HOT = 8  # words of a column with a coordinate each; of more, each has a random vector
CODE = 8  # coordinates of this vector
LARGEST = 1e150  # numbers beyond are scaled: their sums would be infinite
NORMAL_IQR = 1.349  # interquartile range of a standard normal distribution
MISSING = -1  # stands for a missing value among codes of values


class Coordinates(NamedTuple):
    """Rows of tables put together, as coordinates.

    `sources` has the column that each dimension comes from, `notes` why others are left out.
    `codes` has a number for each value of each column that is kept, the same for equal ones, larger
    for larger ones, and -1 for missing ones; `ordered` names columns of numbers and dates.
    """

    rows: FloatArray
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    codes: IntArray
    ordered: frozenset[str]


class _Encoded(NamedTuple):
    """A column as coordinates, with a code for each value, or why it is ignored."""

    block: FloatArray
    codes: IntArray
    why: str = ""


def coordinates(
    tables: Sequence[Mapping[str, Column]], codes: Collection[str], seed: int, *, synthetic: bool
) -> Coordinates:
    """Encode columns of tables, the first of which has the audited records.

    Which columns vary is said by these records alone. If `synthetic`, the second table is the
    synthetic one: numbers are in units of their spread there, if they vary there, and columns of
    many words need a word that is also there.
    """
    sizes = [next(iter(table.values())).missing.size for table in tables]
    ends = np.cumsum(sizes).tolist()
    blocks: list[FloatArray] = []
    sources: list[str] = []
    notes: list[str] = []
    marks: dict[str, Mapping[str, int]] = {}
    numbered: list[IntArray] = []
    ordered: set[str] = set()
    for place, name in enumerate(tables[0]):
        parts = _parts(tables, name, codes)
        column = joined(parts)
        notes += _doubts(column, parts[0], name, coded=name in codes)
        if column.marks:
            marks[name] = column.marks
        end = ends[1] if synthetic else None
        found = _encode(column, ends[0], end, Purpose.SYNTHETIC_WORDS.rng(seed, place))
        if found.why:
            notes.append(f"column {name!r} {found.why}: ignored")
            continue
        blocks.append(found.block)
        sources += [name] * found.block.shape[1]
        numbered.append(found.codes)
        if column.kind in {"number", "date", "zoned"} and not column.is_exact:
            ordered.add(name)
    notes += _of_marks(marks, tables[0])
    if not blocks:
        message = "all audited records are equal in every column: {notes}"
        raise InputError(Message(message, notes=Message.joined(notes)))
    rows = np.ascontiguousarray(np.concatenate(blocks, axis=1))
    values = np.column_stack(numbered)
    return Coordinates(rows, tuple(sources), tuple(notes), values, frozenset(ordered))


def _of_marks(marks: Mapping[str, Mapping[str, int]], table: Mapping[str, Column]) -> list[str]:
    """Return a note about words that were read as missing values, if there are any."""
    if not marks:
        return []
    named = all(one.writing.named for one in table.values())
    return [marked(marks, named=named)]


def digests(
    tables: Sequence[Mapping[str, Column]],
    codes: Collection[str],
    names: Collection[str] | None = None,
) -> NDArray[np.void]:
    """Return digests of rows of tables put together, the same for rows equal in some columns.

    Without `names`, in all columns that vary among the records of the first table.
    """
    records = next(iter(tables[0].values())).missing.size
    contents = list[NDArray[np.uint8]]()
    for name in tables[0]:
        parts = _parts(tables, name, codes)
        if name not in names if names is not None else _flaw(parts[0], records):
            continue
        alike = len({(one.kind, one.is_exact) for one in parts}) == 1
        kept = parts if alike else [joined(parts)]
        contents.append(np.concatenate([one.content for one in kept]))
    known = (record.tobytes() for record in np.column_stack(contents))
    found = b"".join(blake2b(record, digest_size=16).digest() for record in known)
    return np.frombuffer(found, dtype="V16")


def _parts(
    tables: Sequence[Mapping[str, Column]], name: str, codes: Collection[str]
) -> list[Column]:
    """Return a column of each table; text is what it is among the audited records, or words."""
    first, *others = (table[name] for table in tables)
    coded = name in codes
    parts = settled([first], name, codes=coded)
    for other in others:
        parts += settled([other], name, kind=parts[0].kind, codes=coded)
    return [one.as_codes() for one in parts] if coded else parts


def _doubts(column: Column, audited: Column, name: str, *, coded: bool) -> list[str]:
    """Return what a reader should know of how a column was read."""
    notes = []
    if column.kind == "word" and audited.kind not in {"word", "empty"}:
        notes.append(f"column {name!r} is of another kind in other tables: taken as words")
    meant = "" if coded else suspicion(audited, name)
    if meant:
        done = taken_as_words(audited, name)
        notes.append(Message("column {name!r} {meant}: {done}", name=name, meant=meant, done=done))
    return notes


def _encode(column: Column, records: int, end: int | None, rng: np.random.Generator) -> _Encoded:
    """Return the coordinates of a column, or why it is ignored."""
    # Rows before `records` are audited, those from there to `end`, if there are any, synthetic.
    why = _flaw(column, records)
    if why:
        return _Encoded(np.empty((0, 0)), np.empty(0, np.int64), why)
    distinct, code = np.unique(column.values, return_inverse=True)
    code = code.astype(np.int64)
    if column.kind in {"word", "flag"}:
        block, why = _words(column, distinct.size, code, records, end, rng)
    else:
        block = _numbers(column, records, end)[:, None]
    if column.is_exact:
        # Integers this large are ids or moments: what copies one copies all of its digits.
        words, same = np.unique(column.as_codes().values, return_inverse=True)
        vectors, none = _words(column, words.size, same, records, end, rng)
        block = block if none else np.column_stack([block, vectors])
    if column.missing.any() and not why:
        block = np.column_stack([block, column.missing])
    return _Encoded(block, np.where(column.missing, MISSING, code), why)


def _flaw(column: Column, records: int) -> str:
    """Return why a column says nothing: only what varies among audited records tells them apart."""
    known = ~column.missing[:records]
    there = np.unique(column.values[:records][known])
    if not there.size:
        return "is missing in all records"
    return "is the same in all records" if there.size == 1 and known.all() else ""


def _numbers(column: Column, records: int, end: int | None) -> FloatArray:
    """Return numbers or dates in units of their spread; far ones grow as logarithms do."""
    values = column.values
    if column.kind in {"date", "zoned"}:
        days = (values - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        values = np.where(column.missing, 0.0, days)
    if column.is_exact:
        # Differences from one of them are small where they are near each other.
        values = np.where(column.missing, 0, values - np.min(values[~column.missing]))
    largest = np.abs(values).max()
    values = (values / largest if largest > LARGEST else values).astype(np.float64)
    middle, spread = _spread(values[:records][~column.missing[:records]])
    if end is not None:
        made = slice(records, end)
        there = values[made][~column.missing[made]]
        if there.size and np.ptp(there) > 0:
            middle, spread = _spread(there)
    return np.asarray(np.where(column.missing, 0.0, np.arcsinh((values - middle) / spread)))


def _spread(values: FloatArray) -> tuple[float, float]:
    """Return the median of numbers and their robust spread, 1 if they are all equal."""
    inside = np.sort(values)
    low, middle, high = np.quantile(inside, [0.25, 0.5, 0.75])
    return float(middle), float((high - low) / NORMAL_IQR or inside.std() or 1.0)


def _words(
    column: Column,
    words: int,
    code: NDArray[np.integer],
    records: int,
    end: int | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, str]:
    """Return a coordinate for each word or, if there are many, a random vector for each."""
    known = ~column.missing
    if words == 2:
        vectors = np.array([[0.0], [1.0]])
    elif words <= ONE_HOT:
        vectors = np.eye(words) / np.sqrt(2)
    else:
        audited = np.unique(code[:records][known[:records]])
        made = audited if end is None else np.unique(code[records:end][known[records:end]])
        if not np.intersect1d(audited, made).size:
            return np.empty((0, 0)), "has no word in common with the synthetic table"
        signs = rng.choice([-1.0, 1.0], (words, CODE))
        vectors = signs / np.sqrt(2 * CODE)
    return np.where(column.missing[:, None], 0.0, vectors[code]), ""
