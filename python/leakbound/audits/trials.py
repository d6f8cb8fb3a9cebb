"""Runs of training or of a mechanism, each with a fair coin that decided on its one example."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from leakbound._base.types import ArrayInput, CoinSides, HasMember
from leakbound.audits.coins import Coins
from leakbound.audits.member_count import MemberCount
from leakbound.audits.policies.trials import LEAST_LEVEL
from leakbound.audits.road import Design, Listed, Request, assumed, delta_warnings
from leakbound.claims import FAMILIES
from leakbound.cuts.games import ScoreGame, TrialGame
from leakbound.errors import InputError
from leakbound.results import AuditResult

# Of fewer runs even a perfect attack proves next to nothing
_FEWEST = 10
_COINS = "A separate fair coin must decide before each run: toss it, and run again"
_ORDER = "The ranking depends on scores only; ties are broken by the seed."
_THEOREM = (
    "Trials are independent and each obeys the trade-off function. So no mechanism gives a "
    "statistic that grows when members move up in the ranking a larger distribution than one whose "
    "scores are the likelihood ratios of two laws with this trade-off function. "
)
_CONVERTED = "ε is a conversion of the rejected curve and holds within the family. "


@dataclass(frozen=True, eq=False)
class Trials(Design[Listed, AuditResult]):
    """Each score is from a separate, independent run whose fair coin decided on its one example.

    This is for mechanisms that run many times, local randomisers, and models trained from scratch
    for each coin. It is wrong for coins of one training run, whose guesses may depend on each
    other: these are `Coins`.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        What the coin of each run said, for at least ten runs: booleans, {0, 1} or {-1, +1}. A plan,
        or a pandas Series, is joined with scores that have ids.

    Notes
    -----
    The bound takes the whole ranking: ``docs/theory/trials.md`` has theorem and proof. For
    `ApproxDP` it is the larger of this and that of `Coins`, at a fifth and at four fifths of the
    probability of error. It is that of `Coins` for `PureDP`, where independence proves no more, if
    `cuts` are given, and above 99.99 % confidence.

    Examples
    --------
    A thousand runs of the Gaussian mechanism:

    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> outputs = rng.normal(size=1000) + member
    >>> result = lb.audit(outputs, lb.Trials(member), claim=lb.GaussianDP(), seed=0)
    >>> 0.8 < result.bound < 1
    True
    """

    name: ClassVar[str] = "trials"
    sides: ClassVar[tuple[CoinSides, ...]] = ("auto",)
    member: ArrayInput | HasMember

    def audit(self, scores: Listed, request: Request, /) -> AuditResult:
        """See `Design.audit`."""
        claim, examples = request.claim, Coins(self.member).listed(scores, request)
        attacks, member = examples.attacks, examples.inputs["member"].astype(np.bool_)
        if member.size < _FEWEST:
            raise InputError(f"Trials needs at least {_FEWEST} runs, got {member.size}: run more")
        count = MemberCount.of_coins(int(member.sum()), member.size)
        # Under pure DP randomised response is the worst of one run, too.
        least, family = len(attacks.scores) * LEAST_LEVEL, isinstance(claim, FAMILIES)
        ranks = request.cuts is None and request.level >= least and bool(family or claim.delta)
        # Runs have their example or not, so f itself bounds ranks and not its mirror image too.
        sides: CoinSides = "member" if ranks and family else request.sides
        theorem = _THEOREM * ranks + (_CONVERTED if ranks and family else examples.theorem)
        independent = count.assumption(
            "independent trials with fair coins",
            "Each score has a separate run, with fresh randomness and a fair coin that decided "
            "whether this run had its example; no run saw the coin of another. Random are these "
            "coins, the runs and the audit; everything else is fixed.",
        )
        scored = assumed(claim, attacks, "outputs of the runs", "examples", _ORDER)
        return replace(
            examples,
            game=lambda values: (TrialGame if ranks else ScoreGame)(
                scores=values, member=member, sides=sides, seed=request.seed
            ),
            count=replace(count, ways_out=_COINS),
            exposed=None,
            theorem=theorem,
            assumptions=(independent, examples.assumptions[1], *scored),
            warnings=(*count.warnings(), *delta_warnings(claim.delta, member.size)),
        ).audit(request, self.name)
