"""Pairs of a random split, matched by a keyed hash: the same in every engine."""

import math
from dataclasses import dataclass
from hashlib import md5
from itertools import pairwise
from typing import Any, Self

import numpy as np

from leakbound._base.checks import integer, real, seed_of, shown
from leakbound._base.drawn import check_unit
from leakbound._base.numerics import robust_scale_of_counts
from leakbound._base.types import AnyArray, BoolArray, FloatArray, GenericArray, IntArray
from leakbound._core import hashed_ids
from leakbound._tally import counting
from leakbound._tally.tally import Tally
from leakbound.audits.pairs import stretch_in_place
from leakbound.errors import InputError, InputTypeError, OptionError

COLUMNS = ("key", "pairs", "wins")
_MOST_BUCKETS = 1 << 16
# Keys of what is counted beside differences: examples left over, and from here down the buckets.
LEFT_OVER = -1
FIRST_BUCKET = -2
# Turns the order of unsigned words into that of signed ones, and back.
_SIGN_BIT = np.uint64(1 << 63)


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """How members of a random split are matched with non-members, the same in every engine.

    A hash of seed and id puts the members of a stratum in random order, and the non-members: the
    first of one meets the first of the other, the second the second, bucket by bucket.

    Parameters
    ----------
    seed : int
        Seed of the hash, at least 0, drawn after the split and independently of it.
    centre, spread : float
        The scale of the differences: a score s counts as z (1 + |z| / 4) with z = (s - centre) /
        spread, `spread` above 0. Membership must have no part in either.
    bits : int
        Bits of a key, as for `Tally`.
    buckets : int
        Parts in which an engine pairs: a power of 2 up to 65,536. Few are left over if each has
        thousands of examples.
    stratum : str, optional
        The column of the stratum, if the split was made within strata.
    unit : str
        What the split moved as one. Where it moved users, aggregate rows to one score for each.

    Notes
    -----
    The hash of an id is the MD5 of the text ``seed:id`` in UTF-8; whole numbers are written in
    decimals. Its first 8 bytes, the first being the most significant, order the examples, further
    bytes where these are equal. The bucket is made of the leading bits. `docs/theory/scale.md` has
    the proof that orientations of the pairs are then fair coins, and recipes.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.permutation(1000) < 800
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> pairing = lb.Pairing.of(lb.Tally.of(scores, member), seed=1, buckets=4)
    >>> lb.PairTally.of(scores, member, np.arange(1000), pairing=pairing)
    PairTally(pairs=200, wins=191, left_over=600, bits=20)
    """

    seed: int
    centre: float
    spread: float
    bits: int = counting.TALLY_BITS
    buckets: int = 1
    stratum: str | None = None
    unit: str = "example"

    def __post_init__(self) -> None:
        checked_options = {
            "seed": integer(self.seed, name="seed", least=0),
            "centre": real(self.centre, name="centre", above=-math.inf, below=math.inf),
            "spread": real(self.spread, name="spread", above=0, below=math.inf),
            "bits": counting.check_bits(self.bits),
            "buckets": integer(self.buckets, name="buckets", least=1, most=_MOST_BUCKETS),
        }
        for name, value in checked_options.items():
            object.__setattr__(self, name, value)
        is_power_of_two = not self.buckets & (self.buckets - 1)
        if not is_power_of_two:
            raise OptionError(f"buckets must be a power of 2, such as 1 or 256, got {self.buckets}")
        check_unit(self.unit)
        if self.stratum is not None and not isinstance(self.stratum, str):
            raise InputTypeError(
                f"stratum must be the name of a column, got {shown(self.stratum)}", option="stratum"
            )

    @classmethod
    def of(
        cls,
        scores: Tally,
        *,
        seed: int | None = None,
        buckets: int = 1,
        stratum: str | None = None,
        unit: str = "example",
    ) -> Self:
        """Take the scale from a tally of all scores: their median and median distance from it.

        `seed` is a new one by default. Members and non-members count alike.
        """
        centre, spread = _scale_of_tally(scores)
        return cls(
            seed=seed_of(seed),
            centre=centre,
            spread=spread,
            bits=scores.bits,
            buckets=buckets,
            stratum=stratum,
            unit=unit,
        )

    def even(self, scores: AnyArray) -> FloatArray:
        """Return z (1 + |z| / 4): each operation rounds to a float64, as in any engine."""
        with np.errstate(over="ignore"):
            standard_scores = (scores.astype(np.float64) - self.centre) / self.spread
            return stretch_in_place(standard_scores)

    def bucketed(self, records: Any, *, id: str = "id") -> Any:  # noqa: A002 (the column)
        """Add the columns `bucket` and `hash` to Arrow records: what to shuffle by, and the order.

        The function can be pickled, as can `batch`. `hash` is an int64 in the order of the hashes.
        """
        pa = counting.arrow("hashing ids")
        (id_column,) = counting.arrow_columns(records, (id,))
        hashes = hashes_of_ids(self, id_column)
        new_columns = {"bucket": _buckets_of_hashes(self, hashes), "hash": hashes}
        for name, values in new_columns.items():
            records = records.append_column(name, pa.array(values, type=pa.int64()))
        return records

    def batch(
        self,
        records: Any,
        *,
        id: str = "id",  # noqa: A002 (the column)
        score: str = "score",
        member: str = "member",
    ) -> Any:
        """Pair and count all examples of one bucket, or of several.

        Returned are columns of int64: key, pairs and wins; a RecordBatch for a RecordBatch, a Table
        for a Table. The sums at each key, over all buckets, are a `PairTally`, and show where a
        bucket was counted twice, or was not whole.

        Parameters
        ----------
        records : pyarrow.RecordBatch or pyarrow.Table
            One row for each example: the columns named here, that of the stratum, and `hash`, which
            is computed where it is missing.
        id, score, member : str
            Columns of whole numbers or text, of numbers, and of booleans, {0, 1} or {-1, +1}.
        """
        scores, is_member = counting.scores_and_membership(records, score=score, member=member)
        (ids,) = counting.arrow_columns(records, (id,))
        if "hash" in records.schema.names:
            (hashes,) = counting.arrow_columns(records, ("hash",))
            self._check_hashes(ids, hashes)
        else:
            hashes = hashes_of_ids(self, ids)
        strata = None
        if self.stratum is not None:
            (strata,) = counting.arrow_columns(records, (self.stratum,))
        counts = counts_of_pairs(
            self,
            ids=ids,
            hashes=hashes,
            scores=scores,
            member=is_member,
            strata=strata,
        )
        return counting.records_of_counts(counts, names=COLUMNS, like=records)

    def _check_hashes(self, ids: AnyArray, hashes: IntArray) -> None:
        """Check the hashes that a column holds, by those of the first id and of the last."""
        first_and_last = slice(None, None, max(1, ids.size - 1))
        expected_hashes = hashes_of_ids(self, ids[first_and_last])
        if not np.array_equal(hashes[first_and_last], expected_hashes):
            raise InputError(
                f"column 'hash' was not made with the seed {self.seed}: hash ids again"
            )


def hashes_of_ids(pairing: Pairing, ids: AnyArray) -> IntArray:
    """Return the first 8 bytes of the hash of each id, as words in the same order."""
    id_type = ids.dtype
    hashable_ids: list[Any] | IntArray
    if id_type.kind in "iu" and np.can_cast(id_type, np.int64):
        hashable_ids = ids.astype(np.int64)
    elif id_type.kind == "u":
        hashable_ids = ids.astype(str).tolist()
    else:
        hashable_ids = ids.tolist()
        are_text = {str}.issuperset(map(type, hashable_ids))
        if not are_text:
            raise InputTypeError(
                f"ids must be all whole numbers, or all text, got {hashable_ids[0]!r} of {id_type}"
            )
    unsigned_hashes = hashed_ids(f"{pairing.seed}:", hashable_ids)
    return (unsigned_hashes ^ _SIGN_BIT).view(np.int64)


def _buckets_of_hashes(pairing: Pairing, hashes: IntArray) -> IntArray:
    """Return the leading bits of hashes."""
    unsigned_hashes = hashes.view(np.uint64) ^ _SIGN_BIT
    leading_bits = unsigned_hashes >> np.uint64(48)
    return leading_bits.astype(np.int64) // (_MOST_BUCKETS // pairing.buckets)


def matched_by_hash(
    pairing: Pairing,
    ids: AnyArray,
    hashes: IntArray,
    member: BoolArray,
    strata: GenericArray | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return members, non-members in the same order, and who is left over, of whole buckets."""
    # 1. Examples by their hash; the leading bits are the bucket.
    hash_order = _order_of_hashes(pairing, ids=ids, hashes=hashes, member=member)
    side_of_example = 2 * _buckets_of_hashes(pairing, hashes[hash_order]) + member[hash_order]
    if strata is not None:
        _, stratum = np.unique(strata, return_inverse=True)
        side_of_example += 2 * pairing.buckets * stratum[hash_order].astype(np.int64)
    # 2. One side of one stratum and bucket after another, and how many the other side has.
    # NumPy sorts 16 bits by radix, three times as fast.
    narrow_side_of_example = side_of_example
    if side_of_example.max(initial=0) < _MOST_BUCKETS:
        narrow_side_of_example = side_of_example.astype(np.uint16)
    side_by_side = np.argsort(narrow_side_of_example, kind="stable")
    hash_order = hash_order[side_by_side]
    side_of_example = side_of_example[side_by_side]
    first_of_side = np.flatnonzero(np.diff(side_of_example, prepend=-1))
    side_sizes = np.diff(first_of_side, append=side_of_example.size)
    distinct_sides = side_of_example[first_of_side]
    opposite_sides = distinct_sides ^ 1
    last_side = max(0, distinct_sides.size - 1)
    rows_of_opposite_sides = np.minimum(np.searchsorted(distinct_sides, opposite_sides), last_side)
    has_opposite = distinct_sides[rows_of_opposite_sides] == opposite_sides
    opposite_sizes = np.where(has_opposite, side_sizes[rows_of_opposite_sides], 0)
    # 3. The i-th member meets the i-th non-member, as long as there are both.
    rank_in_side = np.arange(side_of_example.size) - np.repeat(first_of_side, side_sizes)
    is_paired = rank_in_side < np.repeat(opposite_sizes, side_sizes)
    is_member = side_of_example % 2 == 1
    members = hash_order[is_paired & is_member]
    others = hash_order[is_paired & ~is_member]
    return members, others, hash_order[~is_paired]


def counts_of_pairs(
    pairing: Pairing,
    ids: AnyArray,
    hashes: IntArray,
    scores: AnyArray,
    member: BoolArray,
    strata: GenericArray | None,
) -> counting.Counts:
    """Pair and count examples of whole buckets."""
    is_nan = np.isnan(scores)
    if is_nan.any():
        raise InputError(f"scores must not be NaN, but that of id {ids[is_nan.argmax()]!s} is")
    members, others, left_over = matched_by_hash(
        pairing,
        ids=ids,
        hashes=hashes,
        member=member,
        strata=strata,
    )
    # 1. Differences of pairs, and who won them.
    scores_of_members = pairing.even(scores[members])
    scores_of_others = pairing.even(scores[others])
    with np.errstate(invalid="ignore"):  # two infinities that are equal
        are_equal = scores_of_members == scores_of_others
        differences = np.where(are_equal, 0.0, scores_of_members - scores_of_others)
    counts_of_differences = counting.counts_of_scores(
        np.abs(differences), member=differences > 0, bits=pairing.bits
    )
    # 2. Scores of the examples in pairs.
    examples_in_pairs = np.concatenate([members, others])
    score_keys, examples_at, members_at = counting.counts_of_scores(
        scores[examples_in_pairs], member=member[examples_in_pairs], bits=pairing.bits
    )
    counts_of_scores = (score_keys + (1 << pairing.bits), examples_at, members_at)
    # 3. Who is left over, and which buckets were counted.
    members_left_over = member[left_over].sum()
    counts_of_left_over = (
        np.array([LEFT_OVER]),
        np.array([left_over.size]),
        np.array([members_left_over]),
    )
    bucket_keys = FIRST_BUCKET - np.unique(_buckets_of_hashes(pairing, hashes))
    counts_of_buckets = (bucket_keys, np.ones_like(bucket_keys), np.zeros_like(bucket_keys))
    return counting.sums_of_counts(
        [counts_of_differences, counts_of_scores, counts_of_left_over, counts_of_buckets]
    )


def _order_of_hashes(
    pairing: Pairing, ids: AnyArray, hashes: IntArray, member: BoolArray
) -> IntArray:
    """Return examples in the order of their hashes; raise InputError where an id repeats."""
    hash_order = np.argsort(hashes)
    equals_next = np.diff(hashes[hash_order]) == 0
    run_edges = np.flatnonzero(np.diff(equals_next.astype(np.int8), prepend=0, append=0))

    def whole_hash(row: int) -> bytes:
        hashed_text = f"{pairing.seed}:{ids[row]}".encode()
        return md5(hashed_text, usedforsecurity=False).digest()

    for first_of_run, last_of_run in run_edges.reshape(-1, 2).tolist():
        equal_hashes = slice(first_of_run, last_of_run + 1)
        rows_with_hash = sorted(hash_order[equal_hashes], key=whole_hash)
        for row, next_row in pairwise(rows_with_hash):
            if ids[row] != ids[next_row]:
                continue
            problem = "occurs twice"
            if member[row] != member[next_row]:
                problem = "is on both sides of the split"
            raise InputError(f"id {ids[row]!s} {problem}: count each {pairing.unit} once")
        hash_order[equal_hashes] = rows_with_hash
    return hash_order


def _scale_of_tally(scores: Tally) -> tuple[float, float]:
    """Return the median of scores and 1.4826 times their median distance from it.

    Where more than half are equal it is their mean distance, and 1 where all are.
    """
    is_finite = np.isfinite(scores.values)
    finite_scores = scores.values[is_finite]
    examples_at_score = scores.examples_at[is_finite]
    if not finite_scores.size:
        return 0.0, 1.0
    centre, spread = robust_scale_of_counts(finite_scores, examples_at_score)
    if not spread:
        total_distance = math.fsum(np.abs(finite_scores - centre) * examples_at_score)
        spread = total_distance / int(examples_at_score.sum()) or 1.0
    return centre, spread
