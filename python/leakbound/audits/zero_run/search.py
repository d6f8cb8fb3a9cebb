"""The members of a confidence set at which what matching leaves proves least.

Draws of what is kept are tested at half of the level, and a share of all draws must reach the
bound. The share is random, up to a half, and the same everywhere. What it reaches is worked out,
not drawn, so that it is smooth in the log-odds, and ascents look for where it is least.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leakbound._base.console import track
from leakbound._base.types import FloatArray
from leakbound.audits.zero_run.levels import Chosen, Counts

End: TypeAlias = tuple[FloatArray, FloatArray]
"""Coefficients of a member of the set, and examples kept, guesses and correct ones there."""
# Correct guesses that the least number found is lowered by: what ascents may have left.
_LEFT = 0.15
# Random steps from the lowest member that ascents found, and members looked at in each.
_STEPS = 20
_NEAR = 8
# How the reach of steps, in radii of the set, changes where one found less, or found nothing.
_GROWS = 1.5
_SHRINKS = 0.7
# Most examples of which ascents are priced twice: of many, one guess is worth less.
_PRICED_TWICE = 5000
# Members of the set whose bounds are computed beside the estimate's.
_FINALISTS = 4
# Share by which the number kept is raised to see what a bound makes of it.
_PROBE = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Least:
    """The least that is proved, the counts that prove it, and the member of the set.

    `estimate` is what the likeliest log-odds would have shown.
    """

    bound: float
    counts: Counts
    coefficients: FloatArray
    estimate: float


@dataclass(frozen=True, eq=False)
class Matching:
    """What a share of all draws of what is kept makes of chosen guesses, at members of a set."""

    chosen: Chosen

    @property
    def _made(self) -> dict[str, Any]:
        """Which guesses may be made, and how many are: one of what is not kept counts as wrong."""
        chosen = self.chosen
        share = chosen.ladder.odds.draws_needed
        return {"inside": chosen.inside, "made": chosen.guesses, "share": share}

    def reached(self, log_odds: FloatArray) -> FloatArray:
        """Return examples kept, guesses and correct ones that enough draws reach, by row.

        Correct ones beyond a whole number tell members apart.
        """
        given = np.ascontiguousarray(log_odds)
        order = self.chosen.order
        core = self.chosen.ladder.odds.found.core
        return core.matched(given, order.rows, order.signs, **self._made)

    def counts(self, reached: FloatArray, *, left: float = 0.0) -> Counts:
        """Return correct guesses, all of them and examples kept, in whole numbers."""
        kept, made, correct = reached
        most = min(self.chosen.ladder.game.examples, math.ceil(kept))
        return max(0, math.floor(correct - left)), math.ceil(min(made, most)), most

    def at_estimate(self) -> Counts:
        """Return what the likeliest log-odds leave."""
        return self.counts(self.reached(self.chosen.ladder.odds.likeliest[None])[0])

    def least(self, above: float = 0.0) -> Least:
        """Return the least that is proved at any member, 0 if that is not above a number."""
        counts = self.at_estimate()
        estimate = self.chosen.proved(counts)
        least = Least(
            bound=estimate,
            counts=counts,
            coefficients=self.chosen.ladder.odds.found.coefficients,
            estimate=estimate,
        )
        if not estimate > above:
            return replace(least, bound=0.0)
        for coefficients, reached in self._lowest(counts):
            here = self.counts(reached, left=_LEFT)
            proved = self.chosen.proved(here)
            if proved < least.bound:
                least = replace(least, bound=proved, counts=here, coefficients=coefficients)
        return least

    def _prices(self, counts: Counts) -> tuple[float, float]:
        """Return the correct guesses that an example kept costs near a bound, and a guess made."""
        correct, made, kept = counts
        few = min(correct, max(1, round(correct**0.5)))
        more = max(1, round(_PROBE * kept))
        roughly = self.chosen.roughly
        top = roughly(counts)
        of_correct = (top - roughly((correct - few, made, kept))) / max(1, few)
        of_kept = (top - roughly((correct, made, kept + more))) / more
        of_made = (top - roughly((correct, made + more, kept + more))) / more - of_kept
        if not (0 < of_correct < np.inf and 0 <= of_kept < np.inf and of_made < np.inf):
            return 0.0, 0.0
        return min(1.0, of_kept / of_correct), min(1.0, max(0.0, of_made / of_correct))

    def _lowest(self, counts: Counts) -> list[End]:
        """Return members found that prove least, and what is reached there."""
        core = self.chosen.ladder.odds.found.core
        order = self.chosen.order
        ends = list[End]()
        # 1. Where ascents end, at prices of the estimate and then at those of what they found.
        for _ in range(2 if self.chosen.ladder.game.examples <= _PRICED_TWICE else 1):
            prices = self._prices(counts)
            places, log_odds = core.least_matched(
                order.rows, order.signs, prices=prices, **self._made
            )
            ends += zip(places, self.reached(log_odds), strict=True)
            ends.sort(key=self._roughly_at)
            counts = self.counts(ends[0][1])
        of_kept, of_made = prices
        ends += self._steps(ends, np.array([-of_kept, -of_made, 1.0]))
        return sorted(ends, key=self._roughly_at)[:_FINALISTS]

    def _steps(self, ends: list[End], worth: FloatArray) -> list[End]:
        """Return lower members that random steps find, across the set at first."""
        core = self.chosen.ladder.odds.found.core
        place, table = min(ends, key=lambda end: float(end[1] @ worth))
        least = float(table @ worth)
        reach = 1.0
        found = []
        for number in track(range(_STEPS), "Searching the confidence set", total=_STEPS):
            near, log_odds = core.members_near(place, reach=reach, count=_NEAR, draw=number)
            if not len(near):
                break
            tables = self.reached(log_odds)
            values = tables @ worth
            lowest = int(np.argmin(values))
            reach *= _SHRINKS
            if values[lowest] < least:
                place = near[lowest]
                least = float(values[lowest])
                found.append((place, tables[lowest]))
                reach = min(1.0, reach * _GROWS / _SHRINKS)
        return found

    def _roughly_at(self, end: End) -> float:
        """Return what is roughly proved at a member, given what is reached there."""
        return self.chosen.roughly(self.counts(end[1]))


def least_of_all(searches: Sequence[Matching]) -> list[Least]:
    """Return the least of each search, 0 where that is no larger than the least of another one.

    A search is long: the one that promises most comes first, and others are left out where they
    promise no more than it found.
    """
    found = dict[Matching, Least]()
    most = 0.0
    for search in sorted(searches, key=lambda one: -one.chosen.proved(one.at_estimate())):
        found[search] = search.least(above=most)
        most = max(most, found[search].bound)
    return [found[search] for search in searches]
