"""Views of a random split, by which it shows what was done to one part only.

A view puts the audited records into pairs or into an order in which membership has no part: see
`leakbound.propensity.likeness` and `surprise`. If the split was random, every choice of as many
members within each stratum was as likely as the real one. So a count of members has a known law,
and its p-value compares it with counts of memberships that are drawn again. Only counts are drawn,
by (multivariate) hypergeometric laws: no row is permuted.

Both views look at prefixes: the first 8, …, all places of an order or of a list of pairs. The
places between two prefixes are a segment, and a *cell* is a segment of one end of an order.
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
_ENOUGH_EXCEEDANCES = 20
# Draws at first; each later batch is four times as large.
_FIRST_BATCH = 100
# Prefixes of an order or of pairs: their number.
_PREFIXES = 14
_SMALLEST_PREFIX = 8
# Counts of a draw at most: with more, strata are left out, the smallest first.
_MOST_COUNTS_PER_DRAW = 4096
# Numbers that are drawn at once at most.
_MOST_DRAWN_AT_ONCE = 2**20
# What sums of equal counts may differ by: a draw with the observed counts reaches the statistic.
_ROUNDING = 1e-9

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


_NOTHING_TO_COUNT = Count(p_value=1.0, seen=0, of=0, expected=0.0)


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
        stratum_codes = np.zeros(member.size, dtype=np.int64)
        if strata is not None:
            _, inverse = np.unique(strata, return_inverse=True)
            stratum_codes = inverse.astype(np.int64)
        record_counts = np.bincount(stratum_codes)
        member_counts = np.bincount(stratum_codes, weights=member).astype(np.int64)
        has_both = (member_counts > 0) & (member_counts < record_counts)
        mixed_strata = np.flatnonzero(has_both)

        tie_breaks = rng.random(mixed_strata.size)
        by_size = np.lexsort((tie_breaks, -record_counts[mixed_strata]))
        largest_first = mixed_strata[by_size]
        counts_per_draw = np.minimum(record_counts[largest_first], 2 * _PREFIXES)
        fits_in_a_draw = np.cumsum(counts_per_draw) <= _MOST_COUNTS_PER_DRAW
        included_strata = largest_first[fits_in_a_draw]
        if not included_strata.size:
            included_strata = largest_first[:1]

        new_codes = np.full(record_counts.size, -1, dtype=np.int64)
        new_codes[included_strata] = np.arange(included_strata.size)
        return cls(
            member=member,
            stratum=new_codes[stratum_codes],
            sizes=record_counts[included_strata],
            members=member_counts[included_strata],
        )

    def cells(self, rows: IntArray, cell: IntArray, cells: int) -> IntArray:
        """Count rows of each stratum in each cell, shape (strata, cells)."""
        stratum_and_cell = self.stratum[rows] * cells + cell
        strata = self.sizes.size
        counts = np.bincount(stratum_and_cell, minlength=strata * cells)
        return counts.reshape(strata, cells)

    def drawn(
        self, cells: IntArray, in_stratum: DrawInStratum, draws: int, rng: np.random.Generator
    ) -> IntArray:
        """Draw memberships again, and return a count in each cell, shape (draws, cells)."""
        drawn_counts = np.zeros((draws, cells.shape[1]), dtype=np.int64)
        strata = zip(cells, self.sizes, self.members, strict=True)
        for rows_per_cell, stratum_size, stratum_members in strata:
            occupied_cells = np.flatnonzero(rows_per_cell)
            if not occupied_cells.size:
                continue
            widths = rows_per_cell[occupied_cells]
            counts_of_stratum = in_stratum(widths, stratum_size, stratum_members, draws, rng)
            drawn_counts[:, occupied_cells] += counts_of_stratum
        return drawn_counts


@dataclass(frozen=True, eq=False)
class _NullMoments:
    """Mean and variance of counts in prefixes over random splits, shape (ends, prefixes)."""

    mean: FloatArray
    variance: FloatArray

    def standardised(self, segment_counts: IntArray) -> FloatArray:
        """Return differences from the mean in standard deviations, a row for each draw.

        Where nothing varies, the difference is 0: nothing is said there.
        """
        by_end = segment_counts.reshape(-1, *self.mean.shape)
        prefix_counts = by_end.cumsum(axis=2)
        never_zero = np.where(self.variance > 0, self.variance, np.inf)
        standard_deviation = np.sqrt(never_zero)
        z_scores: FloatArray = (prefix_counts - self.mean) / standard_deviation
        return z_scores.reshape(len(segment_counts), -1)


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
        return _NOTHING_TO_COUNT
    # 1. Prefixes of both ends, cut into segments: what a draw counts are members in segments.
    prefix_sizes = _prefix_sizes(half)
    prefixes = prefix_sizes.size
    segment = _segment_of_each_place(prefix_sizes)
    rows = np.concatenate([order[:half], order[::-1][:half]])
    cell = np.concatenate([segment, segment + prefixes])
    rows_in_cells = split.cells(rows, cell, 2 * prefixes)
    member_cells = cell[split.member[rows]]
    observed_counts = np.bincount(member_cells, minlength=2 * prefixes)
    null_moments = _moments_of_members(split, rows_in_cells, prefixes)

    # 2. Test the largest difference of either sign.
    def statistics(counts: IntArray) -> FloatArray:
        return np.abs(null_moments.standardised(counts))

    def drawn_counts(draws: int) -> IntArray:
        return split.drawn(rows_in_cells, in_stratum=_members_in_segments, draws=draws, rng=rng)

    p_value, largest_at = _resampled_p_value(
        observed_counts, statistics=statistics, drawn_counts=drawn_counts
    )

    side, prefix = divmod(largest_at, prefixes)
    end: End = "least"
    if side:
        end = "most"
    members_of_end = observed_counts.reshape(2, -1)[side]
    return Count(
        p_value=p_value,
        seen=int(members_of_end[: prefix + 1].sum()),
        of=int(prefix_sizes[prefix]),
        expected=float(null_moments.mean[side, prefix]),
        end=end,
    )


def _moments_of_members(split: Split, rows_in_cells: IntArray, prefixes: int) -> _NullMoments:
    """Return moments of members in prefixes of both ends: hypergeometric in each stratum.

    Of n records of a stratum, m are members. A prefix with w of the records has w m/n members on
    average, with variance w (m/n) (1 - m/n) (n - w) / (n - 1).
    """
    stratum_size = split.sizes[:, None, None]
    member_share = (split.members / split.sizes)[:, None, None]
    prefix_rows = rows_in_cells.reshape(-1, 2, prefixes).cumsum(axis=2)
    mean = member_share * prefix_rows
    binomial_variance = member_share * (1 - member_share) * prefix_rows
    variance = binomial_variance * (stratum_size - prefix_rows) / (stratum_size - 1)
    return _NullMoments(mean=mean.sum(axis=0), variance=variance.sum(axis=0))


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
        return _NOTHING_TO_COUNT
    # 1. Prefixes of the pairs, cut into segments.
    first, second = pairs.T
    prefix_sizes = _prefix_sizes(len(pairs))
    prefixes = prefix_sizes.size
    segment = _segment_of_each_place(prefix_sizes)
    pairs_in_segments = split.cells(first, segment, prefixes)
    is_across = split.member[first] != split.member[second]
    observed_counts = np.bincount(segment[is_across], minlength=prefixes)
    null_moments = _moments_of_pairs_across(split, pairs_in_segments)

    # 2. Test the largest deficit.
    def statistics(counts: IntArray) -> FloatArray:
        return -null_moments.standardised(counts)

    def drawn_counts(draws: int) -> IntArray:
        return split.drawn(
            pairs_in_segments, in_stratum=_pairs_across_in_segments, draws=draws, rng=rng
        )

    p_value, prefix = _resampled_p_value(
        observed_counts, statistics=statistics, drawn_counts=drawn_counts
    )

    return Count(
        p_value=p_value,
        seen=int(observed_counts[: prefix + 1].sum()),
        of=int(prefix_sizes[prefix]),
        expected=float(null_moments.mean[0, prefix]),
    )


def _moments_of_pairs_across(split: Split, pairs_in_segments: IntArray) -> _NullMoments:
    """Return moments of pairs across the parts, in prefixes of pairs.

    Of two records of a stratum with n records, m of them members, just one is a member with
    probability 2 m (n - m) / (n (n - 1)).
    """
    stratum_size = split.sizes[:, None]
    members = split.members[:, None]
    ordered_pairs = stratum_size * (stratum_size - 1)
    probability = 2 * members * (stratum_size - members) / ordered_pairs
    prefix_pairs = pairs_in_segments.cumsum(axis=1)
    mean = (probability * prefix_pairs).sum(axis=0)
    variance = (probability * (1 - probability) * prefix_pairs).sum(axis=0)
    return _NullMoments(mean=mean[None], variance=variance[None])


def _prefix_sizes(largest: int) -> IntArray:
    """Return sizes of prefixes from a few to all, each about as much larger than the last one."""
    smallest = min(_SMALLEST_PREFIX, largest)
    spaced = np.geomspace(smallest, largest, _PREFIXES)
    return np.unique(np.round(spaced).astype(np.int64))


def _segment_of_each_place(prefix_sizes: IntArray) -> IntArray:
    """Return the number of the segment, between two prefixes, that each place lies in."""
    segment_widths = np.diff(prefix_sizes, prepend=0)
    segment_numbers = np.arange(prefix_sizes.size)
    return np.repeat(segment_numbers, segment_widths)


def _members_in_segments(
    widths: IntArray, stratum_size: int, members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw members of each segment of a stratum: a multivariate hypergeometric law."""
    outside_segments = stratum_size - widths.sum()
    counts: IntArray = rng.multivariate_hypergeometric(
        colors=[*widths, outside_segments],
        nsample=int(members),
        size=draws,
        method="marginals",
    )
    return counts[:, :-1]


def _pairs_across_in_segments(
    widths: IntArray, stratum_size: int, members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw pairs of a member and a non-member in each segment of a stratum.

    Given how many members are among the first and among the second records of a segment's pairs,
    both are sets drawn at random: the number of pairs with two members is hypergeometric.
    """
    widths_of_both = np.tile(widths, 2)
    member_counts = _members_in_segments(widths_of_both, stratum_size, members, draws, rng)
    first_members, second_members = np.split(member_counts, 2, axis=1)
    pairs_of_members = rng.hypergeometric(
        ngood=first_members, nbad=widths - first_members, nsample=second_members
    )
    return first_members + second_members - 2 * pairs_of_members


def _resampled_p_value(
    observed_counts: IntArray,
    statistics: Callable[[IntArray], FloatArray],
    drawn_counts: Callable[[int], IntArray],
) -> tuple[float, int]:
    """Return the p-value of the largest statistic, and where it is.

    Draws end when 20 have reached the statistic: with L of them the p-value is 20/L, otherwise one
    more than those that reached it over one more than all (Besag and Clifford 1991). Both are at
    most t with probability t at most, as the real counts and those drawn are exchangeable.
    """
    observed_statistics = statistics(observed_counts[None])[0]
    largest_at = int(observed_statistics.argmax())
    threshold = float(observed_statistics.max()) - _ROUNDING
    most_in_a_batch = max(1, _MOST_DRAWN_AT_ONCE // observed_counts.size)
    exceedances = 0
    total_draws = 0
    batch = _FIRST_BATCH
    while total_draws < DRAWS:
        draws = min(batch, most_in_a_batch, DRAWS - total_draws)
        largest_drawn = statistics(drawn_counts(draws)).max(axis=1)
        exceeding_draws = np.flatnonzero(largest_drawn >= threshold)
        missing = _ENOUGH_EXCEEDANCES - exceedances
        if exceeding_draws.size >= missing:
            last_needed = int(exceeding_draws[missing - 1])
            needed_draws = total_draws + last_needed + 1
            return _ENOUGH_EXCEEDANCES / needed_draws, largest_at
        exceedances += exceeding_draws.size
        total_draws += draws
        batch *= 4
    return (1 + exceedances) / (1 + DRAWS), largest_at
