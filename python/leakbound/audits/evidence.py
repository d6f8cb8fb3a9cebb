"""Parts of a result: curve, ROC, histogram and provenance, and what a family assumes."""

from __future__ import annotations

import hashlib
import platform
from typing import TYPE_CHECKING

import numpy as np

import leakbound._core as _core
from leakbound._base.formatting import down
from leakbound._base.records import Lazy
from leakbound.claims import FAMILIES
from leakbound.cuts.base import PATH_NAMES, Shown, counted_quantile
from leakbound.results import Assumption, Curve, Histogram, Provenance, Roc, ScoreAudit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from leakbound._base.types import BoolArray, FloatArray, IntArray
    from leakbound.claims import Claim
    from leakbound.cuts import BestCut, CurvePoints, Finding, Game, Policy

POINTS = 2000
"""The most cuts of a curve and thresholds of a ROC."""
_BINS = 60
_DRAWN = (0.001, 0.999)
"""Quantiles of scores where the histogram ends."""


def curve(found: Finding) -> Curve:
    """Return the winning path with its bound at each cut; the chosen cut is always among them."""
    guesses, correct, logit = with_cut(found.points(POINTS - 1), found.best)
    ranking = found.ranking
    others = ranking.examples - ranking.members
    available = {
        "interleaved": ranking.examples,
        "nonmember_half": others,
        "pairs": found.game.examples,
    }
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / max(1, available.get(found.order, ranking.members)),
        bound=np.clip(logit, 0.0, max(0.0, found.best.logit)),
    )


def roc(ranking: _core.Ranking) -> Roc:
    """Return a ranking as a membership test."""
    guesses, members = ranking.roc(POINTS)
    return Roc(
        guesses=guesses,
        members=members,
        false_positive_rate=(guesses - members) / max(1, ranking.examples - ranking.members),
        true_positive_rate=members / max(1, ranking.members),
    )


def histogram(scores: FloatArray, member: BoolArray) -> Histogram:
    """Count members and non-members in 60 bins of score; those beyond count in the end bins."""
    return histogram_of(Shown(scores, member, ~member))


def histogram_of(shown: Shown) -> Histogram:
    """Draw the histogram of scores that may be counted."""
    finite = np.isfinite(shown.values)
    low, high = _range(shown, finite) if finite.any() else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = 2 * np.linspace(low / 2, high / 2, _BINS + 1)
    bins = np.searchsorted(edges[1:-1], shown.values, side="right")
    return Histogram(
        edges=edges,
        members=_in_bins(bins, shown.members),
        non_members=_in_bins(bins, shown.others),
    )


def _range(shown: Shown, finite: BoolArray) -> tuple[float, float]:
    """Return the quantiles between which finite scores are drawn."""
    values = shown.values[finite]
    if shown.members.dtype == np.bool_:
        first, last = np.quantile(values, _DRAWN)
        return float(first), float(last)
    counts = (shown.members + shown.others)[finite].astype(np.int64)
    low, high = (counted_quantile(values, counts, q) for q in _DRAWN)
    return low, high


def _in_bins(bins: IntArray, counts: BoolArray | IntArray) -> IntArray:
    if counts.dtype == np.bool_:
        return np.bincount(bins[counts.astype(np.bool_)], minlength=_BINS)
    total = np.zeros(_BINS, dtype=np.int64)
    np.add.at(total, bins, counts)
    return total


def family_assumption(claim: Claim) -> tuple[Assumption, ...]:
    """Return what a bound on a family of trade-off functions assumes; nothing for other claims."""
    if not isinstance(claim, FAMILIES):
        return ()
    return (
        Assumption(
            "family of trade-off functions",
            "The trade-off function of training is a curve of the claimed family, "
            f"{claim.name}. The bound holds within it: for a procedure of another curve, the ε "
            "converted from the rejected one may be above the truth.",
            "declared",
        ),
    )


def provenance(seed: int, **inputs: NDArray[np.generic]) -> Lazy[Provenance]:
    """Return where a result comes from, its digests left until asked for."""
    return Lazy(
        lambda: Provenance(
            leakbound=_core.__version__,
            python=platform.python_version(),
            numpy=np.__version__,
            seed=seed,
            sha256={name: _sha256(values) for name, values in inputs.items()},
        )
    )


def with_cut(points: CurvePoints, best: BestCut) -> CurvePoints:
    """Put the chosen cut among the points, in place of any other value at that cut."""
    guesses, correct, logit = points
    if best.cut == 0:
        return points
    place = int(np.searchsorted(guesses, best.cut))
    rest = place + int(place < guesses.size and guesses[place] == best.cut)
    return (
        np.concatenate([guesses[:place], [best.cut], guesses[rest:]]),
        np.concatenate([correct[:place], [best.successes], correct[rest:]]),
        np.concatenate([logit[:place], [best.logit], logit[rest:]]),
    )


def _sha256(values: NDArray[np.generic]) -> str:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return hashlib.sha256(little.data).hexdigest()


def audit_scores(policy: Policy, game: Game, level: float) -> ScoreAudit:
    """Bound the log-odds of a correct guess from below, wrong with probability `level`."""
    found = policy.audit(game, level)
    ranking, best = found.game.rated(found.ranking), found.best
    bound = max(0.0, best.logit)
    return ScoreAudit(
        bound=bound,
        reason="" if bound else found.reason,
        m=ranking.examples,
        members=ranking.members,
        guesses=best.cut,
        correct=best.successes,
        path=PATH_NAMES[found.order],
        auc=ranking.auc,
        options=found.options,
        warnings=found.warnings,
        _ceiling=found.ceiling,
        _curve=Lazy(lambda: curve(found)),
        _roc=Lazy(lambda: roc(ranking)),
        _histogram=Lazy(lambda: histogram_of(found.game.shown())),
    )


_CROWDED = 2 / 3
"""Share of its ceiling above which c_lb leaves little room for ε̃."""


def delta_warnings(delta: float, examples: int) -> tuple[str, ...]:
    """Say that a δ is no small one for so many examples."""
    if delta < 1 / examples:
        return ()
    note = (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that gives one "
        "example away entirely satisfies the claim, and large ε are hard to refute"
    )
    return (note,)


def saturation_warnings(c_lb: float, ceiling: Callable[[], float]) -> tuple[str, ...]:
    """Say that a generator is so easily told from real data that ε̃ has little room."""
    if c_lb <= 0 or c_lb <= _CROWDED * (reached := ceiling()):
        return ()
    room = down(reached - c_lb)
    note = (
        f"the generator is easily told from real data: c_lb = {down(c_lb)}, and a perfect attack "
        f"on these examples reaches {down(reached)}, so that ε̃ cannot exceed {room} whatever the "
        "model leaks; use a better generator, or more examples"
    )
    return (note,)
