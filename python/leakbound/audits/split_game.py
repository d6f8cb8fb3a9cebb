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
_PART = 1 << 13
_ONE = np.uint64(1)
# Where the bits of a block begin: below are those of a place, and one that says who is right.
_BLOCK = np.uint64(32)
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
        entries = self._sorted()
        unguessed = int(np.searchsorted(entries, np.uint64(2)))
        if ties == "together" and unguessed < entries.size:
            entries = entries[unguessed:]
        downwards = entries[::-1]
        right = np.empty(entries.size, dtype=np.bool_)
        block_end = np.ones(entries.size, dtype=np.bool_)
        for part in parts_of(entries.size, _PART):
            right[part] = downwards[part] & _ONE
            sizes = downwards[part.start : part.stop + 1] >> _ONE
            block_end[part][: sizes.size - 1] = sizes[1:] != sizes[:-1]
        del entries, downwards
        return _core.Ranking.in_order(right, block_end)

    def untied(self) -> _core.Ranking:
        """See `Game.untied`, by the size of the difference."""
        # 1. Right guesses from the smallest difference up, and which of them are tied.
        entries = self._sorted()
        right = np.empty(entries.size, dtype=np.bool_)
        tied = np.empty(entries.size, dtype=np.bool_)
        tied_sizes = []
        for part in parts_of(entries.size, _PART):
            right[part] = entries[part] & _ONE
            sizes = entries[part] >> _ONE
            as_before = np.zeros(sizes.size, dtype=np.bool_)
            as_before[1:] = sizes[1:] == sizes[:-1]
            if part.start:
                as_before[0] = entries[part.start - 1] >> _ONE == sizes[0]
            as_after = np.zeros(sizes.size, dtype=np.bool_)
            as_after[:-1] = as_before[1:]
            if part.stop < entries.size:
                as_after[-1] = entries[part.stop] >> _ONE == sizes[-1]
            tied[part] = as_before | as_after
            tied_sizes.append(sizes[as_after & ~as_before])
        del entries
        # 2. Within each block of ties the order is random.
        self._shuffle_ties(right, tied, np.concatenate(tied_sizes))
        return _core.Ranking.in_order(np.ascontiguousarray(right[::-1]))

    def _sorted(self) -> AnyArray:
        """Return the sizes of differences as words, the last bit of each for who is right.

        Sizes have no sign, so that there is a bit to spare, and words are in the order of sizes.
        """
        entries = np.empty(self.examples, dtype=np.uint64)
        for part in parts_of(self.examples, _PART):
            size, right = self._guesses(part)
            entries[part] = size << _ONE | right
        entries.sort()
        return entries

    def _guesses(self, pairs: Rows) -> tuple[AnyArray, BoolArray]:
        """Return the sizes of some differences, as words, and which guesses are right."""
        apart = self.stretch(self.given[self.members[pairs]])
        apart -= self.stretch(self.given[self.others[pairs]])
        right: BoolArray = (apart > 0) | (self.first[pairs] & (apart == 0))
        return np.abs(apart, out=apart).view(np.uint64), right

    def _shuffle_ties(self, right: BoolArray, tied: BoolArray, sizes: AnyArray) -> None:
        """Put `right`, in increasing order of differences, in random order where they are `tied`.

        Pairs of equal size, of which `sizes` has each once, are in the order of places that are
        drawn, as in `ScoreGame.ranks`. The number of a size, the place and who is right are one
        integer of eight bytes.
        """
        if not sizes.size:
            return
        entries = np.empty(self.examples, dtype=np.uint64)
        order = entries.view(np.uint32)[::2]  # until there is an entry in its place
        for part in parts_of(self.examples, _PART):
            order[part] = np.arange(part.start, part.stop)
        tie_breaker(self.seed).shuffle(order)
        count = 0
        for part in parts_of(self.examples, _PART):
            rows = order[part].copy()
            size, is_right = self._guesses(rows)
            block = np.minimum(np.searchsorted(sizes, size), sizes.size - 1).astype(np.uint64)
            place = np.arange(part.start, part.stop, dtype=np.uint64)
            found = (block << _BLOCK | place << _ONE | is_right)[sizes[block] == size]
            entries[count : count + found.size] = found
            count += found.size
        entries[:count].sort()
        count = 0
        for part in parts_of(self.examples, _PART):
            here = tied[part]
            after = count + int(np.count_nonzero(here))
            right[part][here] = entries[count:after] & _ONE
            count = after
