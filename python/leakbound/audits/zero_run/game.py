"""Observed members and non-members of one attack, their scores beyond features, and guesses."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leakbound._base.robust import robust_scale
from leakbound._base.streams import Purpose, drawn_folds
from leakbound._base.types import BoolArray, FloatArray, IntArray, PathOrder
from leakbound.cuts.games import ScoreGame
from leakbound.propensity.falsification import ensembles
from leakbound.propensity.scaling import standardised

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

    def guessed(self, ranks: FloatArray, number: int) -> Guesses:
        """Guess the top of a ranking members and the bottom not."""
        return self.guessed_in_order(_rows_by_falling_rank(ranks), number)

    def guessed_in_order(self, falling_rows: IntArray, number: int) -> Guesses:
        """Guess the first rows members and the last ones not."""
        signs = np.ones(number, dtype=np.int64)
        if self.one_sided:
            return Guesses("member", falling_rows[:number], signs)
        member_guesses = (number + 1) // 2
        nonmember_guesses = number - member_guesses
        rows = np.empty(number, dtype=np.int64)
        rows[::2] = falling_rows[:member_guesses]
        rows[1::2] = falling_rows[::-1][:nonmember_guesses]
        signs[1::2] = -1
        return Guesses("interleaved", rows, signs)

    def perfect(self) -> "ObservedGame":
        """Return the game of an attack that is always right."""
        return replace(self, values=usable(self.signs.astype(np.float64)))


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
    residuals: FloatArray = scores - scores.mean()
    predictions = _ridge_predictions(standardised_features, residuals, fold_numbers)
    # The curve is tried on the first fold, with products that were chosen without it: others
    # would fit noise there too
    first_fold = fold_numbers == 0
    curve_on_trial = _curve_predictions(
        standardised_features, residuals, fold_numbers, product_rows=~first_fold
    )
    curve_error = _squared_error(curve_on_trial[first_fold], residuals[first_fold])
    linear_error = _squared_error(predictions[first_fold], residuals[first_fold])
    is_curved = curve_error < linear_error
    if is_curved:
        predictions = _curve_predictions(
            standardised_features, residuals, fold_numbers, product_rows=slice(None)
        )
    residuals -= predictions
    if trees:
        by_trees = _tree_predictions(standardised_features, residuals, fold_numbers, seed)
        if by_trees.any():
            return residuals - by_trees
    if is_curved:
        return residuals
    return scores


def _curve_predictions(
    standardised_features: FloatArray,
    scores: FloatArray,
    fold_numbers: IntArray,
    *,
    product_rows: BoolArray | slice,
) -> FloatArray:
    """Return ridge predictions from features and the products that scores of some rows follow."""
    clipped = np.clip(standardised_features, -_CLIPPED, _CLIPPED)
    left_factors, right_factors = _predictive_products(
        scores[product_rows], standardised_features[product_rows], clipped[product_rows]
    )
    products = clipped[:, left_factors] * clipped[:, right_factors]
    columns = np.column_stack([standardised_features, products])
    centred_columns = columns - columns.mean(axis=0)
    return _ridge_predictions(centred_columns, scores, fold_numbers)


def _predictive_products(
    scores: FloatArray, standardised_features: FloatArray, clipped: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the squares and products that scores, less a linear fit, follow most."""
    intercept = np.ones(scores.size)
    regressors = np.column_stack([intercept, standardised_features])
    # Least squares, by the normal equations
    gram = regressors.T @ regressors
    coefficients = np.linalg.lstsq(gram, regressors.T @ scores, rcond=None)[0]
    residuals = scores - regressors @ coefficients
    residuals -= residuals.mean()
    factors = np.triu_indices(standardised_features.shape[1])
    # Of products p: Σ p·residual, and their means and mean squares, none of them written down.
    weighted = clipped * residuals[:, None]
    correlations = np.abs(weighted.T @ clipped)[factors]
    squares = clipped**2
    mean_squares = (squares.T @ squares)[factors] / scores.size
    means = (clipped.T @ clipped)[factors] / scores.size
    variances = mean_squares - means**2
    varies = variances > _CONSTANT * mean_squares
    correlations[varies] /= np.sqrt(variances[varies])
    correlations[~varies] = 0.0
    strongest = np.argsort(-correlations, kind="stable")[:_MOST_PRODUCTS]
    left_factors, right_factors = factors
    return left_factors[strongest], right_factors[strongest]


def _ridge_predictions(
    columns: FloatArray, scores: FloatArray, fold_numbers: IntArray
) -> FloatArray:
    """Return ridge predictions of each fold, at the penalty that predicts all folds best."""
    rows_of_folds = [np.flatnonzero(fold_numbers == number) for number in range(_FOLDS)]
    grams = []
    moments = []
    for rows in rows_of_folds:
        fold_columns = columns[rows]
        grams.append(fold_columns.T @ fold_columns)
        moments.append(fold_columns.T @ scores[rows])
    predictions = np.empty((_RIDGE_PENALTIES.size, scores.size))
    # Ridge regression on all folds but one, at all penalties by one eigendecomposition
    for rows, gram, moment in zip(rows_of_folds, grams, moments, strict=True):
        eigenvalues, eigenvectors = np.linalg.eigh(sum(grams) - gram)
        rotated_moment = eigenvectors.T @ (sum(moments) - moment)
        nonnegative_eigenvalues = np.maximum(eigenvalues, 0.0)
        penalised = nonnegative_eigenvalues[:, None] + _RIDGE_PENALTIES
        coefficients = eigenvectors @ (rotated_moment[:, None] / penalised)
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
        random_state = Purpose.BEYOND_FEATURES_TREES.derived(seed, bits=32)
        regressor = ensembles().HistGradientBoostingRegressor(
            **_TREE_OPTIONS, random_state=random_state
        )
        held_out = fold_numbers == number
        regressor.fit(standardised_features[~held_out], scores[~held_out])
        predictions[held_out] = regressor.predict(standardised_features[held_out])
        if number > 0:
            continue
        error_of_trees = _squared_error(predictions[held_out], scores[held_out])
        if not error_of_trees < _squared_error(0.0, scores[held_out]):
            return np.zeros(scores.size)
    return predictions


def _squared_error(predictions: FloatArray | float, scores: FloatArray) -> float:
    """Return the sum of squared errors of predictions."""
    return float(((scores - predictions) ** 2).sum())


def usable(scores: FloatArray) -> FloatArray:
    """Return finite scores in robust units, in the same order, with tails that grow slowly."""
    finite_scores = scores[np.isfinite(scores)]
    if not finite_scores.size:
        return np.sign(scores)
    largest_size = np.abs(finite_scores).max()
    if largest_size > _OVERFLOWING:  # differences of such scores are no numbers
        return usable(scores / largest_size)
    # Robust scaling: infinite scores come one unit beyond the finite ones
    centre, spread = robust_scale(finite_scores)
    spread = spread or float(finite_scores.std()) or 1.0
    lowest = finite_scores.min() - spread
    highest = finite_scores.max() + spread
    robust_units = (np.clip(scores, lowest, highest) - centre) / spread
    return drawn_in(robust_units, _TAIL)


def drawn_in(values: FloatArray, far: float) -> FloatArray:
    """Return values whose size goes on as a logarithm from some point on, in the same order."""
    sizes = np.abs(values)
    excesses = np.maximum(sizes - far, 0.0)
    shrunk_sizes = np.minimum(sizes, far) + np.log1p(excesses)
    drawn: FloatArray = np.sign(values) * shrunk_sizes
    return drawn
