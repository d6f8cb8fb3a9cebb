"""Runs of training or of a mechanism, each with a fair coin that decided on its one example."""

from bisect import bisect_right
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from leakbound._base import shares
from leakbound._base.brief import brief
from leakbound._base.checks import flag
from leakbound._base.drawn import refuse_copies
from leakbound._base.hints import OF_AUDITS, hinted
from leakbound._base.messages import Message
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    BoolArray,
    CoinSides,
    FloatArray,
    IntArray,
    MemberInput,
    Strings,
)
from leakbound.audits.coins import Coins
from leakbound.audits.member_count import MemberCount
from leakbound.audits.policies.trials import LEAST_LEVEL
from leakbound.audits.premises import assumptions_on_scores
from leakbound.audits.road import Attacks, Design, Examples, Listed, Request
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
_DISCRETE = 50
_EQUAL = 0.01
INDEPENDENT = (
    "independent trials with fair coins",
    (
        "Each score has a separate run, with fresh randomness and a fair coin that decided whether "
        "this run had its example; no run saw the coin of another. The random parts are the coins, "
        "the runs and the audit."
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
        "those without. How many there are of each was fixed before the first one. The random "
        "parts are the runs and the audit."
    ),
)
_COINS = Message(
    "A separate fair coin must decide before each run: toss it, and run again; if the numbers of "
    "runs were fixed in advance, pass {fixed=True}"
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


@hinted(**OF_AUDITS)
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

    name = "trials"
    sides = ("auto",)
    member: MemberInput
    _: KW_ONLY
    fixed: bool = False

    __repr__ = brief

    def __post_init__(self) -> None:
        flag(self.fixed, "fixed")
        refuse_copies(self.member)

    @property
    def wording(self) -> Wording:
        """See `Design.wording`."""
        if self.fixed:
            return FIXED_TRIALS
        return TRIALS

    def audit(self, scores: Listed, request: Request, /) -> AuditResult:
        """See `Design.audit`."""
        examples = Coins(self.member).listed(scores, request)
        runs = self._audited_runs(examples, request.seed)
        member = runs.member
        member_count = MemberCount.of_coins(int(member.sum()), member.size)
        options = dict(examples.options)
        independence = INDEPENDENT
        if self.fixed:
            options |= {"fixed": True, "runs": examples.inputs["member"].size}
            independence = _FIXED
        test = self._test_of_claim(examples, runs, request)
        on_scores = assumptions_on_scores(
            request.claim,
            others=runs.attacks.others,
            output="outputs of the runs",
            units="examples",
            order=_ORDER,
            of="a trial",
        )
        return replace(
            examples,
            game=lambda values: test.game(
                scores=values,
                member=member,
                sides=test.sides,
                seed=request.seed,
            ),
            attacks=runs.attacks,
            count=replace(member_count, ways_out=_COINS),
            share=runs.share,
            exposed=None,
            theorem=test.theorem,
            assumptions=(member_count.assumption(*independence), test.neighbours, *on_scores),
            options=options,
            warnings=(*member_count.warnings(), *_warning_of_equal_scores(runs.attacks)),
        ).audit(request, self)

    def _audited_runs(self, examples: Examples[FloatArray], seed: int) -> "_AuditedRuns":
        """Return the runs that are audited: of fixed numbers those that coins pick."""
        member = examples.inputs["member"].astype(np.bool_)
        attacks: Any = examples.attacks
        runs = _AuditedRuns(attacks=attacks, member=member)
        usable_runs = ""
        if self.fixed:
            rows, probability_sufficient = _runs_of_coins(member, seed)
            share = shares.FIXED_RUNS.of(probability_sufficient)
            runs = _AuditedRuns(attacks=attacks.taken(rows), member=member[rows], share=share)
            usable_runs = f", of which {rows.size} can be used"
        if runs.member.size < _FEWEST:
            raise InputError(
                f"Trials needs at least {_FEWEST} runs, got {member.size}{usable_runs}: run more"
            )
        return runs

    def _test_of_claim(
        self, examples: Examples[FloatArray], runs: "_AuditedRuns", request: Request
    ) -> "_TestOfClaim":
        """Return how a claim is tested: where independence proves no more, as that of coins."""
        claim = request.claim
        test = _TestOfClaim(game=ScoreGame, sides=request.sides, theorem=examples.theorem)
        if request.cuts is not None:
            return test
        # Under pure DP randomised response is the worst of one run, too.
        least_level = len(runs.attacks.scores) * LEAST_LEVEL / runs.share
        if isinstance(claim, FAMILIES) and request.level >= least_level:
            # Runs have their example or not, so f itself bounds ranks and not its mirror image too.
            return _TestOfClaim(game=TrialGame, sides="member", theorem=_THEOREM + _CONVERTED)
        if isinstance(claim, ApproxDP):
            about_earlier_runs = _EARLIER
            if self.fixed:
                about_earlier_runs = ""
            neighbours = replace(NEIGHBOURS, statement=_BOTH_WAYS + about_earlier_runs)
            return replace(test, game=TrialGame, theorem=_FAILING, neighbours=neighbours)
        return test


@dataclass(frozen=True, kw_only=True, eq=False)
class _AuditedRuns:
    """The runs that are audited, and the part of the probability of error for them."""

    attacks: Attacks
    member: BoolArray
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class _TestOfClaim:
    """How runs are tested: the game of scores, whom guesses call members, and why it is valid."""

    game: type[ScoreGame]
    sides: CoinSides
    theorem: str
    neighbours: Assumption = NEIGHBOURS


def _warning_of_equal_scores(attacks: Attacks) -> Strings:
    """Say that many scores of runs are equal, where they have too many values to be discrete."""
    for scores in attacks.scores.values():
        # NumPy's `unique` takes several times this memory to count scores.
        sorted_scores = np.sort(scores)
        differs_from_last = np.append(True, sorted_scores[1:] != sorted_scores[:-1])
        differs_from_next = np.append(differs_from_last[1:], True)
        distinct_scores = differs_from_last.sum()
        unique_scores = int((differs_from_last & differs_from_next).sum())
        equal_scores = scores.size - unique_scores
        if distinct_scores > _DISCRETE and equal_scores > _EQUAL * scores.size:
            warning = (
                f"{equal_scores:,} of {scores.size:,} runs have exactly the score of another run: "
                "if outputs are continuous, runs share a seed or a cache, and are not independent"
            )
            return (warning,)
    return ()


def _runs_of_coins(member: BoolArray, seed: int) -> tuple[IntArray, float]:
    """Toss coins for trials and return their runs, and the probability that runs suffice.

    Given that they do, a test at this part of the level is wrong with at most the level.
    """
    runs_with_example = np.flatnonzero(member)
    runs_without_example = np.flatnonzero(~member)

    def probability_sufficient(trials: int) -> float:
        probability_short = 0.0
        for runs in (runs_with_example, runs_without_example):
            least_short = min(runs.size, trials) + 1
            probability_short += binomial_tail(least_short, trials, 0.5)
        return 1 - probability_short

    numbers_of_trials = range(1, member.size + 1)
    trials = bisect_right(
        numbers_of_trials, -_SUFFICE, key=lambda trials: -probability_sufficient(trials)
    )
    rng = Purpose.TRIAL_COINS.rng(seed)
    while True:
        with_example = int(rng.binomial(trials, 0.5))
        without_example = trials - with_example
        runs = np.concatenate(
            [
                rng.permutation(runs_with_example)[:with_example],
                rng.permutation(runs_without_example)[:without_example],
            ]
        )
        if runs.size == trials:
            return np.sort(runs), probability_sufficient(trials)
