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
from leakbound._base.bisection import halved
from leakbound._base.odds import expit, logit
from leakbound._base.types import FloatArray, IntArray, Sides
from leakbound.audits.policies.trials import pooled
from leakbound.audits.sequences import GuessSequence
from leakbound.claims import Claim

# How far above the odds of a bet the odds are that it hopes for: e to the power of these
_HOPES = np.array([[0.4], [1.2], [5.0]])
# Edges between which bets stay the same: _WIDE (_RATIO^k - 1) above the least parameter
_WIDE = 0.2
_RATIO = 1.05
# Edges at most: the last is 3e20 above the least parameter, where a claim promises nothing
_EDGES = 1000
# The most probability of a right guess by which odds are chosen
_SURE = 1 - 1e-9
# Relative width at which a search ends; allowance for rounding, relative to what was paid
_NARROW = 1e-6
_SLACK = 1e-12


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
        low, high = self.claim.search
        return min(low + _WIDE * (_RATIO**place - 1), high)

    def place(self, theta: float) -> int:
        """Return the place of a parameter: which terms are for it."""
        if theta >= self.edge(_EDGES):
            return _EDGES
        least, _ = self.claim.search
        above = (theta - least) / _WIDE
        found = int(math.log1p(above) / math.log(_RATIO))
        if self.edge(found + 1) <= theta:
            return found + 1
        return found

    def won(self, theta: float, trials: int, counts: IntArray, place: int) -> FloatArray:
        """Return logarithms of what each bet has left of a stake of 1, shape (hopes, sequences).

        `trials` are all so far, guessed or not, and `counts` guesses and correct guesses, shape
        (2, sequences). The terms are those of `place`.
        """
        terms = _terms(self, place)
        guesses, correct = counts
        sides: Sides = "both"
        if self.sequences[0].order == "member":
            sides = "member"
        failures = self.claim.curve(theta, sides).delta(terms.odds)
        roles = np.array([1.0 + (one.order == "interleaved") for one in self.sequences])
        # The fee of a trial: what a failure adds, times the chance that a guess is about it.
        won_by_failure = np.expm1(terms.right)
        fees = trials * np.log1p(won_by_failure * failures * roles / 2)
        gains = terms.right * correct
        losses = terms.wrong * (guesses - correct) - fees
        left: FloatArray = gains + losses - _SLACK * (gains - losses)
        return left

    def refuted(self, theta: float, trials: int, counts: IntArray, place: int) -> bool:
        """Return whether the mean over all bets has reached the inverse of the level."""
        left = self.won(theta, trials=trials, counts=counts, place=place)
        needed = shares.BETS.price(left.size) / self.level
        return bool(np.logaddexp.reduce(left.ravel()) >= math.log(needed))

    def bound(self, trials: int, counts: IntArray, least: float = 0.0) -> float:
        """Return a parameter below which all are refuted, from `least` on; at least `least`.

        Fees grow with the parameter. So if terms refute the end of their place, they refute all of
        it. No search goes beyond the last place: what is refuted there, no parameter explains.
        """
        first, last = self.claim.search
        low = max(first, least)
        place = self.place(low)
        if not self.refuted(low, trials=trials, counts=counts, place=place):
            return least
        # 1. Places that are refuted to their ends, as far as the next one is at its beginning.
        while self.refuted(high := self.edge(place + 1), trials=trials, counts=counts, place=place):
            low = high
            place += 1
            beyond = low == last or place >= _EDGES
            if beyond or not self.refuted(low, trials=trials, counts=counts, place=place):
                return low
        # 2. Halves of a place.
        return halved(
            low,
            high,
            lambda theta: self.refuted(theta, trials=trials, counts=counts, place=place),
            width=max(_NARROW, self.claim.width),
        )[0]


@lru_cache(maxsize=1024)
def _terms(bets: Bets, place: int) -> Terms:
    """Choose odds for a place: what the worst trial says at the last guess of a sequence."""
    end = bets.edge(place + 1)
    law = pooled(bets.claim.curve(end, "member"))
    share = law.share
    slopes = np.diff(law.mass) / np.diff(share)

    def said(rank: float) -> float:
        place = np.searchsorted(share, rank) - 1
        return float(slopes[np.clip(place, 0, slopes.size - 1)])

    def right(one: GuessSequence) -> float:
        if one.order == "member":
            return said(one.share)
        top = said(one.share / 2)
        bottom = 1 - said(1 - one.share / 2)
        return {"member_half": top, "nonmember_half": bottom}.get(one.order, (top + bottom) / 2)

    chance = np.clip([right(one) for one in bets.sequences], 0.5, _SURE)
    odds = logit(chance)
    hopes = odds + _HOPES
    right_pays = np.log(expit(hopes) / expit(odds))
    wrong_pays = np.log(expit(-hopes) / expit(-odds))
    return Terms(odds=odds, right=right_pays, wrong=wrong_pays)
