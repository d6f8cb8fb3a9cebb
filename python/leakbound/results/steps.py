"""What an audit of DP-SGD proves of steps and batches."""

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from leakbound._base.records import IF_ANY, Record
from leakbound._base.validation import choice, real
from leakbound.claims import SubsampledGaussianDP
from leakbound.errors import IncompatibleOptionsError
from leakbound.results.checks import flaw_of_confidence
from leakbound.results.one_run import AuditResult

RateSource: TypeAlias = Literal["lower limit", "stated"]
CoinRanking: TypeAlias = Literal["each step", "across steps"]
"""Guesses follow what a step released, or how it differs from the noise of the steps before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingResult(Record):
    """What the sizes of the batches say about how they were drawn.

    Parameters
    ----------
    sampling_rate : float
        q, as the watch was told.
    batches : int
        Batches seen.
    least_examples, most_examples : int
        Training examples, between which the size of the data lies; 0 if unknown.
    largest : int
        Examples in the largest batch.
    mean, variance : float
        Of the sizes of the batches.
    expected_variance : float
        What Poisson sampling gives at that mean; of all sizes of the data, what is nearest.
    p_mean : float
        Probability of a mean so far from N q, under Poisson sampling at rate q; 1 if not tested.
    p_variance : float
        Probability of a variance so far from that of Poisson sampling, whatever its rate, given
        the mean; 1 if not tested.
    lower_rate, upper_rate : float or None
        Limits of the rate, each at half of the probability of error, under Poisson sampling; None
        where the number of examples is not known, so that the rate is just stated.
    confidence : float
        One minus the probability that batches drawn as claimed are refuted.
    reason : str
        Why nothing was tested; empty if something was.
    """

    sampling_rate: float
    batches: int
    least_examples: int
    most_examples: int
    largest: int
    mean: float
    variance: float
    expected_variance: float
    p_mean: float
    p_variance: float
    lower_rate: float | None = field(default=None, metadata=IF_ANY)
    upper_rate: float | None = field(default=None, metadata=IF_ANY)
    confidence: float
    reason: str

    @property
    def p_value(self) -> float:
        """Probability of batches so unlike what is claimed: both tests together."""
        return min(1.0, 2 * min(self.p_mean, self.p_variance))

    @property
    def refutes(self) -> bool:
        """Whether the batches are not Poisson samples at the claimed rate, at this confidence."""
        return self.p_value <= 1 - self.confidence

    @property
    def limits(self) -> str:
        """The limits of the rate; empty where it is just stated."""
        if self.reason or self.lower_rate is None or self.upper_rate is None:
            return ""
        return f"{self.lower_rate:.4g} to {self.upper_rate:.4g}"

    def _flaw(self) -> str:
        limits = (self.lower_rate, self.upper_rate)
        shares = (self.p_mean, self.p_variance, *limits)
        if not all(share is None or 0 <= share <= 1 for share in shares):
            return "p_mean, p_variance, lower_rate and upper_rate do not all lie in [0, 1]"
        if limits != (None, None) and self.least_examples != self.most_examples:
            return "there are limits of the rate, though the number of examples is not known"
        return flaw_of_confidence(self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Wager(Record):
    """A bet on the coins of each step, and how its guesses went.

    Parameters
    ----------
    ranking : {"each step", "across steps"}
        Where guesses come from: what a step released, or how it differs from the mean noise that
        each canary had in the steps before.
    guesses : int
        Guesses about each step.
    stake : float
        Share of what the bet has that is staked in each step, in (0, 1].
    weight : float
        Share of all that is bet, in (0, 1].
    correct : int
        Correct guesses, of all steps.
    """

    ranking: CoinRanking
    guesses: int
    stake: float
    weight: float
    correct: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BettingResult(Record):
    """What bets on the coins, one step after the other, prove about the noise that was added.

    Parameters
    ----------
    bound : float
        Some step's noise multiplier is at most this; inf if nothing is proved.
    coins : int
        Coins of each step.
    steps : int
        Steps that were bet on.
    wagers : tuple of Wager
        The bets, which share what is bet.
    confidence : float
        Of the bound by itself.
    """

    bound: float
    coins: int
    steps: int
    wagers: tuple[Wager, ...]
    confidence: float

    @property
    def guesses(self) -> int:
        """Guesses of the first bet, about all steps."""
        return self.wagers[0].guesses * self.steps

    @property
    def correct(self) -> int:
        """Correct guesses of the first bet."""
        return self.wagers[0].correct

    def _flaw(self) -> str:
        if not self.bound > 0 or self.steps < 1 or not self.wagers:
            return "bound must be above 0, steps at least 1, and wagers not empty"
        for one in self.wagers:
            choice(one.ranking, "ranking", CoinRanking)
            if not 1 <= one.guesses <= self.coins:
                return f"guesses ({one.guesses}) must be between 1 and coins ({self.coins})"
            if not 0 <= one.correct <= one.guesses * self.steps:
                return f"correct ({one.correct}) must be at most guesses in all steps"
            if not (0 < one.stake <= 1 and 0 < one.weight <= 1):
                return "stakes and weights must be in (0, 1]"
        if sum(one.weight for one in self.wagers) > 1 + 1e-9:
            return "weights of wagers sum to more than 1"
        return flaw_of_confidence(self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class StepsResult(Record):
    """What the noisy gradients, step by step, prove about the noise that was added.

    Parameters
    ----------
    bound : float
        Some step's noise multiplier is at most this; inf if nothing is proved.
    noise_multiplier, largest_noise_multiplier : float
        The smallest one that the optimizer stated, and the largest: if they differ no ε follows.
    steps : int
        Steps seen.
    sampling_rate : float
        The rate that ε is converted at: a lower confidence limit, where the number of examples is
        known.
    rate_source : {"lower limit", "stated"}
        Whether it is such a limit, or just what was claimed.
    confidence : float
        Probability that bound and rate both are on the safe side.
    game : AuditResult
        The audit of all coins as one game, of Gaussian DP with μ = 1/σ.
    betting : BettingResult or None
        Bets on the coins, one step after the other, if there were any.

    Notes
    -----
    `epsilon` holds *if* the run is so many steps of one constant noise multiplier on Poisson
    samples at this rate or more, all noisy gradients released. Nothing checks that they are: a few
    quiet steps among loud ones give the same bound, and less leakage.
    """

    bound: float
    noise_multiplier: float
    largest_noise_multiplier: float
    steps: int
    sampling_rate: float
    rate_source: RateSource
    confidence: float
    game: AuditResult
    betting: BettingResult | None = field(default=None, metadata=IF_ANY)

    @property
    def varies(self) -> bool:
        """Whether the optimizer stated several noise multipliers."""
        return self.largest_noise_multiplier > self.noise_multiplier

    @property
    def refutes(self) -> bool:
        """Whether some step added less noise than the optimizer stated, at this confidence."""
        return self.bound < self.noise_multiplier

    def epsilon(self, delta: float) -> float:
        """Return the ε of the whole training that the bound converts to.

        Tests of so many steps at this noise and rate attain it; 0 if nothing is proved.

        Parameters
        ----------
        delta : float
            δ, in (0, 1), of adding or removing one example.
        """
        checked = real(delta, "delta", above=0, below=1)
        if self.varies:
            message = (
                "the noise multiplier varied from step to step: the bound is on its smallest "
                "value, and no ε of the whole training follows"
            )
            raise IncompatibleOptionsError(message)
        if math.isinf(self.bound) or not self.sampling_rate:
            return 0.0
        family = SubsampledGaussianDP(sampling_rate=self.sampling_rate, steps=self.steps)
        return float(family.attained(self.bound, "both").epsilon(checked))

    def _flaw(self) -> str:
        if not self.bound > 0 or not self.noise_multiplier > 0:
            return f"bound ({self.bound:g}) and noise_multiplier must be above 0"
        if self.largest_noise_multiplier < self.noise_multiplier:
            return "noise_multiplier <= largest_noise_multiplier does not hold"
        if self.steps < 1 or not 0 <= self.sampling_rate <= 1:
            return "steps must be at least 1, and sampling_rate in [0, 1]"
        return self._disagreement() or flaw_of_confidence(self.confidence)

    def _disagreement(self) -> str:
        """Return where the bound is not that of bets and game together."""
        proved, spent = self.game.bound, 1 - self.game.confidence
        if self.betting is not None:
            if self.betting.steps != self.steps:
                return f"steps are {self.steps}, and those bet on {self.betting.steps}"
            proved = max(proved, 1 / self.betting.bound)
            spent += 1 - self.betting.confidence
            if spent > (1 - self.confidence) * (1 + 1e-9):
                return "bets and game have more of the level than confidence leaves"
        bound = 1 / proved if proved else math.inf
        if not math.isclose(self.bound, bound, rel_tol=1e-9):
            return f"bound is {self.bound:g}, and μ of the best game {proved:g}, not its inverse"
        return ""
