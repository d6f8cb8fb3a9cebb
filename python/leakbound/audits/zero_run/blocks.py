"""Blocks of a ranking; labels seen in the middle of each say where guesses are right.

As in `leakbound_core::outside_in::pilot`, where memberships are fair coins. Here a label that is
seen counts as often as matching would keep it, so that features alone make no block look right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.zero_run.log_odds import kept_chance
from leakbound.cuts import OutsideIn
from leakbound.cuts.look import CAUTION

# Ranks of the outermost block, of each further end beside the one before, and the share seen.
_FIRST = 4.0
_RATIO = 2**0.5
_SEEN = 0.25
# Log-likelihood that accuracies must gain before they may fall outwards.
_PENALTY = 2.0
# Accuracies are compared where they are this far from 0 and 1, and are equal if so close.
_SURE = 1e-6
_DIGITS = 9


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocks:
    """Blocks of a ranking, the most accurate first, and what is not seen of them.

    `right` and `made` are labels seen of each block, as many as matching would keep. `places` are
    those of the ranking that may be tested, and `left` says how many each block has.
    """

    right: FloatArray
    made: FloatArray
    left: IntArray
    places: IntArray

    def accuracy(self, places: IntArray) -> FloatArray:
        """Return the accuracy seen at so many places, less some standard errors of it."""
        ends = np.append(0, np.cumsum(self.left))
        seen = [np.append(0.0, np.cumsum(one)) for one in (self.right, self.made)]
        right, made = (np.interp(places, ends, one) for one in seen)
        # One right and one wrong guess more, so that nothing is sure.
        share = (right + 1) / (made + 2)
        less: FloatArray = share - CAUTION * np.sqrt(share * (1 - share) / (made + 2))
        return less

    def most_telling(self, log_odds: FloatArray, level: float) -> IntArray:
        """Return the places of the best blocks that are expected to prove most of pure DP, if any.

        Log-odds of the ranking say how many fair coins the guesses are worth.
        """
        ends = np.cumsum(self.left)
        kept = np.append(0.0, np.cumsum(kept_chance(log_odds)[self.places]))[ends]
        numbers = np.floor(kept).astype(np.int64)
        accuracy = self.accuracy(ends)
        able = (numbers > 0) & (accuracy > 0.5)
        if not able.any():
            return self.places[:0]
        worth = OutsideIn().expected(None, numbers[able], accuracy[able], level)
        best = int(worth.argmax())
        if not worth[best] > 0:
            return self.places[:0]
        return self.places[: ends[able][best]]


def block_edges(length: int) -> IntArray:
    """Return where blocks of so many ranks end, from 0 on."""
    edges = [0]
    size = _FIRST
    while size < length:
        edges.append(round(size))
        size = max(size * _RATIO, size + _FIRST)
    # A last block of one rank has nothing left to test.
    if len(edges) > 1 and length - edges[-1] < 2:
        edges.pop()
    return np.array([*edges, length])


def seen_of(edges: IntArray) -> BoolArray:
    """Return the middle quarter of each block."""
    seen = np.zeros(edges[-1], dtype=np.bool_)
    sizes = np.diff(edges)
    several = np.maximum(1, np.rint(_SEEN * sizes)).astype(np.int64)
    first = edges[:-1] + (sizes - several) // 2
    for start, number in zip(first.tolist(), several.tolist(), strict=True):
        seen[start : start + number] = True
    return seen


def blocks_of(edges: IntArray, seen: BoolArray, toward: FloatArray, right: BoolArray) -> Blocks:
    """Return blocks by the accuracy fitted to labels seen, outer ones first if that is equal.

    `toward` are log-odds by which guesses are right whatever the model tells.
    """
    count = edges.size - 1
    block = np.repeat(np.arange(count), np.diff(edges))
    against = np.where(right, toward, -toward)[seen]
    chance = np.exp(-np.maximum(against, 0.0))

    def summed(weights: FloatArray) -> FloatArray:
        sums = np.bincount(block[seen], weights=weights, minlength=count)
        return np.asarray(sums, dtype=np.float64)

    made = summed(chance)
    hits = summed(chance * right[seen])
    accuracy = umbrella(hits, made)
    best_first = np.argsort(-np.round(accuracy, _DIGITS), kind="stable")
    place = np.empty(count)
    place[best_first] = np.arange(count)
    unseen = np.flatnonzero(~seen)
    places = unseen[np.argsort(place[block[unseen]], kind="stable")]
    left = np.bincount(block[unseen], minlength=count)
    return Blocks(
        right=hits[best_first], made=made[best_first], left=left[best_first], places=places
    )


def umbrella(right: FloatArray, made: FloatArray) -> FloatArray:
    """Return accuracies fitted to right guesses of those made, the outermost block first.

    They fall inwards; or, if that is likelier by more than a penalty, they also fall outwards
    beyond one block: what lies outside is noise.
    """
    fitted = falling(right, made)
    most = _log_likelihood(right, made, fitted)
    for peak in range(1, right.size):
        outer = falling(right[:peak][::-1], made[:peak][::-1])[::-1]
        both = np.concatenate([outer, falling(right[peak:], made[peak:])])
        likelihood = _log_likelihood(right, made, both) - _PENALTY
        if likelihood > most:
            most = likelihood
            fitted = both
    return fitted


def falling(right: FloatArray, made: FloatArray) -> FloatArray:
    """Return the likeliest accuracies that never increase: adjacent violators are pooled."""
    pooled: list[Any] = []
    for hits, guesses in zip(right.tolist(), made.tolist(), strict=True):
        one = (hits, guesses, 1)
        while pooled and pooled[-1][0] * one[1] <= one[0] * pooled[-1][1]:
            before = pooled.pop()
            one = (before[0] + one[0], before[1] + one[1], before[2] + one[2])
        pooled.append(one)
    means = [hits / max(guesses, _SURE) for hits, guesses, _ in pooled]
    return np.repeat(means, [blocks for *_, blocks in pooled])


def _log_likelihood(right: FloatArray, made: FloatArray, accuracy: FloatArray) -> float:
    p = np.clip(accuracy, _SURE, 1 - _SURE)
    return float(right @ np.log(p) + (made - right) @ np.log1p(-p))
