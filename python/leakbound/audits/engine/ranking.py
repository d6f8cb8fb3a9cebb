"""From scores and membership to what a ranking proves: the middle of every audit.

Scores are ranked, a cut policy tests paths of right and wrong guesses, and the best bound wins.
"""

from dataclasses import replace

import numpy as np

import leakbound._core as _core
from leakbound._base.records import Lazy, encode
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, JsonValue, PathOrder, Sides
from leakbound.audits.engine.evidence import POINTS, curve, histogram, roc
from leakbound.audits.engine.trial import PATH_NAMES, Trial, reason
from leakbound.audits.engine.warnings import ranking_warnings, tie_warnings
from leakbound.audits.engine.weighted import audit_weighted
from leakbound.audits.policies.f_dp import FamilyPolicy
from leakbound.cuts import (
    ORDERS,
    CutPolicy,
    Fixed,
    PathPolicy,
    ScoreAdaptive,
    Split,
    Weighted,
)
from leakbound.errors import AbstentionError, IncompatibleOptionsError, OptionError
from leakbound.results import ScoreAudit

__all__ = ["audit_scores", "untied"]

_ONE_CUT = Fixed(1)


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
