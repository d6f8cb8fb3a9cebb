"""From scores and membership to what a ranking proves: the middle of every audit.

Scores are ranked, a cut policy tests paths of right and wrong guesses, and the best bound wins.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from leakbound import _core
from leakbound._json import Lazy, encode
from leakbound._streams import Purpose
from leakbound._typing import BoolArray, FloatArray, JsonValue, PathName, PathOrder, Sides
from leakbound.audits._details import POINTS, curve, histogram, roc
from leakbound.audits._fdp import FamilyPolicy
from leakbound.audits._warnings import ranking_warnings, tie_warnings
from leakbound.audits._weighted import audit_weighted
from leakbound.cuts import (
    ORDERS,
    BestCut,
    CutPolicy,
    Fixed,
    PathPolicy,
    ScoreAdaptive,
    Split,
    Weighted,
)
from leakbound.errors import AbstentionError, IncompatibleOptionsError, OptionError
from leakbound.results import ScoreAudit

__all__ = ["PATH_NAMES", "audit_scores", "reason", "untied"]

_ONE_CUT = Fixed(1)

PATH_NAMES: dict[PathOrder, PathName] = {
    "member": "member",
    "member_half": "members",
    "nonmember_half": "non-members",
    "interleaved": "interleaved",
}


@dataclass(frozen=True)
class Trial:
    """A policy tested on some paths of a ranking, and the path that won."""

    ranking: _core.Ranking
    cuts: PathPolicy
    orders: tuple[PathOrder, ...]
    level: float
    order: PathOrder
    path: _core.Path
    best: BestCut
    recall: float = 1.0

    @property
    def cut(self) -> tuple[int, int]:
        """Guesses made and guesses right at the chosen cut."""
        return self.cuts.chosen(self.path, self.best)

    @classmethod
    def of(
        cls,
        ranking: _core.Ranking,
        cuts: PathPolicy,
        orders: tuple[PathOrder, ...],
        beta: float,
        recall: float = 1.0,
    ) -> "Trial":
        """Bound every path at its share of `beta` and keep the best; on equality the first.

        Cuts of more than a share `recall` of the examples are left out.
        """
        level = cuts.level(beta, len(orders))
        paths = {order: cuts.path(ranking, order) for order in orders}
        if recall < 1:
            most = _most(recall, ranking.examples)
            paths = {order: path.prefix(most) for order, path in paths.items()}
        bounds = {order: cuts.along(order).bound(path, level) for order, path in paths.items()}
        winner = max(orders, key=lambda order: bounds[order].logit)
        return cls(ranking, cuts, orders, level, winner, paths[winner], bounds[winner], recall)

    def perfect(self, cuts: PathPolicy, examples: int) -> float:
        """Return what a perfect attack proves on the longest path."""
        most = None if self.recall == 1 else _most(self.recall, examples)
        return cuts.perfect(self.orders[-1], examples, self.level, most)


def _most(recall: float, examples: int) -> int:
    """Return the guesses of the longest cut, whose recall is so large if scores say nothing."""
    return max(1, math.floor(recall * examples))


def audit_scores(
    scores: FloatArray,
    member: BoolArray,
    *,
    cuts: CutPolicy | PathPolicy,
    sides: Sides,
    beta: float,
    seed: int,
    name: str = "scores",
    break_ties: bool = False,
    one_cut: Fixed | FamilyPolicy = _ONE_CUT,
    recall: float = 1.0,
) -> ScoreAudit:
    """Bound the log-odds of a right guess from below.

    Parameters
    ----------
    scores : ndarray of float64, shape (m,)
        Validated scores.
    member : ndarray of bool, shape (m,)
        Validated membership.
    cuts : CutPolicy
        Which cuts are tested.
    sides : {"both", "member"}
        Whether non-members are guessed too.
    beta : float
        Probability that the bound is above the truth, in (0, 1).
    seed : int
        Seed of the parts of `Split`.
    name : str
        What to call the scores in messages.
    break_ties : bool
        Whether ties are broken at random, from the seed, instead of staying together.
    one_cut : Fixed or FamilyPolicy
        For `Split`: how the one cut is tested, whatever its number of guesses.
    recall : float
        Largest share of the examples that a tested cut guesses, in (0, 1].

    Returns
    -------
    ScoreAudit
        The best bound over the paths tested, and where it comes from.

    Raises
    ------
    AbstentionError
        If the scores order nothing.
    OptionError
        If the policy does not suit the number of examples.
    IncompatibleOptionsError
        If the policy is for families of trade-off functions only.
    """
    if isinstance(cuts, Split):
        if break_ties:
            scores = untied(scores, seed)
        return _audit_split(
            scores, member, cuts, one_cut, sides=sides, beta=beta, seed=seed, name=name
        )
    if isinstance(cuts, Weighted):
        return audit_weighted(scores, member, beta=beta, name=name)
    if isinstance(cuts, ScoreAdaptive):
        message = "cuts=ScoreAdaptive(…) is for families of trade-off functions: take KLScan here"
        raise IncompatibleOptionsError(message)
    cuts.check(scores.size)
    ranking = _rank(scores, member, name)
    notes: tuple[str, ...] = ()
    if break_ties and ranking.tied:
        notes = tie_warnings(ranking)
        ranking = _core.Ranking(untied(scores, seed), member)
    trial = Trial.of(ranking, cuts, cuts.orders(sides), beta, recall)
    audit = _summary(trial, scores, member)
    return replace(audit, warnings=notes + audit.warnings) if notes else audit


def _audit_split(
    scores: FloatArray,
    member: BoolArray,
    cuts: Split,
    one_cut: Fixed | FamilyPolicy,
    *,
    sides: Sides,
    beta: float,
    seed: int,
    name: str,
) -> ScoreAudit:
    """Choose the path and the number of guesses on one part, test them on the other."""
    choosing = _draw(scores.size, cuts.fraction, seed)
    part = _rank(scores[choosing], member[choosing], f"{name} that choose the cut")
    scores, member = scores[~choosing], member[~choosing]
    ranking = _rank(scores, member, f"{name} that test the cut")
    order, guesses = _choose(part, ranking.examples, one_cut, sides, beta)
    guesses = min(guesses, ranking.path(order).guesses)
    trial = Trial.of(ranking, one_cut.with_guesses(guesses, ranking.examples), (order,), beta)
    split = {
        "cuts": encode(cuts),
        "chosen_guesses": guesses,
        "choosing_examples": part.examples,
    }
    return _summary(trial, scores, member, **split)


def untied(scores: FloatArray, seed: int) -> FloatArray:
    """Return the ranks of scores, ties broken by a permutation that membership has no part in.

    Parameters
    ----------
    scores : ndarray of float64, shape (m,)
        Not NaN.
    seed : int
        Seed of the permutation.

    Returns
    -------
    ndarray of float64, shape (m,)
        Distinct ranks in the order of the scores.
    """
    draw = Purpose.TIES.rng(seed).permutation(scores.size)
    ranks = np.empty(scores.size)
    ranks[np.lexsort((draw, scores))] = np.arange(scores.size)
    return ranks


def _rank(scores: FloatArray, member: BoolArray, name: str) -> _core.Ranking:
    ranking = _core.Ranking(scores, member)
    if ranking.blocks == 1:
        message = (
            f"all {scores.size} {name} are equal, so every example abstains: use a score that "
            "differs between examples"
        )
        raise AbstentionError(message)
    return ranking


def _draw(examples: int, fraction: float, seed: int) -> BoolArray:
    """Draw the part that chooses, without looking at scores or membership."""
    if examples < 4:
        message = f"Split needs at least 2 examples in each part, got {examples} in all"
        raise OptionError(message)
    size = min(max(2, round(fraction * examples)), examples - 2)
    chosen = np.zeros(examples, dtype=np.bool_)
    rows = Purpose.SPLIT.rng(seed).choice(examples, size, replace=False, shuffle=False)
    chosen[rows] = True
    return chosen


def _choose(
    part: _core.Ranking, examples: int, one_cut: Fixed | FamilyPolicy, sides: Sides, beta: float
) -> tuple[PathOrder, int]:
    """Return path and guesses with the best limit, if the other part were just like this one."""
    scale = examples / part.examples
    tested = one_cut.with_guesses(1, examples)
    orders = ORDERS[sides] if isinstance(tested, Fixed) else tested.orders(sides)
    options: list[tuple[float, PathOrder, int]] = []
    for order in orders:
        guesses, correct = part.path(order).sample(POINTS)
        expected = np.maximum(1, np.rint(guesses * scale)).astype(np.int64)
        right = np.minimum(expected, np.rint(correct * scale).astype(np.int64))
        limit = tested.limits(expected, right, beta)
        top = int(np.argmax(limit))
        options.append((float(limit[top]), order, int(expected[top])))
    _, order, chosen = max(options, key=lambda option: option[0])
    return order, chosen


def _summary(trial: Trial, scores: FloatArray, member: BoolArray, **more: JsonValue) -> ScoreAudit:
    ranking, (guesses, correct) = trial.ranking, trial.cut
    bound = max(0.0, trial.best.logit)
    ceiling = Lazy(lambda: max(bound, trial.perfect(trial.cuts, ranking.examples)))
    options = {
        "cuts": encode(trial.cuts.settled(trial.level)),
        "paths": [PATH_NAMES[order] for order in trial.orders],
        "level": trial.level,
    }
    return ScoreAudit(
        bound=bound,
        reason="" if bound else reason(guesses, correct),
        m=ranking.examples,
        members=ranking.members,
        guesses=guesses,
        correct=correct,
        path=PATH_NAMES[trial.order],
        auc=ranking.auc,
        options=options | more,
        warnings=ranking_warnings(trial, ceiling),
        _ceiling=ceiling,
        _curve=Lazy(lambda: curve(trial)),
        _roc=Lazy(lambda: roc(ranking)),
        _histogram=Lazy(lambda: histogram(scores, member)),
    )


def reason(guesses: int, correct: int) -> str:
    """Say why nothing is proved.

    Parameters
    ----------
    guesses, correct : int
        Guesses made and guesses right at the best cut; zeros if no cut stands out.

    Returns
    -------
    str
        A clause.
    """
    if guesses == 0:
        return "no tested cut has enough right guesses to count against chance"
    return (
        f"chance explains every tested cut: at the best one {correct} of {guesses} "
        "guesses are right"
    )
