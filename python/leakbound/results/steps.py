"""What an audit of DP-SGD proves of steps and batches."""

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from leakbound._base.checks import choice, real
from leakbound._base.records import IF_ANY, Record
from leakbound.claims import SubsampledGaussianDP
from leakbound.errors import OptionError
from leakbound.results.base import flaw_of
from leakbound.results.one_run import AuditResult

RateSource: TypeAlias = Literal["lower limit", "stated"]
# Relative difference of sums and inverses that is put down to rounding
_ROUNDING = 1e-9
CoinRanking: TypeAlias = Literal["each step", "across steps"]
"""Guesses follow what a step released, or how it differs from the mean noise that each canary had
in the steps before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingResult(Record):
    """What the sizes of the batches say about how they were drawn."""

    sampling_rate: float
    """As the watch was told."""
    batches: int
    """Batches seen."""
    least_examples: int
    most_examples: int
    """Training examples, between which the size of the data lies; 0 if unknown."""
    largest: int
    """Examples in the largest batch."""
    mean: float
    variance: float
    """Of the sizes of the batches, as the mean is."""
    expected_variance: float
    """What Poisson sampling gives at that mean; of all sizes of the data, what is nearest."""
    p_mean: float
    p_variance: float
    """Probability, under Poisson sampling, of a mean so far from N q, and of such a variance given
    the mean, whatever the rate; 1 if not tested."""
    lower_rate: float | None = field(default=None, metadata=IF_ANY)
    upper_rate: float | None = field(default=None, metadata=IF_ANY)
    """Limits of the rate, each at half of the probability of error; None where the number of
    examples is not known, so that the rate is just stated."""
    confidence: float
    """One minus the probability that batches drawn as claimed are refuted."""
    reason: str
    """Why nothing was tested; empty if something was."""

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
        known = self.least_examples == self.most_examples
        sound = all(share is None or 0 <= share <= 1 for share in shares)
        sound = sound and (limits == (None, None) or known)
        return flaw_of(self, sound=sound, confidence=self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Wager(Record):
    """A bet on the coins of each step, and how its guesses went."""

    ranking: CoinRanking
    """Where guesses come from."""
    guesses: int
    """Guesses about each step."""
    stake: float
    """Share of what the bet has that is staked in each step."""
    weight: float
    """Share of all that is bet."""
    correct: int
    """Correct guesses, of all steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BettingResult(Record):
    """What bets on the coins, one step after the other, prove about the noise that was added."""

    bound: float
    """Some step's noise multiplier is at most this; inf if nothing is proved."""
    coins: int
    """Coins of each step."""
    steps: int
    """Steps that were bet on."""
    wagers: tuple[Wager, ...]
    """The bets, which share what is bet."""
    confidence: float
    """Of the bound by itself."""

    @property
    def guesses(self) -> int:
        """Guesses of the first bet, about all steps."""
        return self.wagers[0].guesses * self.steps

    @property
    def correct(self) -> int:
        """Correct guesses of the first bet."""
        return self.wagers[0].correct

    def _flaw(self) -> str:
        for one in self.wagers:
            choice(one.ranking, "ranking", CoinRanking)
        sound = (
            self.bound > 0
            and self.steps >= 1
            and bool(self.wagers)
            and all(1 <= one.guesses <= self.coins for one in self.wagers)
            and all(0 <= one.correct <= one.guesses * self.steps for one in self.wagers)
            and all(0 < one.stake <= 1 and 0 < one.weight <= 1 for one in self.wagers)
            and sum(one.weight for one in self.wagers) <= 1 + _ROUNDING
        )
        return flaw_of(self, sound=sound, confidence=self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class StepsResult(Record):
    """What the noisy gradients, step by step, prove about the noise that was added."""

    bound: float
    """Some step's noise multiplier is at most this; inf if nothing is proved."""
    noise_multiplier: float
    """The smallest one that the optimizer stated."""
    largest_noise_multiplier: float
    """The largest one: if they differ no ε follows."""
    steps: int
    """Steps seen."""
    sampling_rate: float
    """The rate that ε is converted at."""
    rate_source: RateSource
    """Whether it is a lower confidence limit, or just what was claimed."""
    confidence: float
    """Probability that bound and rate both are on the safe side."""
    game: AuditResult
    """The audit of all coins as one game, of Gaussian DP: μ is the inverse of the noise."""
    betting: BettingResult | None = field(default=None, metadata=IF_ANY)
    """Bets on the coins, one step after the other, if there were any."""

    @property
    def varies(self) -> bool:
        """Whether the optimizer stated several noise multipliers."""
        return self.largest_noise_multiplier > self.noise_multiplier

    @property
    def refutes(self) -> bool:
        """Whether some step added less noise than the optimizer stated, at this confidence."""
        return self.bound < self.noise_multiplier

    def epsilon(self, delta: float) -> float:
        """Return the ε of the whole training that the bound converts to; 0 if nothing is proved.

        It holds *if* the run is so many steps of one constant noise multiplier on Poisson samples
        at this rate or more, all noisy gradients released. Nothing checks that they are: a few
        quiet steps among loud ones give the same bound, and less leakage.

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
            raise OptionError(message)
        if math.isinf(self.bound) or not self.sampling_rate:
            return 0.0
        family = SubsampledGaussianDP(sampling_rate=self.sampling_rate, steps=self.steps)
        return float(family.attained(1 / self.bound, "both").epsilon(checked))

    def _flaw(self) -> str:
        # game and bets share the error; the better of the two is the bound
        proved, spent, steps = self.game.bound, 1 - self.game.confidence, self.steps
        if self.betting is not None:
            steps, spent = self.betting.steps, spent + 1 - self.betting.confidence
            proved = max(proved, 1 / self.betting.bound)
        bound = 1 / proved if proved else math.inf
        sound = (
            self.bound > 0
            and 0 < self.noise_multiplier <= self.largest_noise_multiplier
            and 1 <= self.steps == steps
            and 0 <= self.sampling_rate <= 1
            and (self.betting is None or spent <= (1 - self.confidence) * (1 + _ROUNDING))
            and math.isclose(self.bound, bound, rel_tol=_ROUNDING)
        )
        return flaw_of(self, sound=sound, confidence=self.confidence)
