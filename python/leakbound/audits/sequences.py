"""Sequences of guesses through batches, and what the mean of their likelihood ratios proves."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.types import FloatArray, IntArray, PathOrder
from leakbound.cuts import CurvePoints

# Guesses and correct guesses at some cuts.
Cuts: TypeAlias = tuple[IntArray, IntArray]
# Blocks visited of the first and of the second half of a ranking, after each block.
Walk: TypeAlias = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class GuessSequence:
    """A sequence of guesses through all batches: a role, and a share of each batch."""

    order: PathOrder
    share: float

    def within(self, paths: dict[PathOrder, Cuts], walk: Walk) -> Cuts:
        """Return guesses and correct guesses after each block of a batch, visited in one order."""
        guesses, correct = paths[self.order]
        least = math.ceil(self.share * int(guesses[-1]))
        stop = int(np.searchsorted(guesses, least)) + 1
        first, second = walk
        blocks = {"member_half": first, "nonmember_half": second}
        visited = np.minimum(blocks.get(self.order, first + second), stop)
        return np.append(0, guesses)[visited], np.append(0, correct)[visited]


def walk_through(paths: dict[PathOrder, Cuts]) -> Walk:
    """Return the one order of visiting that serves all paths: block by block, as "interleaved"."""
    if "member" in paths:
        blocks = np.arange(1, paths["member"][0].size + 1)
        return blocks, np.zeros_like(blocks)
    upper, _ = paths["member_half"]
    lower, _ = paths["nonmember_half"]
    half = np.repeat([0, 1], [upper.size, lower.size])
    # Guesses of its half before each block: the half with fewer goes on, the first on equality.
    upper_begins = np.append(0, upper)[:-1]
    lower_begins = np.append(0, lower)[:-1]
    begins = np.concatenate([upper_begins, lower_begins])
    turn = half[np.lexsort((half, begins))]
    return np.cumsum(turn == 0), np.cumsum(turn == 1)


def strongest(counts: IntArray, bound: float) -> int:
    """Return the sequence with the largest likelihood ratio against a bound: it says most."""
    guesses, correct = counts
    p = 1 / (1 + math.exp(-bound))
    wrong = guesses - correct
    share = correct / np.maximum(guesses, 1)
    # The logarithm of the likelihood ratio of `share` to p, in `guesses` coin tosses.
    with np.errstate(divide="ignore", invalid="ignore"):
        of_right = correct * np.log(share / p)
        of_wrong = wrong * np.log((1 - share) / (1 - p))
        ratio = of_right + of_wrong
    ratio = np.where(wrong == 0, -correct * math.log(p), ratio)
    ratio = np.where(share > p, ratio, -1.0)
    return int(np.argmax(ratio))


def best_moment(moments: IntArray, level: float) -> tuple[int, float]:
    """Return the index and the logit of the best moment, by the mean over sequences."""
    guesses = np.ascontiguousarray(moments[:, 0]).ravel()
    correct = np.ascontiguousarray(moments[:, 1]).ravel()
    level = shares.SEQUENCES.of(level)
    sequences = moments.shape[2]
    best = _core.ville_bound_of_moments(guesses, correct, sequences=sequences, beta=level)
    return best or (0, -math.inf)


def ranks_within(values: FloatArray) -> FloatArray:
    """Return the ranks of a batch from 0 to 1, ties in the middle of their block."""
    _, block, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    ranks: FloatArray = middle[block] / values.size
    return ranks


def points_of(moments: list[IntArray], index: int, bounds: list[float], points: int) -> CurvePoints:
    """Return the sequence that says most at some moments, and what was proved by then."""
    step = max(1, math.ceil(len(moments) / (points - 1)))
    last_two = range(len(moments))[-2:]
    some = sorted({*range(0, len(moments) - 1, step), *last_two})
    counts = np.array([moments[place][:, index] for place in some])
    # Of moments with as many guesses, the last.
    _, rows = np.unique(counts[::-1, 0], return_index=True)
    rows = len(some) - 1 - rows
    rows = rows[counts[rows, 0] > 0]
    guesses, correct = counts[rows].T
    return guesses, correct, np.array(bounds)[some][rows]


def searched(sequences: int) -> str:
    """Return how many sequences were tested, in sentences of the result."""
    if sequences == 1:
        return "One sequence of guesses was tested; the confidence holds whenever you stop."
    return (
        f"The bound is not from these guesses alone: {sequences} sequences of guesses were tested "
        "together. The confidence accounts for all of them, whenever you stop."
    )
