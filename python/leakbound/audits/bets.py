"""Bets on independent trials, for claims other than pure DP.

docs/theory/streaming.md has the proof. A claim at θ makes every trial (ε, δ_θ(ε))-DP for each ε. A
bet at odds of e^ε pays σ(η)/σ(ε) for a right guess and σ(-η)/σ(-ε) for a wrong one, with η > ε; its
fee, for each trial, is the most that failures add on average. What was won depends on counts only.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from leakbound._base import shares
from leakbound._base.odds import expit, logit
from leakbound._base.types import FloatArray, IntArray, Sides
from leakbound.audits.policies.trials import pooled
from leakbound.audits.sequences import GuessSequence
from leakbound.claims import FAMILIES, Claim
from leakbound.claims.families import curve_at, search_of

# How far above the odds of a bet the odds are that it hopes for: e to the power of these
_HOPES = np.array([[0.4], [1.2], [5.0]])
# Edges between which bets stay the same: _WIDE (_RATIO^k - 1) above the least parameter
_WIDE, _RATIO = 0.2, 1.05
# The most probability of a right guess by which odds are chosen
_SURE = 1 - 1e-9
# Relative width at which a search ends; allowance for rounding, relative to what was paid
_NARROW, _SLACK = 1e-6, 1e-12


class Terms(NamedTuple):
    """Terms of the bets on each sequence: ε, and logarithms of what right and wrong guesses pay."""

    odds: FloatArray
    right: FloatArray
    wrong: FloatArray


@dataclass(frozen=True)
class Bets:
    """Bets on sequences of guesses, whose terms are chosen for the parameter that is tested."""

    claim: Claim
    sequences: tuple[GuessSequence, ...]
    level: float

    def edge(self, place: int) -> float:
        """Return the parameter at which the terms of a place begin."""
        low, high = search_of(self.claim)
        return min(low + _WIDE * (_RATIO**place - 1), high)

    def place(self, theta: float) -> int:
        """Return the place of a parameter: which terms are for it."""
        found = int(math.log1p((theta - search_of(self.claim)[0]) / _WIDE) / math.log(_RATIO))
        return found + 1 if self.edge(found + 1) <= theta else found

    def won(self, theta: float, trials: int, counts: IntArray, place: int) -> FloatArray:
        """Return logarithms of what each bet has left of a stake of 1, shape (hopes, sequences).

        `trials` are all so far, guessed or not, and `counts` guesses and correct guesses, shape
        (2, sequences). The terms are those of `place`.
        """
        terms, (guesses, correct) = _terms(self, place), counts
        sides: Sides = "member" if self.sequences[0].order == "member" else "both"
        failures = curve_at(self.claim, theta, sides).delta(terms.odds)
        roles = np.array([2.0 if one.order == "interleaved" else 1.0 for one in self.sequences])
        fees = trials * np.log1p(np.expm1(terms.right) * failures * roles / 2)
        gains, losses = terms.right * correct, terms.wrong * (guesses - correct) - fees
        left: FloatArray = gains + losses - _SLACK * (gains - losses)
        return left

    def refuted(self, theta: float, trials: int, counts: IntArray, place: int) -> bool:
        """Return whether the mean over all bets has reached the inverse of the level."""
        left = self.won(theta, trials, counts, place)
        needed = shares.BETS.price(left.size) / self.level
        return bool(np.logaddexp.reduce(left.ravel()) >= math.log(needed))

    def bound(self, trials: int, counts: IntArray, least: float = 0.0) -> float:
        """Return a parameter below which all are refuted, from `least` on; at least `least`.

        Fees grow with the parameter. So if terms refute the end of their place, they refute all of
        it.
        """
        first, last = search_of(self.claim)
        low = max(first, least)
        place = self.place(low)
        if not self.refuted(low, trials, counts, place):
            return least
        # 1. Places that are refuted to their ends, as far as the next one is at its beginning.
        while self.refuted(high := self.edge(place + 1), trials, counts, place):
            low, place = high, place + 1
            if low == last or not self.refuted(low, trials, counts, place):
                return low
        # 2. Halves of a place.
        width = self.claim.width if isinstance(self.claim, FAMILIES) else 0.0
        while high - low > max(_NARROW, width) * high:
            middle = 0.5 * (low + high)
            if self.refuted(middle, trials, counts, place):
                low = middle
            else:
                high = middle
        return low


@lru_cache(maxsize=1024)
def _terms(bets: Bets, place: int) -> Terms:
    """Choose odds for a place: what the worst trial says at the last guess of a sequence."""
    law = pooled(curve_at(bets.claim, bets.edge(place + 1), "member"))
    share = law.share
    slopes = np.diff(law.mass) / np.diff(share)

    def said(rank: float) -> float:
        return float(slopes[np.clip(np.searchsorted(share, rank) - 1, 0, slopes.size - 1)])

    def right(one: GuessSequence) -> float:
        if one.order == "member":
            return said(one.share)
        top, bottom = said(one.share / 2), 1 - said(1 - one.share / 2)
        return {"member_half": top, "nonmember_half": bottom}.get(one.order, (top + bottom) / 2)

    chance = np.clip([right(one) for one in bets.sequences], 0.5, _SURE)
    odds = logit(chance)
    hopes = odds + _HOPES
    pays, loses = (np.log(expit(sign * hopes) / expit(sign * odds)) for sign in (1, -1))
    return Terms(odds, pays, loses)
