"""One test without cuts: every example is guessed a member, with a weight."""

import math

import numpy as np

import leakbound._core as _core
from leakbound._base.records import Lazy
from leakbound._base.types import BoolArray, FloatArray
from leakbound._base.validation import numbers
from leakbound.audits.engine.evidence import POINTS, histogram, roc
from leakbound.errors import AbstentionError
from leakbound.results import Curve, ScoreAudit
from leakbound.stats import clopper_pearson, poisson_binomial_epsilon

__all__ = ["audit_weighted"]

_STEPS = 64
"""Weights are rounded to multiples of one over this, which keeps the tail exact and quick."""


def audit_weighted(
    scores: FloatArray, member: BoolArray, *, beta: float, name: str = "scores"
) -> ScoreAudit:
    """Bound the log-odds of a right guess of "member" by the weight that members have in all.

    If each example is a member with probability at most p, given the scores and the coins before,
    the weight of the members is dominated by Σ t_i S'_i, S' independent Bernoulli(p). The bound is
    the largest p at which that is so large with probability at most `beta`.

    Parameters
    ----------
    scores : ndarray of float64, shape (m,)
        The weights t_i, in [0, 1]; they are rounded to multiples of 1/64.
    member : ndarray of bool, shape (m,)
        Membership.
    beta : float
        Probability that the bound is above the truth, in (0, 1).
    name : str
        What to call the scores in messages.

    Returns
    -------
    ScoreAudit
        The bound.

    Raises
    ------
    OptionError
        If a weight is outside [0, 1].
    AbstentionError
        If all weights round to 0.
    """
    numbers(scores, f"{name}, which are weights,", least=0, most=1)
    steps = np.rint(scores * _STEPS).astype(np.int64)
    guessed = steps > 0
    if not guessed.any():
        message = f"all {name} round to 0, so every example abstains: some weight must be larger"
        raise AbstentionError(message)
    steps //= np.gcd.reduce(steps)
    weights, weight = steps[guessed], int(steps[member].sum())
    log_odds = (
        poisson_binomial_epsilon(weight, np.zeros(weights.size), beta=beta, weights=weights)
        if weight
        else -math.inf
    )
    bound = max(0.0, float(log_odds))
    ranking = _core.Ranking(scores, member)
    guesses, correct = int(guessed.sum()), int((guessed & member).sum())
    share = weight / int(weights.sum())
    return ScoreAudit(
        bound=bound,
        reason="" if bound else f"members have {share:.3f} of the weight, which chance explains",
        m=scores.size,
        members=ranking.members,
        guesses=guesses,
        correct=correct,
        path="member",
        auc=ranking.auc,
        options={"cuts": {"type": "Weighted"}, "paths": ["member"], "level": beta},
        warnings=(),
        _ceiling=Lazy(lambda: max(bound, _perfect(scores.size // 2, beta))),
        _curve=Lazy(lambda: _curve(ranking, guesses, correct, bound)),
        _roc=Lazy(lambda: roc(ranking)),
        _histogram=Lazy(lambda: histogram(scores, member)),
    )


def _perfect(members: int, beta: float) -> float:
    """Return the bound where all members have weight 1, and nothing else has any."""
    if members == 0:
        return 0.0
    p = clopper_pearson(members, members, beta=beta)
    return math.log(p) - math.log1p(-p)


def _curve(ranking: _core.Ranking, guesses: int, correct: int, bound: float) -> Curve:
    """Return cuts of the ranking; only the set of all guesses has a bound."""
    made, right = ranking.path("member").sample(POINTS - 1)
    place = int(np.searchsorted(made, guesses))
    rest = place + int(place < made.size and made[place] == guesses)
    made = np.concatenate([made[:place], [guesses], made[rest:]])
    right = np.concatenate([right[:place], [correct], right[rest:]])
    return Curve(
        guesses=made,
        correct=right,
        precision=right / made,
        recall=right / max(1, ranking.members),
        bound=np.where(made == guesses, bound, np.nan),
    )
