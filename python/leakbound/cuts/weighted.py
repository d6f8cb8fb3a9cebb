"""One test without cuts: every example is guessed a member, with a weight."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import numbers
from leakbound._base.odds import logit
from leakbound._base.records import encode
from leakbound.cuts.games import Game, ScoreGame
from leakbound.cuts.policy import Best, Policy, Proof, untested
from leakbound.errors import AbstentionError, OptionError

# Weights are rounded to multiples of one over this, which keeps the tail exact and quick
_STEPS = 64


@dataclass(frozen=True)
class Weighted(Policy):
    """No cut at all: every example is guessed a member, with its score in [0, 1] as a weight.

    The weight of all members is compared with its largest law (Kazmi et al. 2024, Propositions 1
    and 2, as stated). For scores that are calibrated beforehand, such as probabilities; they are
    rounded to multiples of 1/64. Guesses are of "member" only.
    """

    method: ClassVar[str] = (
        "One test without thresholds: the weight of the members is compared with that of "
        "independent guesses, a weighted Poisson-binomial tail."
    )

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: bound the odds by the weight that members have in all.

        If each example is a member with probability at most p, given the scores and the coins
        before, the weight of the members is dominated by Σ t_i S'_i, S' independent Bernoulli(p).
        The bound is the largest p at which that is so large with probability at most `level`.
        """
        # 1. Members are guessed, each with its score as a weight.
        if game.sides != "member":
            way = f"which of {'a pair' if game.k == 2 else game.k} is one: take KLScan"
            if game.sides in {"both", "auto"}:
                way = 'non-members: set sides="member"'
            message = f"cuts=Weighted() guesses members only, not {way}"
            raise OptionError(message)
        if not isinstance(game, ScoreGame):
            message = (
                "cuts=Weighted() weighs every example by its score, and a tally only has the "
                "order of scores: use KLScan, or audit the scores themselves"
            )
            raise OptionError(message)
        scores, member = game.scores, game.member
        numbers(scores, f"{game.name}, which are weights,", least=0, most=1)
        steps = np.rint(scores * _STEPS).astype(np.int64)
        guessed = steps > 0
        if not guessed.any():
            message = f"all {game.name} round to 0, so no guess is made: some weight must be larger"
            raise AbstentionError(message)
        # 2. The weight of the members is tested against that of coins.
        steps //= np.gcd.reduce(steps)
        weights, weight = steps[guessed].astype(np.uint64), int(steps[member].sum())
        log_odds = -math.inf
        if weight:
            fair, threshold = np.zeros(weights.size), np.array([weight], dtype=np.int64)
            log_odds = float(
                _core.weighted_epsilon(fair, threshold, beta=level, weights=weights)[0]
            )
        # 3. No cut is tested, so that the curve has a bound at no other one.
        ranking = game.ranked()
        share = weight / int(weights.sum())
        return Proof(
            policy=self,
            game=game,
            ranking=ranking,
            order="member",
            best=Best(log_odds, int(guessed.sum()), int((guessed & member).sum())),
            level=level,
            reason=""
            if log_odds > 0
            else f"members have {share:.3f} of the weight, which chance explains",
            options={"cuts": encode(self), "paths": ["member"], "level": level},
            perfect=lambda: _perfect(scores.size // 2, level),
            points=lambda most: untested(ranking.path("member"), most),
        )


def _perfect(members: int, level: float) -> float:
    """Return the bound where all members have weight 1, and nothing else has any."""
    return logit(level ** (1 / members)) if members else 0.0
