"""A random split as a game of fair coins: members matched with non-members at random.

Given which examples are paired, and which is left over, all ways to say which of each pair is the
member belong to equally likely splits. So fair coins of their own decide, one for each pair, and
to turn one of them replaces one training example by another.

Guesses about pairs are made and sorted in the memory of one sort. Differences of scores are
computed where they are needed, a part at a time, and are not stored: of float32 scores, one copy as
float64 is already more than the scores themselves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.alignment import row_numbers
from leakbound._base.labels import by_first_row
from leakbound._base.numerics import robust_scale
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, BoolArray, FloatArray, GenericArray, IntArray, Sides
from leakbound.cuts.games import PairsGame, Ties, parts_of, tie_breaker
from leakbound.errors import AbstentionError, DesignError, InputError

# Pairs that are looked at in one go.
_PAIRS_AT_ONCE = 1 << 13
_CORRECT_BIT = np.uint64(1)
# Where the bits of a block begin: below are those of a place, and one that says who is right.
_FIRST_BLOCK_BIT = np.uint64(32)
Rows: TypeAlias = slice | AnyArray


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitGame(PairsGame):
    """The pairs of a random split, of which `first` says whether the member stands first.

    The sign of a difference of two scores, on the scale of `stretch`, is the guess, and its size
    the confidence. There is one path, whose guesses are of both roles at once. A difference of 0 is
    no guess where ties stay together, and the last of all guesses, by the coin that put one of the
    two first, where the number of guesses must not depend on scores; so too where no pair differs.
    """

    units: ClassVar[str] = "pairs"
    sides: Sides = "pairs"
    first: BoolArray
    stretch: Callable[[FloatArray], FloatArray]

    @property
    def examples(self) -> int:
        """How many pairs are audited."""
        return self.first.size

    def ranked(self, ties: Ties = "together") -> _core.Ranking:
        """Rank the guesses by confidence, right ones as members."""
        packed_guesses = self._packed_guesses()
        if ties == "together":
            equal_pairs = int(np.searchsorted(packed_guesses, np.uint64(2)))
            if equal_pairs < packed_guesses.size:
                packed_guesses = packed_guesses[equal_pairs:]
        packed_downwards = packed_guesses[::-1]
        is_correct = np.empty(packed_guesses.size, dtype=np.bool_)
        ends_block = np.empty(packed_guesses.size, dtype=np.bool_)
        for part in parts_of(packed_guesses.size, _PAIRS_AT_ONCE):
            is_correct[part] = packed_downwards[part] & _CORRECT_BIT
            ends_block[part] = ~_equals_previous_size(packed_downwards, part)[1:]
        del packed_guesses, packed_downwards
        return _core.Ranking.in_order(is_correct, ends_block)

    def untied(self) -> _core.Ranking:
        """See `Game.untied`, by the size of the difference."""
        # 1. Right guesses from the smallest difference up, and which of them are tied.
        packed_guesses = self._packed_guesses()
        is_correct = np.empty(packed_guesses.size, dtype=np.bool_)
        is_tied = np.empty(packed_guesses.size, dtype=np.bool_)
        tied_sizes = []
        for part in parts_of(packed_guesses.size, _PAIRS_AT_ONCE):
            is_correct[part] = packed_guesses[part] & _CORRECT_BIT
            difference_sizes = packed_guesses[part] >> _CORRECT_BIT
            equals_previous = _equals_previous_size(packed_guesses, part)
            begins_block = equals_previous[1:] & ~equals_previous[:-1]
            is_tied[part] = begins_block | equals_previous[:-1]
            tied_sizes.append(difference_sizes[begins_block])
        del packed_guesses
        # 2. Within each block of ties the order is random.
        self._shuffle_ties(is_correct, is_tied, np.concatenate(tied_sizes))
        correct_downwards = np.ascontiguousarray(is_correct[::-1])
        return _core.Ranking.in_order(correct_downwards)

    def _packed_guesses(self) -> AnyArray:
        """Return the sorted sizes of differences as words, the last bit of each for who is right.

        Sizes have no sign, so that there is a bit to spare, and words are in the order of sizes.
        """
        packed_guesses = np.empty(self.examples, dtype=np.uint64)
        for part in parts_of(self.examples, _PAIRS_AT_ONCE):
            difference_sizes, is_correct = self._guesses_about_pairs(part)
            packed_guesses[part] = difference_sizes << _CORRECT_BIT | is_correct
        packed_guesses.sort()
        return packed_guesses

    def _guesses_about_pairs(self, pairs: Rows) -> tuple[AnyArray, BoolArray]:
        """Return the sizes of some differences, as words, and which guesses are right."""
        differences = self.stretch(self.given[self.members[pairs]])
        differences -= self.stretch(self.given[self.others[pairs]])
        is_correct: BoolArray = (differences > 0) | (self.first[pairs] & (differences == 0))
        difference_sizes = np.abs(differences, out=differences)
        return difference_sizes.view(np.uint64), is_correct

    def _shuffle_ties(
        self, is_correct: BoolArray, is_tied: BoolArray, tied_sizes: AnyArray
    ) -> None:
        """Put right guesses, in increasing order of differences, in random order where tied.

        Pairs of equal size, of which `tied_sizes` has each once, are in the order of places that
        are drawn, as in `ScoreGame.ranks`. The number of a size, the place and who is right are one
        integer of eight bytes.
        """
        if not tied_sizes.size:
            return
        packed_guesses = np.empty(self.examples, dtype=np.uint64)
        # Until there is a guess in its place
        shuffled_pairs = packed_guesses.view(np.uint32)[::2]
        parts = parts_of(self.examples, _PAIRS_AT_ONCE)
        for part in parts:
            shuffled_pairs[part] = np.arange(part.start, part.stop)
        tie_breaker(self.seed).shuffle(shuffled_pairs)
        tied_guesses = 0
        for part in parts:
            pairs = shuffled_pairs[part].copy()
            difference_sizes, is_correct_guess = self._guesses_about_pairs(pairs)
            block_numbers = np.searchsorted(tied_sizes, difference_sizes)
            block_numbers = np.minimum(block_numbers, tied_sizes.size - 1)
            is_tied_pair = tied_sizes[block_numbers] == difference_sizes
            block_bits = block_numbers.astype(np.uint64) << _FIRST_BLOCK_BIT
            places = np.arange(part.start, part.stop, dtype=np.uint64)
            packed_part = block_bits | places << _CORRECT_BIT | is_correct_guess
            packed_ties = packed_part[is_tied_pair]
            next_tied_guess = tied_guesses + packed_ties.size
            packed_guesses[tied_guesses:next_tied_guess] = packed_ties
            tied_guesses = next_tied_guess
        packed_guesses[:tied_guesses].sort()
        tied_guesses = 0
        for part in parts:
            is_tied_here = is_tied[part]
            next_tied_guess = tied_guesses + int(np.count_nonzero(is_tied_here))
            packed_ties = packed_guesses[tied_guesses:next_tied_guess]
            is_correct[part][is_tied_here] = packed_ties & _CORRECT_BIT
            tied_guesses = next_tied_guess


def _equals_previous_size(packed_guesses: AnyArray, part: slice) -> BoolArray:
    """Return whether the difference of each guess has the size of the guess before it.

    There is one value for each guess of a part, and one for the guess after them; it is False where
    there is no guess before, or none after.
    """
    first_guess = max(0, part.start - 1)
    difference_sizes = packed_guesses[first_guess : part.stop + 1] >> _CORRECT_BIT
    equals_previous: BoolArray = difference_sizes[1:] == difference_sizes[:-1]
    if not part.start:
        equals_previous = np.append(False, equals_previous)
    if part.stop == packed_guesses.size:
        equals_previous = np.append(equals_previous, False)
    return equals_previous


Aggregate: TypeAlias = Literal["mean", "max", "log_mean_exp", "sum"]

# How much more a score counts for each standard deviation that it is away from the median.
_STRETCH_PER_DEVIATION = 0.25
# Standard scores beyond are as good: their squares stay finite.
_LARGEST_STANDARD_SCORE = 1e100


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """What a split moved as one: examples, or groups of them, within strata.

    `unit` has the unit of each example, `stratum` the stratum of each unit and `strata_of_rows`
    that of each example.
    """

    member: BoolArray
    stratum: IntArray
    strata_of_rows: IntArray
    unit: IntArray | None = None
    aggregate: Aggregate = "mean"

    @classmethod
    def of(
        cls,
        member: BoolArray,
        strata: GenericArray | None,
        groups: GenericArray | None,
        aggregate: Aggregate,
    ) -> "Units":
        """Gather examples into groups; raise InputError where a group straddles the split."""
        if strata is None:  # of which no row takes memory
            stratum: IntArray = np.broadcast_to(np.int64(0), member.shape)
        else:
            _, _, stratum = by_first_row(strata)
        if groups is None:
            return cls(member=member, stratum=stratum, strata_of_rows=stratum)
        _, first_rows, unit_of_row = by_first_row(groups)
        _check_groups_have_one_value(groups, member, problem="is in both parts of the split")
        _check_groups_have_one_value(groups, stratum, problem="is in more than one stratum")
        return cls(
            member=member[first_rows],
            stratum=stratum[first_rows],
            strata_of_rows=stratum,
            unit=unit_of_row,
            aggregate=aggregate,
        )

    @property
    def count(self) -> int:
        """How many units there are."""
        return self.member.size

    def features(self, table: FloatArray) -> FloatArray:
        """Return the features of each unit: the means of its examples."""
        if self.unit is None:
            return table
        unit_sizes = np.bincount(self.unit)
        means_of_columns = []
        for column in table.T:
            sorted_values, units_of_rows = self._sorted_within_units(column)
            means_of_columns.append(_means_of_units(sorted_values, units_of_rows, unit_sizes))
        return np.column_stack(means_of_columns)

    def scores(self, scores_of_rows: FloatArray) -> FloatArray:
        """Return one score for each unit, a function of its rows in whatever order they are."""
        if self.unit is None:
            return scores_of_rows
        unit_sizes = np.bincount(self.unit)
        largest_scores = np.full(self.count, -np.inf)
        np.maximum.at(largest_scores, self.unit, scores_of_rows)
        if self.aggregate == "max":
            return largest_scores
        sorted_scores, units_of_rows = self._sorted_within_units(scores_of_rows)
        if self.aggregate == "mean":
            return _means_of_units(sorted_scores, units_of_rows, unit_sizes)
        if self.aggregate == "sum":
            return _means_of_units(sorted_scores, units_of_rows, np.ones_like(unit_sizes))
        # Log-mean-exp, with exponents relative to the largest score of each unit.
        is_infinite = ~np.isfinite(largest_scores)
        reference_scores = np.where(is_infinite, 0.0, largest_scores)
        exponents = np.minimum(sorted_scores - reference_scores[units_of_rows], 0.0)
        sums_of_exponentials = np.bincount(units_of_rows, weights=np.exp(exponents))
        with np.errstate(divide="ignore"):
            log_means = reference_scores + np.log(sums_of_exponentials / unit_sizes)
        return np.where(is_infinite, largest_scores, log_means)

    def _sorted_within_units(self, values_of_rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the values of each unit's rows in increasing order, and the units they are of.

        Sums round as their terms are ordered: in the order of storage, which may differ between the
        files of members and of others, rounding would tell equal units apart by their side.
        """
        assert self.unit is not None
        order = np.lexsort((values_of_rows, self.unit))
        return values_of_rows[order], self.unit[order]


def _means_of_units(
    values_of_rows: FloatArray, units_of_rows: IntArray, unit_sizes: IntArray
) -> FloatArray:
    """Return means, or sums where sizes are 1; infinities of both signs cancel in pairs."""
    number_of_units = unit_sizes.size
    is_finite_row = np.isfinite(values_of_rows)
    units_of_finite = units_of_rows[is_finite_row]
    parts_of_means = values_of_rows[is_finite_row] / unit_sizes[units_of_finite]
    finite_means = np.bincount(units_of_finite, weights=parts_of_means, minlength=number_of_units)
    signs_of_infinite = np.sign(values_of_rows[~is_finite_row])
    sums_of_signs = np.bincount(
        units_of_rows[~is_finite_row], weights=signs_of_infinite, minlength=number_of_units
    )
    infinite_means = np.copysign(np.inf, sums_of_signs)
    means: FloatArray = np.where(sums_of_signs == 0, finite_means, infinite_means)
    return means


class TornGroup(NamedTuple):
    """A group whose rows have two values, how many groups have, and how many there are."""

    name: object
    first: int
    other: int
    torn: int
    of: int


def torn_group(groups: GenericArray, values_of_rows: GenericArray) -> TornGroup | None:
    """Return the first group whose rows differ in a value; None if all groups are whole."""
    group_names, first_rows, group_of_row = by_first_row(groups)
    first_row_of_group = first_rows[group_of_row]
    differing_rows = np.flatnonzero(values_of_rows != values_of_rows[first_row_of_group])
    if not differing_rows.size:
        return None
    first_differing_row = int(differing_rows[0])
    return TornGroup(
        name=group_names[group_of_row[first_differing_row]],
        first=int(first_row_of_group[first_differing_row]),
        other=first_differing_row,
        torn=np.unique(group_of_row[differing_rows]).size,
        of=group_names.size,
    )


def _check_groups_have_one_value(groups: GenericArray, values: GenericArray, problem: str) -> None:
    """Check that all examples of a group have one value."""
    torn = torn_group(groups, values)
    if torn is None:
        return
    raise InputError(
        f"{torn.torn} of {torn.of} groups are not whole: {torn.name!s} {problem} "
        f"(rows {torn.first} and {torn.other}). Groups are rows that the split kept "
        "together: leave groups out if it moved single rows, or correct them"
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Units matched one to one: rows of the members and of the non-members, and their order.

    `first` says for which pairs the member stands first, by a fair coin: nothing else about a pair
    shows which of the two it is.
    """

    members: IntArray
    others: IntArray
    first: BoolArray

    @classmethod
    def drawn(cls, units: Units, seed: int) -> "Pairs":
        """Match members with non-members at random, within strata.

        Within a stratum every matching of as many as can be is equally likely, whatever order the
        examples are stored in, and whatever their scores.
        """
        rng = Purpose.PAIRS.rng(seed)
        # 1. Within each stratum the smaller side is matched with a random part of the other.
        matched_members: list[IntArray] = []
        matched_others: list[IntArray] = []
        for rows in _rows_within_strata(units.stratum):
            is_member = units.member[rows]
            members_of_stratum = rows[is_member]
            rng.shuffle(members_of_stratum)
            non_members = rows[np.logical_not(is_member, out=is_member)]
            rng.shuffle(non_members)
            pairs_of_stratum = min(members_of_stratum.size, non_members.size)
            matched_members.append(members_of_stratum[:pairs_of_stratum])
            matched_others.append(non_members[:pairs_of_stratum])
            del rows, is_member  # which may be large, before coins are tossed
        paired_members = _joined_strata(matched_members)
        if not paired_members.size:
            raise DesignError(_reason_without_pairs(units))
        # 2. A coin puts one of the two first.
        member_is_first = rng.random(paired_members.size) < 0.5
        return cls(
            members=paired_members, others=_joined_strata(matched_others), first=member_is_first
        )

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return self.first.size

    def game(
        self, scores: FloatArray, seed: int, named: str = "", stretch: "Stretch | None" = None
    ) -> SplitGame:
        """Return the game of some scores of the units; AbstentionError if they order nothing.

        `named` is for sentences that would speak of examples, and `stretch` the scale of the
        scores, if it is known.
        """
        if scores.min() == scores.max():
            raise AbstentionError(
                f"all {scores.size} scores are equal, so nothing can be guessed: use a score that "
                "differs between examples"
            )
        return SplitGame(
            given=scores,
            members=self.members,
            others=self.others,
            first=self.first,
            stretch=stretch or Stretch.of(scores),
            named=named,
            seed=seed,
        )


def _rows_within_strata(stratum: IntArray) -> Iterator[IntArray]:
    """Yield the rows of each stratum."""
    rows = row_numbers(stratum.size)
    if stratum.min() == stratum.max():
        yield rows
        return
    rows_by_stratum = rows[np.argsort(stratum, kind="stable")]
    edges = np.flatnonzero(np.diff(stratum[rows_by_stratum])) + 1
    yield from np.split(rows_by_stratum, edges)


def _joined_strata(parts: list[IntArray]) -> IntArray:
    """Return rows of all strata, those of a single one as they are."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts)


def _reason_without_pairs(units: Units) -> str:
    """Say why a split has no pair."""
    members = int(units.member.sum())
    only_side = {0: "non-members", units.count: "members"}.get(members)
    if only_side is None:
        return "no stratum has both members and non-members, so there is no pair to compare"
    return (
        f"all {units.count} units of the split are {only_side}: an audit of a random "
        "split compares both parts, so pass scores of the training set and of the "
        "held-out part"
    )


def stretched(values: FloatArray) -> FloatArray:
    """Return values on the scale of their differences, see `Stretch`."""
    return Stretch.of(values)(values)


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The scale z (1 + |z| / 4) of differences, z being robust standard scores.

    Membership has no part in it. Near the median differences count as they are, and in the tails
    for more, where a score that stands out says more than one that is merely larger. Infinite
    scores come just beyond all others, and what is beyond 10^100 deviations counts as there. The
    order of storage has no part in it either, not even by rounding: means are of sorted values.

    A score as a share of the `largest` has the standard score (share - `centre`) / `spread`, and
    an infinite one the standard score ± `infinite`.
    """

    largest: float = 1.0
    centre: float = 0.0
    spread: float = 1.0
    infinite: float = 0.0

    @classmethod
    def of(cls, values: FloatArray) -> "Stretch":
        """Take the scale from scores; one copy of them is held, as they may be many."""
        finite_scores = values[np.isfinite(values)]
        if not finite_scores.size:
            return cls()
        # Robust scaling: the median, and the median distance from it unless that is 0.
        lowest = float(finite_scores.min())
        highest = float(finite_scores.max())
        largest = max(highest, -lowest) or 1.0
        finite_scores /= largest
        centre, spread = robust_scale(finite_scores, in_place=True)
        if not spread:
            finite_scores.sort()  # distances, by now
            spread = float(finite_scores.mean()) or 1.0
        scale = cls(largest=largest, centre=centre, spread=spread)
        # Standard scores increase with scores, so that the farthest is at one of the ends.
        below, above = scale._standard_scores(np.array([lowest, highest])).tolist()
        return replace(scale, infinite=1.0 + max(above, -below))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return scores on this scale."""
        if not self.infinite:  # none was finite
            return np.sign(values)
        standard_scores = self._standard_scores(values)
        is_infinite = np.isinf(values)
        if is_infinite.any():
            standard_scores[is_infinite] = np.copysign(self.infinite, values[is_infinite])
        return stretch_in_place(standard_scores)

    def _standard_scores(self, values: FloatArray) -> FloatArray:
        standard_scores = values / self.largest
        standard_scores -= self.centre
        with np.errstate(over="ignore"):
            standard_scores /= self.spread
        largest = _LARGEST_STANDARD_SCORE
        return np.clip(standard_scores, -largest, largest, out=standard_scores)


def stretch_in_place(standard_scores: FloatArray) -> FloatArray:
    """Turn standard scores z into z (1 + |z| / 4), and return them."""
    stretch_factors = np.abs(standard_scores)
    stretch_factors *= _STRETCH_PER_DEVIATION
    stretch_factors += 1.0
    standard_scores *= stretch_factors
    return standard_scores


class UnitScores(NamedTuple):
    """One score for each unit, and the scale of their differences."""

    scores: FloatArray
    stretch: Stretch

    @classmethod
    def of(cls, scores: FloatArray) -> "UnitScores":
        """Take the scale from the scores."""
        return cls(scores, Stretch.of(scores))
