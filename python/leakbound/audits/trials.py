"""Runs of training or of a mechanism, each with a fair coin that decided on its one example."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, cast

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import flag, refuse_copies
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, CoinSides, HasMember, IntArray
from leakbound.audits.coins import Coins
from leakbound.audits.member_count import MemberCount
from leakbound.audits.policies.trials import LEAST_LEVEL
from leakbound.audits.road import Attacks, Design, Listed, Request, assumed
from leakbound.claims import FAMILIES, ApproxDP
from leakbound.cuts.games import ScoreGame, TrialGame
from leakbound.errors import InputError
from leakbound.results import Assumption, AuditResult
from leakbound.results.wording import FIXED_TRIALS, TRIALS, Wording
from leakbound.stats import binomial_tail

# Of fewer runs even a perfect attack proves next to nothing
_FEWEST = 10
# The probability that runs of fixed numbers suffice for coins, at least
_SUFFICE = 0.9
# If scores have more values than this, and a larger part of them is equal to others, say so
_DISCRETE, _EQUAL = 50, 0.01
INDEPENDENT = (
    "independent trials with fair coins",
    (
        "Each score has a separate run, with fresh randomness and a fair coin that decided whether "
        "this run had its example; no run saw the coin of another. Random are these coins, the "
        "runs and the audit; everything else is fixed."
    ),
)
"""The first assumption of trials."""
NEIGHBOURS = Assumption(
    "neighbouring inputs",
    "The claim regards the inputs of a run with its example and without as neighbours.",
    "declared",
)
"""The second one: for which inputs the claim is."""
_BOTH_WAYS = (
    "The claim regards the inputs of a run with its example and without as neighbours, in both "
    "directions."
)
_EARLIER = " The mechanism of a run may depend on outputs of earlier runs, never on their coins."
_FIXED = (
    "independent runs, alike",
    (
        "Each score has a separate run, with fresh randomness, and reads the output of this run "
        "alone, by a rule that was fixed before. Runs with the example are all alike, and so are "
        "those without. How many there are of each was fixed before the first one. Random are the "
        "runs and the audit; everything else is fixed."
    ),
)
_COINS = (
    "A separate fair coin must decide before each run: toss it, and run again; if the numbers of "
    "runs were fixed in advance, pass fixed=True"
)
_ORDER = "The ranking depends on scores only; ties are broken by the seed."
_THEOREM = (
    "Trials are independent and each obeys the trade-off function. So no mechanism gives a "
    "statistic that grows when members move up in the ranking a larger distribution than one whose "
    "scores are the likelihood ratios of two laws with this trade-off function. "
)
_CONVERTED = "ε is a conversion of the rejected curve and holds within the family. "
_FAILING = (
    "Trials are independent, and each is (ε, δ)-DP in both directions: with its example against "
    "without, and without against with. The mechanism of a trial may depend on outputs of earlier "
    "trials, never on their coins. So the output of each trial is a random function of one that "
    "tells the coin with probability δ, whatever the coin, and is randomised response at ε "
    "otherwise (Kairouz, Oh and Viswanath 2015; Blackwell 1953). Given all outputs and the coins "
    "outside the guesses, each guess about a trial that does not tell is right with probability at "
    "most e^ε / (1 + e^ε), independently. "
)


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
    fixed : bool
        Whether the numbers of runs with and without the example were fixed, such as 500 each, in
        place of coins. All runs of a kind must be alike. The audit tosses coins for as many trials
        as both kinds can serve, mostly, and gives each the next run of its kind, at random. Then
        the score of a run may read the output of this run only, by a rule fixed before.

    Notes
    -----
    For families of trade-off functions the bound takes the whole ranking. For `ApproxDP` it is
    Clopper and Pearson's limit of guesses chosen as `SecondLook` chooses them, with an allowance
    for the trials that fail: of m trials, a binomial number with probability δ each.
    ``docs/theory/trials.md`` has theorems and proofs. The bound is that of `Coins` for `PureDP`,
    where independence proves no more, if `cuts` are given, and for families where a test would
    have less than 10⁻⁴ of error probability.

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
    _: KW_ONLY
    fixed: bool = False

    def __post_init__(self) -> None:
        flag(self.fixed, "fixed")
        refuse_copies(self.member)

    @property
    def wording(self) -> Wording:
        """See `Design.wording`."""
        return FIXED_TRIALS if self.fixed else TRIALS

    def audit(self, scores: Listed, request: Request, /) -> AuditResult:
        """See `Design.audit`."""
        claim, examples = request.claim, Coins(self.member).listed(scores, request)
        attacks = cast("Attacks", examples.attacks)
        member = examples.inputs["member"].astype(np.bool_)
        share, runs = 1.0, member.size
        if self.fixed:
            rows, sufficient = _tossed(member, request.seed)
            share = shares.FIXED_RUNS.of(sufficient)
            attacks, member = attacks.taken(rows), member[rows]
        if member.size < _FEWEST:
            used = f", of which {member.size} can be used" if self.fixed else ""
            raise InputError(f"Trials needs at least {_FEWEST} runs, got {runs}{used}: run more")
        count = MemberCount.of_coins(int(member.sum()), member.size)
        # Under pure DP randomised response is the worst of one run, too.
        least = len(attacks.scores) * LEAST_LEVEL / share
        ranks = isinstance(claim, FAMILIES) and request.level >= least and request.cuts is None
        failing = isinstance(claim, ApproxDP) and request.cuts is None
        # Runs have their example or not, so f itself bounds ranks and not its mirror image too.
        sides: CoinSides = "member" if ranks else request.sides
        theorem = _THEOREM + _CONVERTED if ranks else examples.theorem
        neighbours = NEIGHBOURS
        if failing:
            theorem = _FAILING
            earlier = "" if self.fixed else _EARLIER
            neighbours = replace(NEIGHBOURS, statement=_BOTH_WAYS + earlier)
        independent = count.assumption(*(_FIXED if self.fixed else INDEPENDENT))
        scored = assumed(claim, attacks, "outputs of the runs", "examples", _ORDER)
        return replace(
            examples,
            game=lambda values: (TrialGame if ranks or failing else ScoreGame)(
                scores=values, member=member, sides=sides, seed=request.seed
            ),
            attacks=attacks,
            count=replace(count, ways_out=_COINS),
            share=share,
            exposed=None,
            theorem=theorem,
            assumptions=(independent, neighbours, *scored),
            options={**examples.options, **({"fixed": True, "runs": runs} if self.fixed else {})},
            warnings=(
                *count.warnings(),
                *_repeated(attacks),
            ),
        ).audit(request, self)


def _repeated(attacks: Attacks) -> tuple[str, ...]:
    """Say that many scores of runs are equal, where they have too many values to be discrete."""
    for scores in attacks.scores.values():
        ordered = np.sort(scores)
        begins = np.append(True, ordered[1:] != ordered[:-1])
        alone = begins & np.append(begins[1:], True)
        equal = scores.size - int(alone.sum())
        if begins.sum() > _DISCRETE and equal > _EQUAL * scores.size:
            note = (
                f"{equal:,} of {scores.size:,} runs have exactly the score of another run: if "
                "outputs are continuous, runs share a seed or a cache, and are not independent"
            )
            return (note,)
    return ()


def _tossed(member: BoolArray, seed: int) -> tuple[IntArray, float]:
    """Toss coins for trials and return their runs, and the probability that runs suffice.

    Given that they do, a test at this part of the level is wrong with at most the level.
    """
    kinds = [np.flatnonzero(member == kind) for kind in (True, False)]

    def suffice(trials: int) -> float:
        short = (binomial_tail(min(kind.size, trials) + 1, trials, 0.5) for kind in kinds)
        return 1 - float(sum(short))

    low, high = 0, member.size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if suffice(middle) >= _SUFFICE else (low, middle - 1)
    rng = Purpose.TRIAL_COINS.rng(seed)
    while True:
        drawn = int(rng.binomial(low, 0.5))
        each = zip(kinds, (drawn, low - drawn), strict=True)
        used = [rng.permutation(kind)[:number] for kind, number in each]
        if sum(map(len, used)) == low:
            return np.sort(np.concatenate(used)), suffice(low)
