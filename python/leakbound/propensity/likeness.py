"""How usual records are and which resemble each other: orders and pairs, free of membership.

Membership has no part in them, and neither has the order in which records are stored.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from leakbound._base.imports import needs
from leakbound._base.types import FloatArray, IntArray
from leakbound.propensity.views import Split

WORDS = 30
"""Values up to which a column counts as words."""
# Bins of a column of numbers: the first and the last are open.
_BINS = 24
# Percentiles between which bins are equally wide.
_TAILS = (0.01, 0.99)
# Nearest records that may become partners.
_NEIGHBOURS = 8
# Columns up to which a k-d tree finds neighbours.
_FLAT = 8
# Rows that are looked at, with a tree and without.
_ROWS_IN_TREE = 200_000
_ROWS = 16_000


def in_order(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return rows by increasing value; those of equal ones are in random order."""
    order: IntArray = np.lexsort((rng.random(values.size), values))
    return order


def usual(features: FloatArray, sources: Sequence[str] = ()) -> FloatArray:
    """Return how usual each row is: its log-likelihood under independent columns.

    Words, and values of a column that has up to 30, have their shares in all rows. Other numbers
    are put into 22 bins of equal width between the 1st and the 99th percentile; one beyond counts
    as the share of rows that are at least as far out. Columns with the same name in `sources`,
    next to each other, are one column of words.
    """
    columns = range(features.shape[1])
    names: Sequence[object] = sources or columns
    total = np.zeros(len(features))
    for _, same in groupby(columns, key=names.__getitem__):
        total += np.log(_share_together(features[:, list(same)]))
    return total


def _share_together(columns: FloatArray) -> FloatArray:
    """Return the share of rows that have the bins of each row in all of a few columns."""
    binned = [_shares(column) for column in columns.T]
    if len(binned) == 1:
        return binned[0][1]
    digests = _digests(np.column_stack([bins for bins, _ in binned]))
    return _of_codes(np.unique(digests, return_inverse=True)[1])


def _shares(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bins of numbers, or the values of a column that has few, and the share of each row."""
    increasing = np.sort(values)
    low, high = np.quantile(increasing, _TAILS)
    different = 1 + np.count_nonzero(np.diff(increasing))
    if different <= WORDS or not low < high:
        return values, _of_codes(np.searchsorted(increasing, values))
    width = (high - low) / (_BINS - 2)
    inner = np.floor(values / width - low / width)
    bins: FloatArray = np.clip(inner + 1, 0, _BINS - 1)
    share = _of_codes(bins.astype(np.int64))
    below = values < low
    above = values > high
    at_most = np.searchsorted(increasing, values[below], "right")
    less = np.searchsorted(increasing, values[above], "left")
    share[below] = at_most / values.size
    share[above] = 1 - less / values.size
    return bins, share


def _of_codes(code: NDArray[np.intp]) -> FloatArray:
    """Return the share of rows that have the same code as each."""
    shares: FloatArray = np.bincount(code)[code] / code.size
    return shares


def _digests(rows: FloatArray) -> NDArray[np.uint64]:
    """Return 64 bits of each row, the same for equal rows."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        without_sign = column + 0.0  # -0.0 becomes 0.0
        mixed = (mixed ^ without_sign.view(np.uint64)) * odd
        mixed ^= mixed >> np.uint64(29)
        mixed = mixed * odd
        mixed ^= mixed >> np.uint64(32)
    return mixed


def ranked(features: FloatArray) -> FloatArray:
    """Return coordinates in which rows resemble each other: standardised ranks of columns.

    Columns of two values are 0 and 1, and constant ones are left out.
    """
    columns = list[FloatArray]()
    for values in features.T:
        known, code, counts = np.unique(values, return_inverse=True, return_counts=True)
        if known.size == 2:
            columns.append(code.astype(np.float64))
        elif known.size > 2:
            columns.append(_standardised_ranks(counts)[code])
    if not columns:
        return np.zeros((len(features), 1))
    return np.column_stack(columns)


def _standardised_ranks(counts: IntArray) -> FloatArray:
    """Return ranks of increasing values that occur so often, in standard deviations of rows."""
    rows = counts.sum()
    ranks = np.cumsum(counts) - (counts - 1) / 2  # the mean of those of equal values
    mean = (counts * ranks).sum() / rows
    variance = (counts * (ranks - mean) ** 2).sum() / rows
    standardised: FloatArray = (ranks - mean) / np.sqrt(variance)
    return standardised


def closest(points: FloatArray, split: Split, rng: np.random.Generator) -> IntArray:
    """Return disjoint pairs of near rows of one stratum each, the closest first.

    Equal rows become partners at random. Of the others, each pair of near rows is taken whose rows
    have no partner yet, by increasing distance, ties at random. Of very many rows those in the
    middle of a random direction are looked at, where nearly all neighbours are kept.
    """
    # In a random order, that of storage has no part in anything.
    order = rng.permutation(np.flatnonzero(split.stratum >= 0))
    points = points[order]
    stratum = split.stratum[order]
    equal = rng.permutation(_equal_pairs(points, stratum))
    free = np.ones(order.size, dtype=np.bool_)
    free[equal] = False
    looked_at = _in_the_middle(np.flatnonzero(free), points, rng)
    near, distances = _near_pairs(looked_at, points, stratum)
    chosen = _disjoint(near, distances, rng)
    together: IntArray = order[np.concatenate([equal, chosen])]
    return together


def _equal_pairs(points: FloatArray, stratum: IntArray) -> IntArray:
    """Return pairs of equal rows: the first with the second, the third with the fourth, …."""
    digest = _digests(np.column_stack([points, stratum]))
    order = np.argsort(digest, kind="stable")
    _, begins, sizes = np.unique(digest[order], return_index=True, return_counts=True)
    place = np.arange(order.size) - np.repeat(begins, sizes)
    last = np.repeat(sizes, sizes) - 1
    first = np.flatnonzero((place % 2 == 0) & (place < last))
    return np.column_stack([order[first], order[first + 1]])


def _in_the_middle(rows: IntArray, points: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return rows in the middle of a random direction, if there are very many."""
    width = points.shape[1]
    most = _ROWS
    if width <= _FLAT:
        most = _ROWS_IN_TREE
    if rows.size <= most:
        return rows
    along = points[rows] @ rng.normal(size=width)
    spare = (rows.size - most) // 2
    middle = np.argsort(along)[spare : spare + most]
    return rows[np.sort(middle)]


def _near_pairs(
    rows: IntArray, points: FloatArray, stratum: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return pairs of each row and its nearest ones, within strata, and their distances."""
    pairs = [np.empty((0, 2), dtype=np.int64)]
    distances = [np.empty(0)]
    by_stratum = rows[np.argsort(stratum[rows], kind="stable")]
    edges = np.flatnonzero(np.diff(stratum[by_stratum])) + 1
    for inside in np.split(by_stratum, edges):
        if inside.size > 1:
            apart, near = _neighbours(points[inside])
            row = np.repeat(inside, near.shape[1])
            pairs.append(np.column_stack([row, inside[near].ravel()]))
            distances.append(apart.ravel())
    return np.concatenate(pairs), np.concatenate(distances)


def _neighbours(points: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return distances of the nearest rows of each row, and which rows they are."""
    count = min(_NEIGHBOURS + 1, len(points))
    with needs("ml", "a challenge of the split"):
        from scipy.spatial import cKDTree
        from sklearn.neighbors import NearestNeighbors
    found: tuple[FloatArray, IntArray]
    if points.shape[1] <= _FLAT:
        found = cKDTree(points).query(points, k=count)
    else:
        search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(points)
        found = search.kneighbors(points)
    return found


def _disjoint(pairs: IntArray, distances: FloatArray, rng: np.random.Generator) -> IntArray:
    """Take pairs by increasing distance, each if neither of its rows is taken yet."""
    different = pairs[:, 0] != pairs[:, 1]
    distances = distances[different]
    rank = np.lexsort((rng.random(distances.size), distances))
    by_distance = np.sort(pairs[different], axis=1)[rank]
    left = by_distance
    place = np.arange(rank.size)
    taken = np.empty(0, dtype=np.int64)
    # A pair that is the first of both its rows is taken by whoever takes pairs one by one.
    while place.size:
        number = np.arange(place.size)
        first = np.full(int(left.max()) + 1, place.size, dtype=np.int64)
        np.minimum.at(first, left.ravel(), np.repeat(number, 2))
        chosen = (first[left] == number[:, None]).all(axis=1)
        taken = np.append(taken, place[chosen])
        used = np.zeros(first.size, dtype=np.bool_)
        used[left[chosen]] = True
        free = ~used[left].any(axis=1)
        left = left[free]
        place = place[free]
    return by_distance[np.sort(taken)]
