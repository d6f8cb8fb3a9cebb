"""Tallies of pairs: counts of their differences, which add up and can be audited."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_length, instance, vector
from leakbound._base.formatting import plural
from leakbound._base.labels import check_codes
from leakbound._base.messages import Message
from leakbound._base.types import ArrayInput, IntArray, JsonObject, MemberInput, Named
from leakbound._tally.counting import Counts, check_counts, sums_of_counts
from leakbound._tally.tally import AnyTally, Tally, reading
from leakbound.audits.pairing import (
    COLUMNS,
    FIRST_BUCKET,
    LEFT_OVER,
    Pairing,
    counts_of_pairs,
    hashes_of_ids,
)
from leakbound.cuts.games import PairTallyGame, TallyGame
from leakbound.errors import AbstentionError, DesignError, InputError, OptionError


@dataclass(frozen=True, eq=False, repr=False)
class PairTally(AnyTally):
    """How many pairs of a random split have each of a grid of differences, and who won them.

    `audit` takes it in the place of scores, for `RandomSplit()`. Parts of one pairing add up, each
    of other buckets.

    Parameters
    ----------
    keys : ndarray of int64, shape (k,)
        What is counted, increasing. From 0 to 2^bits: keys, as those of `Tally`, of the size of the
        difference between the scores of a pair, on the scale of the pairing. From 2^bits on: 2^bits
        more than the key of a score, of the examples in pairs. -1: examples left over. From -2 on
        downwards: -2 - b is the bucket b.
    pairs_at, wins_at : ndarray of int64, shape (k,)
        Pairs with this difference, and those of them whose member has the higher score, none of
        which counts where there is no difference. Of scores and of what is left over: examples,
        and members among them. Of a bucket: 1 and 0.
    pairing : Pairing
        How pairs were made.
    """

    _kind = "pairs"
    _design = "RandomSplit()"
    _columns = COLUMNS
    keys: IntArray
    pairs_at: IntArray
    wins_at: IntArray
    pairing: Pairing

    @classmethod
    def of(
        cls,
        scores: ArrayInput,
        member: MemberInput,
        ids: ArrayInput,
        *,
        strata: ArrayInput | None = None,
        pairing: Pairing | None = None,
    ) -> Self:
        """Pair and count scores that are in memory: all of some buckets.

        Scores, membership and strata are as for `audit` and `RandomSplit`, ids are whole numbers or
        text. By default the pairing has a new seed and takes its scale from these scores.
        """
        order = ExampleOrder(ids)
        values = vector(order.scores(scores, "scores"), name="scores")
        is_member = order.member(member, values.size)
        id_array = vector(ids, name="ids", kinds="iuUO")
        check_length(id_array, examples=values.size, name="ids")
        strata_codes = None
        stratum = None
        if strata is not None:
            placed_strata = order.placed(strata, "strata")
            strata_codes = check_codes(placed_strata, examples=values.size, name="strata")
            stratum = "stratum"
        if pairing is None:
            pairing = Pairing.of(Tally.of(values, is_member), stratum=stratum)
        if (pairing.stratum is None) != (strata_codes is None):
            message = "{strata=} goes with a pairing that has a stratum, and with none else"
            raise OptionError(Message(message))
        counts = counts_of_pairs(
            pairing,
            ids=id_array,
            hashes=hashes_of_ids(pairing, id_array),
            scores=values,
            member=is_member,
            strata=strata_codes,
        )
        return cls(*counts, pairing)

    @classmethod
    def sum(cls, tallies: Iterable["PairTally"]) -> Self:
        """Add parts of one pairing, at least one, each of other buckets."""
        pairings: list[Pairing] = []

        def counts_of_tallies() -> Iterator[Counts]:
            for tally in tallies:
                instance(tally, name="each of the tallies", types=cls)
                pairings.append(tally.pairing)
                _check_same_pairing(pairings[0], tally.pairing)
                yield tally.keys, tally.pairs_at, tally.wins_at

        summed_counts = sums_of_counts(counts_of_tallies())
        if not pairings:
            raise InputError("there is nothing to add: give at least one tally")
        return cls(*summed_counts, pairings[0])

    def __add__(self, other: "PairTally") -> "PairTally":
        return PairTally.sum([self, other])

    @classmethod
    def from_arrow(cls, data: object, *, pairing: Pairing | None = None) -> Self:
        """Read a tally, or the counts of batches, from Arrow data of any engine.

        Parameters
        ----------
        data : pyarrow.RecordBatch, pyarrow.Table, pyarrow.RecordBatchReader, or Arrow stream
            Columns key, pairs and wins; rows of one key are added up.
        pairing : Pairing, optional
            How pairs were made, needed where metadata do not say it, as where engines added up.
        """
        metadata, counts_of_batches = cls._streamed(data)
        stored_pairing = pairing
        if metadata is not None:
            with reading():
                stored_pairing = Pairing(**metadata["pairing"])
        if stored_pairing is None:
            raise InputError("how pairs were made is missing: pass pairing=")
        _check_same_pairing(stored_pairing, pairing or stored_pairing)
        return cls(*sums_of_counts(counts_of_batches), stored_pairing)

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        first_score = np.searchsorted(self.keys, 1 << self.pairing.bits)
        return int(self.wins_at[first_score:].sum())

    @property
    def left_over(self) -> int:
        """Number of examples that are in no pair."""
        return int(self.pairs_at[self.keys == LEFT_OVER].sum())

    @property
    def m(self) -> int:
        """Number of examples, in pairs and left over."""
        return 2 * self.pairs + self.left_over

    @property
    def members(self) -> int:
        """Number of members, in pairs and left over."""
        return self.pairs + int(self.wins_at[self.keys == LEFT_OVER].sum())

    @property
    def counted_buckets(self) -> int:
        """Number of buckets that were counted; others have no examples, or are in other parts."""
        return int(np.searchsorted(self.keys, LEFT_OVER))

    @property
    def differences(self) -> Tally:
        """Pairs by the size of the difference; "members" are those whose member won."""
        return self._tally_of_grid(0)

    @property
    def scores(self) -> Tally:
        """The examples in pairs by their scores."""
        return self._tally_of_grid(1)

    def game(self, seed: int) -> PairTallyGame:
        """Return the game of the pairs; raise where there are none, or none differs."""
        if not self.pairs:
            units = plural(self.pairing.unit)
            raise DesignError(
                f"no stratum and bucket has both members and non-members ({self.left_over:,} "
                f"{units} are left over): use fewer buckets, and count both parts"
            )
        differences = self.differences
        if not differences.values[-1]:
            raise AbstentionError(
                f"both scores are equal in all {self.pairs} pairs, so nothing can be guessed: use "
                "a score that differs between examples"
            )
        game_of_scores = TallyGame(tally=self.scores, sides="both", seed=seed)
        return PairTallyGame(tally=differences, rated_by=game_of_scores, seed=seed)

    @property
    def size(self) -> JsonObject:
        """See `AnyTally.size`."""
        numbers_of_keys = {"keys": len(self.keys), "counted_buckets": self.counted_buckets}
        return asdict(self.pairing) | numbers_of_keys

    @property
    def audited(self) -> JsonObject:
        """See `AnyTally.audited`: all but the scale."""
        audited_options = {"pairs": self.pairs, "left_over": self.left_over, **asdict(self.pairing)}
        for option_of_scale in ("centre", "spread", "bits"):
            del audited_options[option_of_scale]
        return audited_options

    @property
    def assumed(self) -> tuple[str, str]:
        """See `AnyTally.assumed`."""
        unit = self.pairing.unit
        statement = (
            f"MD5 of the seed {self.pairing.seed} and an id orders {plural(unit)} as independent "
            "random numbers would. The seed was drawn independently of split, training and scores. "
            f"Each {unit} was counted once, at keys that do not depend on membership."
        )
        return "the hash is random", statement

    @property
    def _described(self) -> Named:
        return {"pairing": asdict(self.pairing)}

    def _tally_of_grid(self, grid: int) -> Tally:
        """Return what is counted on one of the grids that keys are on."""
        keys_of_grid = 1 << self.pairing.bits
        first_key = grid * keys_of_grid
        first_row, end_row = np.searchsorted(self.keys, [first_key, first_key + keys_of_grid])
        keys, examples_at, wins_at = (column[first_row:end_row] for column in self._counts)
        return Tally(keys - first_key, examples_at, wins_at, self.pairing.bits)

    def _check(self) -> None:
        keys, examples_at_key, wins_at_key = self._counts
        bits_of_key = self.pairing.bits
        keys_of_grid = 1 << bits_of_key
        # 1. Whole buckets, each once.
        bucket_rows = np.searchsorted(keys, LEFT_OVER)
        buckets = FIRST_BUCKET - keys[:bucket_rows]
        is_counted_once = (examples_at_key[:bucket_rows] == 1) & (wins_at_key[:bucket_rows] == 0)
        repeated_buckets = buckets[~is_counted_once]
        if repeated_buckets.size:
            raise InputError(
                f"bucket {repeated_buckets[0]} was counted more than once: add each part once, and "
                "count all examples of a bucket in one batch"
            )
        if not buckets.size or buckets.max() >= self.pairing.buckets:
            raise InputError(
                f"keys must name the buckets that were counted, of {self.pairing.buckets}"
            )
        # 2. Differences, none of them negative, and both scores of each pair.
        key_of_equal_scores = keys_of_grid // 2
        first_difference, first_score = np.searchsorted(keys, [0, keys_of_grid])
        difference_keys = keys[first_difference:first_score]
        pairs_at = examples_at_key[first_difference:first_score]
        check_counts(
            difference_keys,
            examples_at=pairs_at,
            members_at=wins_at_key[first_difference:first_score],
            bits=bits_of_key,
        )
        score_keys = keys[first_score:] - keys_of_grid
        examples_at = examples_at_key[first_score:]
        members_at = wins_at_key[first_score:]
        check_counts(score_keys, examples_at=examples_at, members_at=members_at, bits=bits_of_key)
        number_of_pairs = pairs_at.sum()
        is_left_over = keys == LEFT_OVER
        examples_left_over = examples_at_key[is_left_over]
        members_left_over = wins_at_key[is_left_over]
        if (
            (difference_keys < key_of_equal_scores).any()
            or examples_at.sum() != 2 * number_of_pairs
            or members_at.sum() != number_of_pairs
            or (members_left_over < 0).any()
            or (members_left_over > examples_left_over).any()
        ):
            raise InputError(
                "counts contradict: each pair has one difference, of a key from "
                f"{key_of_equal_scores} on, and the scores of one member and of one non-member"
            )
        # 3. Nobody wins a pair without a difference.
        wins_of_unequal = np.where(keys == key_of_equal_scores, 0, wins_at_key)
        wins_of_unequal.flags.writeable = False
        object.__setattr__(self, "wins_at", wins_of_unequal)

    def __repr__(self) -> str:
        wins = 0
        if self.pairs:
            wins = int(self.differences.members)
        counts = f"pairs={self.pairs}, wins={wins}, left_over={self.left_over}"
        return f"PairTally({counts}, bits={self.pairing.bits})"


def _check_same_pairing(pairing: Pairing, other: Pairing) -> None:
    """Raise InputError where pairs were made in different ways."""
    for name, value in asdict(pairing).items():
        other_value = getattr(other, name)
        if other_value != value:
            raise InputError(
                f"pairs were made with {name}={value!r} and with {name}={other_value!r}: count all "
                "parts by the same Pairing"
            )
