"""The second look over a confidence set: one choice of ranks for all log-odds that it holds.

The ranking is cut into blocks, of which the middle quarter of the labels is seen, and never tested,
kept or not. Seen labels choose blocks and a number n of guesses. At any log-odds the first n of
those examples of the blocks that are kept, and were not seen, are tested. The choice reads scores,
D' and labels seen. Who is kept it does not read, and so not how many are.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import leakbound._core as _core
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound.audits.zero_run.blind import ridge_coefficients
from leakbound.audits.zero_run.game import Guesses
from leakbound.audits.zero_run.levels import Counts, Ladder, Level, surely_kept
from leakbound.audits.zero_run.log_odds import OddsSet, kept_chance
from leakbound.cuts.look import CAUTION, PILOT_GUESSES, Look, most_promising
from leakbound.errors import LeakboundError


@dataclass(frozen=True, eq=False, kw_only=True)
class LookedAt(Level):
    """A number of guesses, and the ranks of them, that a pilot sample chose."""

    look: Look

    @property
    def options(self) -> dict[str, JsonValue]:
        """See `Chosen.options`."""
        return {}

    @property
    def searched(self) -> str:
        """See `Chosen.searched`."""
        game = self.ladder.game
        return self.look.searched(game.examples, game.sides)

    @property
    def guessed(self) -> str:
        """See `Chosen.guessed`."""
        return PILOT_GUESSES

    def tested(self, kept: int) -> list[int]:
        """See `Level.tested`: those that could be chosen, where others claim nothing."""
        return [guesses for guesses in self.levels if guesses < kept]

    def proved(self, counts: Counts) -> float:
        """See `Chosen.proved`: nothing where no more are kept than guesses were chosen."""
        _, _, kept_examples = counts
        if kept_examples <= self.guesses:
            return 0.0
        return super().proved(counts)

    def roughly(self, counts: Counts) -> float:
        """See `Chosen.roughly`: nothing where nothing is proved."""
        _, _, kept_examples = counts
        if kept_examples <= self.guesses:
            return 0.0
        return super().roughly(counts)


def looked_at(ladder: Ladder, look: Look, level: float) -> LookedAt | None:
    """Choose blocks of ranks and a number of guesses by labels seen; None if none proves anything.

    `look` is that of the claim, for the examples expected to be kept.
    """
    policy = look.ladder
    ranked = ladder.ranked
    game = ladder.game
    plan = policy.rule(ladder.expected, ladder.level, game.sides)
    # 1. Labels that are seen, and log-odds that they, or D', suggest.
    planning_log_odds = guide_of(ladder.odds, ranked)
    toward_guesses = ranked.signs * planning_log_odds
    pilot = pilot_of(toward_guesses, game.right(ranked))
    testable_ranks = places_of(pilot)
    # 2. How many ranks surely keep each number of guesses, and what these prove.
    keep_probabilities = kept_chance(planning_log_odds[testable_ranks])
    guess_numbers = np.array(plan.levels)
    needed_ranks = np.searchsorted(surely_kept(keep_probabilities), guess_numbers) + 1
    accuracies = np.array(pilot.accuracy(needed_ranks.tolist(), CAUTION))
    may_be_chosen = (needed_ranks <= testable_ranks.size) & (accuracies > 0.5)
    index = most_promising(policy, plan, guess_numbers, accuracies, may_be_chosen, level=level)
    if index is None:
        return None
    # 3. The guesses: those of the blocks first.
    chosen_ranks = testable_ranks[: needed_ranks[index]]
    order, inside = _moved_to_front(ranked, chosen_ranks)
    return LookedAt(
        ladder=ladder,
        level=level,
        order=order,
        inside=inside,
        guesses=int(guess_numbers[index]),
        levels=tuple(plan.levels),
        shares=tuple(policy.weights(plan).tolist()),
        index=index,
        look=look,
    )


def seen_ranks(examples: int) -> IntArray:
    """Return the ranks of so many whose labels are seen: the middle quarter of each block."""
    return _ranks_of_intervals(_core.Pilot.seen_of(examples))


def pilot_of(toward: FloatArray, right: BoolArray) -> _core.Pilot:
    """Look at the labels of `seen_ranks`; `right` says for all ranks whether guesses are right.

    `toward` are log-odds by which guesses are right whatever the model tells. A label counts as
    often as matching would keep its example, so that features alone make no block look right.
    """
    toward_labels = np.where(right, toward, -toward)
    # The keep probability of matching, min(1, exp(-log-odds of the label))
    keep_probabilities = np.exp(-np.maximum(toward_labels, 0.0))
    path = _core.Path.from_successes(right)
    return _core.Pilot.weighted(path, keep_probabilities)


def places_of(pilot: _core.Pilot) -> IntArray:
    """Return the ranks that may be tested, those of the best block first."""
    most_guesses = max(pilot.numbers, default=0)
    blocks = pilot.tested(most_guesses)
    return _ranks_of_intervals((start, stop) for _, start, stop in blocks)


def _ranks_of_intervals(intervals: Iterable[tuple[int, int]]) -> IntArray:
    """Return the ranks of intervals, each from its first rank to the one after its last."""
    parts = [np.array([], dtype=np.int64)]
    for start, stop in intervals:
        parts.append(np.arange(start, stop))
    return np.concatenate(parts)


def guide_of(odds: OddsSet, order: Guesses) -> FloatArray:
    """Return log-odds of guesses in order, from D', or else from the labels that are seen."""
    planning_log_odds = odds.guide[order.rows]
    if odds.guide.any():
        return planning_log_odds
    found = odds.found
    seen_rows = order.rows[seen_ranks(order.rows.size)]
    seen_features = found.features[seen_rows]
    try:
        coefficients = ridge_coefficients(seen_features, found.member[seen_rows])
    except LeakboundError:  # all are members, say
        return planning_log_odds
    fitted_log_odds = _core.linear_log_odds(coefficients, found.features)[0]
    in_order: FloatArray = fitted_log_odds[order.rows]
    return in_order


def _moved_to_front(order: Guesses, chosen_ranks: IntArray) -> tuple[Guesses, int]:
    """Return guesses with those at some ranks first, as many of either sign, and their number."""
    chosen = chosen_ranks
    if order.order != "member":
        signs = order.signs[chosen_ranks]
        member_ranks = chosen_ranks[signs > 0]
        nonmember_ranks = chosen_ranks[signs < 0]
        of_each_sign = min(member_ranks.size, nonmember_ranks.size)
        pairs = [member_ranks[:of_each_sign], nonmember_ranks[:of_each_sign]]
        chosen = np.column_stack(pairs).ravel()
    every_rank = np.arange(order.rows.size)
    others = np.setdiff1d(every_rank, chosen)
    reordered = order.taken(np.concatenate([chosen, others]))
    return reordered, chosen.size
