"""Bets on independent trials, for claims other than pure DP.

docs/theory/streaming.md has the proof. A claim at θ makes every trial (ε, δ_θ(ε))-DP for each ε. A
bet at odds of e^ε pays σ(η)/σ(ε) for a right guess and σ(-η)/σ(-ε) for a wrong one, with η > ε; its
fee, for each trial, is the most that failures add on average. What was won depends on counts only.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leakbound._base.types import FloatArray, IntArray, Sides
from leakbound.audits.sequences import GuessSequence
from leakbound.claims import FAMILIES, Claim
from leakbound.claims.families import curve_at

# Odds of bets, and how far above them the odds are that a bet hopes for: e to the power of these
_ODDS = np.append(0.0, 0.1 * 1.6 ** np.arange(11))
_ABOVE = 0.25 * 1.7 ** np.arange(8)
# Relative width at which a search ends, and the first of its doubling steps
_NARROW, _STEP = 1e-6, 0.01
# Allowance for rounding: of what was won, relative to the sums it is a difference of
_SLACK = 1e-12


@dataclass(frozen=True)
class Bets:
    """Bets at several odds on each sequence of guesses; the mean of what they won refutes."""

    claim: Claim
    sequences: tuple[GuessSequence, ...]
    level: float

    @cached_property
    def right(self) -> FloatArray:
        """Logarithms of what right guesses pay, shape (odds, hopes)."""
        return _ln_sigmoid(_ODDS[:, None] + _ABOVE) - _ln_sigmoid(_ODDS)[:, None]

    @cached_property
    def wrong(self) -> FloatArray:
        """Logarithms of what wrong guesses leave, shape (odds, hopes)."""
        return _ln_sigmoid(-_ODDS[:, None] - _ABOVE) - _ln_sigmoid(-_ODDS)[:, None]

    @cached_property
    def roles(self) -> FloatArray:
        """How many of the two roles each sequence guesses, shape (sequences,)."""
        return np.array([2.0 if one.order == "interleaved" else 1.0 for one in self.sequences])

    def won(self, theta: float, trials: int, counts: IntArray) -> FloatArray:
        """Return logarithms of what each sequence has won on average, shape (sequences,).

        Parameters
        ----------
        theta : float
            The claimed value of the parameter.
        trials : int
            The trials so far, guessed or not.
        counts : ndarray of int64, shape (2, sequences)
            Guesses and correct guesses.
        """
        sides: Sides = "member" if self.sequences[0].order == "member" else "both"
        failures = curve_at(self.claim, theta, sides).delta(_ODDS)
        pays, loses = self.right[..., None], self.wrong[..., None]
        fee = np.log1p(np.expm1(pays) * failures[:, None, None] * self.roles / 2)
        guesses, correct = counts
        gained, lost = pays * correct, loses * (guesses - correct) - trials * fee
        logs = gained + lost - _SLACK * (gained - lost)
        each: FloatArray = np.logaddexp.reduce(logs.reshape(-1, logs.shape[-1]))
        return each - math.log(pays.size)

    def refuted(self, theta: float, trials: int, counts: IntArray) -> bool:
        """Return whether the mean over all bets has reached the inverse of the level."""
        total = np.logaddexp.reduce(self.won(theta, trials, counts))
        return bool(total - math.log(len(self.sequences)) >= -math.log(self.level))

    def bound(self, trials: int, counts: IntArray, least: float = 0.0) -> float:
        """Return the largest parameter that is refuted, or `least` if that is larger.

        Fees grow with the parameter, so all smaller ones are refuted with it.
        """
        first, last = self.claim.search if isinstance(self.claim, FAMILIES) else (0.0, math.inf)
        low, step = max(first, least), _STEP
        if not self.refuted(low, trials, counts):
            return least
        while self.refuted(high := min(low + step, last), trials, counts):
            if high == last:
                return last
            low, step = high, 2 * step
        while high - low > _NARROW * high:
            middle = 0.5 * (low + high)
            if self.refuted(middle, trials, counts):
                low = middle
            else:
                high = middle
        return low


def _ln_sigmoid(x: FloatArray) -> FloatArray:
    """Return ln(1/(1 + e^-x))."""
    return -np.logaddexp(0.0, -x)
