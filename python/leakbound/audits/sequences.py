"""Sequences of guesses through batches, and what the mean of their likelihood ratios proves."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.types import FloatArray, IntArray, PathOrder
from leakbound.cuts import CurvePoints

# Guesses and correct guesses down to some thresholds.
GuessCounts: TypeAlias = tuple[IntArray, IntArray]
# Blocks visited of the first and of the second half of a ranking, after each block.
VisitedBlocks: TypeAlias = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class GuessSequence:
    """A sequence of guesses through all batches: a role, and a share of each batch."""

    order: PathOrder
    share: float

    def counts_after_blocks(
        self, counts_by_order: dict[PathOrder, GuessCounts], visited: VisitedBlocks
    ) -> GuessCounts:
        """Return guesses and correct guesses after each block of a batch, visited in one order."""
        guesses, correct = counts_by_order[self.order]
        least_guesses = math.ceil(self.share * int(guesses[-1]))
        last_block = int(np.searchsorted(guesses, least_guesses)) + 1
        upper_visited, lower_visited = visited
        visited_by_order = {"member_half": upper_visited, "nonmember_half": lower_visited}
        blocks_visited = visited_by_order.get(self.order, upper_visited + lower_visited)
        block_numbers = np.minimum(blocks_visited, last_block)
        guesses_from_start = np.append(0, guesses)
        correct_from_start = np.append(0, correct)
        return guesses_from_start[block_numbers], correct_from_start[block_numbers]


def visiting_order(counts_by_order: dict[PathOrder, GuessCounts]) -> VisitedBlocks:
    """Return the one order of visiting that serves all paths: block by block, as "interleaved"."""
    if "member" in counts_by_order:
        member_guesses, _ = counts_by_order["member"]
        blocks_visited = np.arange(1, member_guesses.size + 1)
        return blocks_visited, np.zeros_like(blocks_visited)
    upper_guesses, _ = counts_by_order["member_half"]
    lower_guesses, _ = counts_by_order["nonmember_half"]
    half_of_block = np.repeat([0, 1], [upper_guesses.size, lower_guesses.size])
    # Guesses of its half before each block: the half with fewer goes on, the first on equality.
    guesses_before_upper = np.append(0, upper_guesses)[:-1]
    guesses_before_lower = np.append(0, lower_guesses)[:-1]
    guesses_before = np.concatenate([guesses_before_upper, guesses_before_lower])
    half_visited = half_of_block[np.lexsort((half_of_block, guesses_before))]
    return np.cumsum(half_visited == 0), np.cumsum(half_visited == 1)


def strongest_sequence(counts: IntArray, bound: float) -> int:
    """Return the sequence with the largest likelihood ratio against a bound: it says most."""
    guesses, correct = counts
    # The most probable that a guess is right under ε-DP at the bound.
    largest_accuracy = 1 / (1 + math.exp(-bound))
    wrong = guesses - correct
    accuracy = correct / np.maximum(guesses, 1)
    # The logarithm of the likelihood ratio of both accuracies, in `guesses` coin tosses.
    with np.errstate(divide="ignore", invalid="ignore"):
        of_correct = correct * np.log(accuracy / largest_accuracy)
        of_wrong = wrong * np.log((1 - accuracy) / (1 - largest_accuracy))
        log_likelihood_ratios = of_correct + of_wrong
    if_all_correct = -correct * math.log(largest_accuracy)
    log_likelihood_ratios = np.where(wrong == 0, if_all_correct, log_likelihood_ratios)
    log_likelihood_ratios = np.where(accuracy > largest_accuracy, log_likelihood_ratios, -1.0)
    return int(np.argmax(log_likelihood_ratios))


def best_moment_by_ville(moments: IntArray, level: float) -> tuple[int, float]:
    """Return the index and the logit of the best moment, by the mean over sequences."""
    _, _, sequences = moments.shape
    best = _core.ville_bound_of_moments(
        np.ascontiguousarray(moments[:, 0]).ravel(),
        np.ascontiguousarray(moments[:, 1]).ravel(),
        sequences=sequences,
        beta=shares.SEQUENCES.of(level),
    )
    return best or (0, -math.inf)


def ranks_within_batch(scores: FloatArray) -> FloatArray:
    """Return the ranks of a batch from 0 to 1, ties in the middle of their block."""
    _, block_of_score, block_sizes = np.unique(scores, return_inverse=True, return_counts=True)
    middle_of_block = np.cumsum(block_sizes) - block_sizes / 2
    ranks: FloatArray = middle_of_block[block_of_score] / scores.size
    return ranks


def curve_of_sequence(
    moments: list[IntArray], sequence: int, bounds: list[float], most_points: int
) -> CurvePoints:
    """Return guesses of one sequence at some moments, and what was proved by then."""
    step = max(1, math.ceil(len(moments) / (most_points - 1)))
    last_two = range(len(moments))[-2:]
    chosen_moments = sorted({*range(0, len(moments) - 1, step), *last_two})
    counts = np.array([moments[moment][:, sequence] for moment in chosen_moments])
    # Of moments with as many guesses, the last.
    _, rows_from_end = np.unique(counts[::-1, 0], return_index=True)
    rows = len(chosen_moments) - 1 - rows_from_end
    rows = rows[counts[rows, 0] > 0]
    guesses, correct = counts[rows].T
    return guesses, correct, np.array(bounds)[chosen_moments][rows]


def sentence_on_sequences(sequences: int) -> str:
    """Return how many sequences were tested, in sentences of the result."""
    if sequences == 1:
        return "One sequence of guesses was tested; the confidence holds whenever you stop."
    return (
        f"The bound is not from these guesses alone: {sequences} sequences of guesses were tested "
        "together. The confidence accounts for all of them, whenever you stop."
    )
