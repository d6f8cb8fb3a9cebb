"""Runs of training or of a mechanism, each with a fair coin that decided on its one example.

*Bets*, for claims other than pure DP: docs/theory/streaming.md has the proof. A claim at θ makes
every trial (ε, δ_θ(ε))-DP for each ε. A bet at odds of e^ε pays σ(η)/σ(ε) for a right guess and
σ(-η)/σ(-ε) for a wrong one, with η > ε; its fee, for each trial, is the most that failures add on
average. What was won depends on counts only.
"""

import math
from bisect import bisect_right
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from leakbound._base import shares
from leakbound._base.brief import brief
from leakbound._base.checks import flag
from leakbound._base.drawn import refuse_copies
from leakbound._base.messages import OF_AUDITS, Message, hinted
from leakbound._base.numerics import expit, halved, logit
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    BoolArray,
    CoinSides,
    FloatArray,
    IntArray,
    MemberInput,
    Sides,
    Strings,
)
from leakbound.audits.coins import Coins
from leakbound.audits.member_count import MemberCount
from leakbound.audits.policies.trials import LEAST_LEVEL, pooled
from leakbound.audits.premises import assumptions_on_scores
from leakbound.audits.road import Attacks, Design, Examples, Listed, Request
from leakbound.audits.sequences import GuessSequence
from leakbound.claims import FAMILIES, ApproxDP, Claim
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


# How far above the odds of a bet the odds are that it hopes for: e to the power of these
_HOPED_EXCESS = np.array([[0.4], [1.2], [5.0]])
# Edges between which bets stay the same are above the least parameter by
# _FIRST_WIDTH (_GROWTH_OF_WIDTHS^k - 1)
_FIRST_WIDTH = 0.2
_GROWTH_OF_WIDTHS = 1.05
# Edges at most: the last is 3e20 above the least parameter, where a claim promises nothing
_MOST_EDGES = 1000
# The most probability of a right guess by which odds are chosen
_MOST_ACCURACY = 1 - 1e-9
# Relative width at which a search ends; allowance for rounding, relative to what was paid
_SEARCH_WIDTH = 1e-6
_ROUNDING_ALLOWANCE = 1e-12


class Terms(NamedTuple):
    """Terms of the bets on each sequence: ε, and logarithms of what right and wrong guesses pay."""

    log_odds: FloatArray
    log_payoff_correct: FloatArray
    log_payoff_wrong: FloatArray


@dataclass(frozen=True)
class Bets:
    """Bets on sequences of guesses, whose terms are chosen for the parameter that is tested."""

    claim: Claim
    sequences: tuple[GuessSequence, ...]
    level: float

    def lower_edge(self, interval: int) -> float:
        """Return the parameter at which the terms of an interval begin."""
        least_parameter, largest_parameter = self.claim.search
        above_least = _FIRST_WIDTH * (_GROWTH_OF_WIDTHS**interval - 1)
        return min(least_parameter + above_least, largest_parameter)

    def interval_of(self, theta: float) -> int:
        """Return the number of the interval of a parameter: which terms are for it."""
        if theta >= self.lower_edge(_MOST_EDGES):
            return _MOST_EDGES
        least_parameter, _ = self.claim.search
        widths_above_least = (theta - least_parameter) / _FIRST_WIDTH
        interval = int(math.log1p(widths_above_least) / math.log(_GROWTH_OF_WIDTHS))
        if self.lower_edge(interval + 1) <= theta:
            return interval + 1
        return interval

    def log_wealth(self, theta: float, trials: int, counts: IntArray, interval: int) -> FloatArray:
        """Return logarithms of what each bet has left of a stake of 1, shape (hopes, sequences).

        `trials` are all so far, guessed or not, and `counts` guesses and correct guesses, shape
        (2, sequences). The terms are those of `interval`.
        """
        terms = terms_of_bets(self, interval)
        guesses, correct_guesses = counts
        guessed_sides: Sides = "both"
        if self.sequences[0].order == "member":
            guessed_sides = "member"
        failure_probabilities = self.claim.curve(theta, guessed_sides).delta(terms.log_odds)
        sides_of_sequence = np.array(
            [1.0 + (sequence.order == "interleaved") for sequence in self.sequences]
        )
        # The fee of a trial: what a failure adds, times the chance that a guess is about it.
        won_by_failure = np.expm1(terms.log_payoff_correct)
        log_fees = trials * np.log1p(won_by_failure * failure_probabilities * sides_of_sequence / 2)
        log_gains = terms.log_payoff_correct * correct_guesses
        log_losses = terms.log_payoff_wrong * (guesses - correct_guesses) - log_fees
        log_wealth_of_bets: FloatArray = (
            log_gains + log_losses - _ROUNDING_ALLOWANCE * (log_gains - log_losses)
        )
        return log_wealth_of_bets

    def is_refuted_by_bets(
        self, theta: float, trials: int, counts: IntArray, interval: int
    ) -> bool:
        """Return whether the mean over all bets has reached the inverse of the level."""
        log_wealth_of_bets = self.log_wealth(theta, trials=trials, counts=counts, interval=interval)
        # Ville's inequality: a mean of n fair stakes reaches 1/level with probability `level`.
        needed_wealth = shares.BETS.price(log_wealth_of_bets.size) / self.level
        log_total_wealth = np.logaddexp.reduce(log_wealth_of_bets.ravel())
        return bool(log_total_wealth >= math.log(needed_wealth))

    def bound(self, trials: int, counts: IntArray, least: float = 0.0) -> float:
        """Return a parameter below which all are refuted, from `least` on; at least `least`.

        Fees grow with the parameter. So if terms refute the end of their interval, they refute all
        of it. No search goes beyond the last interval: no parameter explains what is refuted there.
        """
        first_parameter, last_parameter = self.claim.search
        refuted_parameter = max(first_parameter, least)
        interval = self.interval_of(refuted_parameter)

        def is_refuted(theta: float) -> bool:
            return self.is_refuted_by_bets(theta, trials=trials, counts=counts, interval=interval)

        if not is_refuted(refuted_parameter):
            return least
        # 1. Intervals that are refuted to their ends, as far as the next one is at its beginning.
        while is_refuted(interval_end := self.lower_edge(interval + 1)):
            refuted_parameter = interval_end
            interval += 1
            is_beyond_search = refuted_parameter == last_parameter or interval >= _MOST_EDGES
            if is_beyond_search or not is_refuted(refuted_parameter):
                return refuted_parameter
        # 2. Halves of an interval.
        relative_width = max(_SEARCH_WIDTH, self.claim.width)
        largest_refuted, _ = halved(
            refuted_parameter, interval_end, is_refuted, width=relative_width
        )
        return largest_refuted


@lru_cache(maxsize=1024)
def terms_of_bets(bets_on_sequences: Bets, interval: int) -> Terms:
    """Choose odds for an interval: what the worst trial says at the last guess of a sequence."""
    largest_parameter = bets_on_sequences.lower_edge(interval + 1)
    curve_of_worst_trial = pooled(bets_on_sequences.claim.curve(largest_parameter, "member"))
    quantiles = curve_of_worst_trial.share
    membership_probabilities = np.diff(curve_of_worst_trial.mass) / np.diff(quantiles)
    last_quantile_interval = membership_probabilities.size - 1

    def membership_probability(quantile: float) -> float:
        quantile_interval = np.searchsorted(quantiles, quantile) - 1
        return float(
            membership_probabilities[np.clip(quantile_interval, 0, last_quantile_interval)]
        )

    def last_accuracy(sequence: GuessSequence) -> float:
        if sequence.order == "member":
            return membership_probability(sequence.share)
        accuracy_about_members = membership_probability(sequence.share / 2)
        accuracy_about_others = 1 - membership_probability(1 - sequence.share / 2)
        accuracies = {
            "member_half": accuracy_about_members,
            "nonmember_half": accuracy_about_others,
        }
        mean_accuracy = (accuracy_about_members + accuracy_about_others) / 2
        return accuracies.get(sequence.order, mean_accuracy)

    accuracies = [last_accuracy(sequence) for sequence in bets_on_sequences.sequences]
    log_odds = logit(np.clip(accuracies, 0.5, _MOST_ACCURACY))
    hoped_log_odds = log_odds + _HOPED_EXCESS
    return Terms(
        log_odds=log_odds,
        log_payoff_correct=np.log(expit(hoped_log_odds) / expit(log_odds)),
        log_payoff_wrong=np.log(expit(-hoped_log_odds) / expit(-log_odds)),
    )
