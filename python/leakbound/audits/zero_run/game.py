"""Observed members and non-members of one attack, their scores beyond features, and guesses.

Features alone may tell members, too: where nothing was random a difference of features is expected,
and it is what a correction takes out.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import leakbound._core as _core
from leakbound._base.numerics import robust_scale
from leakbound._base.streams import Purpose, drawn_folds
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonObject, PathOrder
from leakbound.cuts.games import ScoreGame
from leakbound.errors import FitError
from leakbound.propensity.falsification import bets, ensembles
from leakbound.propensity.likeness import standardised

_FOLDS = 5
# Squares and products that a fit may use: those that scores follow most.
_MOST_PRODUCTS = 200
# Standard deviations at which features are clipped before they are multiplied.
_CLIPPED = 3.0
_RIDGE_PENALTIES = np.logspace(-1, 4, 11)
# Robust standard deviations beyond which a score counts by its logarithm in fits.
_TAIL = 4.0
# Scores beyond this in absolute value are scaled down first.
_OVERFLOWING = 1e150
# Small trees, all of them grown, so that what they predict of noise is small.
_TREE_OPTIONS: dict[str, Any] = {
    "max_iter": 80,
    "max_leaf_nodes": 8,
    "learning_rate": 0.07,
    "min_samples_leaf": 30,
    "early_stopping": False,
}
# Share of a product's mean square below which its variance is rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses in order, the most confident first: rows, and +1 for members or -1."""

    order: PathOrder
    rows: IntArray
    signs: IntArray

    def taken(self, places: IntArray) -> "Guesses":
        """Return the guesses at some places."""
        return replace(self, rows=self.rows[places], signs=self.signs[places])


@dataclass(frozen=True, kw_only=True, eq=False)
class ObservedGame(ScoreGame):
    """Examples of one attack whose membership nobody drew.

    `values` are what guesses are ranked by: scores, or what is left of them once their prediction
    from features is taken off. The order of examples is random given membership and scores.
    """

    values: FloatArray

    @property
    def one_sided(self) -> bool:
        """Whether members alone are guessed."""
        return self.sides == "member"

    @property
    def signs(self) -> IntArray:
        """Membership as +1 and -1."""
        return np.where(self.member, 1, -1)

    @cached_property
    def uniforms(self) -> FloatArray:
        """Coins that decide what is kept, or which guesses stand, where log-odds are known."""
        return Purpose.MATCHING.rng(self.seed).random(self.examples)

    @property
    def guessable(self) -> IntArray:
        """Rows that a perfect attack guesses about."""
        if self.one_sided:
            return np.flatnonzero(self.member)
        return np.arange(self.examples)

    def right(self, guesses: Guesses) -> BoolArray:
        """Return which guesses are correct."""
        guessed_member = guesses.signs > 0
        return np.asarray(self.member[guesses.rows] == guessed_member)

    def guesses_by_rank(self, ranks: FloatArray, number: int) -> Guesses:
        """Guess the top of a ranking members and the bottom not."""
        return self.guesses_in_order(_rows_by_falling_rank(ranks), number)

    def guesses_in_order(self, rows_by_falling_rank: IntArray, number: int) -> Guesses:
        """Guess the first rows members and the last ones not."""
        signs = np.ones(number, dtype=np.int64)
        if self.one_sided:
            return Guesses("member", rows_by_falling_rank[:number], signs)
        member_guesses = (number + 1) // 2
        nonmember_guesses = number - member_guesses
        rows = np.empty(number, dtype=np.int64)
        rows[::2] = rows_by_falling_rank[:member_guesses]
        rows[1::2] = rows_by_falling_rank[::-1][:nonmember_guesses]
        signs[1::2] = -1
        return Guesses("interleaved", rows, signs)

    def of_perfect_attack(self) -> "ObservedGame":
        """Return the game of an attack that is always right."""
        return replace(self, values=robust_scores(self.signs.astype(np.float64)))


def _rows_by_falling_rank(ranks: FloatArray) -> IntArray:
    """Return rows by falling rank, the earlier of two equal ones first."""
    rows = np.argsort(-ranks)  # not stable, and faster
    sorted_ranks = ranks[rows]
    has_ties = (sorted_ranks[1:] == sorted_ranks[:-1]).any()
    if has_ties:
        return np.argsort(-ranks, kind="stable")
    return rows


def distinct_ranks(values: FloatArray, ties: IntArray) -> FloatArray:
    """Return ranks from 0 upwards, those of equal values by what else is given."""
    rising_rows = np.lexsort((ties, values))
    ranks = np.empty(values.size)
    ranks[rising_rows] = np.arange(values.size)
    return ranks


def beyond_features(
    scores: FloatArray, features: FloatArray, *, trees: bool = False, seed: int
) -> FloatArray:
    """Return scores less their prediction from features, fold by fold from the other folds.

    Scores themselves, where nothing predicts them better than a line: guesses are balanced against
    that in any case, and a prediction of more terms than are needed is noise.
    """
    if scores.size < 2 * _FOLDS:
        return scores
    fold_rng = Purpose.BEYOND_FEATURES.rng(seed)
    fold_numbers = drawn_folds(fold_rng, scores.size, _FOLDS)
    standardised_features = standardised(features, np.inf)
    residual_scores: FloatArray = scores - scores.mean()
    predictions = _ridge_predictions(standardised_features, residual_scores, fold_numbers)
    # The curve is tried on the first fold, with products that were chosen without it: others
    # would fit noise there too
    first_fold = fold_numbers == 0
    curve_on_trial = _curve_predictions(
        standardised_features, residual_scores, fold_numbers, product_rows=~first_fold
    )
    curve_error = _squared_error(curve_on_trial[first_fold], residual_scores[first_fold])
    linear_error = _squared_error(predictions[first_fold], residual_scores[first_fold])
    curve_predicts_better = curve_error < linear_error
    if curve_predicts_better:
        predictions = _curve_predictions(
            standardised_features, residual_scores, fold_numbers, product_rows=slice(None)
        )
    residual_scores -= predictions
    if trees:
        tree_predictions = _tree_predictions(
            standardised_features, residual_scores, fold_numbers, seed
        )
        if tree_predictions.any():
            return residual_scores - tree_predictions
    if curve_predicts_better:
        return residual_scores
    return scores


def _curve_predictions(
    standardised_features: FloatArray,
    scores: FloatArray,
    fold_numbers: IntArray,
    *,
    product_rows: BoolArray | slice,
) -> FloatArray:
    """Return ridge predictions from features and the products that scores of some rows follow."""
    clipped_features = np.clip(standardised_features, -_CLIPPED, _CLIPPED)
    left_factors, right_factors = _predictive_products(
        scores[product_rows], standardised_features[product_rows], clipped_features[product_rows]
    )
    feature_products = clipped_features[:, left_factors] * clipped_features[:, right_factors]
    columns = np.column_stack([standardised_features, feature_products])
    centred_columns = columns - columns.mean(axis=0)
    return _ridge_predictions(centred_columns, scores, fold_numbers)


def _predictive_products(
    scores: FloatArray, standardised_features: FloatArray, clipped_features: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the squares and products that scores, less a linear fit, follow most."""
    intercept = np.ones(scores.size)
    linear_regressors = np.column_stack([intercept, standardised_features])
    # Least squares, by the normal equations
    gram_matrix = linear_regressors.T @ linear_regressors
    coefficients = np.linalg.lstsq(gram_matrix, linear_regressors.T @ scores, rcond=None)[0]
    residual_scores = scores - linear_regressors @ coefficients
    residual_scores -= residual_scores.mean()
    factor_pairs = np.triu_indices(standardised_features.shape[1])
    # Of products p: Σ p·residual, and their means and mean squares, none of them written down.
    residual_weighted_features = clipped_features * residual_scores[:, None]
    product_correlations = np.abs(residual_weighted_features.T @ clipped_features)[factor_pairs]
    squared_features = clipped_features**2
    product_mean_squares = (squared_features.T @ squared_features)[factor_pairs] / scores.size
    product_means = (clipped_features.T @ clipped_features)[factor_pairs] / scores.size
    product_variances = product_mean_squares - product_means**2
    is_varying_product = product_variances > _CONSTANT * product_mean_squares
    product_correlations[is_varying_product] /= np.sqrt(product_variances[is_varying_product])
    product_correlations[~is_varying_product] = 0.0
    strongest_products = np.argsort(-product_correlations, kind="stable")[:_MOST_PRODUCTS]
    left_factors, right_factors = factor_pairs
    return left_factors[strongest_products], right_factors[strongest_products]


def _ridge_predictions(
    columns: FloatArray, scores: FloatArray, fold_numbers: IntArray
) -> FloatArray:
    """Return ridge predictions of each fold, at the penalty that predicts all folds best."""
    rows_of_folds = [np.flatnonzero(fold_numbers == number) for number in range(_FOLDS)]
    gram_matrices = []
    moment_vectors = []
    for rows in rows_of_folds:
        fold_columns = columns[rows]
        gram_matrices.append(fold_columns.T @ fold_columns)
        moment_vectors.append(fold_columns.T @ scores[rows])
    predictions = np.empty((_RIDGE_PENALTIES.size, scores.size))
    # Ridge regression on all folds but one, at all penalties by one eigendecomposition
    for rows, gram_matrix, moment_vector in zip(
        rows_of_folds, gram_matrices, moment_vectors, strict=True
    ):
        eigenvalues, eigenvectors = np.linalg.eigh(sum(gram_matrices) - gram_matrix)
        rotated_moment_vector = eigenvectors.T @ (sum(moment_vectors) - moment_vector)
        nonnegative_eigenvalues = np.maximum(eigenvalues, 0.0)
        penalised_eigenvalues = nonnegative_eigenvalues[:, None] + _RIDGE_PENALTIES
        coefficients = eigenvectors @ (rotated_moment_vector[:, None] / penalised_eigenvalues)
        predictions[:, rows] = (columns[rows] @ coefficients).T
    squared_errors = ((scores - predictions) ** 2).sum(axis=1)
    best_penalty = int(np.argmin(squared_errors))
    best_predictions: FloatArray = predictions[best_penalty]
    return best_predictions


def _tree_predictions(
    standardised_features: FloatArray, scores: FloatArray, fold_numbers: IntArray, seed: int
) -> FloatArray:
    """Return what trees predict of each fold: nothing where they are of no use for the first."""
    predictions = np.zeros(scores.size)
    for number in range(_FOLDS):
        tree_regressor = ensembles().HistGradientBoostingRegressor(
            **_TREE_OPTIONS,
            random_state=Purpose.BEYOND_FEATURES_TREES.derived(seed, bits=32),
        )
        is_held_out = fold_numbers == number
        tree_regressor.fit(standardised_features[~is_held_out], scores[~is_held_out])
        predictions[is_held_out] = tree_regressor.predict(standardised_features[is_held_out])
        if number > 0:
            continue
        error_of_trees = _squared_error(predictions[is_held_out], scores[is_held_out])
        if not error_of_trees < _squared_error(0.0, scores[is_held_out]):
            return np.zeros(scores.size)
    return predictions


def _squared_error(predictions: FloatArray | float, scores: FloatArray) -> float:
    """Return the sum of squared errors of predictions."""
    return float(((scores - predictions) ** 2).sum())


def robust_scores(scores: FloatArray) -> FloatArray:
    """Return finite scores in robust units, in the same order, with tails that grow slowly."""
    finite_scores = scores[np.isfinite(scores)]
    if not finite_scores.size:
        return np.sign(scores)
    largest_size = np.abs(finite_scores).max()
    if largest_size > _OVERFLOWING:  # differences of such scores are no numbers
        return robust_scores(scores / largest_size)
    # Robust scaling: infinite scores come one unit beyond the finite ones
    robust_centre, robust_spread = robust_scale(finite_scores)
    robust_spread = robust_spread or float(finite_scores.std()) or 1.0
    lowest_score = finite_scores.min() - robust_spread
    highest_score = finite_scores.max() + robust_spread
    robust_units = (np.clip(scores, lowest_score, highest_score) - robust_centre) / robust_spread
    return drawn_in(robust_units, _TAIL)


def drawn_in(values: FloatArray, linear_limit: float) -> FloatArray:
    """Return values whose size goes on as a logarithm from some point on, in the same order."""
    absolute_values = np.abs(values)
    excess_sizes = np.maximum(absolute_values - linear_limit, 0.0)
    shrunk_absolute_values = np.minimum(absolute_values, linear_limit) + np.log1p(excess_sizes)
    signed_values: FloatArray = np.sign(values) * shrunk_absolute_values
    return signed_values


# Parts of the pairs: a model learns from those before each but the first.
_PARTS = 5
# Pairs that are guessed about at most, and at least.
_MOST_PAIRS = 5_000
_FEWEST_PAIRS = 50
# Standard deviations at which features are clipped.
_LARGEST_FEATURE = 5.0
_CLASSIFIER = "logistic regression"


def blind_guesses(features: FloatArray, member: BoolArray, seed: int) -> JsonObject:
    """Return how often features tell the member of a random pair, as an option of a result.

    There is none if there are few pairs, or the model cannot be fitted.

    A logistic regression learns from earlier pairs, and guesses about later ones where it is
    surest. It is no test: no p-value is computed.
    """
    rng = Purpose.BLIND_PAIRS.rng(seed)
    member_rows = rng.permutation(np.flatnonzero(member))
    nonmember_rows = rng.permutation(np.flatnonzero(~member))
    number_of_pairs = min(member_rows.size, nonmember_rows.size, _MOST_PAIRS)
    if number_of_pairs < _FEWEST_PAIRS:
        return {}
    rows_of_pairs = np.concatenate(
        [member_rows[:number_of_pairs], nonmember_rows[:number_of_pairs]]
    )
    standardised_features = standardised(features[rows_of_pairs], _LARGEST_FEATURE)
    pair_of_row = np.tile(np.arange(number_of_pairs), 2)
    correct_guesses = 0
    pairs_guessed = 0
    for pairs_of_part in np.array_split(np.arange(number_of_pairs), _PARTS)[1:]:
        is_earlier_row = pair_of_row < pairs_of_part[0]
        try:
            coefficients = ridge_coefficients(
                standardised_features[is_earlier_row], member[rows_of_pairs[is_earlier_row]]
            )
        except FitError:
            return {}
        blind_log_odds = _core.linear_log_odds(coefficients, standardised_features)[0]
        log_odds_differences = (
            blind_log_odds[pairs_of_part] - blind_log_odds[number_of_pairs + pairs_of_part]
        )
        no_claim = np.zeros(pairs_of_part.size)
        surest_pairs, signs = bets(no_claim, log_odds_differences)
        correct_guesses += int((signs > 0).sum())
        pairs_guessed += surest_pairs.size
    return {
        "blind_baseline": {"classifier": _CLASSIFIER, "right": correct_guesses, "of": pairs_guessed}
    }


def ridge_coefficients(features: FloatArray, member: BoolArray) -> FloatArray:
    """Return intercept and slopes of a logistic regression with ridge penalty 1, shape (1, d + 1).

    FitError says why it cannot be fitted, InputError that one class is missing.
    """
    regression = _core.PropensityRows(features, member, folds=None, l2=1.0)
    coefficients = regression.coefficients(regression.fit())
    return coefficients[None, :]
