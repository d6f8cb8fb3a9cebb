"""Scores counted by key: in memory, in Arrow records, and summed."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakbound._base.checks import check_membership, integer
from leakbound._base.imports import needs
from leakbound._base.reading import array_of
from leakbound._base.types import AnyArray, BoolArray, FloatArray, IntArray
from leakbound._core import KeyCounts
from leakbound.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import pyarrow as pa

    Records: TypeAlias = pa.RecordBatch | pa.Table

Counts: TypeAlias = "tuple[IntArray, IntArray, IntArray]"
"""Keys that increase, examples of each, and members among them."""

COLUMNS = ("key", "examples", "members")
TALLY_BITS = 20
"""Bits of a key where nothing else is said."""
# Bits of a float32, and so of the finest key.
_MOST = 32
# With fewer bits, large numbers would share a key with the infinities.
_FEWEST = 8
_SIGN = np.uint32(1 << 31)
# The finest keys of the infinities: between them, and they included, are those of all numbers.
_LEAST_KEY = 0x007F_FFFF
_LARGEST_KEY = 0xFF80_0000
# Precisions that the core reads in place.
_READ = (np.float64, np.float32)
# Most keys that are held before they are added up.
_HELD = 1 << 22
# Most examples: their sum is exact in 64 bits, however it is rounded in a double.
_LARGEST = 2.0**62
_NONE: IntArray = np.empty(0, dtype=np.int64)


def check_bits(bits: object) -> int:
    """Check the number of bits of a key."""
    return integer(bits, name="bits", least=_FEWEST, most=_MOST)


def counted(scores: AnyArray, member: BoolArray, bits: int) -> Counts:
    """Count rows by key."""
    return counted_pieces([(scores, member)], bits)


def counted_pieces(pieces: Iterable[tuple[AnyArray, BoolArray]], bits: int) -> Counts:
    """Count pieces of scores and membership by key; messages number rows from the first piece."""
    counts = KeyCounts(bits)
    first = 0
    for scores, member in pieces:
        with np.errstate(over="ignore"):
            read = scores
            if scores.dtype not in _READ:
                read = scores.astype(np.float32)
        row = counts.add(read, member)
        if row is not None:
            raise InputError(
                f"scores must not be NaN, but that at row {first + row} is; drop or repair this "
                "example"
            )
        first += scores.size
    return counts.counts()


def added(parts: Iterable[Counts]) -> Counts:
    """Add up counts of equal keys, holding little more than the sum."""
    held: list[Counts] = []
    for part in parts:
        held.append(part)
        if sum(keys.size for keys, _, _ in held) > max(_HELD, 4 * held[0][0].size):
            held = [_merged(held)]
    if held:
        return _merged(held)
    return (_NONE, _NONE, _NONE)


def lowest_scores(keys: IntArray, bits: int) -> FloatArray:
    """Return the lowest score of each key."""
    ordered = keys.astype(np.uint32) << np.uint32(_MOST - bits)
    ordered = np.maximum(ordered, np.uint32(_LEAST_KEY))
    words = np.where(ordered & _SIGN, ordered ^ _SIGN, ~ordered)
    values: FloatArray = words.view(np.float32).astype(np.float64)
    return values


def check_counts(keys: IntArray, examples: IntArray, members: IntArray, bits: int) -> None:
    """Check that keys are those of numbers, and that counts can be."""
    least = _LEAST_KEY >> (_MOST - bits)
    most = _LARGEST_KEY >> (_MOST - bits)
    wrong = (
        ((keys < least) | (keys > most), f"is not the key of a number, with {bits} bits"),
        (examples < 0, "has a negative number of examples"),
        (members < 0, "has a negative number of members"),
        (members > examples, "has more members than examples"),
    )
    for where, what in wrong:
        if where.any():
            row = int(where.argmax())
            raise InputError(
                f"key {keys[row]} at row {row} {what} ({examples[row]} examples, "
                f"{members[row]} members)"
            )
    _check_total(examples)


def whole(values: object, name: str) -> IntArray:
    """Read whole numbers as a copy in int64."""
    array = array_of(values, name=name)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputTypeError(
            f"{name} must be one-dimensional and of whole numbers, got {array.dtype}: cast it to "
            "integers of 64 bits"
        )
    return array.astype(np.int64)


def labelled(batch: "Records", score: str, member: str) -> tuple[AnyArray, BoolArray]:
    """Return scores and membership of Arrow records."""
    scores, labels = arrow_columns(batch, (score, member))
    if labels.dtype.kind not in "biuf":
        kind = batch.column(member).type
        raise InputTypeError(
            f"column {member!r} must hold booleans, 0 and 1, or -1 and +1, got {kind}"
        )
    if scores.dtype.kind not in "iuf":
        raise InputTypeError(f"column {score!r} must hold numbers, got {batch.column(score).type}")
    if not scores.size:
        return scores, np.empty(0, dtype=np.bool_)
    try:
        return scores, check_membership(labels, labels.size)
    except InputError as error:
        raise InputError(f"column {member!r}: {error}") from error


def arrow(what: str) -> Any:
    """Return pyarrow, or raise an error that names the extra to install."""
    with needs("io", what):
        import_module("pyarrow.parquet")
        return import_module("pyarrow")


def arrow_columns(batch: object, names: Sequence[str], first: int = 0) -> list[AnyArray]:
    """Return columns of Arrow records as arrays; InputTypeError where one is missing or null."""
    columns = [arrow_column(batch, name=name, first=first) for name in names]
    return [column.to_numpy(zero_copy_only=False) for column in columns]


def arrow_column(batch: object, name: str, first: int = 0) -> "pa.Array":
    """Return a column of Arrow records; InputTypeError where it is missing or null."""
    pa = arrow("reading Arrow records")
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise InputTypeError(f"records must be a pyarrow.RecordBatch, got {type(batch).__name__}")
    if batch.schema.names.count(name) != 1:  # which takes any name, also one that UTF-8 has not
        seen = ", ".join(map(repr, batch.schema.names))
        raise InputTypeError(f"there must be exactly one column {name!r}; the columns are {seen}")
    column = batch.column(name)
    if column.null_count:
        row = first + column.is_null().to_pylist().index(True)
        raise InputTypeError(f"column {name!r} is null at row {row}: every example needs a value")
    if pa.types.is_decimal(column.type):
        column = column.cast("float64")
    if isinstance(batch, pa.Table):
        return column.combine_chunks()
    return column


def recorded(counts: Counts, names: Sequence[str], like: object = None) -> "Records":
    """Return counts as a pyarrow.RecordBatch with columns of these names, for a Table a Table."""
    pa = arrow("a tally in Arrow's form")
    columns = [pa.array(column, type=pa.int64()) for column in counts]
    kind = pa.RecordBatch
    if isinstance(like, pa.Table):
        kind = pa.Table
    return kind.from_arrays(columns, names=list(names))


def _merged(parts: Sequence[Counts]) -> Counts:
    if len(parts) == 1 and (np.diff(parts[0][0]) > 0).all() and parts[0][1].all():
        return parts[0]  # as every piece is, but not what others counted
    keys, examples, members = (np.concatenate(part) for part in zip(*parts, strict=True))
    _check_total(examples)
    keys, place = np.unique(keys, return_inverse=True)
    totals = np.zeros((2, keys.size), dtype=np.int64)
    for total, column in zip(totals, (examples, members), strict=True):
        np.add.at(total, place, column)
    present = totals[0] > 0
    return keys[present], totals[0][present], totals[1][present]


def _check_total(examples: IntArray) -> None:
    if examples.sum(dtype=np.float64) > _LARGEST:
        raise InputError("there are more examples than a count of 64 bits can hold")
