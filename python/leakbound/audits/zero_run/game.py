"""Observed members and non-members of one attack, their scores beyond features, and guesses."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakbound._base.robust import robust_scale
from leakbound._base.streams import Purpose, drawn_folds
from leakbound._base.types import BoolArray, FloatArray, IntArray, PathOrder
from leakbound.cuts.games import ScoreGame
from leakbound.propensity.falsification import ensembles
from leakbound.propensity.scaling import standardised

_FOLDS = 5
# Squares and products that a fit may use: those that scores follow most.
_PRODUCTS = 200
# Standard deviations at which features are clipped before they are multiplied.
_CLIPPED = 3.0
_PENALTIES = np.logspace(-1, 4, 11)
# Robust standard deviations beyond which a score counts by its logarithm in fits.
_TAIL = 4.0
# Scores beyond this in absolute value are scaled down first.
_VAST = 1e150
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
        return np.flatnonzero(self.member) if self.one_sided else np.arange(self.examples)

    def right(self, guesses: Guesses) -> BoolArray:
        """Return which guesses are correct."""
        return np.asarray(self.member[guesses.rows] == (guesses.signs > 0))

    def guessed(self, ranks: FloatArray, number: int) -> Guesses:
        """Guess the top of a ranking members and the bottom not."""
        order = _falling(ranks)
        signs = np.ones(number, dtype=np.int64)
        if self.one_sided:
            return Guesses("member", order[:number], signs)
        top = (number + 1) // 2
        rows = np.empty(number, dtype=np.int64)
        rows[::2] = order[:top]
        rows[1::2] = order[::-1][: number - top]
        signs[1::2] = -1
        return Guesses("interleaved", rows, signs)

    def perfect(self) -> "ObservedGame":
        """Return the game of an attack that is always right."""
        return replace(self, values=usable(self.signs.astype(np.float64)))


def _falling(ranks: FloatArray) -> IntArray:
    """Return rows by falling rank, the earlier of two equal ones first."""
    order = np.argsort(-ranks)  # not stable, and faster
    sorted_ranks = ranks[order]
    if (sorted_ranks[1:] == sorted_ranks[:-1]).any():
        return np.argsort(-ranks, kind="stable")
    return order


def distinct_ranks(values: FloatArray, ties: IntArray) -> FloatArray:
    """Return ranks from 0 upwards, those of equal values by what else is given."""
    ranks = np.empty(values.size)
    ranks[np.lexsort((ties, values))] = np.arange(values.size)
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
    fold = drawn_folds(Purpose.BEYOND_FEATURES.rng(seed), scores.size, _FOLDS)
    units = standardised(features, np.inf)
    left: FloatArray = scores - scores.mean()
    line = _ridge(units, left, fold)
    first = fold == 0
    # of products that were chosen without the first fold: others would fit noise there too
    bent = _closer(_curve(units, left, fold, ~first)[first], line[first], left[first])
    left -= _curve(units, left, fold, fold >= 0) if bent else line
    beyond = _trees(units, left, fold, seed) if trees else np.zeros(scores.size)
    return left - beyond if bent or beyond.any() else scores


def _curve(units: FloatArray, scores: FloatArray, fold: IntArray, chosen: BoolArray) -> FloatArray:
    """Return ridge predictions from features and the products that tell most of chosen rows."""
    clipped = np.clip(units, -_CLIPPED, _CLIPPED)
    one, other = _telling(scores[chosen], units[chosen], clipped[chosen])
    products = clipped[:, one] * clipped[:, other]
    columns = np.column_stack([units, products])
    return _ridge(columns - columns.mean(axis=0), scores, fold)


def _telling(
    scores: FloatArray, units: FloatArray, clipped: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the squares and products that scores, less a linear fit, follow most."""
    line = np.column_stack([np.ones(scores.size), units])
    # Least squares, by the normal equations
    weights = np.linalg.lstsq(line.T @ line, line.T @ scores, rcond=None)[0]
    left = scores - line @ weights
    left -= left.mean()
    one, other = np.triu_indices(units.shape[1])
    # Of products p: Σ p·left, and their means and mean squares, none of them written down.
    weighted = clipped * left[:, None]
    strength = np.abs(weighted.T @ clipped)[one, other]
    squares = clipped**2
    mean_square = (squares.T @ squares)[one, other] / scores.size
    variance = mean_square - ((clipped.T @ clipped)[one, other] / scores.size) ** 2
    varies = variance > _CONSTANT * mean_square
    strength[varies] /= np.sqrt(variance[varies])
    strength[~varies] = 0.0
    top = np.argsort(-strength, kind="stable")[:_PRODUCTS]
    return one[top], other[top]


def _ridge(columns: FloatArray, scores: FloatArray, fold: IntArray) -> FloatArray:
    """Return ridge predictions of each fold, at the penalty that predicts all folds best."""
    folds = [np.flatnonzero(fold == number) for number in range(_FOLDS)]
    tables = [columns[rows] for rows in folds]
    grams = [table.T @ table for table in tables]
    crosses = [table.T @ scores[rows] for table, rows in zip(tables, folds, strict=True)]
    predicted = np.empty((_PENALTIES.size, scores.size))
    # Ridge regression on all folds but one, at all penalties by one eigendecomposition
    for rows, table, gram, cross in zip(folds, tables, grams, crosses, strict=True):
        values, vectors = np.linalg.eigh(sum(grams) - gram)
        turned = vectors.T @ (sum(crosses) - cross)
        weights = turned[:, None] / (np.maximum(values, 0.0)[:, None] + _PENALTIES)
        predicted[:, rows] = (table @ (vectors @ weights)).T
    errors = ((scores - predicted) ** 2).sum(axis=1)
    best: FloatArray = predicted[int(np.argmin(errors))]
    return best


def _trees(units: FloatArray, scores: FloatArray, fold: IntArray, seed: int) -> FloatArray:
    """Return what trees predict of each fold: nothing where they are of no use for the first."""
    predicted = np.zeros(scores.size)
    for k in range(_FOLDS):
        model = ensembles().HistGradientBoostingRegressor(
            max_iter=80,
            max_leaf_nodes=8,
            learning_rate=0.07,
            min_samples_leaf=30,
            early_stopping=False,
            random_state=Purpose.BEYOND_FEATURES_TREES.derived(seed, bits=32),
        )
        rows = fold == k
        model.fit(units[~rows], scores[~rows])
        predicted[rows] = model.predict(units[rows])
        if k == 0 and not _closer(predicted[rows], 0.0, scores[rows]):
            return np.zeros(scores.size)
    return predicted


def _closer(predicted: FloatArray, other: FloatArray | float, scores: FloatArray) -> bool:
    """Return whether predictions come nearer to scores than others do."""
    return float(((scores - predicted) ** 2).sum()) < float(((scores - other) ** 2).sum())


def usable(scores: FloatArray) -> FloatArray:
    """Return finite scores in robust units, in the same order, with tails that grow slowly."""
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return np.sign(scores)
    largest = np.abs(finite).max()
    if largest > _VAST:  # differences of such scores are no numbers
        return usable(scores / largest)
    centre, spread = robust_scale(finite)
    spread = spread or float(finite.std()) or 1.0
    low, high = finite.min() - spread, finite.max() + spread
    return drawn_in((np.clip(scores, low, high) - centre) / spread, _TAIL)


def drawn_in(values: FloatArray, far: float) -> FloatArray:
    """Return values whose size goes on as a logarithm from some point on, in the same order."""
    sizes = np.abs(values)
    beyond = np.maximum(sizes - far, 0.0)
    drawn: FloatArray = np.sign(values) * (np.minimum(sizes, far) + np.log1p(beyond))
    return drawn
