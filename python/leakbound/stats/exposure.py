r"""How many right guesses about pairs a release made likelier than not, at every threshold at once.

In a pair of a random split, one of two was used, and a fair coin decided which. A guess about a
pair is *unexposed* if the release, whatever the coins of the other pairs, makes it no likelier than
not that the guess is right. Unexposed guesses are then right no more often than coins fall, however
they depend on each other:

With w right and i wrong guesses, the likelihood ratio of a chance p > 1/2 is
:math:`(2p)^w (2(1-p))^i`. Its average over Jeffreys' law on (1/2, 1], of density
:math:`(1-p)^{-1/2}`, is

.. math:: e(w, i) = \int_0^1 (2 - t^2)^w \, t^{2i} \, dt

and a supermartingale along the unexposed guesses, in the order of their confidence. By Ville's
inequality it stays below 1/β with probability 1 - β at least. Then no more than f(i) unexposed
guesses are right where i are wrong, f(i) being the largest w with e(w, i) < 1/β. Among W right and
I wrong guesses of all pairs, W - f(I) right ones at least are exposed: at every threshold at once,
so that the largest of these numbers may be reported.

`docs/theory/synthetic.md` has the proof.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from leakbound._base.brief import brief
from leakbound._base.types import BoolArray, FloatArray, IntArray

# Deviations of the integrand around its mode beyond which nothing is left, and points of the rule
_MOST_DEVIATIONS = 12.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
# What rounding may add to a logarithm of evidence, and for each guess: it is taken off
_ROUNDING = 1e-9
_ROUNDING_OF_ONE = 2e-15
_SMALLEST_P_VALUE = float(np.nextafter(0.0, 1.0))
# Thresholds at a time, to bound memory
_BLOCK_SIZE = 4096


def log_evidence(right: IntArray, wrong: IntArray) -> FloatArray:
    """Return ln e(w, i) of so many right and wrong guesses, rounded down.

    Parameters
    ----------
    right, wrong : ndarray of int, shape (n,)
        Counts, from 0 on. Where no more guesses are right than wrong, there is no evidence, and the
        logarithm is -inf (e is at most 1 there).
    """
    log_likelihood_ratios = np.full(right.size, -np.inf)
    places_with_evidence = np.flatnonzero(right > wrong)
    for first_place in range(0, places_with_evidence.size, _BLOCK_SIZE):
        places = places_with_evidence[first_place : first_place + _BLOCK_SIZE]
        log_likelihood_ratios[places] = _log_likelihood_ratio_integrals(
            right_guesses=right[places, None].astype(float),
            wrong_guesses=wrong[places, None].astype(float),
        )
    return log_likelihood_ratios


def _log_likelihood_ratio_integrals(
    right_guesses: FloatArray, wrong_guesses: FloatArray
) -> FloatArray:
    """Integrate around the mode, by Gauss and Legendre's rule: what is left out is positive.

    Counts are columns, shape (n, 1).
    """
    all_guesses = right_guesses + wrong_guesses
    modes_of_integrand = np.sqrt(2 * wrong_guesses / all_guesses)
    largest_deviations = _MOST_DEVIATIONS * (np.sqrt(right_guesses) / all_guesses)
    lower_limits = np.maximum(modes_of_integrand - largest_deviations, 0.0)
    upper_limits = np.minimum(modes_of_integrand + largest_deviations, 1.0)
    half_widths = (upper_limits - lower_limits) / 2
    t = lower_limits + half_widths * (1 + _NODES)
    # ln of the integrand (2 - t²)^w t^2i
    log_of_right_guesses = right_guesses * np.log(2 - t**2)
    log_integrand = log_of_right_guesses + 2 * wrong_guesses * np.log(t)
    largest_logarithms = log_integrand.max(axis=1, keepdims=True)
    weighted_integrand = np.exp(log_integrand - largest_logarithms) * _WEIGHTS * half_widths
    log_of_scaled_integral = np.log(weighted_integrand.sum(axis=1, keepdims=True))
    log_integral = largest_logarithms + log_of_scaled_integral
    rounded_down: FloatArray = log_integral - _ROUNDING - _ROUNDING_OF_ONE * all_guesses
    return rounded_down.ravel()


def _p_value_of_evidence(log_likelihood_ratios: FloatArray) -> FloatArray:
    """Return 1/e, by Ville's inequality the largest probability of that evidence; never 0."""
    return np.maximum(np.exp(-log_likelihood_ratios), _SMALLEST_P_VALUE)


def surely_seen_from(level: float) -> int:
    """Return f(0) + 1: of so many right guesses and no wrong one, one at least is exposed.

    Parameters
    ----------
    level : float
        Probability β of a false count, in (0, 1).
    """
    most_right_guesses_needed = int(-np.log2(level)) + 64  # e(w, 0) is 2^w / (2w + 2) at least
    right_guesses = np.arange(1, most_right_guesses_needed)
    no_wrong_guesses = np.zeros_like(right_guesses)
    p_values = _p_value_of_evidence(log_evidence(right_guesses, no_wrong_guesses))
    return int(right_guesses[p_values <= level].min())


@dataclass(frozen=True, eq=False)
class PairGuesses:
    """Guesses which of two was used, the most confident first; ties are one threshold.

    `pairs` are those that a guess is about, `hits` says which guesses are right, and `ends` has the
    last guess of each block of ties.
    """

    pairs: IntArray
    hits: BoolArray
    ends: IntArray

    __repr__ = brief

    @classmethod
    def of(cls, apart: FloatArray) -> Self:
        """Guess that the higher score of each pair is that of the one used.

        Parameters
        ----------
        apart : ndarray, shape (k,)
            The score of the one used minus that of the other: 0 is no guess. Sizes may not depend
            on which of the two was used.
        """
        pairs_by_confidence = np.argsort(-np.abs(apart), kind="stable")
        guessed_pairs = pairs_by_confidence[: np.count_nonzero(apart)]
        confidences = np.abs(apart[guessed_pairs])
        differs_from_next = confidences[1:] != confidences[:-1]
        is_last_of_ties = np.append(differs_from_next, True)[: guessed_pairs.size]
        return cls(
            pairs=guessed_pairs.astype(np.int64),
            hits=apart[guessed_pairs] > 0,
            ends=np.flatnonzero(is_last_of_ties),
        )

    @property
    def right(self) -> IntArray:
        """Right guesses up to each threshold."""
        right_up_to_each_guess = np.cumsum(self.hits, dtype=np.int64)
        return right_up_to_each_guess[self.ends]

    @property
    def wrong(self) -> IntArray:
        """Wrong guesses up to each threshold."""
        return self.ends + 1 - self.right

    @property
    def p_value(self) -> float:
        """One over the largest evidence at any threshold, at most 1, rounded up."""
        p_values = _p_value_of_evidence(log_evidence(self.right, self.wrong))
        return float(p_values.min(initial=1.0))

    def certified(self, level: float) -> int:
        """Return how many right guesses are exposed, at least, with probability 1 - level.

        It is above 0 exactly if `p_value` is at most the level.
        """
        right_guesses = self.right
        wrong_guesses = self.wrong
        certified_count = 0
        too_large_count = int(right_guesses.max(initial=0)) + 1
        while too_large_count - certified_count > 1:
            count = (certified_count + too_large_count) // 2
            # W - f(I) is at least this count where e(W - count + 1, I) is at least 1/β.
            p_values = _p_value_of_evidence(log_evidence(right_guesses - count + 1, wrong_guesses))
            is_certified = p_values <= level
            if is_certified.any():
                certified_count = count
                right_guesses = right_guesses[is_certified]
                wrong_guesses = wrong_guesses[is_certified]
            else:
                too_large_count = count
        return certified_count

    def listed(self, rate: float) -> IntArray:
        """Return pairs guessed right, such that a share of at most `rate` is false, on average.

        Listed are the right guesses up to the last threshold at which (1 + wrong) / right is at
        most `rate`. One is *false* if the release, given the coins of the other pairs as they fell,
        makes it no likelier than not. (Barber, Candès and Samworth 2020, Theorem 1, as in
        `leakbound.results.Exposed`.)
        """
        has_few_false_guesses = 1 + self.wrong <= rate * self.right
        last_listed_guess = self.ends[has_few_false_guesses].max(initial=-1)
        pairs_up_to_threshold = self.pairs[: last_listed_guess + 1]
        hits_up_to_threshold = self.hits[: last_listed_guess + 1]
        return pairs_up_to_threshold[hits_up_to_threshold]
