"""Tallies: examples counted by score, which can be added up anywhere and audited."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_ids, check_length, instance, vector
from leakbound._base.files import parquet_batches, replacing
from leakbound._base.messages import Message
from leakbound._base.types import (
    ArrayInput,
    FloatArray,
    HasMember,
    IntArray,
    JsonObject,
    Named,
    PathInput,
)
from leakbound._tally import counting
from leakbound.errors import InputError, InputTypeError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

_VERSION = 1
METADATA = b"leakbound.tally"
"""The key of Arrow metadata that hold all but the counts."""
_KINDS = {
    "coins": Message("a Tally, for {Coins()}"),
    "pairs": Message("a PairTally, for {RandomSplit()}"),
}


class AnyTally(ABC):
    """What tallies of either kind share: a digest of their counts, and their form in files."""

    _kind: ClassVar[str]
    _design: ClassVar[str]
    """How messages call the design that takes it."""
    _columns: ClassVar[tuple[str, str, str]]
    """Columns of keys and of two counts at each, which are attributes `keys` and `…_at`."""
    keys: IntArray

    def __post_init__(self) -> None:
        for attribute, keys_or_counts in self.named_counts.items():
            whole_numbers = counting.whole_numbers_of(keys_or_counts, name=attribute)
            check_length(whole_numbers, examples=len(self.keys), name=attribute)
            whole_numbers.flags.writeable = False
            object.__setattr__(self, attribute, whole_numbers)
        if not self.keys.size:
            raise InputError("there are no examples to count: give at least one")
        self._check()
        if not counting.are_merged(self._counts):
            raise InputError(
                "keys must be increasing, each with an example: sort them and add up equal keys"
            )

    @abstractmethod
    def _check(self) -> None:
        """Raise InputError where counts contradict."""

    @property
    @abstractmethod
    def size(self) -> JsonObject:
        """What options of a result tell of it."""

    @property
    @abstractmethod
    def audited(self) -> JsonObject:
        """What the tallies of all attacks on the same examples share."""

    @property
    @abstractmethod
    def assumed(self) -> tuple[str, str]:
        """The name of what is assumed of how it was counted, and the words."""

    @property
    def named_counts(self) -> dict[str, IntArray]:
        """Keys and counts, by the name of their attribute."""
        _, *counted_names = self._columns
        counts_by_attribute = {"keys": self.keys}
        for counted_name in counted_names:
            counts_by_attribute[f"{counted_name}_at"] = getattr(self, f"{counted_name}_at")
        return counts_by_attribute

    @property
    def _counts(self) -> counting.Counts:
        keys, first_counts, second_counts = self.named_counts.values()
        return keys, first_counts, second_counts

    @property
    @abstractmethod
    def _described(self) -> dict[str, object]:
        """What metadata describe; only `shards` has no part in the digest."""

    @classmethod
    @abstractmethod
    def from_arrow(cls, data: object) -> Self:
        """Read counts from Arrow data of any engine."""

    @property
    def digest(self) -> str:
        """SHA-256 of bits, keys and counts, and of how pairs were made: 64 hexadecimal digits."""
        described_without_shards = dict(self._described)
        described_without_shards.pop("shards", None)
        preamble = f"leakbound/tally/{_VERSION}/{json.dumps(described_without_shards)}:"
        digest_of_counts = hashlib.sha256(preamble.encode())
        for keys_or_counts in self._counts:
            digest_of_counts.update(np.ascontiguousarray(keys_or_counts, dtype="<i8").data)
        return digest_of_counts.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return False
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def refusal(self) -> str:
        """What is said where it is not taken."""
        tally = type(self).__name__
        return f"a {tally} is not for this audit: use audit(tally, {self._design})"

    # None, and not an array: type checkers refuse a tally where scores are expected.
    def __array__(self, dtype: object = None, copy: object = None) -> None:
        raise TypeError(self.refusal)

    def to_arrow(self) -> "pa.RecordBatch":
        """Return a pyarrow.RecordBatch of the counts, with all else as metadata."""
        described_with_version = {"version": _VERSION, "kind": self._kind, **self._described}
        records_of_counts = counting.records_of_counts(self._counts, names=self._columns)
        return records_of_counts.replace_schema_metadata(
            {METADATA: json.dumps(described_with_version)}
        )

    def to_parquet(self, path: PathInput) -> None:
        """Write what `to_arrow` returns to a parquet file."""
        pyarrow = counting.arrow("writing a tally")
        with replacing(path) as file:
            table_of_counts = pyarrow.Table.from_batches([self.to_arrow()])
            pyarrow.parquet.write_table(table_of_counts, file)

    @classmethod
    def from_parquet(cls, path: PathInput) -> Self:
        """Read what `to_parquet` wrote; raise InputError if that is not what it is.

        It is read in batches, and FormatError is raised where they have more than a gigabyte and
        more than 100 times the bytes of the file.
        """
        pyarrow = counting.arrow("reading a tally")
        try:
            schema, batches = parquet_batches(path)
            if METADATA not in (schema.metadata or {}):
                raise InputError(
                    f"{path} is not a tally, because its metadata do not say so: if it holds "
                    f"scores, count them by {cls.__name__}.of"
                )
            batch_reader = pyarrow.RecordBatchReader.from_batches(schema, batches)
            return cls.from_arrow(batch_reader)
        except pyarrow.ArrowException as error:
            raise InputError(f"{path} is not a tally: {error}") from error

    @classmethod
    def _streamed(cls, data: object) -> tuple[Named | None, Iterator[counting.Counts]]:
        """Return what metadata describe, if there are any, and the counts of each batch."""
        pyarrow = counting.arrow("reading a tally")
        if isinstance(data, pyarrow.RecordBatch):
            data = pyarrow.Table.from_batches([data])
        if not hasattr(data, "__arrow_c_stream__"):
            raise InputTypeError(
                f"data must be Arrow data, such as a pyarrow.Table, got {type(data).__name__}"
            )
        batch_reader: Any = data
        if not isinstance(data, pyarrow.RecordBatchReader):
            batch_reader = pyarrow.RecordBatchReader.from_stream(data)

        def counts_of_batches() -> Iterator[counting.Counts]:
            for batch in batch_reader:
                columns = counting.arrow_columns(batch, cls._columns)
                keys, first_counts, second_counts = map(
                    counting.whole_numbers_of, columns, cls._columns
                )
                yield keys, first_counts, second_counts

        described = _described_by(batch_reader.schema.metadata, kind=cls._kind)
        return described, counts_of_batches()


T = TypeVar("T", bound=AnyTally)


@dataclass(frozen=True, eq=False, repr=False)
class Tally(AnyTally):
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

    _kind: ClassVar[str] = "coins"
    _design: ClassVar[str] = "Coins()"
    _columns: ClassVar[tuple[str, str, str]] = counting.COLUMNS
    keys: IntArray
    examples_at: IntArray
    members_at: IntArray
    bits: int = counting.TALLY_BITS
    shards: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", counting.check_bits(self.bits))
        super().__post_init__()
        if not self.shards:
            digest_of_own_counts = frozenset({self.digest})
            object.__setattr__(self, "shards", digest_of_own_counts)

    def _check(self) -> None:
        counting.check_counts(*self._counts, self.bits)

    @classmethod
    def of(
        cls, scores: ArrayInput, member: ArrayInput | HasMember, *, bits: int = counting.TALLY_BITS
    ) -> "Tally":
        """Count scores that are in memory: scores and membership as for `audit`, shape (m,)."""
        bits_of_keys = counting.check_bits(bits)
        order = ExampleOrder()
        placed_scores = vector(order.scores(scores, "scores"), name="scores")
        is_member = order.member(member, placed_scores.size)
        example_ids = order.told_ids
        if example_ids is not None:
            check_ids(example_ids, is_member)
        counts = counting.counts_of_scores(placed_scores, member=is_member, bits=bits_of_keys)
        return cls(*counts, bits_of_keys)

    @classmethod
    def sum(cls, tallies: Iterable["Tally"]) -> "Tally":
        """Add tallies of different examples, at least one, all of one number of bits.

        A tally with the counts of another one is taken for a shard that was counted twice, and
        refused.
        """
        bits_of_tallies = set[int]()
        added_shards = set[str]()

        def counts_of_tallies() -> Iterator[counting.Counts]:
            for tally in tallies:
                instance(tally, name="each of the tallies", types=cls)
                bits_of_tallies.add(tally.bits)
                if len(bits_of_tallies) > 1:
                    raise InputError(
                        f"keys of {max(bits_of_tallies)} and {min(bits_of_tallies)} bits cannot be "
                        "added: count all shards with the same number of bits"
                    )
                repeated_shards = sorted(added_shards & tally.shards)
                if repeated_shards:
                    raise InputError(
                        f"{len(repeated_shards)} of these shards were added before, the first with "
                        f"the digest {repeated_shards[0][:12]}…: no example may be counted twice; "
                        "if small shards have equal counts by chance, count them as one shard"
                    )
                added_shards.update(tally.shards)
                yield tally.keys, tally.examples_at, tally.members_at

        summed_counts = counting.sums_of_counts(counts_of_tallies())
        bits = next(iter(bits_of_tallies), counting.TALLY_BITS)
        return cls(*summed_counts, bits, frozenset(added_shards))

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
        return counting.lowest_scores(self.keys, self.bits)

    @property
    def size(self) -> JsonObject:
        """See `AnyTally.size`."""
        return {"bits": self.bits, "keys": len(self), "shards": len(self.shards)}

    @property
    def audited(self) -> JsonObject:
        """See `AnyTally.audited`."""
        return {"m": self.m, "members": self.members}

    @property
    def assumed(self) -> tuple[str, str]:
        """See `AnyTally.assumed`."""
        words = (
            "Each example was counted once, at a key of its score that does not depend on "
            "membership. Shards that were added twice are refused; copies within a shard are not "
            "detected."
        )
        return "every example counted once", words

    @property
    def _described(self) -> dict[str, object]:
        return {"bits": self.bits, "shards": sorted(self.shards)}

    def __len__(self) -> int:
        return self.keys.size

    def __repr__(self) -> str:
        return f"Tally(m={self.m}, members={self.members}, keys={len(self)}, bits={self.bits})"

    @staticmethod
    def batch(
        records: object,
        *,
        score: str = "score",
        member: str = "member",
        bits: int = counting.TALLY_BITS,
    ) -> "counting.Records":
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
        bits_of_keys = counting.check_bits(bits)
        scores, is_member = counting.scores_and_membership(records, score=score, member=member)
        counts = counting.counts_of_scores(scores, member=is_member, bits=bits_of_keys)
        return counting.records_of_counts(counts, names=counting.COLUMNS, like=records)

    @classmethod
    def from_arrow(cls, data: object, *, bits: int | None = None) -> "Tally":
        """Read a tally, or the counts of batches, from Arrow data of any engine.

        Parameters
        ----------
        data : pyarrow.RecordBatch, pyarrow.Table, pyarrow.RecordBatchReader, or Arrow stream
            Columns key, examples and members; rows of one key are added up. Anything with
            ``__arrow_c_stream__`` will do: a data frame of Polars, a relation of DuckDB.
        bits : int, optional
            Bits of a key. If None those of the metadata, or 20 without metadata.
        """
        described, counts_of_batches = cls._streamed(data)
        if described is None:
            described = {"bits": counting.TALLY_BITS, "shards": ()}
            if bits is not None:
                described["bits"] = counting.check_bits(bits)
        with reading():
            bits_of_keys = counting.check_bits(described["bits"])
            shards = frozenset(map(str, described["shards"]))
        if bits not in {None, bits_of_keys}:
            raise InputError(
                f"the tally has keys of {bits_of_keys} bits, but bits={bits} was given"
            )

        def checked_counts() -> Iterator[counting.Counts]:
            for counts in counts_of_batches:
                counting.check_counts(*counts, bits_of_keys)
                yield counts

        return cls(*counting.sums_of_counts(checked_counts()), bits_of_keys, shards)


def by_attack(scores: object, kind: type[T]) -> dict[str, T] | None:
    """Return tallies of one attack, named "", or of several; None if scores are listed."""
    scores_by_attack: object = scores
    if isinstance(scores, AnyTally):
        scores_by_attack = {"": scores}
    if not isinstance(scores_by_attack, Mapping) or not scores_by_attack:
        return None
    tallies_by_attack = dict[str, T]()
    for attack_name, attack_scores in scores_by_attack.items():
        if isinstance(attack_scores, kind):
            tallies_by_attack[attack_name] = attack_scores
        elif isinstance(attack_scores, AnyTally):
            raise OptionError(attack_scores.refusal)
    if len(tallies_by_attack) < len(scores_by_attack):
        return None
    _check_same_examples(tallies_by_attack)
    return tallies_by_attack


def _check_same_examples(tallies_by_attack: Mapping[str, AnyTally]) -> None:
    """Check that the tallies of all attacks are of the same examples."""
    first_attack = next(iter(tallies_by_attack))
    for quantity, first_value in tallies_by_attack[first_attack].audited.items():
        for attack_name, tally in tallies_by_attack.items():
            other_value = tally.audited[quantity]
            if first_value != other_value:
                raise InputError(
                    f"{quantity} is {first_value} in the tally of {first_attack!r} and "
                    f"{other_value} in that of {attack_name!r}: all attacks must score the same "
                    "examples"
                )


def recorded(
    tallies: Mapping[str, AnyTally],
) -> tuple[JsonObject, dict[str, NDArray[np.generic]]]:
    """Return what options record of tallies, and their counts under the names of their digests."""
    sizes_by_attack: JsonObject = {}
    counts_by_input_name: dict[str, NDArray[np.generic]] = {}
    for attack_name, tally in tallies.items():
        sizes_by_attack[attack_name] = tally.size
        of_attack = ""
        if attack_name:
            of_attack = f" of {attack_name}"
        for attribute, keys_or_counts in tally.named_counts.items():
            counted_name = attribute.removesuffix("_at")
            counts_by_input_name[f"tally {counted_name}{of_attack}"] = keys_or_counts
    if list(sizes_by_attack) == [""]:
        return {"tally": sizes_by_attack[""]}, counts_by_input_name
    return {"tally": sizes_by_attack}, counts_by_input_name


@contextmanager
def reading() -> Iterator[None]:
    """Raise InputError where metadata hold something else than a tally's."""
    try:
        yield
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise InputError(f"the metadata of the tally cannot be read: {error}") from error


def _described_by(metadata: dict[bytes, bytes] | None, kind: str) -> Named | None:
    """Return what metadata of a kind describe; None without metadata of a tally."""
    if not metadata or METADATA not in metadata:
        return None
    with reading():
        described: Named = dict(json.loads(metadata[METADATA]))
        stored_version = described.pop("version")
        if stored_version != _VERSION:
            raise InputError(
                f"schema version {stored_version}; this version of leakbound reads {_VERSION}"
            )
        stored_kind = _KINDS[described.pop("kind")]
    if stored_kind != _KINDS[kind]:
        message = "these are the counts of {found}, and not of {wanted}"
        raise InputError(Message(message, found=stored_kind, wanted=_KINDS[kind]))
    return described
