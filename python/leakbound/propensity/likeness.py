"""How usual records and their labels are, and which records resemble each other.

Membership has no part in orders and pairs, and neither has the order in which records are stored.
"""

import warnings
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.imports import needs
from leakbound._base.types import AnyArray, FloatArray, IntArray
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
    rows_by_increasing_value: IntArray = np.lexsort((random_tie_breaks, values))
    return rows_by_increasing_value


def usual(features: FloatArray, sources: Sequence[str] = ()) -> FloatArray:
    """Return how usual each row is: its log-likelihood under independent columns.

    Words, and values of a column that has up to 30, have their shares in all rows. Other numbers
    are put into 22 bins of equal width between the 1st and the 99th percentile; one beyond counts
    as the share of rows that are at least as far out. Columns with the same name in `sources`,
    next to each other, are one column of words.
    """
    numbers_of_columns = range(features.shape[1])
    source_of_column: Sequence[object] = sources or numbers_of_columns
    log_likelihoods = np.zeros(len(features))
    for _, columns_with_source in groupby(numbers_of_columns, key=source_of_column.__getitem__):
        columns_of_source = features[:, list(columns_with_source)]
        log_likelihoods += np.log(_joint_frequencies(columns_of_source))
    return log_likelihoods


def _joint_frequencies(columns: FloatArray) -> FloatArray:
    """Return the share of rows that have the bins of each row in all of a few columns."""
    bins_of_columns = list[FloatArray]()
    for column in columns.T:
        histogram_bins, frequencies_in_column = _bins_and_frequencies(column)
        bins_of_columns.append(histogram_bins)
    if len(bins_of_columns) == 1:
        return frequencies_in_column
    hashes_of_bins = _row_hashes(np.column_stack(bins_of_columns))
    _, code_of_each_row = np.unique(hashes_of_bins, return_inverse=True)
    return _frequencies_of_codes(code_of_each_row)


def _bins_and_frequencies(column: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bins of numbers, or the values of a column that has few, and the share of each row."""
    increasing_values = np.sort(column)
    lowest_edge, highest_edge = np.quantile(increasing_values, _HISTOGRAM_QUANTILES)
    value_changes = np.count_nonzero(np.diff(increasing_values))
    if value_changes < WORDS or not lowest_edge < highest_edge:
        first_place_of_value = np.searchsorted(increasing_values, column)
        return column, _frequencies_of_codes(first_place_of_value)
    histogram_bins = _histogram_bins(column, lowest_edge, highest_edge)
    frequencies_of_rows = _frequencies_of_codes(histogram_bins.astype(np.int64))

    # In the tails: the share of rows that are at least as far out.
    is_in_left_tail = column < lowest_edge
    rows_at_least_as_far_left = np.searchsorted(
        increasing_values, column[is_in_left_tail], side="right"
    )
    frequencies_of_rows[is_in_left_tail] = rows_at_least_as_far_left / column.size
    is_in_right_tail = column > highest_edge
    rows_less_far_right = np.searchsorted(increasing_values, column[is_in_right_tail], side="left")
    frequencies_of_rows[is_in_right_tail] = 1 - rows_less_far_right / column.size
    return histogram_bins, frequencies_of_rows


def _histogram_bins(column: FloatArray, lowest_edge: float, highest_edge: float) -> FloatArray:
    """Return the bin of each number: of equal width between the edges, and open beyond them."""
    bin_width = (highest_edge - lowest_edge) / (_HISTOGRAM_BINS - 2)
    widths_above_lowest_edge = column / bin_width - lowest_edge / bin_width
    bin_numbers = np.floor(widths_above_lowest_edge) + 1
    histogram_bins: FloatArray = np.clip(bin_numbers, 0, _HISTOGRAM_BINS - 1)
    return histogram_bins


def _frequencies_of_codes(code_of_each_row: NDArray[np.intp]) -> FloatArray:
    """Return the share of rows that have the same code as each."""
    rows_with_code = np.bincount(code_of_each_row)
    frequencies_of_rows: FloatArray = rows_with_code[code_of_each_row] / code_of_each_row.size
    return frequencies_of_rows


def _row_hashes(rows: FloatArray) -> NDArray[np.uint64]:
    """Return a hash of 64 bits of each row, the same for equal rows.

    The bits of each number are mixed in by multiplying and shifting (an xorshift multiply hash).
    """
    odd_multiplier = np.uint64(0x9E3779B97F4A7C15)
    hashes_of_rows = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        without_negative_zero = column + 0.0
        hashes_of_rows ^= without_negative_zero.view(np.uint64)
        hashes_of_rows *= odd_multiplier
        hashes_of_rows ^= hashes_of_rows >> np.uint64(29)
        hashes_of_rows *= odd_multiplier
        hashes_of_rows ^= hashes_of_rows >> np.uint64(32)
    return hashes_of_rows


def ranked(features: FloatArray) -> FloatArray:
    """Return coordinates in which rows resemble each other: standardised ranks of columns.

    Columns of two values are 0 and 1, and constant ones are left out.
    """
    coordinates_of_rows = list[FloatArray]()
    for column in features.T:
        distinct_values, value_of_each_row, rows_of_values = np.unique(
            column, return_inverse=True, return_counts=True
        )
        if distinct_values.size == 2:
            coordinates_of_rows.append(value_of_each_row.astype(np.float64))
        elif distinct_values.size > 2:
            ranks_of_values = _standardised_midranks(rows_of_values)
            coordinates_of_rows.append(ranks_of_values[value_of_each_row])
    if not coordinates_of_rows:
        return np.zeros((len(features), 1))
    return np.column_stack(coordinates_of_rows)


def _standardised_midranks(rows_of_values: IntArray) -> FloatArray:
    """Return ranks of increasing values that occur so often, in standard deviations of rows.

    The rank of a value is the mean of the ranks that its rows would have without ties.
    """
    last_rank_of_value = np.cumsum(rows_of_values)
    midranks = last_rank_of_value - (rows_of_values - 1) / 2
    deviations = midranks - np.average(midranks, weights=rows_of_values)
    variance_of_midranks = np.average(deviations**2, weights=rows_of_values)
    standardised_midranks: FloatArray = deviations / np.sqrt(variance_of_midranks)
    return standardised_midranks


def closest(points: FloatArray, split: Split, rng: np.random.Generator) -> IntArray:
    """Return disjoint pairs of near rows of one stratum each, the closest first.

    Equal rows become partners at random. Of the others, each pair of near rows is taken whose rows
    have no partner yet, by increasing distance, ties at random. Of very many rows those in the
    middle of a random direction are looked at, where nearly all neighbours are kept.
    """
    # In a random order, that of storage has no part in anything.
    rows_in_strata = np.flatnonzero(split.stratum >= 0)
    shuffled_rows = rng.permutation(rows_in_strata)
    shuffled_points = points[shuffled_rows]
    stratum_of_row = split.stratum[shuffled_rows]

    pairs_of_equal_rows = _pairs_of_equal_rows(shuffled_points, stratum_of_row)
    pairs_of_equal_rows = rng.permutation(pairs_of_equal_rows)
    has_no_partner = np.ones(shuffled_rows.size, dtype=np.bool_)
    has_no_partner[pairs_of_equal_rows] = False
    rows_without_partner = np.flatnonzero(has_no_partner)
    candidate_rows = _rows_in_the_middle(rows_without_partner, shuffled_points, rng)
    neighbour_pairs, neighbour_distances = _nearest_neighbour_pairs(
        candidate_rows, shuffled_points, stratum_of_row
    )
    pairs_of_neighbours = _greedy_disjoint_pairs(neighbour_pairs, neighbour_distances, rng)
    places_of_pairs = np.concatenate([pairs_of_equal_rows, pairs_of_neighbours])
    pairs_of_rows: IntArray = shuffled_rows[places_of_pairs]
    return pairs_of_rows


def _pairs_of_equal_rows(points: FloatArray, stratum_of_row: IntArray) -> IntArray:
    """Return pairs of equal rows: the first with the second, the third with the fourth, …."""
    hashes_of_rows = _row_hashes(np.column_stack([points, stratum_of_row]))
    rows_by_hash = np.argsort(hashes_of_rows, kind="stable")
    sorted_hashes = hashes_of_rows[rows_by_hash]
    first_place_of_hash = np.searchsorted(sorted_hashes, sorted_hashes)
    place_among_equal_rows = np.arange(rows_by_hash.size) - first_place_of_hash
    equals_next_row = sorted_hashes[:-1] == sorted_hashes[1:]
    begins_a_pair = equals_next_row & (place_among_equal_rows[:-1] % 2 == 0)
    first_of_pair = np.flatnonzero(begins_a_pair)
    return np.column_stack([rows_by_hash[first_of_pair], rows_by_hash[first_of_pair + 1]])


def _rows_in_the_middle(rows: IntArray, points: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return rows in the middle of a random direction, if there are very many."""
    number_of_columns = points.shape[1]
    most_rows = _MOST_ROWS_BRUTE_FORCE
    if number_of_columns <= _MOST_COLUMNS_OF_TREE:
        most_rows = _MOST_ROWS_OF_TREE
    if rows.size <= most_rows:
        return rows
    random_direction = rng.normal(size=number_of_columns)
    projections_on_direction = points[rows] @ random_direction
    places_by_projection = np.argsort(projections_on_direction)
    skipped_at_each_end = (rows.size - most_rows) // 2
    places_in_the_middle = places_by_projection[skipped_at_each_end:][:most_rows]
    return rows[np.sort(places_in_the_middle)]


def _nearest_neighbour_pairs(
    rows: IntArray, points: FloatArray, stratum_of_row: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return pairs of each row and its nearest ones, within strata, and their distances."""
    pairs_of_strata = [np.empty((0, 2), dtype=np.int64)]
    distances_of_strata = [np.empty(0)]
    rows_by_stratum = rows[np.argsort(stratum_of_row[rows], kind="stable")]
    last_rows_of_strata = np.flatnonzero(np.diff(stratum_of_row[rows_by_stratum]))
    for rows_of_stratum in np.split(rows_by_stratum, last_rows_of_strata + 1):
        if rows_of_stratum.size < 2:
            continue
        neighbour_distances, neighbours = _nearest_neighbours(points[rows_of_stratum])
        row_of_each_pair = np.repeat(rows_of_stratum, neighbours.shape[1])
        neighbour_of_each_pair = rows_of_stratum[neighbours.ravel()]
        pairs_of_stratum = np.column_stack([row_of_each_pair, neighbour_of_each_pair])
        pairs_of_strata.append(pairs_of_stratum)
        distances_of_strata.append(neighbour_distances.ravel())
    return np.concatenate(pairs_of_strata), np.concatenate(distances_of_strata)


def _nearest_neighbours(points: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return distances of the nearest rows of each row, and which rows they are."""
    with needs("ml", "a challenge of the split"):
        from scipy.spatial import cKDTree
        from sklearn.neighbors import NearestNeighbors
    # A row is mostly its own nearest neighbour.
    number_of_neighbours = min(_NEAREST_NEIGHBOURS + 1, len(points))
    distances_and_neighbours: tuple[FloatArray, IntArray]
    if points.shape[1] <= _MOST_COLUMNS_OF_TREE:
        distances_and_neighbours = cKDTree(points).query(points, k=number_of_neighbours)
    else:
        brute_force = NearestNeighbors(n_neighbors=number_of_neighbours, algorithm="brute")
        distances_and_neighbours = brute_force.fit(points).kneighbors(points)
    return distances_and_neighbours


def _greedy_disjoint_pairs(
    pairs: IntArray, distances: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Take pairs by increasing distance, each if neither of its rows is taken yet."""
    first_rows, second_rows = pairs.T
    are_different_rows = first_rows != second_rows
    pairs_by_distance = in_order(distances[are_different_rows], rng)
    pairs_of_increasing_rows = np.sort(pairs[are_different_rows], axis=1)
    remaining_pairs = sorted_pairs = pairs_of_increasing_rows[pairs_by_distance]
    remaining_places = np.arange(len(sorted_pairs))
    is_taken = np.zeros(len(sorted_pairs), dtype=np.bool_)
    # A pair that is the first of both its rows is taken by whoever takes pairs one by one.
    while remaining_places.size:
        row_count = int(remaining_pairs.max()) + 1
        first_pair_of_row = np.full(row_count, len(sorted_pairs))
        np.minimum.at(first_pair_of_row, remaining_pairs.ravel(), np.repeat(remaining_places, 2))
        is_first_of_row = first_pair_of_row[remaining_pairs] == remaining_places[:, None]
        is_first_of_both_rows = is_first_of_row.all(axis=1)
        is_taken[remaining_places[is_first_of_both_rows]] = True

        has_partner = np.zeros(row_count, dtype=np.bool_)
        has_partner[remaining_pairs[is_first_of_both_rows]] = True
        has_rows_without_partner = ~has_partner[remaining_pairs].any(axis=1)
        remaining_pairs = remaining_pairs[has_rows_without_partner]
        remaining_places = remaining_places[has_rows_without_partner]
    return sorted_pairs[is_taken]


def standardised(columns: FloatArray, farthest: float) -> FloatArray:
    """Return features in standard deviations from their means, clipped at so many of them.

    Constant columns are 0. Clipped values keep a few rows from deciding what is learnt or tested.
    """
    standard_deviations = columns.std(axis=0)
    standard_deviations[standard_deviations == 0] = 1.0
    standardised_columns = (columns - columns.mean(axis=0)) / standard_deviations
    clipped_columns: FloatArray = np.clip(standardised_columns, -farthest, farthest)
    return clipped_columns


Predictors: TypeAlias = NDArray[np.float32]
"""Standardised features of the rows that are asked about, shape (rows, columns)."""

# Classes of labels; rarer ones are one together.
_MOST_CLASSES = 20
# Rows that labels are learnt from at least: of fewer no model learns what is surprising.
_FEWEST_ROWS = 100
_TREES_OF_FOREST = 100
# Rows that a tree, or a linear model, learns from at most.
_MOST_TRAINING_ROWS = 4_000
# Rows that are asked about at most.
_MOST_ROWS_ASKED = 20_000
# Folds of the rows, each predicted by a linear model of the others.
_FOLDS_OF_LINEAR_MODEL = 5
# Standard deviations at which features are clipped.
_CLIPPED_AT = 10.0
# Probability of a label below which all are equally surprising.
_SMALLEST_PROBABILITY = 1e-3


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
    if labels.size < _FEWEST_ROWS:
        return None
    distinct_labels, label_codes = np.unique(labels, return_inverse=True)
    are_numbers = labels.dtype.kind in "biuf" and distinct_labels.size > WORDS
    are_mostly_different = 2 * distinct_labels.size > label_codes.size
    if distinct_labels.size < 2 or (are_mostly_different and not are_numbers):
        return None
    with needs("ml", "a challenge of the split"):
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
        from sklearn.linear_model import LogisticRegression, Ridge
    # In a random order, that of storage has no part in what is learnt.
    asked_rows = rng.permutation(label_codes.size)[:_MOST_ROWS_ASKED]
    options_of_forest = {
        "n_estimators": _TREES_OF_FOREST,
        "min_samples_leaf": 3,
        "bootstrap": True,
        "max_samples": min(asked_rows.size, _MOST_TRAINING_ROWS),
        "oob_score": True,
        "random_state": int(rng.integers(2**31)),
    }
    predictors = _standardised_predictors(features, asked_rows)
    surprises_of_labels = np.full(label_codes.size, np.nan)
    if are_numbers:
        forest = RandomForestRegressor(**options_of_forest)
        ranks = label_codes[asked_rows] / distinct_labels.size
        surprises_of_labels[asked_rows] = _rank_errors(forest, Ridge(), predictors, ranks)
        return surprises_of_labels
    frequent_classes = _frequent_classes(label_codes)[asked_rows]
    _, classes = np.unique(frequent_classes, return_inverse=True)
    if classes.max() == 0:
        return None
    forest = RandomForestClassifier(**options_of_forest)
    linear_model = LogisticRegression(max_iter=200)
    surprises_of_labels[asked_rows] = _class_log_losses(forest, linear_model, predictors, classes)
    return surprises_of_labels


def _standardised_predictors(features: FloatArray, asked_rows: IntArray) -> Predictors:
    """Return standardised features of some rows, clipped."""
    largest_values = np.abs(features).max(axis=0)
    positive_divisors = np.where(largest_values > 0, largest_values, 1.0)
    # At most 1 in size: their squares are finite.
    standardised_features = standardised(features / positive_divisors, _CLIPPED_AT)
    return standardised_features[asked_rows].astype(np.float32)


def _frequent_classes(label_codes: IntArray) -> IntArray:
    """Return the class of each row, numbered by frequency; rare ones are one together."""
    rows_with_label = np.bincount(label_codes)
    most_frequent_codes = np.argsort(-rows_with_label, kind="stable")[:_MOST_CLASSES]
    class_of_label = np.full(rows_with_label.size, most_frequent_codes.size)
    class_of_label[most_frequent_codes] = np.arange(most_frequent_codes.size)
    return class_of_label[label_codes]


def _rank_errors(
    forest: Any, linear_model: Any, predictors: Predictors, ranks: FloatArray
) -> FloatArray:
    """Return the distance of each rank from the mean of two forecasts."""
    forest_forecasts = forest.fit(predictors, ranks).oob_prediction_
    linear_forecasts = np.zeros(ranks.size)
    for fitted_model, rows_of_fold in _models_of_other_folds(linear_model, predictors, ranks):
        linear_forecasts[rows_of_fold] = fitted_model.predict(predictors[rows_of_fold])
    mean_forecasts = (forest_forecasts + linear_forecasts) / 2
    distances_from_forecasts: FloatArray = np.abs(ranks - mean_forecasts)
    return distances_from_forecasts


def _class_log_losses(
    forest: Any, linear_model: Any, predictors: Predictors, classes: IntArray
) -> FloatArray:
    """Return minus the logarithm of the mean of two probabilities of each class."""
    forest_probabilities = forest.fit(predictors, classes).oob_decision_function_
    linear_probabilities = np.zeros_like(forest_probabilities)
    for fitted_model, rows_of_fold in _models_of_other_folds(linear_model, predictors, classes):
        probabilities_in_fold = fitted_model.predict_proba(predictors[rows_of_fold])
        linear_probabilities[np.ix_(rows_of_fold, fitted_model.classes_)] = probabilities_in_fold
    mean_probabilities = (forest_probabilities + linear_probabilities) / 2
    probability_of_label = mean_probabilities[np.arange(classes.size), classes]
    bounded_probability = np.maximum(probability_of_label, _SMALLEST_PROBABILITY)
    log_losses: FloatArray = -np.log(bounded_probability)
    return log_losses


def _models_of_other_folds(
    model: Any, predictors: Predictors, target: AnyArray
) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    """Yield a model of the other rows with each fold, where those have two values at least."""
    from sklearn.model_selection import KFold

    for rows_of_other_folds, rows_of_fold in KFold(_FOLDS_OF_LINEAR_MODEL).split(predictors):
        training_rows = rows_of_other_folds[:_MOST_TRAINING_ROWS]
        training_target = target[training_rows]
        if np.unique(training_target).size < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that end early: the model is one of many
            fitted_model = model.fit(predictors[training_rows], training_target)
        yield fitted_model, rows_of_fold
