"""Views of a random split, by which it shows what was done to one part only.

A view puts the audited records into pairs or into an order in which membership has no part: see
`leakbound.propensity.likeness`. If the split was random, every choice of as many
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
        stratum_of_record = np.zeros(member.size, dtype=np.int64)
        if strata is not None:
            _, stratum_of_record = np.unique(strata, return_inverse=True)
        records_of_strata = np.bincount(stratum_of_record)
        members_of_strata = np.bincount(stratum_of_record[member], minlength=records_of_strata.size)
        has_both_classes = (members_of_strata > 0) & (members_of_strata < records_of_strata)
        mixed_strata = np.flatnonzero(has_both_classes)

        random_tie_breaks = rng.random(mixed_strata.size)
        places_by_size = np.lexsort((random_tie_breaks, -records_of_strata[mixed_strata]))
        largest_strata_first = mixed_strata[places_by_size]
        counts_per_draw = np.minimum(records_of_strata[largest_strata_first], 2 * _PREFIXES)
        fits_in_a_draw = np.cumsum(counts_per_draw) <= _MOST_COUNTS_PER_DRAW
        included_strata = largest_strata_first[fits_in_a_draw]

        number_of_included = np.full(records_of_strata.size, -1, dtype=np.int64)
        number_of_included[included_strata] = np.arange(included_strata.size)
        return cls(
            member=member,
            stratum=number_of_included[stratum_of_record],
            sizes=records_of_strata[included_strata],
            members=members_of_strata[included_strata],
        )

    def cells(self, rows: IntArray, cell: IntArray, cells: int) -> IntArray:
        """Count rows of each stratum in each cell, shape (strata, cells)."""
        code_of_stratum_and_cell = self.stratum[rows] * cells + cell
        rows_with_code = np.bincount(code_of_stratum_and_cell, minlength=self.sizes.size * cells)
        return rows_with_code.reshape(-1, cells)

    def drawn(
        self, cells: IntArray, in_stratum: DrawInStratum, draws: int, rng: np.random.Generator
    ) -> IntArray:
        """Draw memberships again, and return a count in each cell, shape (draws, cells)."""
        drawn_counts = np.zeros((draws, cells.shape[1]), dtype=np.int64)
        strata = zip(cells, self.sizes, self.members, strict=True)
        for rows_in_cells, records_of_stratum, members_of_stratum in strata:
            occupied_cells = np.flatnonzero(rows_in_cells)
            if not occupied_cells.size:
                continue
            drawn_counts[:, occupied_cells] += in_stratum(
                rows_in_cells[occupied_cells],
                records_of_stratum,
                members_of_stratum,
                draws,
                rng,
            )
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
        counts_by_end = segment_counts.reshape(-1, *self.mean.shape)
        prefix_counts = counts_by_end.cumsum(axis=2)
        variance_or_infinite = np.where(self.variance > 0, self.variance, np.inf)
        standardised_counts: FloatArray = (prefix_counts - self.mean) / np.sqrt(
            variance_or_infinite
        )
        return standardised_counts.reshape(len(segment_counts), -1)


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
    rows_in_strata = order[split.stratum[order] >= 0]
    half_of_rows = rows_in_strata.size // 2
    if half_of_rows == 0:
        return _NOTHING_TO_COUNT
    # 1. Prefixes of both ends, cut into segments: what a draw counts are members in segments.
    prefix_sizes = _prefix_sizes(half_of_rows)
    number_of_prefixes = prefix_sizes.size
    segment_of_place = _segment_of_each_place(prefix_sizes)
    rows_from_both_ends = np.concatenate(
        [rows_in_strata[:half_of_rows], rows_in_strata[::-1][:half_of_rows]]
    )
    cell_of_row = np.concatenate([segment_of_place, segment_of_place + number_of_prefixes])
    rows_in_cells = split.cells(rows_from_both_ends, cell_of_row, 2 * number_of_prefixes)
    cells_of_members = cell_of_row[split.member[rows_from_both_ends]]
    observed_counts = np.bincount(cells_of_members, minlength=2 * number_of_prefixes)
    null_moments = _moments_of_members(split, rows_in_cells, number_of_prefixes)

    # 2. Test the largest difference of either sign.
    def statistics(counts: IntArray) -> FloatArray:
        return np.abs(null_moments.standardised(counts))

    def drawn_counts(draws: int) -> IntArray:
        return split.drawn(rows_in_cells, in_stratum=_members_in_segments, draws=draws, rng=rng)

    p_value, largest_at = _resampled_p_value(
        observed_counts, statistics=statistics, drawn_counts=drawn_counts
    )

    end_number, prefix_number = divmod(largest_at, number_of_prefixes)
    ends: tuple[End, End] = ("least", "most")
    members_of_end = observed_counts.reshape(2, -1)[end_number]
    return Count(
        p_value=p_value,
        seen=int(members_of_end[: prefix_number + 1].sum()),
        of=int(prefix_sizes[prefix_number]),
        expected=float(null_moments.mean[end_number, prefix_number]),
        end=ends[end_number],
    )


def _moments_of_members(
    split: Split, rows_in_cells: IntArray, number_of_prefixes: int
) -> _NullMoments:
    """Return moments of members in prefixes of both ends: hypergeometric in each stratum.

    Of n records of a stratum, m are members. A prefix with w of the records has w m/n members on
    average, with variance w (m/n) (1 - m/n) (n - w) / (n - 1).
    """
    records_of_stratum = split.sizes[:, None, None]
    share_of_members = (split.members / split.sizes)[:, None, None]
    rows_in_prefixes = rows_in_cells.reshape(-1, 2, number_of_prefixes).cumsum(axis=2)
    mean = share_of_members * rows_in_prefixes
    binomial_variance = share_of_members * (1 - share_of_members) * rows_in_prefixes
    rows_outside_prefixes = records_of_stratum - rows_in_prefixes
    variance = binomial_variance * rows_outside_prefixes / (records_of_stratum - 1)
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
    first_rows, second_rows = pairs[split.stratum[pairs[:, 0]] >= 0].T
    if not first_rows.size:
        return _NOTHING_TO_COUNT
    # 1. Prefixes of the pairs, cut into segments.
    prefix_sizes = _prefix_sizes(first_rows.size)
    number_of_prefixes = prefix_sizes.size
    segment_of_pair = _segment_of_each_place(prefix_sizes)
    pairs_in_segments = split.cells(first_rows, segment_of_pair, number_of_prefixes)
    is_across = split.member[first_rows] != split.member[second_rows]
    observed_counts = np.bincount(segment_of_pair[is_across], minlength=number_of_prefixes)
    null_moments = _moments_of_pairs_across(split, pairs_in_segments)

    # 2. Test the largest deficit.
    def statistics(counts: IntArray) -> FloatArray:
        return -null_moments.standardised(counts)

    def drawn_counts(draws: int) -> IntArray:
        return split.drawn(
            pairs_in_segments, in_stratum=_pairs_across_in_segments, draws=draws, rng=rng
        )

    p_value, prefix_number = _resampled_p_value(
        observed_counts, statistics=statistics, drawn_counts=drawn_counts
    )

    return Count(
        p_value=p_value,
        seen=int(observed_counts[: prefix_number + 1].sum()),
        of=int(prefix_sizes[prefix_number]),
        expected=float(null_moments.mean[0, prefix_number]),
    )


def _moments_of_pairs_across(split: Split, pairs_in_segments: IntArray) -> _NullMoments:
    """Return moments of pairs across the parts, in prefixes of pairs.

    Of two records of a stratum with n records, m of them members, just one is a member with
    probability 2 m (n - m) / (n (n - 1)).
    """
    nonmembers_of_strata = split.sizes - split.members
    ordered_pairs_of_strata = split.sizes * (split.sizes - 1)
    probability_across = 2 * split.members * nonmembers_of_strata / ordered_pairs_of_strata
    variance_of_a_pair = probability_across * (1 - probability_across)
    pairs_in_prefixes = pairs_in_segments.cumsum(axis=1)
    mean = (probability_across[:, None] * pairs_in_prefixes).sum(axis=0)
    variance = (variance_of_a_pair[:, None] * pairs_in_prefixes).sum(axis=0)
    return _NullMoments(mean=mean[None], variance=variance[None])


def _prefix_sizes(largest: int) -> IntArray:
    """Return sizes of prefixes from a few to all, each about as much larger than the last one."""
    smallest = min(_SMALLEST_PREFIX, largest)
    evenly_spaced_in_logarithms = np.geomspace(smallest, largest, _PREFIXES)
    return np.unique(np.round(evenly_spaced_in_logarithms).astype(np.int64))


def _segment_of_each_place(prefix_sizes: IntArray) -> IntArray:
    """Return the number of the segment, between two prefixes, that each place lies in."""
    places_in_segments = np.diff(prefix_sizes, prepend=0)
    return np.repeat(np.arange(prefix_sizes.size), places_in_segments)


def _members_in_segments(
    widths: IntArray, stratum_size: int, members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw members of each segment of a stratum: a multivariate hypergeometric law."""
    records_outside_segments = stratum_size - widths.sum()
    members_inside_and_outside: IntArray = rng.multivariate_hypergeometric(
        colors=[*widths, records_outside_segments],
        nsample=int(members),
        size=draws,
        method="marginals",
    )
    return members_inside_and_outside[:, :-1]


def _pairs_across_in_segments(
    widths: IntArray, stratum_size: int, members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw pairs of a member and a non-member in each segment of a stratum.

    Given how many members are among the first and among the second records of a segment's pairs,
    both are sets drawn at random: the number of pairs with two members is hypergeometric.
    """
    first_and_second_widths = np.tile(widths, 2)
    members_drawn = _members_in_segments(first_and_second_widths, stratum_size, members, draws, rng)
    first_members, second_members = np.split(members_drawn, 2, axis=1)
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
    observed_statistics = statistics(observed_counts[None]).ravel()
    largest_at = int(observed_statistics.argmax())
    threshold = float(observed_statistics[largest_at]) - _ROUNDING
    most_draws_at_once = max(1, _MOST_DRAWN_AT_ONCE // observed_counts.size)
    draws_in_next_batch = _FIRST_BATCH
    previous_draws = 0
    previous_exceedances = 0
    while previous_draws < DRAWS:
        draws = min(draws_in_next_batch, most_draws_at_once, DRAWS - previous_draws)
        largest_statistics = statistics(drawn_counts(draws)).max(axis=1)
        exceeding_draws = np.flatnonzero(largest_statistics >= threshold)
        missing_exceedances = _ENOUGH_EXCEEDANCES - previous_exceedances
        if exceeding_draws.size >= missing_exceedances:
            last_draw_needed = int(exceeding_draws[missing_exceedances - 1])
            draws_needed = previous_draws + last_draw_needed + 1
            return _ENOUGH_EXCEEDANCES / draws_needed, largest_at
        previous_exceedances += exceeding_draws.size
        previous_draws += draws
        draws_in_next_batch *= 4
    return (1 + previous_exceedances) / (1 + DRAWS), largest_at
