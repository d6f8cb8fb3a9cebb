"""The game of a random split: guesses about pairs, made and sorted in the memory of one sort.

Differences of scores are computed where they are needed, a part at a time, and are not stored: of
float32 scores, one copy as float64 is already more than the scores themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.types import AnyArray, BoolArray, FloatArray, Sides
from leakbound.cuts.games import PairsGame, Ties, parts_of, tie_breaker

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
