"""Scores counted by key: in memory, in Arrow records, and summed."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakbound._base.checks import booleans, integer
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
_MOST_BITS = 32
# With fewer bits, large numbers would share a key with the infinities.
_FEWEST_BITS = 8
_SIGN_BIT = np.uint32(1 << 31)
# The finest keys of the infinities: between them, and they included, are those of all numbers.
_LEAST_KEY = 0x007F_FFFF
_LARGEST_KEY = 0xFF80_0000
# Precisions that the core reads in place.
_READABLE_TYPES = (np.float64, np.float32)
# Most keys that are held before they are added up.
_MOST_HELD_KEYS = 1 << 22
# Most examples: their sum is exact in 64 bits, however it is rounded in a double.
_MOST_EXAMPLES = 2.0**62
_NO_COUNTS: IntArray = np.empty(0, dtype=np.int64)


def check_bits(bits: object) -> int:
    """Check the number of bits of a key."""
    return integer(bits, name="bits", least=_FEWEST_BITS, most=_MOST_BITS)


def counts_of_scores(scores: AnyArray, member: BoolArray, bits: int) -> Counts:
    """Count rows by key."""
    return counted_pieces([(scores, member)], bits=bits)


def counted_pieces(pieces: Iterable[tuple[AnyArray, BoolArray]], bits: int) -> Counts:
    """Count pieces of scores and membership by key; messages number rows from the first piece."""
    counts_of_keys = KeyCounts(bits)
    first_row_of_piece = 0
    for scores, member in pieces:
        readable_scores = scores
        if scores.dtype not in _READABLE_TYPES:
            with np.errstate(over="ignore"):
                readable_scores = scores.astype(np.float32)
        nan_row_in_piece = counts_of_keys.add(readable_scores, member)
        if nan_row_in_piece is not None:
            raise InputError(
                f"scores must not be NaN, but that at row {first_row_of_piece + nan_row_in_piece} "
                "is; drop or repair this example"
            )
        first_row_of_piece += scores.size
    return counts_of_keys.counts()


def sums_of_counts(parts: Iterable[Counts]) -> Counts:
    """Add up counts of equal keys, holding little more than the sum."""
    counts_of_held_parts: list[Counts] = []
    for counts_of_part in parts:
        counts_of_held_parts.append(counts_of_part)
        numbers_of_held_keys = [keys.size for keys, _, _ in counts_of_held_parts]
        most_held_keys = max(_MOST_HELD_KEYS, 4 * numbers_of_held_keys[0])
        if sum(numbers_of_held_keys) > most_held_keys:
            counts_of_held_parts = [_merged_counts(counts_of_held_parts)]
    if not counts_of_held_parts:
        return (_NO_COUNTS, _NO_COUNTS, _NO_COUNTS)
    return _merged_counts(counts_of_held_parts)


def lowest_scores(keys: IntArray, bits: int) -> FloatArray:
    """Return the lowest score of each key."""
    lowest_keys_of_32_bits = keys.astype(np.uint32) << np.uint32(_MOST_BITS - bits)
    keys_of_lowest_numbers = np.maximum(lowest_keys_of_32_bits, np.uint32(_LEAST_KEY))
    is_negative = keys_of_lowest_numbers < _SIGN_BIT
    bits_of_scores = np.where(
        is_negative, ~keys_of_lowest_numbers, keys_of_lowest_numbers ^ _SIGN_BIT
    )
    lowest_scores_of_keys: FloatArray = bits_of_scores.view(np.float32).astype(np.float64)
    return lowest_scores_of_keys


def check_counts(keys: IntArray, examples_at: IntArray, members_at: IntArray, bits: int) -> None:
    """Check that keys are those of numbers, and that counts can be."""
    least_key_of_numbers = _LEAST_KEY >> (_MOST_BITS - bits)
    largest_key_of_numbers = _LARGEST_KEY >> (_MOST_BITS - bits)
    is_key_of_no_number = (keys < least_key_of_numbers) | (keys > largest_key_of_numbers)
    flawed_rows = {
        f"is not the key of a number, with {bits} bits": is_key_of_no_number,
        "has a negative number of examples": examples_at < 0,
        "has a negative number of members": members_at < 0,
        "has more members than examples": members_at > examples_at,
    }
    for flaw, has_flaw in flawed_rows.items():
        if has_flaw.any():
            first_row = int(has_flaw.argmax())
            raise InputError(
                f"key {keys[first_row]} at row {first_row} {flaw} ({examples_at[first_row]} "
                f"examples, {members_at[first_row]} members)"
            )
    _check_number_of_examples(examples_at)


def whole_numbers_of(values: object, name: str) -> IntArray:
    """Read whole numbers as a copy in int64."""
    whole_numbers = array_of(values, name=name)
    if whole_numbers.dtype.kind not in "iu" or whole_numbers.ndim != 1:
        raise InputTypeError(
            f"{name} must be one-dimensional and of whole numbers, got {whole_numbers.dtype}: cast "
            "it to integers of 64 bits"
        )
    return whole_numbers.astype(np.int64)


def scores_and_membership(batch: "Records", score: str, member: str) -> tuple[AnyArray, BoolArray]:
    """Return scores and membership of Arrow records."""
    scores, membership = arrow_columns(batch, (score, member))
    if membership.dtype.kind not in "biuf":
        raise InputTypeError(
            f"column {member!r} must hold booleans, 0 and 1, or -1 and +1, got "
            f"{batch.column(member).type}"
        )
    if scores.dtype.kind not in "iuf":
        raise InputTypeError(f"column {score!r} must hold numbers, got {batch.column(score).type}")
    try:
        return scores, booleans(membership, name="member")
    except InputError as error:
        raise InputError(f"column {member!r}: {error}") from error


def arrow(what: str) -> Any:
    """Return pyarrow, or raise an error that names the extra to install."""
    with needs("io", what):
        import_module("pyarrow.parquet")
        return import_module("pyarrow")


def arrow_columns(batch: object, names: Sequence[str]) -> list[AnyArray]:
    """Return columns of Arrow records as arrays; InputTypeError where one is missing or null."""
    arrays_of_columns = list[AnyArray]()
    for column_name in names:
        column_of_records = arrow_column(batch, name=column_name)
        arrays_of_columns.append(column_of_records.to_numpy(zero_copy_only=False))
    return arrays_of_columns


def arrow_column(batch: object, name: str, first: int = 0) -> "pa.Array":
    """Return a column of Arrow records; InputTypeError where it is missing or null."""
    pyarrow = arrow("reading Arrow records")
    if not isinstance(batch, pyarrow.RecordBatch | pyarrow.Table):
        raise InputTypeError(f"records must be a pyarrow.RecordBatch, got {type(batch).__name__}")
    # Counted, which takes any name, also one that UTF-8 cannot encode.
    column_names: list[str] = batch.schema.names
    if column_names.count(name) != 1:
        listed_names = ", ".join(map(repr, column_names))
        raise InputTypeError(
            f"there must be exactly one column {name!r}; the columns are {listed_names}"
        )
    named_column = batch.column(name)
    if isinstance(batch, pyarrow.Table):
        named_column = named_column.combine_chunks()
    if named_column.null_count:
        first_null_row = first + named_column.is_null().index(True).as_py()
        raise InputTypeError(
            f"column {name!r} is null at row {first_null_row}: every example needs a value"
        )
    if pyarrow.types.is_decimal(named_column.type):
        return named_column.cast("float64")
    return named_column


def records_of_counts(counts: Counts, names: Sequence[str], like: object = None) -> "Records":
    """Return counts as a pyarrow.RecordBatch with columns of these names, for a Table a Table."""
    pyarrow = arrow("a tally in Arrow's form")
    type_of_records = pyarrow.RecordBatch
    if isinstance(like, pyarrow.Table):
        type_of_records = pyarrow.Table
    keys_and_counts = [pyarrow.array(column, type=pyarrow.int64()) for column in counts]
    return type_of_records.from_arrays(keys_and_counts, names=list(names))


def _merged_counts(parts: Sequence[Counts]) -> Counts:
    """Return the sums of counts at each key, in increasing order, none of them 0."""
    if len(parts) == 1 and are_merged(parts[0]):
        return parts[0]
    keys_of_parts, examples_of_parts, members_of_parts = map(
        np.concatenate, zip(*parts, strict=True)
    )
    _check_number_of_examples(examples_of_parts)
    distinct_keys, place_of_each_key = np.unique(keys_of_parts, return_inverse=True)
    examples_at_keys = np.zeros(distinct_keys.size, dtype=np.int64)
    members_at_keys = np.zeros(distinct_keys.size, dtype=np.int64)
    np.add.at(examples_at_keys, place_of_each_key, examples_of_parts)
    np.add.at(members_at_keys, place_of_each_key, members_of_parts)
    has_examples = examples_at_keys > 0
    return (
        distinct_keys[has_examples],
        examples_at_keys[has_examples],
        members_at_keys[has_examples],
    )


def are_merged(counts: Counts) -> bool:
    """Return whether keys increase and have examples, as every piece does, but not all tallies."""
    keys, examples_at_keys, _ = counts
    keys_increase = np.all(np.diff(keys) > 0)
    return bool(keys_increase and examples_at_keys.all())


def _check_number_of_examples(examples_at: IntArray) -> None:
    """Refuse counts whose sum has more than 64 bits."""
    if examples_at.sum(dtype=np.float64) > _MOST_EXAMPLES:
        raise InputError("there are more examples than a count of 64 bits can hold")
