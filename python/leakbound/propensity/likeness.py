"""How usual records are and which resemble each other: orders and pairs, free of membership.

Membership has no part in them, and neither has the order in which records are stored.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from leakbound._base.imports import needs
from leakbound._base.types import FloatArray, IntArray
from leakbound.propensity.split_views import Split

WORDS = 30
"""Values up to which a column counts as words."""
# Bins of a column of numbers: the first and the last are open.
_HISTOGRAM_BINS = 24
# Quantiles between which bins are equally wide.
_HISTOGRAM_QUANTILES = (0.01, 0.99)
# Nearest records that may become partners.
_NEAREST_NEIGHBOURS = 8
# Columns up to which a k-d tree finds neighbours.
_MOST_COLUMNS_OF_TREE = 8
# Rows that are looked at, with a tree and without.
_MOST_ROWS_OF_TREE = 200_000
_MOST_ROWS_BRUTE_FORCE = 16_000


def in_order(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return rows by increasing value; those of equal ones are in random order."""
    random_tie_breaks = rng.random(values.size)
    order: IntArray = np.lexsort((random_tie_breaks, values))
    return order


def usual(features: FloatArray, sources: Sequence[str] = ()) -> FloatArray:
    """Return how usual each row is: its log-likelihood under independent columns.

    Words, and values of a column that has up to 30, have their shares in all rows. Other numbers
    are put into 22 bins of equal width between the 1st and the 99th percentile; one beyond counts
    as the share of rows that are at least as far out. Columns with the same name in `sources`,
    next to each other, are one column of words.
    """
    column_numbers = range(features.shape[1])
    source_of_column: Sequence[object] = sources or column_numbers
    log_likelihoods = np.zeros(len(features))
    for _, same_source in groupby(column_numbers, key=source_of_column.__getitem__):
        columns = features[:, list(same_source)]
        log_likelihoods += np.log(_joint_frequencies(columns))
    return log_likelihoods


def _joint_frequencies(columns: FloatArray) -> FloatArray:
    """Return the share of rows that have the bins of each row in all of a few columns."""
    bins_of_columns = list[FloatArray]()
    for column in columns.T:
        bins, frequencies = _bins_and_frequencies(column)
        bins_of_columns.append(bins)
    if len(bins_of_columns) == 1:
        return frequencies
    hashes = _row_hashes(np.column_stack(bins_of_columns))
    _, codes = np.unique(hashes, return_inverse=True)
    return _frequencies_of_codes(codes)


def _bins_and_frequencies(column: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bins of numbers, or the values of a column that has few, and the share of each row."""
    increasing = np.sort(column)
    lowest_edge, highest_edge = np.quantile(increasing, _HISTOGRAM_QUANTILES)
    distinct_values = 1 + np.count_nonzero(np.diff(increasing))
    if distinct_values <= WORDS or not lowest_edge < highest_edge:
        first_places = np.searchsorted(increasing, column)
        return column, _frequencies_of_codes(first_places)
    bin_width = (highest_edge - lowest_edge) / (_HISTOGRAM_BINS - 2)
    inner_bin = np.floor(column / bin_width - lowest_edge / bin_width)
    bins: FloatArray = np.clip(inner_bin + 1, 0, _HISTOGRAM_BINS - 1)
    frequencies = _frequencies_of_codes(bins.astype(np.int64))

    # In the tails: the share of rows that are at least as far out.
    in_left_tail = column < lowest_edge
    in_right_tail = column > highest_edge
    rows_at_most = np.searchsorted(increasing, column[in_left_tail], side="right")
    rows_below = np.searchsorted(increasing, column[in_right_tail], side="left")
    frequencies[in_left_tail] = rows_at_most / column.size
    frequencies[in_right_tail] = 1 - rows_below / column.size
    return bins, frequencies


def _frequencies_of_codes(codes: NDArray[np.intp]) -> FloatArray:
    """Return the share of rows that have the same code as each."""
    rows_with_code = np.bincount(codes)
    frequencies: FloatArray = rows_with_code[codes] / codes.size
    return frequencies


def _row_hashes(rows: FloatArray) -> NDArray[np.uint64]:
    """Return a hash of 64 bits of each row, the same for equal rows.

    The bits of each number are mixed in by multiplying and shifting (an xorshift multiply hash).
    """
    odd_multiplier = np.uint64(0x9E3779B97F4A7C15)
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        without_negative_zero = column + 0.0
        bits = without_negative_zero.view(np.uint64)
        hashes = (hashes ^ bits) * odd_multiplier
        hashes ^= hashes >> np.uint64(29)
        hashes = hashes * odd_multiplier
        hashes ^= hashes >> np.uint64(32)
    return hashes


def ranked(features: FloatArray) -> FloatArray:
    """Return coordinates in which rows resemble each other: standardised ranks of columns.

    Columns of two values are 0 and 1, and constant ones are left out.
    """
    coordinates = list[FloatArray]()
    for column in features.T:
        distinct_values, value_codes, value_counts = np.unique(
            column, return_inverse=True, return_counts=True
        )
        if distinct_values.size == 2:
            coordinates.append(value_codes.astype(np.float64))
        elif distinct_values.size > 2:
            ranks_of_values = _standardised_midranks(value_counts)
            coordinates.append(ranks_of_values[value_codes])
    if not coordinates:
        return np.zeros((len(features), 1))
    return np.column_stack(coordinates)


def _standardised_midranks(value_counts: IntArray) -> FloatArray:
    """Return ranks of increasing values that occur so often, in standard deviations of rows.

    The rank of a value is the mean of the ranks that its rows would have without ties.
    """
    rows = value_counts.sum()
    last_ranks = np.cumsum(value_counts)
    midranks = last_ranks - (value_counts - 1) / 2
    mean = (value_counts * midranks).sum() / rows
    squared_deviations = (midranks - mean) ** 2
    variance = (value_counts * squared_deviations).sum() / rows
    standardised: FloatArray = (midranks - mean) / np.sqrt(variance)
    return standardised


def closest(points: FloatArray, split: Split, rng: np.random.Generator) -> IntArray:
    """Return disjoint pairs of near rows of one stratum each, the closest first.

    Equal rows become partners at random. Of the others, each pair of near rows is taken whose rows
    have no partner yet, by increasing distance, ties at random. Of very many rows those in the
    middle of a random direction are looked at, where nearly all neighbours are kept.
    """
    # In a random order, that of storage has no part in anything.
    rows_in_strata = np.flatnonzero(split.stratum >= 0)
    shuffled_rows = rng.permutation(rows_in_strata)
    points = points[shuffled_rows]
    stratum = split.stratum[shuffled_rows]

    pairs_of_equals = _pairs_of_equal_rows(points, stratum)
    pairs_of_equals = rng.permutation(pairs_of_equals)
    without_partner = np.ones(shuffled_rows.size, dtype=np.bool_)
    without_partner[pairs_of_equals] = False
    candidate_rows = np.flatnonzero(without_partner)
    candidate_rows = _rows_in_the_middle(candidate_rows, points, rng)
    neighbour_pairs, neighbour_distances = _nearest_neighbour_pairs(candidate_rows, points, stratum)
    pairs_of_neighbours = _greedy_disjoint_pairs(neighbour_pairs, neighbour_distances, rng)
    all_pairs = np.concatenate([pairs_of_equals, pairs_of_neighbours])
    pairs_of_rows: IntArray = shuffled_rows[all_pairs]
    return pairs_of_rows


def _pairs_of_equal_rows(points: FloatArray, stratum: IntArray) -> IntArray:
    """Return pairs of equal rows: the first with the second, the third with the fourth, …."""
    hashes = _row_hashes(np.column_stack([points, stratum]))
    by_hash = np.argsort(hashes, kind="stable")
    _, group_starts, group_sizes = np.unique(hashes[by_hash], return_index=True, return_counts=True)
    start_of_own_group = np.repeat(group_starts, group_sizes)
    size_of_own_group = np.repeat(group_sizes, group_sizes)
    place_in_group = np.arange(by_hash.size) - start_of_own_group
    has_successor = place_in_group < size_of_own_group - 1
    first_of_pair = np.flatnonzero((place_in_group % 2 == 0) & has_successor)
    return np.column_stack([by_hash[first_of_pair], by_hash[first_of_pair + 1]])


def _rows_in_the_middle(rows: IntArray, points: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return rows in the middle of a random direction, if there are very many."""
    columns = points.shape[1]
    most_rows = _MOST_ROWS_BRUTE_FORCE
    if columns <= _MOST_COLUMNS_OF_TREE:
        most_rows = _MOST_ROWS_OF_TREE
    if rows.size <= most_rows:
        return rows
    random_direction = rng.normal(size=columns)
    projections = points[rows] @ random_direction
    skipped_at_each_end = (rows.size - most_rows) // 2
    by_projection = np.argsort(projections)
    middle = by_projection[skipped_at_each_end : skipped_at_each_end + most_rows]
    return rows[np.sort(middle)]


def _nearest_neighbour_pairs(
    rows: IntArray, points: FloatArray, stratum: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return pairs of each row and its nearest ones, within strata, and their distances."""
    pairs = [np.empty((0, 2), dtype=np.int64)]
    distances = [np.empty(0)]
    by_stratum = rows[np.argsort(stratum[rows], kind="stable")]
    stratum_changes = np.flatnonzero(np.diff(stratum[by_stratum]))
    for rows_of_stratum in np.split(by_stratum, stratum_changes + 1):
        if rows_of_stratum.size < 2:
            continue
        neighbour_distances, neighbours = _nearest_neighbours(points[rows_of_stratum])
        row = np.repeat(rows_of_stratum, neighbours.shape[1])
        neighbour = rows_of_stratum[neighbours].ravel()
        pairs.append(np.column_stack([row, neighbour]))
        distances.append(neighbour_distances.ravel())
    return np.concatenate(pairs), np.concatenate(distances)


def _nearest_neighbours(points: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return distances of the nearest rows of each row, and which rows they are."""
    with needs("ml", "a challenge of the split"):
        from scipy.spatial import cKDTree
        from sklearn.neighbors import NearestNeighbors
    # A row is mostly its own nearest neighbour.
    neighbours = min(_NEAREST_NEIGHBOURS + 1, len(points))
    found: tuple[FloatArray, IntArray]
    if points.shape[1] <= _MOST_COLUMNS_OF_TREE:
        tree = cKDTree(points)
        found = tree.query(points, k=neighbours)
    else:
        brute_force = NearestNeighbors(n_neighbors=neighbours, algorithm="brute")
        found = brute_force.fit(points).kneighbors(points)
    return found


def _greedy_disjoint_pairs(
    pairs: IntArray, distances: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Take pairs by increasing distance, each if neither of its rows is taken yet."""
    first_rows, second_rows = pairs.T
    of_different_rows = first_rows != second_rows
    by_distance = in_order(distances[of_different_rows], rng)
    increasing_rows = np.sort(pairs[of_different_rows], axis=1)
    sorted_pairs = increasing_rows[by_distance]
    remaining_pairs = sorted_pairs
    remaining_places = np.arange(by_distance.size)
    taken_places = np.empty(0, dtype=np.int64)
    # A pair that is the first of both its rows is taken by whoever takes pairs one by one.
    while remaining_places.size:
        pair_numbers = np.arange(remaining_places.size)
        rows = int(remaining_pairs.max()) + 1
        first_pair_of_row = np.full(rows, remaining_places.size, dtype=np.int64)
        np.minimum.at(first_pair_of_row, remaining_pairs.ravel(), np.repeat(pair_numbers, 2))
        is_first_of_row = first_pair_of_row[remaining_pairs] == pair_numbers[:, None]
        is_taken = is_first_of_row.all(axis=1)
        taken_places = np.append(taken_places, remaining_places[is_taken])

        has_partner = np.zeros(rows, dtype=np.bool_)
        has_partner[remaining_pairs[is_taken]] = True
        is_free = ~has_partner[remaining_pairs].any(axis=1)
        remaining_pairs = remaining_pairs[is_free]
        remaining_places = remaining_places[is_free]
    return sorted_pairs[np.sort(taken_places)]
