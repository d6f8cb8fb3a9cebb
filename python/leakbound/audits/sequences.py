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
        self, counts_by_order: dict[PathOrder, GuessCounts], visited_blocks: VisitedBlocks
    ) -> GuessCounts:
        """Return guesses and correct guesses after each block of a batch, visited in one order."""
        guess_counts, correct_counts = counts_by_order[self.order]
        least_guesses = math.ceil(self.share * int(guess_counts[-1]))
        last_block = int(np.searchsorted(guess_counts, least_guesses)) + 1
        upper_blocks_visited, lower_blocks_visited = visited_blocks
        visited_by_order = {
            "member_half": upper_blocks_visited,
            "nonmember_half": lower_blocks_visited,
        }
        blocks_visited = visited_by_order.get(
            self.order, upper_blocks_visited + lower_blocks_visited
        )
        block_numbers = np.minimum(blocks_visited, last_block)
        guesses_before_block = np.append(0, guess_counts)
        correct_before_block = np.append(0, correct_counts)
        return (
            guesses_before_block[block_numbers],
            correct_before_block[block_numbers],
        )


def visiting_order(counts_by_order: dict[PathOrder, GuessCounts]) -> VisitedBlocks:
    """Return the one order of visiting that serves all paths: block by block, as "interleaved"."""
    if "member" in counts_by_order:
        member_guesses, _ = counts_by_order["member"]
        blocks_visited = np.arange(1, member_guesses.size + 1)
        return blocks_visited, np.zeros_like(blocks_visited)
    guesses_in_upper_half, _ = counts_by_order["member_half"]
    guesses_in_lower_half, _ = counts_by_order["nonmember_half"]
    half_of_block = np.repeat([0, 1], [guesses_in_upper_half.size, guesses_in_lower_half.size])
    # Guesses of its half before each block: the half with fewer goes on, the first on equality.
    guesses_before_upper_block = np.append(0, guesses_in_upper_half)[:-1]
    guesses_before_lower_block = np.append(0, guesses_in_lower_half)[:-1]
    guesses_of_half_before = np.concatenate(
        [guesses_before_upper_block, guesses_before_lower_block]
    )
    half_of_visit = half_of_block[np.lexsort((half_of_block, guesses_of_half_before))]
    return np.cumsum(half_of_visit == 0), np.cumsum(half_of_visit == 1)


def strongest_sequence(counts: IntArray, bound: float) -> int:
    """Return the sequence with the largest likelihood ratio against a bound: it says most."""
    guesses, correct_guesses = counts
    # The most probable that a guess is right under ε-DP at the bound.
    largest_accuracy = 1 / (1 + math.exp(-bound))
    wrong_guesses = guesses - correct_guesses
    accuracy = correct_guesses / np.maximum(guesses, 1)
    # The logarithm of the likelihood ratio of both accuracies, in `guesses` coin tosses.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio_of_correct = correct_guesses * np.log(accuracy / largest_accuracy)
        log_ratio_of_wrong = wrong_guesses * np.log((1 - accuracy) / (1 - largest_accuracy))
        log_likelihood_ratios = log_ratio_of_correct + log_ratio_of_wrong
    log_ratio_if_all_correct = -correct_guesses * math.log(largest_accuracy)
    log_likelihood_ratios = np.where(
        wrong_guesses == 0, log_ratio_if_all_correct, log_likelihood_ratios
    )
    log_likelihood_ratios = np.where(accuracy > largest_accuracy, log_likelihood_ratios, -1.0)
    return int(np.argmax(log_likelihood_ratios))


def best_moment_by_ville(moments: IntArray, level: float) -> tuple[int, float]:
    """Return the index and the logit of the best moment, by the mean over sequences."""
    _, _, sequences = moments.shape
    best_moment = _core.ville_bound_of_moments(
        np.ascontiguousarray(moments[:, 0]).ravel(),
        np.ascontiguousarray(moments[:, 1]).ravel(),
        sequences=sequences,
        beta=shares.SEQUENCES.of(level),
    )
    return best_moment or (0, -math.inf)


def ranks_within_batch(scores_of_batch: FloatArray) -> FloatArray:
    """Return the ranks of a batch from 0 to 1, ties in the middle of their block."""
    _, block_of_score, block_sizes = np.unique(
        scores_of_batch, return_inverse=True, return_counts=True
    )
    middle_rank_of_block = np.cumsum(block_sizes) - block_sizes / 2
    relative_ranks: FloatArray = middle_rank_of_block[block_of_score] / scores_of_batch.size
    return relative_ranks


def curve_of_sequence(
    moments: list[IntArray], sequence: int, bounds: list[float], most_points: int
) -> CurvePoints:
    """Return guesses of one sequence at some moments, and what was proved by then."""
    moments_apart = max(1, math.ceil(len(moments) / (most_points - 1)))
    last_two_moments = range(len(moments))[-2:]
    chosen_moments = sorted({*range(0, len(moments) - 1, moments_apart), *last_two_moments})
    counts_at_moments = np.array([moments[moment][:, sequence] for moment in chosen_moments])
    # Of moments with as many guesses, the last.
    _, moments_from_end = np.unique(counts_at_moments[::-1, 0], return_index=True)
    distinct_moments = len(chosen_moments) - 1 - moments_from_end
    distinct_moments = distinct_moments[counts_at_moments[distinct_moments, 0] > 0]
    guesses, correct = counts_at_moments[distinct_moments].T
    return guesses, correct, np.array(bounds)[chosen_moments][distinct_moments]


def sentence_on_sequences(number_of_sequences: int) -> str:
    """Return how many sequences were tested, in sentences of the result."""
    if number_of_sequences == 1:
        return "One sequence of guesses was tested; the confidence holds whenever you stop."
    return (
        f"The bound is not from these guesses alone: {number_of_sequences} sequences of guesses "
        "were tested together. The confidence accounts for all of them, whenever you stop."
    )
