"""Views of a random split, by which it shows what was done to one part only.

A view puts the audited records into pairs or into an order in which membership has no part: pairs
of records that resemble each other, or records from the least to the most usual one. If the split
was random, every choice of as many members within each stratum was as likely as the real one. So a
count of members has a known law, and its p-value compares it with counts of memberships that are
drawn again. Only counts are drawn, by (multivariate) hypergeometric laws: no row is permuted.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.imports import needs
from leakbound._base.types import BoolArray, FloatArray, IntArray

DRAWS = 19_999
"""Memberships that are drawn again at most."""
# Draws that reach the statistic, after which no more are needed.
_ENOUGH = 20
# Draws at first; each later batch is four times as large.
_FIRST = 100
# Prefixes of an order or of pairs: their number, and the smallest.
_PREFIXES, _SMALLEST = 14, 8
# Counts of a draw at most: with more, strata are left out, the smallest first.
_COUNTS = 4096
# Numbers that are drawn at once at most.
_AT_ONCE = 2**20
# Values up to which a column counts as words.
_WORDS = 30
# Bins of a column of numbers, and the percentiles between which they are equally wide.
_BINS, _TAILS = 24, (0.01, 0.99)
# Nearest records that may become partners.
_NEIGHBOURS = 8
# Columns up to which a k-d tree finds neighbours, and rows that are looked at, with it and without.
_FLAT, _ROWS_IN_TREE, _ROWS = 8, 200_000, 16_000
# Classes of labels; rarer ones are one together.
_CLASSES = 20
# Rows that labels are learnt from at least: of fewer no model learns what is surprising.
_LESSONS = 100
# Trees of the forest that learns labels, rows that each learns from, and rows it is asked about.
_TREES, _LEARNT_FROM, _ASKED = 100, 4_000, 20_000
# Folds of the rows in which a linear model learns them.
_FOLDS = 5
# Standard deviations beyond which a feature counts as there.
_FARTHEST = 10.0
# Probability of a label below which all are equally surprising.
_RARE = 1e-3

End: TypeAlias = Literal["least", "most"]


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
        if strata is None:
            stratum = np.zeros(member.size, dtype=np.int64)
        else:
            stratum = np.unique(strata, return_inverse=True)[1].astype(np.int64)
        sizes = np.bincount(stratum)
        members = np.bincount(stratum, member).astype(np.int64)
        mixed = np.flatnonzero((members > 0) & (members < sizes))
        ranked = mixed[np.lexsort((rng.random(mixed.size), -sizes[mixed]))]
        counts = np.cumsum(np.minimum(sizes[ranked], 2 * _PREFIXES))
        kept = ranked[(counts <= _COUNTS) | (np.arange(ranked.size) == 0)]
        number = np.full(sizes.size, -1, dtype=np.int64)
        number[kept] = np.arange(kept.size)
        return cls(member, number[stratum], sizes[kept], members[kept])

    def cells(self, rows: IntArray, cell: IntArray, cells: int) -> IntArray:
        """Count rows of each stratum in each cell."""
        code = self.stratum[rows] * cells + cell
        counts = np.bincount(code, minlength=self.sizes.size * cells)
        table: IntArray = counts.reshape(self.sizes.size, cells).astype(np.int64)
        return table


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
    ends = _prefixes(half)
    segment = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    rows = np.concatenate([order[:half], order[::-1][:half]])
    cell = np.concatenate([segment, segment + ends.size])
    table = split.cells(rows, cell, 2 * ends.size)
    inside = split.member[rows]
    found = np.bincount(cell[inside], minlength=2 * ends.size)
    # 2. Mean and variance of members in each prefix, given the members of each stratum.
    parts = table.reshape(split.sizes.size, 2, ends.size).cumsum(axis=2)
    size, share = split.sizes[:, None, None], (split.members / split.sizes)[:, None, None]
    mean = (share * parts).sum(axis=0)
    spread = share * (1 - share) * parts * (size - parts) / (size - 1)
    deviation = _roots(spread.sum(axis=0))

    def distances(counts: IntArray) -> FloatArray:
        prefixes = counts.reshape(-1, 2, ends.size).cumsum(axis=2)
        values: FloatArray = (np.abs(prefixes - mean) / deviation).reshape(len(counts), -1)
        return values

    # 3. Members of each segment again, of each stratum: a multivariate hypergeometric law.
    def drawn(draws: int) -> IntArray:
        counts = np.zeros((draws, 2 * ends.size), dtype=np.int64)
        for row, size, members in zip(table, split.sizes, split.members, strict=True):
            there = np.flatnonzero(row)
            if there.size:
                colours = [*row[there], size - row.sum()]
                counts[:, there] += _hypergeometric(colours, members, draws, rng)[:, :-1]
        return counts

    p_value, best = _tested(found, distances, drawn)
    side, prefix = divmod(best, ends.size)
    seen = int(found.reshape(2, -1)[side, : prefix + 1].sum())
    end: End = "most" if side else "least"
    return Count(p_value, seen, int(ends[prefix]), float(mean[side, prefix]), end)


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
    ends = _prefixes(len(pairs))
    cell = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    table = split.cells(pairs[:, 0], cell, ends.size)
    apart = split.member[pairs[:, 0]] != split.member[pairs[:, 1]]
    found = np.bincount(cell[apart], minlength=ends.size)
    # 2. Of two records of a stratum with n records, m of them members, just one is a member with
    #    probability 2 m (n - m) / (n (n - 1)).
    size, members = split.sizes, split.members
    chance = (2 * members * (size - members) / (size * (size - 1)))[:, None]
    parts = table.cumsum(axis=1)
    mean = (chance * parts).sum(axis=0)
    deviation = _roots((chance * (1 - chance) * parts).sum(axis=0))

    def deficits(counts: IntArray) -> FloatArray:
        values: FloatArray = (mean - counts.cumsum(axis=1)) / deviation
        return values

    # 3. Members among the first and among the second records of a segment's pairs: given these
    #    numbers both are sets drawn at random, and the pairs with two members hypergeometric.
    def drawn(draws: int) -> IntArray:
        counts = np.zeros((draws, ends.size), dtype=np.int64)
        for row, size, members in zip(table, split.sizes, split.members, strict=True):
            there = np.flatnonzero(row)
            if there.size:
                width = row[there]
                colours = [*width, *width, size - 2 * row.sum()]
                found = _hypergeometric(colours, members, draws, rng)
                one, other = found[:, : there.size], found[:, there.size : -1]
                both = rng.hypergeometric(one, width - one, other)
                counts[:, there] += one + other - 2 * both
        return counts

    p_value, best = _tested(found, deficits, drawn)
    seen = int(found[: best + 1].sum())
    return Count(p_value, seen, int(ends[best]), float(mean[best]))


def _prefixes(most: int) -> IntArray:
    """Return sizes of prefixes from a few to all, each about as much larger than the last one."""
    spaced = np.round(np.geomspace(min(_SMALLEST, most), most, _PREFIXES))
    sizes: IntArray = np.unique(spaced.astype(np.int64))
    return sizes


def _roots(variances: FloatArray) -> FloatArray:
    """Return standard deviations, infinite where nothing varies: nothing is said there."""
    deviations: FloatArray = np.sqrt(np.where(variances > 0, variances, np.inf))
    return deviations


def _hypergeometric(
    colours: Sequence[int], members: int, draws: int, rng: np.random.Generator
) -> IntArray:
    """Draw how many of each colour are among so many members."""
    counts: IntArray = rng.multivariate_hypergeometric(
        colours, int(members), draws, method="marginals"
    )
    return counts


def _tested(
    found: IntArray, statistics: Callable[[IntArray], FloatArray], drawn: Callable[[int], IntArray]
) -> tuple[float, int]:
    """Return the p-value of the largest statistic, and where it is.

    Draws end when 20 have reached the statistic: with L of them the p-value is 20/L, otherwise one
    more than those that reached it over one more than all (Besag and Clifford 1991). Both are at
    most t with probability t at most, as the real counts and those drawn are exchangeable.
    """
    values = statistics(found[None])[0]
    # A draw with equal counts reaches it, however sums are rounded.
    largest = float(values.max()) - 1e-9
    most = max(1, _AT_ONCE // found.size)
    reached, done, batch = 0, 0, _FIRST
    while done < DRAWS:
        draws = min(batch, most, DRAWS - done)
        hits = np.flatnonzero(statistics(drawn(draws)).max(axis=1) >= largest)
        if reached + hits.size >= _ENOUGH:
            needed = done + int(hits[_ENOUGH - reached - 1]) + 1
            return _ENOUGH / needed, int(values.argmax())
        reached, done, batch = reached + hits.size, done + draws, 4 * batch
    return (1 + reached) / (1 + DRAWS), int(values.argmax())


# --- orders and pairs of records, free of membership ----------------------------------------------


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
    total = np.zeros(len(features))
    names = list(sources) if sources else list(range(features.shape[1]))
    begins = [k for k in range(len(names)) if k == 0 or names[k] != names[k - 1]]
    for begin, end in zip(begins, [*begins[1:], len(names)], strict=True):
        parts = [_shares(column) for column in features[:, begin:end].T]
        share = parts[0][1]
        if len(parts) > 1:
            share = _of_codes(_codes(np.column_stack([values for values, _ in parts])))
        total += np.log(share)
    return total


def _shares(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bins of numbers, or the values of a column that has few, and the share of each row."""
    increasing = np.sort(values)
    low, high = np.quantile(increasing, _TAILS)
    if 1 + np.count_nonzero(np.diff(increasing)) <= _WORDS or not low < high:
        return values, _of_codes(np.searchsorted(increasing, values))
    width = (high - low) / (_BINS - 2)
    bins: FloatArray = np.clip(np.floor(values / width - low / width) + 1, 0, _BINS - 1)
    share = _of_codes(bins.astype(np.int64))
    below, above = values < low, values > high
    share[below] = np.searchsorted(increasing, values[below], "right") / values.size
    share[above] = 1 - np.searchsorted(increasing, values[above], "left") / values.size
    return bins, share


def _of_codes(code: IntArray) -> FloatArray:
    """Return the share of rows that have the same code as each."""
    shares: FloatArray = np.bincount(code)[code] / code.size
    return shares


def _codes(rows: FloatArray) -> IntArray:
    """Return numbers of rows: equal rows have the same one."""
    return np.unique(_digests(rows), return_inverse=True)[1].astype(np.int64)


def _digests(rows: FloatArray) -> NDArray[np.uint64]:
    """Return 64 bits of each row, the same for equal rows."""
    odd, mixed = np.uint64(0x9E3779B97F4A7C15), np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        bits = np.ascontiguousarray(column + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        mixed = (mixed ^ bits) * odd
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
        ranks = np.cumsum(counts) - (counts - 1) / 2  # the mean of those of equal values
        if known.size == 2:
            columns.append(code.astype(np.float64))
        elif known.size > 2:
            mean = (counts * ranks).sum() / values.size
            spread = np.sqrt((counts * (ranks - mean) ** 2).sum() / values.size)
            columns.append(((ranks - mean) / spread)[code])
    return np.column_stack(columns) if columns else np.zeros((len(features), 1))


def closest(points: FloatArray, split: Split, rng: np.random.Generator) -> IntArray:
    """Return disjoint pairs of near rows of one stratum each, the closest first.

    Equal rows become partners at random. Of the others, each pair of near rows is taken whose rows
    have no partner yet, by increasing distance, ties at random. Of very many rows those in the
    middle of a random direction are looked at, where nearly all neighbours are kept.
    """
    # 1. In a random order, that of storage has no part in anything.
    order = rng.permutation(np.flatnonzero(split.stratum >= 0))
    points, stratum = points[order], split.stratum[order]
    # 2. Equal rows: the first with the second, the third with the fourth, ….
    digest = _digests(np.column_stack([points, stratum]))
    by_digest = np.argsort(digest, kind="stable")
    begins = np.flatnonzero(np.diff(digest[by_digest], prepend=~digest[by_digest[:1]]))
    sizes = np.diff(begins, append=digest.size)
    place = np.arange(digest.size) - np.repeat(begins, sizes)
    first = np.flatnonzero((place % 2 == 0) & (place + 1 < np.repeat(sizes, sizes)))
    equal = np.column_stack([by_digest[first], by_digest[first + 1]])
    equal = rng.permutation(equal)
    # 3. The others: candidates are each row's nearest ones, within strata.
    free = np.ones(digest.size, dtype=np.bool_)
    free[equal] = False
    rows = np.flatnonzero(free)
    most = _ROWS_IN_TREE if points.shape[1] <= _FLAT else _ROWS
    if rows.size > most:
        along = points[rows] @ rng.normal(size=points.shape[1])
        spare = (rows.size - most) // 2
        rows = rows[np.sort(np.argsort(along)[spare : spare + most])]
    one, other, apart = list[IntArray](), list[IntArray](), list[FloatArray]()
    by_stratum = rows[np.argsort(stratum[rows], kind="stable")]
    edges = np.flatnonzero(np.diff(stratum[by_stratum])) + 1
    for inside in np.split(by_stratum, edges):
        if inside.size > 1:
            distances, near = _neighbours(points[inside])
            one.append(np.repeat(inside, near.shape[1]))
            other.append(inside[near].ravel())
            apart.append(distances.ravel())
    if not one:
        return order[equal]
    near = np.column_stack([np.concatenate(one), np.concatenate(other)])
    chosen = _disjoint(near, np.concatenate(apart), rng)
    together: IntArray = order[np.concatenate([equal, chosen])]
    return together


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
    once = pairs[:, 0] < pairs[:, 1]
    twice = pairs[:, 0] > pairs[:, 1]
    pairs = np.where(once[:, None], pairs, pairs[:, ::-1])[once | twice]
    distances = distances[once | twice]
    rank = np.lexsort((rng.random(distances.size), distances))
    left, taken = pairs[rank], list[IntArray]()
    place = np.arange(len(left))
    # A pair that is the first of both its rows is taken by whoever takes pairs one by one.
    while len(left):
        first = np.full(int(left.max()) + 1, len(left), dtype=np.int64)
        np.minimum.at(first, left.ravel(), np.repeat(np.arange(len(left)), 2))
        chosen = (first[left] == np.arange(len(left))[:, None]).all(axis=1)
        taken.append(np.column_stack([place[chosen], left[chosen]]))
        used = np.zeros(first.size, dtype=np.bool_)
        used[left[chosen]] = True
        open_ = ~used[left].any(axis=1)
        left, place = left[open_], place[open_]
    if not taken:
        return np.empty((0, 2), dtype=np.int64)
    together = np.concatenate(taken)
    return together[np.argsort(together[:, 0]), 1:]


def surprising(
    features: FloatArray, labels: NDArray[np.generic], rng: np.random.Generator
) -> FloatArray | None:
    """Return how surprising the label of each row is; NaN where it was not asked.

    A random forest and a linear model learn labels from standardised features, of all rows
    together and without membership: such models clean labels, too. Asked about each row are the
    trees that have not learnt from it, and a linear model of other rows. The answer is minus the
    logarithm of the mean of the label's two probabilities or, where labels are numbers with many
    values, the distance of the label's rank from the mean of two forecasts. None if labels have one
    value, or are mostly different words, or if there are fewer than 100 rows to learn from.
    """
    if labels.size < _LESSONS:
        return None
    values, code = np.unique(labels, return_inverse=True)
    numbers = labels.dtype.kind in "biuf" and values.size > _WORDS
    if values.size < 2 or (not numbers and 2 * values.size > code.size):
        return None
    with needs("ml", "a challenge of the split"):
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
        from sklearn.linear_model import LogisticRegression, Ridge
    # In a random order, that of storage has no part in what is learnt.
    asked = rng.permutation(code.size)[:_ASKED]
    how = {
        "n_estimators": _TREES,
        "min_samples_leaf": 3,
        "bootstrap": True,
        "max_samples": min(asked.size, _LEARNT_FROM),
        "oob_score": True,
        "random_state": int(rng.integers(2**31)),
    }
    known = _standardised(features)[asked].astype(np.float32)
    surprise = np.full(code.size, np.nan)
    if numbers:
        target = code[asked] / values.size
        forest = RandomForestRegressor(**how).fit(known, target)
        answers = (forest.oob_prediction_ + _in_folds(Ridge(), known, target)) / 2
        surprise[asked] = np.abs(target - answers)
        return surprise
    common = np.argsort(-np.bincount(code), kind="stable")[:_CLASSES]
    place = np.full(values.size, common.size)
    place[common] = np.arange(common.size)
    target = np.unique(place[code[asked]], return_inverse=True)[1]
    if target.max() == 0:
        return None
    forest = RandomForestClassifier(**how).fit(known, target)
    linear = _in_folds(LogisticRegression(max_iter=200), known, target)
    chances = (forest.oob_decision_function_ + linear) / 2
    chance = chances[np.arange(asked.size), target]
    surprise[asked] = -np.log(np.maximum(chance, _RARE))
    return surprise


def _standardised(features: FloatArray) -> FloatArray:
    """Return columns in standard deviations from their means, at most ten of them."""
    largest = np.abs(features).max(axis=0)
    shares = features / np.where(largest > 0, largest, 1.0)  # squares of these are finite
    spread = shares.std(axis=0)
    apart = (shares - shares.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    clipped: FloatArray = np.clip(apart, -_FARTHEST, _FARTHEST)
    return clipped


def _in_folds(model: Any, known: NDArray[np.float32], target: NDArray[Any]) -> NDArray[Any]:
    """Return what a model of other rows answers about each: forecasts, or chances of classes."""
    classes = target.dtype.kind in "iu"
    answers = np.zeros((target.size, int(target.max()) + 1) if classes else target.size)
    folds = np.array_split(np.arange(target.size), _FOLDS)
    for fold in folds:
        others = np.setdiff1d(np.arange(target.size), fold)[:_LEARNT_FROM]
        if not fold.size or np.unique(target[others]).size < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that end early: the model is one of many
            fitted = model.fit(known[others], target[others])
        if classes:
            answers[np.ix_(fold, fitted.classes_)] = fitted.predict_proba(known[fold])
        else:
            answers[fold] = fitted.predict(known[fold])
    return answers
