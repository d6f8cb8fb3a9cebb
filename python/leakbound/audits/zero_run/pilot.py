"""The second look over a confidence set: one choice of ranks for all log-odds that it holds.

The ranking is cut into blocks, of which the middle quarter of the labels is seen, and never tested,
kept or not: as in `leakbound_core::outside_in::pilot`, where all examples are audited. Seen labels
choose blocks and a number n of guesses. At any log-odds the first n of those examples of the blocks
that are kept, and were not seen, are tested. The choice reads scores, D' and labels seen. Who is
kept it does not read, and so not how many are: a label seen counts as often as matching would keep
it on average.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound.audits.policies.f_dp import OutsideInFamily
from leakbound.audits.zero_run.game import Guesses
from leakbound.audits.zero_run.levels import Counts, Ladder, Level, surely_kept
from leakbound.cuts.look import PILOT_GUESSES, Look
from leakbound.errors import LeakboundError
from leakbound.propensity import LogisticPropensity

# Ranks of the outermost block, of each further end beside the one before, and the share seen.
_FIRST = 4.0
_RATIO = 2**0.5
_SEEN = 0.25
# Log-likelihood that accuracies must gain before they may fall outwards.
_PENALTY = 2.0
# Accuracies are compared where they are this far from 0 and 1, and are equal if so close.
_SURE = 1e-6
_DIGITS = 9
# Standard errors by which accuracy is expected to be worse than was seen.
_CAUTION = 3.0


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

    def proved(self, counts: Counts) -> float:
        """See `Chosen.proved`: nothing where no more are kept than guesses were chosen."""
        if counts[2] <= self.guesses:
            return 0.0
        return super().proved(counts)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Blocks:
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
        less: FloatArray = share - _CAUTION * np.sqrt(share * (1 - share) / (made + 2))
        return less


def looked_at(ladder: Ladder, look: Look, level: float) -> LookedAt | None:
    """Choose blocks of ranks and a number of guesses by labels seen; None if none proves anything.

    `look` is that of the claim, for the examples expected to be kept.
    """
    policy = look.ladder
    order = ladder.ranked
    game = ladder.game
    plan = policy.rule(ladder.expected, ladder.level, game.sides)
    shares = np.array(plan.shares)
    if isinstance(policy, OutsideInFamily):
        shares = policy.weights(plan)
    # 1. Labels that are seen, and log-odds that they, or D', suggest.
    edges = block_edges(game.examples)
    seen = seen_of(edges)
    guide = guide_of(ladder, order.rows[seen])[order.rows]
    blocks = blocks_of(edges, seen, order.signs * guide, game.right(order))
    # 2. How many places surely keep each number of guesses, and what these prove.
    sure = surely_kept(2 / (1 + np.exp(np.abs(guide[blocks.places]))))
    numbers = np.array(plan.levels)
    places = np.searchsorted(sure, numbers) + 1
    accuracy = blocks.accuracy(places)
    able = (places <= blocks.places.size) & (accuracy > 0.5)
    if not able.any():
        return None
    worth = policy.expected(plan, numbers[able], accuracy[able], level)
    best = int(worth.argmax())
    if not worth[best] > 0:
        return None
    index = int(np.flatnonzero(able)[best])
    # 3. The guesses: those of the blocks first.
    first, inside = _first(order, blocks.places[: places[index]])
    return LookedAt(
        ladder=ladder,
        level=level,
        order=first,
        inside=inside,
        guesses=int(numbers[index]),
        levels=tuple(plan.levels),
        shares=tuple(shares.tolist()),
        index=index,
        look=look,
    )


def guide_of(ladder: Ladder, rows: IntArray) -> FloatArray:
    """Return log-odds of all examples, from D', or else from the labels of some of them."""
    guide = ladder.odds.guide
    if guide.any():
        return guide
    found = ladder.odds.found
    try:
        fitted = LogisticPropensity(calibration=None).fit(
            found.features[rows], found.member[rows], seed=found.seed
        )
    except LeakboundError:  # all are members, say
        return guide
    return fitted.log_odds(found.features)


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


def blocks_of(edges: IntArray, seen: BoolArray, toward: FloatArray, right: BoolArray) -> _Blocks:
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
    return _Blocks(
        right=hits[best_first], made=made[best_first], left=left[best_first], places=places
    )


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
    moved = np.concatenate([chosen, others])
    return Guesses(order.order, order.rows[moved], order.signs[moved]), chosen.size


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
