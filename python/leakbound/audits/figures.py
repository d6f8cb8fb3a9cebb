"""Figures of results: curve, ROC and histogram, made when they are asked for."""

from bisect import bisect_right

import numpy as np

import leakbound._core as _core
from leakbound._base.types import AnyArray, BoolArray, FloatArray, IntArray
from leakbound.cuts import BestCut, CurvePoints, Proof
from leakbound.cuts.games import ScoreCounts
from leakbound.report.parts import LOW_RATES
from leakbound.results import Curve, Histogram, Roc

POINTS = 2000
"""The most cuts of a curve and thresholds of a ROC."""
_BINS = 60
_DRAWN_QUANTILES = (0.001, 0.999)
"""Quantiles of scores where the histogram ends."""


def curve(proof: Proof) -> Curve:
    """Return the winning path with its bound at each cut, the chosen one among them.

    Of guesses from either end the path is both in turn, and the chosen cut is not on it.
    """
    strongest_path = proof.drawn
    points = strongest_path.points(POINTS - 1)
    is_chosen_path = strongest_path.best is proof.best
    # Bounds in the units of the claim; none is above what is reported for the chosen cut.
    if is_chosen_path and strongest_path.order != "ends" and proof.policy.on_path:
        points = _with_chosen_cut(points, proof.best)
    guesses, correct, logit_bounds = points
    ranking = proof.ranking
    most_correct = {
        "interleaved": ranking.examples,
        "ends": ranking.examples,
        "nonmember_half": ranking.examples - ranking.members,
        "pairs": proof.game.examples,
    }
    examples_to_find = max(1, most_correct.get(strongest_path.order, ranking.members))
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / examples_to_find,
        bound=np.clip(logit_bounds, 0.0, proof.bound),
    )


def roc(ranking: _core.Ranking) -> Roc:
    """Return a ranking as a membership test, with the thresholds of its key numbers."""
    evenly_spread_thresholds = np.column_stack(ranking.roc(POINTS))
    thresholds = np.concatenate([evenly_spread_thresholds, _key_thresholds(ranking)])
    guesses, first_thresholds = np.unique(thresholds[:, 0], return_index=True)
    members = thresholds[first_thresholds, 1]
    non_members = ranking.examples - ranking.members
    return Roc(
        guesses=guesses,
        members=members,
        false_positive_rate=(guesses - members) / max(1, non_members),
        true_positive_rate=members / max(1, ranking.members),
    )


def _key_thresholds(ranking: _core.Ranking) -> IntArray:
    """Return guesses and members at the last threshold of each low FPR, and next to one half."""
    path = ranking.path("member")
    examples = ranking.examples
    non_members = examples - ranking.members

    def false_positives(guesses: int) -> int:
        guesses_made, true_positives = path.count(guesses)
        return guesses_made - true_positives

    numbers_of_guesses = range(1, examples + 1)
    middle = max(1, examples // 2)
    wanted_guesses = [
        bisect_right(numbers_of_guesses, false_positive_rate * non_members, key=false_positives)
        for false_positive_rate in LOW_RATES
    ]
    wanted_guesses += [middle, middle + 1]
    thresholds = [
        path.count(guesses) for guesses in wanted_guesses if guesses in numbers_of_guesses
    ]
    before_middle = path.prefix(middle)
    thresholds.append((before_middle.guesses, before_middle.correct))
    return np.array(thresholds, dtype=np.int64)


def histogram(scores: FloatArray, member: BoolArray) -> Histogram:
    """Count members and non-members in 60 bins of score; those beyond count in the end bins."""
    return histogram_of(ScoreCounts(scores, member, ~member))


def histogram_of(counts: ScoreCounts) -> Histogram:
    """Draw the histogram of scores that may be counted."""
    is_finite = np.isfinite(counts.values)
    lowest_edge = 0.0
    highest_edge = 0.0
    if is_finite.any():
        lowest_edge, highest_edge = _histogram_range(counts, is_finite)
    if lowest_edge == highest_edge:
        lowest_edge -= 0.5
        highest_edge += 0.5
    # Halves, as the difference of two large scores may be infinite.
    edges = 2 * np.linspace(lowest_edge / 2, highest_edge / 2, _BINS + 1)
    bin_of_score = np.searchsorted(edges[1:-1], counts.values, side="right")
    members = np.bincount(bin_of_score, weights=counts.members, minlength=_BINS)
    non_members = np.bincount(bin_of_score, weights=counts.others, minlength=_BINS)
    return Histogram(
        edges=edges,
        members=members.astype(np.int64),
        non_members=non_members.astype(np.int64),
    )


def _histogram_range(counts: ScoreCounts, is_finite: BoolArray) -> tuple[float, float]:
    """Return the quantiles between which finite scores are drawn."""
    finite_scores = counts.values[is_finite]
    if counts.members.dtype == np.bool_:
        low_quantile, high_quantile = np.quantile(finite_scores, _DRAWN_QUANTILES)
        return float(low_quantile), float(high_quantile)
    examples_at = counts.members + counts.others
    examples_up_to = np.cumsum(examples_at[is_finite])
    ranks_of_quantiles = np.multiply(_DRAWN_QUANTILES, examples_up_to[-1] - 1)
    rows_of_quantiles = np.searchsorted(examples_up_to, ranks_of_quantiles, side="right")
    low_score, high_score = finite_scores[rows_of_quantiles]
    return float(low_score), float(high_score)


def _with_chosen_cut(points: CurvePoints, best: BestCut) -> CurvePoints:
    """Put the chosen cut among the points, in place of any other value at that cut."""
    guesses, correct, logit_bounds = points
    if best.cut == 0:
        return points
    first_equal_cut, end_of_equal_cuts = np.searchsorted(guesses, [best.cut, best.cut + 1])
    equal_cuts = slice(first_equal_cut, end_of_equal_cuts)

    def with_chosen(values: AnyArray, chosen_value: float) -> AnyArray:
        return np.insert(np.delete(values, equal_cuts), first_equal_cut, chosen_value)

    return (
        with_chosen(guesses, best.cut),
        with_chosen(correct, best.successes),
        with_chosen(logit_bounds, best.logit),
    )
