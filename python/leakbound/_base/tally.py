"""Tallies: examples counted by score, which can be added up anywhere and audited."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_ids, check_length, instance, vector
from leakbound._base.counting import (
    COLUMNS,
    TALLY_BITS,
    Counts,
    added,
    arrow,
    arrow_columns,
    check_bits,
    check_counts,
    counted,
    counted_records,
    lowest_scores,
    record_batch,
    whole,
)
from leakbound._base.files import replacing
from leakbound._base.types import ArrayInput, FloatArray, HasMember, IntArray
from leakbound.errors import InputError, InputTypeError

_VERSION = 1
_METADATA = b"leakbound.tally"


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """How many examples, and how many members among them, have each of a grid of scores.

    `audit` takes it in the place of scores and membership. Tallies of different examples
    add up, so that shards can be counted anywhere, by any engine, and audited in one place.

    Parameters
    ----------
    keys : ndarray of int64, shape (k,)
        Cells of the grid that hold an example, increasing. A key is made of the first `bits` bits
        of the score as a float32, put into the order of scores; infinities have keys too, NaN has
        none.
    examples_at, members_at : ndarray of int64, shape (k,)
        Examples in each cell, at least 1, and members among them.
    bits : int
        Bits of a key, from 8 to 32: 9 of them are sign and exponent, so that neighbouring keys
        differ by 2^(9 - bits) of the score's size at most.
    shards : frozenset of str
        Digests of the tallies that were added to this one; its own if there were none.

    Notes
    -----
    Cuts of a ranking fall only where tied blocks end, and a key says nothing about membership that
    its scores do not: an audit of keys is an audit of a coarser score, and its bounds hold whatever
    the number of bits. `docs/theory/scale.md` has the proof, and what coarseness costs. Scores with
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
        for name in ("keys", "examples_at", "members_at"):
            values = whole(getattr(self, name), name)
            check_length(values, len(self.keys), name)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        if not self.keys.size:
            message = "there are no examples to count: give at least one"
            raise InputError(message)
        check_counts(self.keys, self.examples_at, self.members_at, self.bits)
        if (np.diff(self.keys) <= 0).any() or not self.examples_at.all():
            message = (
                "keys must be increasing, each with an example: sort them and add up equal keys"
            )
            raise InputError(message)
        if not self.shards:
            object.__setattr__(self, "shards", frozenset({self.digest}))

    @classmethod
    def of(
        cls, scores: ArrayInput, member: ArrayInput | HasMember, *, bits: int = TALLY_BITS
    ) -> "Tally":
        """Count scores that are in memory: scores and membership as for `audit`, shape (m,)."""
        bits, order = check_bits(bits), ExampleOrder()
        values = vector(order.scores(scores, "scores"), "scores")
        included, ids = order.member(member, values.size), order.told_ids
        if ids is not None:
            check_ids(ids, included)
        return cls(*counted(values, included, bits), bits)

    @classmethod
    def sum(cls, tallies: Iterable["Tally"]) -> "Tally":
        """Add tallies of different examples, at least one, all of one number of bits.

        A tally with the counts of another one is taken for a shard that was counted twice, and
        refused.
        """
        bits: set[int] = set()
        shards: set[str] = set()

        def counts() -> Iterator[Counts]:
            for tally in tallies:
                instance(tally, "each of the tallies", cls)
                bits.add(tally.bits)
                if len(bits) > 1:
                    message = (
                        f"keys of {max(bits)} and {min(bits)} bits cannot be added: count all "
                        "shards with the same number of bits"
                    )
                    raise InputError(message)
                again = sorted(shards & tally.shards)
                if again:
                    message = (
                        f"{len(again)} of these shards were added before, the first with the "
                        f"digest {again[0][:12]}…: no example may be counted twice; if small "
                        "shards have equal counts by chance, count them as one shard"
                    )
                    raise InputError(message)
                shards.update(tally.shards)
                yield tally.keys, tally.examples_at, tally.members_at

        total = added(counts())
        return cls(*total, next(iter(bits), TALLY_BITS), frozenset(shards))

    def __add__(self, other: "Tally") -> "Tally":
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
        return lowest_scores(self.keys, self.bits)

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
        return isinstance(other, Tally) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        counts = f"m={self.m}, members={self.members}, keys={len(self)}, bits={self.bits}"
        return f"Tally({counts})"

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        message = "a Tally is not an array of scores: use audit(tally, Coins())"
        raise TypeError(message)

    @staticmethod
    def batch(
        records: Any, *, score: str = "score", member: str = "member", bits: int = TALLY_BITS
    ) -> Any:
        """Count one batch of Arrow records: what engines run on every partition.

        Returned are columns of int64: key, increasing, examples and members; a RecordBatch for a
        RecordBatch, a Table for a Table. The sums at each key, over all batches, are a tally. The
        function can be pickled, also with its options set by `functools.partial`.

        Parameters
        ----------
        records : pyarrow.RecordBatch or pyarrow.Table
            Some rows.
        score, member : str
            Columns of numbers, without NaN and nulls, and of booleans, {0, 1} or {-1, +1}.
        bits : int
            As for `Tally`.
        """
        counts = record_batch(counted_records(records, score, member, check_bits(bits)))
        pa = arrow("counting Arrow records")
        return pa.Table.from_batches([counts]) if isinstance(records, pa.Table) else counts

    def to_arrow(self) -> Any:
        """Return a pyarrow.RecordBatch: key, examples, members; bits and shards as metadata."""
        described = {"version": _VERSION, "bits": self.bits, "shards": sorted(self.shards)}
        columns = record_batch((self.keys, self.examples_at, self.members_at))
        return columns.replace_schema_metadata({_METADATA: json.dumps(described)})

    @classmethod
    def from_arrow(cls, data: Any, *, bits: int | None = None) -> "Tally":
        """Read a tally, or the counts of batches, from Arrow data of any engine.

        Parameters
        ----------
        data : pyarrow.RecordBatch, pyarrow.Table, pyarrow.RecordBatchReader, or Arrow stream
            Columns key, examples and members; rows of one key are added up. Anything with
            ``__arrow_c_stream__`` will do: a data frame of Polars, a relation of DuckDB.
        bits : int, optional
            Bits of a key. If None those of the metadata, or 20 without metadata.
        """
        pa = arrow("reading a tally")
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        if not hasattr(data, "__arrow_c_stream__"):
            message = f"data must be Arrow data, such as a pyarrow.Table, got {type(data).__name__}"
            raise InputTypeError(message)
        stream = pa.RecordBatchReader.from_stream(data)
        width, shards = _described(stream.schema.metadata, bits)

        def counts() -> Iterator[Counts]:
            for batch in stream:
                columns = zip(arrow_columns(batch, COLUMNS), COLUMNS, strict=True)
                keys, examples, members = (whole(values, name) for values, name in columns)
                check_counts(keys, examples, members, width)
                yield keys, examples, members

        return cls(*added(counts()), width, shards)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a parquet file, with bits and shards in its metadata."""
        pa = arrow("writing a tally")
        with replacing(path) as file:
            pa.parquet.write_table(pa.Table.from_batches([self.to_arrow()]), file)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> "Tally":
        """Read what `to_parquet` wrote; raise InputError if that is not what it is."""
        pa = arrow("reading a tally")
        try:
            table = pa.parquet.read_table(path)
        except pa.ArrowException as error:
            message = f"{path} is not a tally: {error}"
            raise InputError(message) from error
        if _METADATA not in (table.schema.metadata or {}):
            message = (
                f"{path} is not a tally, since it has no metadata of one: count it with Tally.of"
            )
            raise InputError(message)
        return cls.from_arrow(table)


def is_tally(path: os.PathLike[str]) -> bool:
    """Return whether a file is what `Tally.to_parquet` writes."""
    if not os.fspath(path).lower().endswith(".parquet") or not Path(path).is_file():
        return False
    pa = arrow("reading parquet")
    try:
        return _METADATA in (pa.parquet.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False  # as the reader of tables says


def _described(metadata: dict[bytes, bytes] | None, bits: int | None) -> tuple[int, frozenset[str]]:
    """Return the bits and shards of metadata."""
    if not metadata or _METADATA not in metadata:
        return (TALLY_BITS if bits is None else check_bits(bits)), frozenset()
    try:
        described = json.loads(metadata[_METADATA])
        if described["version"] != _VERSION:
            message = (
                f"schema version {described['version']}; this version of leakbound reads {_VERSION}"
            )
            raise InputError(message)
        width, shards = check_bits(described["bits"]), frozenset(map(str, described["shards"]))
    except (ValueError, TypeError, KeyError) as error:
        message = f"the metadata of the tally cannot be read: {error}"
        raise InputError(message) from error
    if bits not in {None, width}:
        message = f"the tally has keys of {width} bits, but bits={bits} was given"
        raise InputError(message)
    return width, shards
