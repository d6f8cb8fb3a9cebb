"""Figures of results: curve, ROC and histogram, made when they are asked for."""

from bisect import bisect_right

import numpy as np

import leakbound._core as _core
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.cuts import BestCut, CurvePoints, Proof
from leakbound.cuts.games import ScoreCounts
from leakbound.report.parts import LOW_RATES
from leakbound.results import Curve, Histogram, Roc

POINTS = 2000
"""The most cuts of a curve and thresholds of a ROC."""
_BINS = 60
_DRAWN = (0.001, 0.999)
"""Quantiles of scores where the histogram ends."""


def curve(proof: Proof) -> Curve:
    """Return the winning path with its bound at each cut, the chosen one among them.

    Of guesses from either end the path is both in turn, and the chosen cut is not on it.
    """
    shown = proof.drawn
    points = shown.points(POINTS - 1)
    on_path = shown.best is proof.best and shown.order != "ends" and proof.policy.on_path
    # Bounds in the units of the claim; none is above what is reported for the chosen cut.
    if on_path:
        points = _with_cut(points, proof.best)
    guesses, correct, logit = points
    ranking = proof.ranking
    game = proof.game
    all_right = {
        "interleaved": ranking.examples,
        "ends": ranking.examples,
        "nonmember_half": ranking.examples - ranking.members,
        "pairs": game.examples,
    }
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / max(1, all_right.get(shown.order, ranking.members)),
        bound=np.clip(logit, 0.0, proof.bound),
    )


def roc(ranking: _core.Ranking) -> Roc:
    """Return a ranking as a membership test, with the thresholds of its key numbers."""
    thresholds = np.concatenate([np.column_stack(ranking.roc(POINTS)), _key_thresholds(ranking)])
    guesses, first = np.unique(thresholds[:, 0], return_index=True)
    members = thresholds[first, 1]
    others = ranking.examples - ranking.members
    return Roc(
        guesses=guesses,
        members=members,
        false_positive_rate=(guesses - members) / max(1, others),
        true_positive_rate=members / max(1, ranking.members),
    )


def _key_thresholds(ranking: _core.Ranking) -> IntArray:
    """Return guesses and members at the last threshold of each low FPR, and next to one half."""
    path = ranking.path("member")
    examples = ranking.examples
    others = examples - ranking.members

    def wrong(guesses: int) -> int:
        made, right = path.count(guesses)
        return made - right

    numbers = range(1, examples + 1)
    middle = max(1, examples // 2)
    wanted = [bisect_right(numbers, rate * others, key=wrong) for rate in LOW_RATES]
    wanted += [middle, middle + 1]
    cuts = [path.count(guesses) for guesses in wanted if guesses in numbers]
    below = path.prefix(middle)
    cuts.append((below.guesses, below.correct))
    return np.array(cuts, dtype=np.int64)


def histogram(scores: FloatArray, member: BoolArray) -> Histogram:
    """Count members and non-members in 60 bins of score; those beyond count in the end bins."""
    return histogram_of(ScoreCounts(scores, member, ~member))


def histogram_of(shown: ScoreCounts) -> Histogram:
    """Draw the histogram of scores that may be counted."""
    finite = np.isfinite(shown.values)
    low = 0.0
    high = 0.0
    if finite.any():
        low, high = _range(shown, finite)
    if low == high:
        low -= 0.5
        high += 0.5
    edges = 2 * np.linspace(low / 2, high / 2, _BINS + 1)
    bins = np.searchsorted(edges[1:-1], shown.values, side="right")
    members = np.bincount(bins, shown.members, minlength=_BINS)
    others = np.bincount(bins, shown.others, minlength=_BINS)
    return Histogram(
        edges=edges, members=members.astype(np.int64), non_members=others.astype(np.int64)
    )


def _range(shown: ScoreCounts, finite: BoolArray) -> tuple[float, float]:
    """Return the quantiles between which finite scores are drawn."""
    values = shown.values[finite]
    if shown.members.dtype == np.bool_:
        first, last = np.quantile(values, _DRAWN)
        return float(first), float(last)
    examples = shown.members + shown.others
    ends = np.cumsum(examples[finite])
    wanted = np.multiply(_DRAWN, ends[-1] - 1)
    low, high = values[np.searchsorted(ends, wanted, side="right")]
    return float(low), float(high)


def _with_cut(points: CurvePoints, best: BestCut) -> CurvePoints:
    """Put the chosen cut among the points, in place of any other value at that cut."""
    guesses, correct, logit = points
    if best.cut == 0:
        return points
    first = int(np.searchsorted(guesses, best.cut))
    rest = int(np.searchsorted(guesses, best.cut, side="right"))
    same = slice(first, rest)
    return (
        np.insert(np.delete(guesses, same), first, best.cut),
        np.insert(np.delete(correct, same), first, best.successes),
        np.insert(np.delete(logit, same), first, best.logit),
    )
