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
        return [made for made in self.levels if made < kept]

    def proved(self, counts: Counts) -> float:
        """See `Chosen.proved`: nothing where no more are kept than guesses were chosen."""
        if counts[2] <= self.guesses:
            return 0.0
        return super().proved(counts)

    def roughly(self, counts: Counts) -> float:
        """See `Chosen.roughly`: nothing where nothing is proved."""
        if counts[2] <= self.guesses:
            return 0.0
        return super().roughly(counts)


def looked_at(ladder: Ladder, look: Look, level: float) -> LookedAt | None:
    """Choose blocks of ranks and a number of guesses by labels seen; None if none proves anything.

    `look` is that of the claim, for the examples expected to be kept.
    """
    policy = look.ladder
    order = ladder.ranked
    game = ladder.game
    plan = policy.rule(ladder.expected, ladder.level, game.sides)
    # 1. Labels that are seen, and log-odds that they, or D', suggest.
    guide = guide_of(ladder.odds, order)
    pilot = pilot_of(order.signs * guide, game.right(order))
    left = places_of(pilot)
    # 2. How many places surely keep each number of guesses, and what these prove.
    sure = surely_kept(kept_chance(guide[left]))
    numbers = np.array(plan.levels)
    places = np.searchsorted(sure, numbers) + 1
    accuracy = np.array(pilot.accuracy(places.tolist(), CAUTION))
    able = (places <= left.size) & (accuracy > 0.5)
    index = most_promising(policy, plan, numbers, accuracy, able, level=level)
    if index is None:
        return None
    # 3. The guesses: those of the blocks first.
    first, inside = _first(order, left[: places[index]])
    return LookedAt(
        ladder=ladder,
        level=level,
        order=first,
        inside=inside,
        guesses=int(numbers[index]),
        levels=tuple(plan.levels),
        shares=tuple(policy.weights(plan).tolist()),
        index=index,
        look=look,
    )


def seen_ranks(examples: int) -> IntArray:
    """Return the ranks of so many whose labels are seen: the middle quarter of each block."""
    return _ranks(_core.Pilot.seen_of(examples))


def pilot_of(toward: FloatArray, right: BoolArray) -> _core.Pilot:
    """Look at the labels of `seen_ranks`; `right` says for all ranks whether guesses are right.

    `toward` are log-odds by which guesses are right whatever the model tells. A label counts as
    often as matching would keep its example, so that features alone make no block look right.
    """
    against = np.where(right, toward, -toward)
    kept = np.exp(-np.maximum(against, 0.0))
    return _core.Pilot.weighted(_core.Path.from_successes(right), kept)


def places_of(pilot: _core.Pilot) -> IntArray:
    """Return the ranks that may be tested, those of the best block first."""
    every = max(pilot.numbers, default=0)
    return _ranks((start, stop) for _, start, stop in pilot.tested(every))


def _ranks(pieces: Iterable[tuple[int, int]]) -> IntArray:
    """Return the ranks of pieces, each from its first rank to the one after its last."""
    each = [np.arange(first, stop) for first, stop in pieces]
    return np.concatenate([np.array([], dtype=np.int64), *each])


def guide_of(odds: OddsSet, order: Guesses) -> FloatArray:
    """Return log-odds of guesses in order, from D', or else from the labels that are seen."""
    guide = odds.guide[order.rows]
    if odds.guide.any():
        return guide
    found = odds.found
    rows = order.rows[seen_ranks(order.rows.size)]
    try:
        coefficients = ridge_coefficients(found.features[rows], found.member[rows])
    except LeakboundError:  # all are members, say
        return guide
    log_odds: FloatArray = _core.linear_log_odds(coefficients, found.features)[0][order.rows]
    return log_odds


def _first(order: Guesses, places: IntArray) -> tuple[Guesses, int]:
    """Return guesses with those at some places first, as many of either role, and their number."""
    signs = order.signs[places]
    roles = [places[signs > 0], places[signs < 0]]
    if order.order == "member":
        chosen = places
    else:
        each = min(role.size for role in roles)
        chosen = np.column_stack([role[:each] for role in roles]).ravel()
    others = np.setdiff1d(np.arange(order.rows.size), chosen)
    return order.taken(np.concatenate([chosen, others])), chosen.size
