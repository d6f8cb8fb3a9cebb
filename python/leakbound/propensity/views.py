"""Views of a random split, by which it shows what was done to one part only.

A view puts the audited records into pairs or into an order in which membership has no part: see
`leakbound.propensity.likeness` and `surprise`. If the split was random, every choice of as many
members within each stratum was as likely as the real one. So a count of members has a known law,
and its p-value compares it with counts of memberships that are drawn again. Only counts are drawn,
by (multivariate) hypergeometric laws: no row is permuted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import BoolArray, FloatArray, IntArray

DRAWS = 19_999
"""Memberships that are drawn again at most."""
# Draws that reach the statistic, after which no more are needed.
_ENOUGH = 20
# Draws at first; each later batch is four times as large.
_FIRST = 100
# Prefixes of an order or of pairs: their number.
_PREFIXES = 14
# The smallest prefix.
_SMALLEST = 8
# Counts of a draw at most: with more, strata are left out, the smallest first.
_COUNTS = 4096
# Numbers that are drawn at once at most.
_AT_ONCE = 2**20

End: TypeAlias = Literal["least", "most"]
DrawInStratum: TypeAlias = Callable[[IntArray, int, int, int, np.random.Generator], IntArray]
"""From widths of segments, size and members of a stratum, a number of draws and a generator: a
count in each segment, shape (draws, segments)."""


@dataclass(frozen=True)
class Count:
    """What a view counted, where it was farthest from what a random split gives."""

    p_value: float
    """Upper bound on the probability of a statistic as large if the split was random."""
    seen: int
    """Members, or pairs across the parts."""
    of: int
    """Among so many records, or pairs."""
    expected: float
    """The mean of this number over random splits."""
    end: End = "least"
    """The end of the order at which they were counted."""


@dataclass(frozen=True, eq=False)
class Split:
    """The members of a split, within strata."""

    member: BoolArray
    stratum: IntArray
    """The stratum of each record, or -1 where its stratum is left out."""
    sizes: IntArray
    """How many records each stratum has, and below, how many members."""
    members: IntArray

    @classmethod
    def of(
        cls, member: BoolArray, strata: NDArray[np.generic] | None, rng: np.random.Generator
    ) -> "Split":
        """Return the strata that have members and others, the largest first.

        Strata are left out where counts of all of them would be too many. Chance decides among
        strata of one size: the order in which they are stored may depend on membership.
        """
        stratum = np.zeros(member.size, dtype=np.int64)
        if strata is not None:
            stratum = np.unique(strata, return_inverse=True)[1].astype(np.int64)
        sizes = np.bincount(stratum)
        members = np.bincount(stratum, member).astype(np.int64)
        mixed = np.flatnonzero((members > 0) & (members < sizes))
        shuffled = rng.random(mixed.size)
        largest_first = mixed[np.lexsort((shuffled, -sizes[mixed]))]
        counts = np.minimum(sizes[largest_first], 2 * _PREFIXES)
        kept = largest_first[np.cumsum(counts) <= _COUNTS]
        if not kept.size:
            kept = largest_first[:1]
        number = np.full(sizes.size, -1, dtype=np.int64)
        number[kept] = np.arange(kept.size)
        return cls(member, number[stratum], sizes[kept], members[kept])

    def cells(self, rows: IntArray, cell: IntArray, cells: int) -> IntArray:
        """Count rows of each stratum in each cell, shape (strata, cells)."""
        code = self.stratum[rows] * cells + cell
        strata = self.sizes.size
        counts = np.bincount(code, minlength=strata * cells)
        return counts.reshape(strata, cells)

    def drawn(
        self, cells: IntArray, in_stratum: DrawInStratum, draws: int, rng: np.random.Generator
    ) -> IntArray:
        """Draw memberships again, and return a count in each cell, shape (draws, cells)."""
        counts = np.zeros((draws, cells.shape[1]), dtype=np.int64)
        for widths, size, members in zip(cells, self.sizes, self.members, strict=True):
            filled = np.flatnonzero(widths)
            if filled.size:
                counts[:, filled] += in_stratum(widths[filled], size, members, draws, rng)
        return counts


@dataclass(frozen=True, eq=False)
class _Law:
    """Mean and variance of counts in prefixes over random splits, shape (orders, prefixes)."""

    mean: FloatArray
    variance: FloatArray

    def standardised(self, counts: IntArray) -> FloatArray:
        """Return differences from the mean, from counts in segments, a row for each draw.

        Where nothing varies, the difference is 0: nothing is said there.
        """
        in_prefixes = counts.reshape(-1, *self.mean.shape).cumsum(axis=2)
        deviation = np.sqrt(np.where(self.variance > 0, self.variance, np.inf))
        differences: FloatArray = (in_prefixes - self.mean) / deviation
        return differences.reshape(len(counts), -1)


def at_ends(order: IntArray, split: Split, rng: np.random.Generator) -> Count:
    """Test whether members are too many or too few at either end of an order of the records.

    The statistic is the largest standardised difference, of either sign, between the number of
    members and its mean, among the first and the last 8, …, half of the records.

    Parameters
    ----------
    order : ndarray
        Rows from the first to the last, all or some of them: a function of the records and of
        randomness, in which membership has no part.
    split : Split
        Which of the records are members.
    rng : Generator
        What memberships are drawn from.
    """
    order = order[split.stratum[order] >= 0]
    half = order.size // 2
    if half == 0:
        return Count(1.0, 0, 0, 0.0)
    # 1. Prefixes of both ends, cut into segments: what a draw counts are members in segments.
    prefixes = _prefixes(half)
    segment = _segments(prefixes)
    rows = np.concatenate([order[:half], order[::-1][:half]])
    cell = np.concatenate([segment, segment + prefixes.size])
    cells = split.cells(rows, cell, 2 * prefixes.size)
    found = np.bincount(cell[split.member[rows]], minlength=2 * prefixes.size)
    # 2. Members in each prefix, given those of each stratum, have a hypergeometric law.
    share = (split.members / split.sizes)[:, None, None]
    size = split.sizes[:, None, None]
    drawn = cells.reshape(-1, 2, prefixes.size).cumsum(axis=2)
    mean = share * drawn
    variance = share * (1 - share) * drawn * (size - drawn) / (size - 1)
    law = _Law(mean.sum(axis=0), variance.sum(axis=0))
    # 3. Test the largest difference of either sign.
    p_value, best = _tested(
        found,
        lambda counts: np.abs(law.standardised(counts)),
        lambda draws: split.drawn(cells, _members, draws, rng),
    )
    side, prefix = divmod(best, prefixes.size)
    end: End = "least"
    if side:
        end = "most"
    seen = found.reshape(2, -1)[side, : prefix + 1].sum()
    expected = law.mean[side, prefix]
    return Count(p_value, int(seen), int(prefixes[prefix]), float(expected), end)


def across(pairs: IntArray, split: Split, rng: np.random.Generator) -> Count:
    """Test whether pairs of records lie across the parts of a split too rarely.

    The statistic is the largest standardised deficit of pairs of a member and a non-member, among
    the first 8, …, all of the pairs.

    Parameters
    ----------
    pairs : ndarray, shape (pairs, 2)
        Disjoint pairs of rows of one stratum each, the closest first, chosen without membership.
    split : Split
        Which of the records are members.
    rng : Generator
        What memberships are drawn from.
    """
    pairs = pairs[split.stratum[pairs[:, 0]] >= 0]
    if not len(pairs):
        return Count(1.0, 0, 0, 0.0)
    # 1. Prefixes of the pairs, cut into segments.
    first, second = pairs.T
    prefixes = _prefixes(len(pairs))
    cell = _segments(prefixes)
    cells = split.cells(first, cell, prefixes.size)
    apart = split.member[first] != split.member[second]
    found = np.bincount(cell[apart], minlength=prefixes.size)
    # 2. Of two records of a stratum with n records, m of them members, just one is a member with
    #    probability 2 m (n - m) / (n (n - 1)).
    size = split.sizes[:, None]
    members = split.members[:, None]
    chance = 2 * members * (size - members) / (size * (size - 1))
    drawn = cells.cumsum(axis=1)
    mean = (chance * drawn).sum(axis=0)
    variance = (chance * (1 - chance) * drawn).sum(axis=0)
    law = _Law(mean[None], variance[None])
    # 3. Test the largest deficit.
    p_value, best = _tested(
        found,
        lambda counts: -law.standardised(counts),
        lambda draws: split.drawn(cells, _pairs_apart, draws, rng),
    )
    seen = found[: best + 1].sum()
    return Count(p_value, int(seen), int(prefixes[best]), float(mean[best]))


def _prefixes(most: int) -> IntArray:
    """Return sizes of prefixes from a few to all, each about as much larger than the last one."""
    spaced = np.geomspace(min(_SMALLEST, most), most, _PREFIXES)
    return np.unique(np.round(spaced).astype(np.int64))


def _segments(prefixes: IntArray) -> IntArray:
    """Return the number of the segment, between two prefixes, that each place lies in."""
    widths = np.diff(prefixes, prepend=0)
    return np.repeat(np.arange(prefixes.size), widths)


def _members(
    widths: IntArray, size: int, members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw members of each segment of a stratum: a multivariate hypergeometric law."""
    colours = [*widths, size - widths.sum()]
    counts: IntArray = rng.multivariate_hypergeometric(
        colours, int(members), draws, method="marginals"
    )
    return counts[:, :-1]


def _pairs_apart(
    widths: IntArray, size: int, members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw pairs of a member and a non-member in each segment of a stratum.

    Given how many members are among the first and among the second records of a segment's pairs,
    both are sets drawn at random: the number of pairs with two members is hypergeometric.
    """
    counts = _members(np.tile(widths, 2), size, members, draws, rng)
    first, second = np.split(counts, 2, axis=1)
    both = rng.hypergeometric(first, widths - first, second)
    return first + second - 2 * both


def _tested(
    found: IntArray,
    statistics: Callable[[IntArray], FloatArray],
    drawn: Callable[[int], IntArray],
) -> tuple[float, int]:
    """Return the p-value of the largest statistic, and where it is.

    Draws end when 20 have reached the statistic: with L of them the p-value is 20/L, otherwise one
    more than those that reached it over one more than all (Besag and Clifford 1991). Both are at
    most t with probability t at most, as the real counts and those drawn are exchangeable.
    """
    values = statistics(found[None])[0]
    where = int(values.argmax())
    # A draw with equal counts reaches it, however sums are rounded.
    largest = float(values.max()) - 1e-9
    most = max(1, _AT_ONCE // found.size)
    reached = 0
    done = 0
    batch = _FIRST
    while done < DRAWS:
        draws = min(batch, most, DRAWS - done)
        hits = np.flatnonzero(statistics(drawn(draws)).max(axis=1) >= largest)
        lacking = _ENOUGH - reached
        if hits.size >= lacking:
            needed = done + int(hits[lacking - 1]) + 1
            return _ENOUGH / needed, where
        reached += hits.size
        done += draws
        batch *= 4
    return (1 + reached) / (1 + DRAWS), where
