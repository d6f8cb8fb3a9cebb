"""The second look over a confidence set: one choice of ranks for all log-odds that it holds.

The ranking is cut into blocks, of which the middle quarter of the labels is seen, and never tested,
kept or not. Seen labels choose blocks and a number n of guesses. At any log-odds the first n of
those examples of the blocks that are kept, and were not seen, are tested. The choice reads scores,
D' and labels seen. Who is kept it does not read, and so not how many are.
"""

from collections.abc import Iterable

import numpy as np

import leakbound._core as _core
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.zero_run.blind import ridge_coefficients
from leakbound.audits.zero_run.game import Guesses
from leakbound.audits.zero_run.levels import ChosenGuesses, MatchingPlan, surely_kept
from leakbound.audits.zero_run.log_odds import OddsSet, keep_probability
from leakbound.cuts.look import CAUTION, PILOT_GUESSES, Look, most_promising
from leakbound.errors import LeakboundError


def pilot_guesses(plan: MatchingPlan, look: Look, level: float) -> ChosenGuesses | None:
    """Choose blocks of ranks and a number of guesses by labels seen; None if none proves anything.

    `look` is that of the claim, for the examples expected to be kept.
    """
    ladder_policy = look.ladder
    ranked = plan.ranked
    game = plan.game
    rule = ladder_policy.rule(plan.expected_kept, plan.level, game.sides)
    # 1. Labels that are seen, and log-odds that they, or D', suggest.
    log_odds_of_guesses = planning_log_odds(plan.odds, ranked)
    pilot = weighted_pilot(ranked.signs * log_odds_of_guesses, game.right(ranked))
    ranks_in_order = testable_ranks(pilot)
    # 2. How many ranks surely keep each number of guesses, and what these prove.
    keep_probabilities = keep_probability(log_odds_of_guesses[ranks_in_order])
    guess_numbers = np.array(rule.levels)
    needed_ranks = np.searchsorted(surely_kept(keep_probabilities), guess_numbers) + 1
    expected_accuracies = np.array(pilot.accuracy(needed_ranks.tolist(), CAUTION))
    may_be_chosen = (needed_ranks <= ranks_in_order.size) & (expected_accuracies > 0.5)
    chosen_level = most_promising(
        ladder_policy, rule, guess_numbers, expected_accuracies, may_be_chosen, level=level
    )
    if chosen_level is None:
        return None
    # 3. The guesses: those of the blocks first.
    order, inside = _moved_to_front(ranked, ranks_in_order[: needed_ranks[chosen_level]])
    # A level of as many guesses as are kept would depend on ranks that labels chose
    return ChosenGuesses(
        plan=plan,
        level=level,
        order=order,
        inside=inside,
        guesses=rule.levels[chosen_level],
        levels=tuple(rule.levels),
        level_shares=tuple(ladder_policy.weights(rule).tolist()),
        index=chosen_level,
        must_be_kept=True,
        searched=look.searched(game.examples, game.sides),
        guessed=PILOT_GUESSES,
    )


def revealed_ranks(examples: int) -> IntArray:
    """Return the ranks of so many whose labels are seen: the middle quarter of each block."""
    return _ranks_of_intervals(_core.Pilot.seen_of(examples))


def weighted_pilot(toward_guesses: FloatArray, is_correct: BoolArray) -> _core.Pilot:
    """Look at the `revealed_ranks`; `is_correct` is of the guesses at all ranks.

    `toward_guesses` are log-odds by which they are right whatever the model tells. A label counts
    as often as matching would keep its example, so that features alone make no block look right.
    """
    toward_labels = np.where(is_correct, toward_guesses, -toward_guesses)
    # The keep probability of matching, min(1, exp(-log-odds of the label))
    keep_probabilities = np.exp(-np.maximum(toward_labels, 0.0))
    path_of_guesses = _core.Path.from_successes(is_correct)
    return _core.Pilot.weighted(path_of_guesses, keep_probabilities)


def testable_ranks(pilot: _core.Pilot) -> IntArray:
    """Return the ranks that may be tested, those of the best block first."""
    most_guesses = max(pilot.numbers, default=0)
    blocks_by_accuracy = pilot.tested(most_guesses)
    return _ranks_of_intervals(
        (first_rank, end_rank) for _, first_rank, end_rank in blocks_by_accuracy
    )


def _ranks_of_intervals(intervals: Iterable[tuple[int, int]]) -> IntArray:
    """Return the ranks of intervals, each from its first rank to the one after its last."""
    no_ranks = np.array([], dtype=np.int64)
    return np.concatenate(
        [no_ranks, *(np.arange(first_rank, end_rank) for first_rank, end_rank in intervals)]
    )


def planning_log_odds(odds: OddsSet, order: Guesses) -> FloatArray:
    """Return log-odds of guesses in order, from D', or else from the labels that are seen."""
    log_odds_by_guide = odds.guide[order.rows]
    if odds.guide.any():
        return log_odds_by_guide
    found = odds.found
    revealed_rows = order.rows[revealed_ranks(order.rows.size)]
    revealed_features = found.features[revealed_rows]
    try:
        coefficients = ridge_coefficients(revealed_features, found.member[revealed_rows])
    except LeakboundError:  # all are members, say
        return log_odds_by_guide
    fitted_log_odds = _core.linear_log_odds(coefficients, found.features)[0]
    fitted_in_order: FloatArray = fitted_log_odds[order.rows]
    return fitted_in_order


def _moved_to_front(order: Guesses, chosen_ranks: IntArray) -> tuple[Guesses, int]:
    """Return guesses with those at some ranks first, as many of either sign, and their number."""
    front_ranks = chosen_ranks
    if order.order != "member":
        signs = order.signs[chosen_ranks]
        member_ranks = chosen_ranks[signs > 0]
        nonmember_ranks = chosen_ranks[signs < 0]
        number_of_each_sign = min(member_ranks.size, nonmember_ranks.size)
        alternating_ranks = [
            member_ranks[:number_of_each_sign],
            nonmember_ranks[:number_of_each_sign],
        ]
        front_ranks = np.column_stack(alternating_ranks).ravel()
    every_rank = np.arange(order.rows.size)
    other_ranks = np.setdiff1d(every_rank, front_ranks)
    reordered_guesses = order.taken(np.concatenate([front_ranks, other_ranks]))
    return reordered_guesses, front_ranks.size
