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
