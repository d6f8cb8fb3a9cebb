"""Examples counted by score: what any engine can add up, and an audit needs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.files import replacing
from leakbound._base.progress import needs
from leakbound._base.validation import check_length, check_membership, flag, integer, vector
from leakbound.errors import ArrayTypeError, MembershipError, NaNScoresError, TallyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, IntArray

TALLY_BITS = 20
"""Bits of a key where nothing else is said."""
_FEWEST, _MOST = 8, 32
_VERSION = 1
_METADATA = b"leakbound.tally"
_COLUMNS = ("key", "examples", "members")
_SIGN = np.uint32(1 << 31)
_INFINITY = np.array([-np.inf, np.inf], dtype=np.float32)
_DENSE = 22
"""Most bits of keys that have a place each in a table of counts."""
_ROWS = 1 << 20
"""Rows that are counted at once."""
_CACHED = 1 << 14
"""Rows whose keys are made at once, in a cache of the processor."""
_QUIET = 10
"""Fewest bits that tell NaN, of which the first bit of the fraction is set, from infinities."""
_LARGEST = 2.0**62
"""Most examples: their sum is exact in 64 bits, however it is rounded in a double."""

_Counts = tuple["IntArray", "IntArray", "IntArray"]


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """How many examples, and how many members among them, have each of a grid of scores.

    `audit_one_run` takes it in the place of scores and membership. Tallies of different examples
    add up, so that shards can be counted anywhere, by any engine, and audited in one place.

    Parameters
    ----------
    keys : ndarray of int64, shape (k,)
        Cells of the grid that hold an example, increasing. A key is made of the first `bits` bits
        of the score as a float32, put into the order of scores; infinities have keys too, NaN has
        none.
    examples_at : ndarray of int64, shape (k,)
        Examples in each cell, at least 1.
    members_at : ndarray of int64, shape (k,)
        Members among them.
    bits : int
        Bits of a key, from 8 to 32: 9 of them are sign and exponent, so that neighbouring keys
        differ by 2^(9 - bits) of the score's size at most.
    shards : frozenset of str
        Digests of the tallies that were added to this one; its own if there were none.

    Raises
    ------
    ArrayTypeError, TallyError
        If arrays are not whole numbers of one length, keys not increasing or none of a number, a
        count negative, or members more than examples.
    OptionError, OptionTypeError
        If `bits` is outside its range.

    Notes
    -----
    Cuts of a ranking fall only where tied blocks end, and a key says nothing about membership that
    its scores do not: an audit of keys is an audit of a coarser score, and its bounds hold whatever
    the number of bits. `docs/scale.md` has the proof, and what coarseness costs. Scores whose
    differences are small beside their size should be centred before they are counted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> scores = rng.normal(size=1000) + member
    >>> halves = [Tally.of(scores[part], member[part]) for part in (slice(500), slice(500, None))]
    >>> halves[0] + halves[1]
    Tally(m=1000, members=473, keys=974, bits=20)
    """

    keys: IntArray
    examples_at: IntArray
    members_at: IntArray
    bits: int = TALLY_BITS
    shards: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", check_bits(self.bits))
        named = ("keys", "examples_at", "members_at")
        columns = [_whole(getattr(self, name), name) for name in named]
        for name, values in zip(named, columns, strict=True):
            check_length(values, columns[0].size, name)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        _check_counts(columns[0], columns[1], columns[2], self.bits)
        repeated = np.flatnonzero(np.diff(self.keys) <= 0)
        if repeated.size:
            message = (
                f"keys must increase, but keys[{repeated[0] + 1}] = {self.keys[repeated[0] + 1]} "
                f"follows {self.keys[repeated[0]]}: sort them and add up counts of equal ones"
            )
            raise TallyError(message)
        if (self.examples_at == 0).any():
            index = int(np.flatnonzero(self.examples_at == 0)[0])
            message = f"examples_at[{index}] is 0: leave out keys of no example"
            raise TallyError(message)
        if not self.shards:
            object.__setattr__(self, "shards", frozenset({self.digest}))

    @classmethod
    def of(
        cls, scores: ArrayInput, member: ArrayInput | HasMember, *, bits: int = TALLY_BITS
    ) -> Tally:
        """Count scores that are in memory.

        Parameters
        ----------
        scores : array-like of shape (m,)
            Real numbers, higher for likelier members; ±inf allowed.
        member : array-like of shape (m,), or InclusionPlan
            Booleans, {0, 1} or {-1, +1}; joined with scores by ids as in `audit_one_run`.
        bits : int
            Bits of a key, from 8 to 32.

        Returns
        -------
        Tally
            Counts at the keys that occur.

        Raises
        ------
        ArrayTypeError, ShapeError, NaNScoresError, LengthMismatchError, MembershipError
            If an array cannot be used.
        OptionError, OptionTypeError
            If `bits` is outside its range.
        """
        bits = check_bits(bits)
        order = ExampleOrder()
        values = vector(order.scores(scores, "scores"), "scores")
        included = order.member(member, values.size)
        return _tally(_counted_rows(values, included, bits), bits)

    @classmethod
    def sum(cls, tallies: Iterable[Tally], *, allow_repeats: bool = False) -> Tally:
        """Add tallies of different examples.

        Parameters
        ----------
        tallies : iterable of Tally
            At least one, all of one number of bits.
        allow_repeats : bool
            Add a tally again that was added before: two shards may have the same counts where they
            are tiny. Otherwise it is taken for a shard that was counted twice, and refused.

        Returns
        -------
        Tally
            Counts of all, and the digests of the shards.

        Raises
        ------
        ArrayTypeError
            If anything else is to be added.
        TallyError
            If there is none, their bits differ, a shard is there twice, or there are more examples
            than a 64-bit count holds.
        """
        total = _Sum(allow_repeats=flag(allow_repeats, "allow_repeats"))
        given: object = tallies
        if not isinstance(given, Iterable):
            message = f"tallies must be a sequence of them, got {type(given).__name__}"
            raise ArrayTypeError(message)
        for tally in given:
            total.add(tally)
        return total.tally()

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally.sum([self, other])

    @property
    def m(self) -> int:
        """Number of examples."""
        return int(self.examples_at.sum())

    @property
    def members(self) -> int:
        """Number of members."""
        return int(self.members_at.sum())

    @property
    def values(self) -> FloatArray:
        """The lowest score of each key: float64, shape (k,)."""
        ordered = self.keys.astype(np.uint32) << np.uint32(_MOST - self.bits)
        ordered = np.maximum(ordered, _ordered(_INFINITY)[0])
        bits = np.where(ordered & _SIGN, ordered ^ _SIGN, ~ordered)
        values: FloatArray = bits.view(np.float32).astype(np.float64)
        return values

    @property
    def digest(self) -> str:
        """SHA-256 of bits, keys and counts: 64 hexadecimal digits."""
        hashed = hashlib.sha256(f"leakbound/tally/{_VERSION}/{self.bits}:".encode())
        for column in (self.keys, self.examples_at, self.members_at):
            hashed.update(np.ascontiguousarray(column, dtype="<i8").data)
        return hashed.hexdigest()

    def __len__(self) -> int:
        return self.keys.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        counts = f"m={self.m}, members={self.members}, keys={len(self)}, bits={self.bits}"
        return f"Tally({counts})"

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        message = "a Tally counts examples and is no array of scores: audit_one_run(tally) takes it"
        raise TypeError(message)

    @staticmethod
    def batch(
        record_batch: Any, *, score: str = "score", member: str = "member", bits: int = TALLY_BITS
    ) -> Any:
        """Count one batch of Arrow records: what engines run on every partition.

        The sums of the counts at each key, over all batches, are a tally. It can be pickled, also
        with its options set by `functools.partial`.

        Parameters
        ----------
        record_batch : pyarrow.RecordBatch or pyarrow.Table
            Some rows.
        score, member : str
            Columns of numbers, without NaN and nulls, and of booleans, {0, 1} or {-1, +1}.
        bits : int
            Bits of a key, from 8 to 32.

        Returns
        -------
        pyarrow.RecordBatch
            Columns key, examples and members, int64, keys increasing; no rows of none.

        Raises
        ------
        ArrayTypeError, NaNScoresError, MembershipError, TallyError
            If a column is missing, of another type, or has a value that cannot be used; rows count
            from the first of the batch.
        OptionError, OptionTypeError, MissingExtraError
            If `bits` is outside its range, or pyarrow is not installed.
        """
        bits = check_bits(bits)
        rows = _arrow_columns(record_batch, (score, member))
        if len(rows[0]) == 0:
            return _record_batch((_EMPTY, _EMPTY, _EMPTY))
        included = _membership(rows[1], member)
        return _record_batch(_counted_rows(_scores(rows[0], score), included, bits))

    def to_arrow(self) -> Any:
        """Return a pyarrow.RecordBatch: key, examples, members; bits and shards as metadata."""
        described = {"version": _VERSION, "bits": self.bits, "shards": sorted(self.shards)}
        columns = _record_batch((self.keys, self.examples_at, self.members_at))
        return columns.replace_schema_metadata({_METADATA: json.dumps(described)})

    @classmethod
    def from_arrow(
        cls, data: Any, *, bits: int | None = None, allow_repeats: bool = False
    ) -> Tally:
        """Read a tally, or the counts of batches, from Arrow data of any engine.

        Parameters
        ----------
        data : pyarrow.RecordBatch, pyarrow.Table, pyarrow.RecordBatchReader, or Arrow stream
            Columns key, examples and members; rows of one key are added up. Anything with
            ``__arrow_c_stream__`` will do: a data frame of Polars, a relation of DuckDB.
        bits : int, optional
            Bits of a key. If None those of the metadata, or 20 where there is none.
        allow_repeats : bool
            See `Tally.sum`.

        Returns
        -------
        Tally
            Counts at the keys that occur.

        Raises
        ------
        TallyError
            If the schema is of another version, `bits` is not that of the metadata, or counts
            contradict each other.
        ArrayTypeError, MissingExtraError
            If a column is missing or not of whole numbers, or pyarrow is not installed.
        """
        total = _Sum(allow_repeats=flag(allow_repeats, "allow_repeats"))
        total.add_arrow(_stream(data), bits)
        return total.tally()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a parquet file, with bits and shards in its metadata."""
        with needs("io", "writing a tally"):
            import pyarrow as pa
            from pyarrow import parquet
        with replacing(path) as file:
            parquet.write_table(pa.Table.from_batches([self.to_arrow()]), file)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Tally:
        """Read what `to_parquet` wrote; raise TallyError if that is not what it is."""
        with needs("io", "reading a tally"):
            import pyarrow as pa
            from pyarrow import parquet
        try:
            table = parquet.read_table(path)
        except pa.ArrowException as error:
            message = f"{path} is no tally: {error}"
            raise TallyError(message) from error
        if _METADATA not in (table.schema.metadata or {}):
            message = f"{path} is no tally: it has no metadata of one; count it with Tally.of"
            raise TallyError(message)
        return cls.from_arrow(table)


_EMPTY: IntArray = np.empty(0, dtype=np.int64)


class _Sum:
    """Counts of tallies that are added one after another, in little memory."""

    def __init__(self, *, allow_repeats: bool) -> None:
        self._allow_repeats = allow_repeats
        self._bits: int | None = None
        self._shards: set[str] = set()
        self._parts: list[_Counts] = []
        self._kept = 0

    @property
    def empty(self) -> bool:
        """Whether nothing has been added."""
        return not self._parts

    def add(self, tally: object) -> None:
        """Add a tally."""
        if not isinstance(tally, Tally):
            message = f"only tallies are added, got {type(tally).__name__}"
            raise ArrayTypeError(message)
        self._named(tally.bits, tally.shards)
        self._append((tally.keys, tally.examples_at, tally.members_at))

    def add_counts(self, counts: _Counts, bits: int) -> None:
        """Add counts that have no digest."""
        self._named(bits, frozenset())
        self._append(counts)

    def add_arrow(self, batches: Any, bits: int | None) -> None:
        """Add the counts of a stream of record batches."""
        bits, shards = _described(batches.schema.metadata, bits)
        self._named(bits, shards)
        for batch in batches:
            columns = [_whole(one, name) for one, name in _counts_of(batch)]
            _check_counts(columns[0], columns[1], columns[2], bits)
            self._append((columns[0], columns[1], columns[2]))

    def tally(self) -> Tally:
        """Return the sum."""
        if self._bits is None:
            message = "there is no tally to add: at least one is needed"
            raise TallyError(message)
        self._merge()
        keys, examples, members = self._parts[0] if self._parts else (_EMPTY, _EMPTY, _EMPTY)
        if not keys.size:
            message = "there are no examples to count: at least one is needed"
            raise TallyError(message)
        return Tally(keys, examples, members, self._bits, frozenset(self._shards))

    def _named(self, bits: int, shards: frozenset[str]) -> None:
        if self._bits not in {None, bits}:
            message = (
                f"keys of {self._bits} and of {bits} bits do not add up: count all shards with the "
                "same number of bits"
            )
            raise TallyError(message)
        again = sorted(self._shards & shards)
        if again and not self._allow_repeats:
            message = (
                f"{len(again)} of these shards were added before, the first with the digest "
                f"{again[0][:12]}…: no example may be counted twice; where two shards do have the "
                "same counts, a tally with allow_repeats=True adds them"
            )
            raise TallyError(message)
        self._bits = bits
        self._shards |= shards

    def _append(self, counts: _Counts) -> None:
        self._parts.append(counts)
        self._kept += counts[0].size
        if self._kept > 4 * max(_ROWS, self._parts[0][0].size):
            self._merge()

    def _merge(self) -> None:
        """Add up all counts of equal keys."""
        if not self._parts:
            return
        keys, examples, members = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        _check_total(examples)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        merged = (
            keys[starts],
            np.add.reduceat(examples[order], starts) if keys.size else _EMPTY,
            np.add.reduceat(members[order], starts) if keys.size else _EMPTY,
        )
        held = merged[1] > 0
        self._parts = [(merged[0][held], merged[1][held], merged[2][held])]
        self._kept = self._parts[0][0].size


def is_tally(path: os.PathLike[str]) -> bool:
    """Return whether a file is what `Tally.to_parquet` writes."""
    if not os.fspath(path).lower().endswith(".parquet") or not Path(path).is_file():
        return False
    with needs("io", "reading parquet"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        return _METADATA in (parquet.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False  # as the reader of tables says


def counted_batches(
    batches: Iterable[tuple[int, Any]], *, score: str, member: str, bits: int
) -> Tally | None:
    """Count record batches, each with the number of its first row; return None for no rows."""
    total = _Sum(allow_repeats=False)
    for first, batch in batches:
        values, labels = _arrow_columns(batch, (score, member))
        if len(values):
            included = _membership(labels, member, first)
            counts = _counted_rows(_scores(values, score, first), included, bits, first)
            total.add_counts(counts, bits)
    return None if total.empty else total.tally()


def check_bits(bits: object) -> int:
    """Check the number of bits of a key."""
    return integer(bits, "bits", least=_FEWEST, most=_MOST)


def _tally(counts: _Counts, bits: int) -> Tally:
    return Tally(*counts, bits)


def _ordered(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return integers in the order of the scores; -0 and +0 have one."""
    bits = (values + np.float32(0)).view(np.uint32)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _keyed(values: NDArray[Any], bits: int, first: int) -> NDArray[np.uint32]:
    """Return the keys of scores; raise NaNScoresError with the row of the first that has none."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if np.isnan(single.min()):
        row = first + int(np.flatnonzero(np.isnan(single))[0])
        message = (
            f"scores must not be NaN, but that at row {row} is; drop these examples or repair the "
            "score"
        )
        raise NaNScoresError(message)
    return _ordered(single) >> np.uint32(_MOST - bits)


def _counted_rows(scores: NDArray[Any], member: BoolArray, bits: int, first: int = 0) -> _Counts:
    """Count rows by key: at a place for each key where rows are many, else by sorting them."""
    if bits > _DENSE or scores.size < 1 << (bits - 2):
        parts = [
            _sorted_counts(_keyed(scores[rows], bits, first + rows.start), member[rows])
            for rows in _pieces(scores.size)
        ]
        if len(parts) == 1:
            return parts[0]
        total = _Sum(allow_repeats=True)
        for part in parts:
            total.add_counts(part, bits)
        merged = total.tally()
        return merged.keys, merged.examples_at, merged.members_at
    table = np.zeros(2 << bits, dtype=np.int64)
    for rows in _pieces(scores.size):
        table += np.bincount(_places(scores[rows], member[rows], bits), minlength=table.size)
    # The top bits of float32 as they are; keys have them in the order of scores.
    others, members = table.reshape(2, -1, 2).transpose(2, 0, 1)
    negative = np.s_[1, ::-1]
    others, members = (np.r_[half[negative], half[0]] for half in (others, members))
    examples = others + members
    least, most = _ends(bits)
    doubtful = [examples[:least], examples[most + 1 :]]
    if bits < _QUIET:
        doubtful.append(examples[[least, most]])
    if any(part.any() for part in doubtful):
        _keyed(scores, bits, first)  # says which row is NaN, if one is
    keys = np.flatnonzero(examples)
    return keys, examples[keys], members[keys]


def _places(scores: NDArray[Any], member: BoolArray, bits: int) -> IntArray:
    """Return twice the first bits of each score as a float32, and 1 more for members."""
    places = np.empty(scores.size, dtype=np.int64)
    with np.errstate(over="ignore"):
        for start in range(0, scores.size, _CACHED):
            rows = slice(start, start + _CACHED)
            single = scores[rows].astype(np.float32)
            single += np.float32(0)  # -0 becomes +0
            top = single.view(np.uint32)
            top >>= np.uint32(_MOST - bits - 1)
            top &= ~np.uint32(1)
            top |= member[rows]
            places[rows] = top
    return places


def _ends(bits: int) -> tuple[int, int]:
    """Return the keys of the infinities."""
    least, most = (_ordered(_INFINITY) >> np.uint32(_MOST - bits)).tolist()
    return least, most


def _pieces(rows: int) -> Iterator[slice]:
    """Yield pieces of rows: large ones, as each costs a pass over the table of counts."""
    size = 4 * _ROWS
    for start in range(0, rows, size):
        yield slice(start, start + size)


def _sorted_counts(keys: NDArray[np.uint32], member: BoolArray) -> _Counts:
    places = np.sort(2 * keys.astype(np.int64) + member)
    starts = np.flatnonzero(np.diff(places >> 1, prepend=-1))
    return (
        places[starts] >> 1,
        np.diff(starts, append=places.size).astype(np.int64),
        np.add.reduceat(places & 1, starts),
    )


def _whole(values: Any, name: str) -> IntArray:
    """Read whole numbers as a copy in int64."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        message = f"{name} must be one-dimensional and of whole numbers, got {array.dtype}"
        raise ArrayTypeError(message)
    return array.astype(np.int64)


def _check_counts(keys: IntArray, examples: IntArray, members: IntArray, bits: int) -> None:
    """Check that keys are those of numbers, and that counts can be."""
    least, most = _ends(bits)
    wrong = (
        ((keys < least) | (keys > most), f"is the key of no number, of {bits} bits"),
        (examples < 0, "has a negative number of examples"),
        (members < 0, "has a negative number of members"),
        (members > examples, "has more members than examples"),
    )
    for where, what in wrong:
        if where.any():
            index = int(np.flatnonzero(where)[0])
            message = (
                f"key {keys[index]} at row {index} {what} ({examples[index]} examples, "
                f"{members[index]} members)"
            )
            raise TallyError(message)

    _check_total(examples)


def _check_total(examples: IntArray) -> None:
    if examples.sum(dtype=np.float64) > _LARGEST:
        message = "there are more examples than a count of 64 bits holds"
        raise TallyError(message)


def _described(metadata: dict[bytes, bytes] | None, bits: int | None) -> tuple[int, frozenset[str]]:
    """Return bits and shards that metadata tell."""
    if not metadata or _METADATA not in metadata:
        return (TALLY_BITS if bits is None else check_bits(bits)), frozenset()
    try:
        described = json.loads(metadata[_METADATA])
        version = described["version"]
        if version == _VERSION:
            told, shards = check_bits(described["bits"]), frozenset(map(str, described["shards"]))
    except (ValueError, TypeError, KeyError) as error:
        message = f"the metadata of the tally cannot be read: {error}"
        raise TallyError(message) from error
    if version != _VERSION:
        message = (
            f"the tally has schema version {version}, and this leakbound reads version {_VERSION}: "
            "count the shards again, or use the version of leakbound that wrote it"
        )
        raise TallyError(message)
    if bits not in {None, told}:
        message = f"the tally has keys of {told} bits, and bits={bits} was asked for"
        raise TallyError(message)
    return told, shards


def _stream(data: Any) -> Any:
    """Return Arrow data as a reader of record batches."""
    with needs("io", "reading a tally"):
        import pyarrow as pa
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    message = f"data must be Arrow data, such as a pyarrow.Table, got {type(data).__name__}"
    raise ArrayTypeError(message)


def _arrow_columns(batch: Any, names: Sequence[str]) -> list[Any]:
    """Return columns of Arrow records; raise ArrayTypeError where one is not there."""
    with needs("io", "counting Arrow records"):
        import pyarrow as pa
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        message = f"a pyarrow.RecordBatch is counted, got {type(batch).__name__}"
        raise ArrayTypeError(message)
    for name in names:
        if batch.schema.get_field_index(name) < 0:
            seen = ", ".join(map(repr, batch.schema.names))
            message = f"there is no column {name!r}, or more than one; the columns are {seen}"
            raise ArrayTypeError(message)
    columns = [batch.column(name) for name in names]
    if isinstance(batch, pa.Table):
        return [column.combine_chunks() for column in columns]
    return columns


def _counts_of(batch: Any) -> Iterator[tuple[NDArray[Any], str]]:
    for name, column in zip(_COLUMNS, _arrow_columns(batch, _COLUMNS), strict=True):
        _check_filled(column, name, 0)
        yield column.to_numpy(zero_copy_only=False), name


def _check_filled(column: Any, name: str, first: int) -> None:
    if column.null_count:
        row = first + column.is_null().to_pylist().index(True)
        message = f"column {name!r} is null at row {row}: every example needs a value"
        raise ArrayTypeError(message)


def _scores(column: Any, name: str, first: int = 0) -> NDArray[Any]:
    from pyarrow import types

    kind = column.type
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)):
        message = f"column {name!r} must hold numbers, got {kind}"
        raise ArrayTypeError(message)
    _check_filled(column, name, first)
    values: NDArray[Any] = (column.cast("float64") if types.is_decimal(kind) else column).to_numpy(
        zero_copy_only=False
    )
    return values


def _membership(column: Any, name: str, first: int = 0) -> BoolArray:
    from pyarrow import types

    kind = column.type
    if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
        message = f"column {name!r} must hold booleans, 0 and 1, or -1 and +1, got {kind}"
        raise ArrayTypeError(message)
    _check_filled(column, name, first)
    values = column.to_numpy(zero_copy_only=False)
    try:
        return check_membership(values, values.size)
    except MembershipError as error:
        message = f"column {name!r}, rows from {first} on: {error}"
        raise MembershipError(message) from error


def _record_batch(counts: _Counts) -> Any:
    with needs("io", "a tally in Arrow's form"):
        import pyarrow as pa
    columns = [pa.array(column, type=pa.int64()) for column in counts]
    return pa.RecordBatch.from_arrays(columns, names=list(_COLUMNS))
