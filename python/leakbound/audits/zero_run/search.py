"""The members of a confidence set at which what matching leaves proves least.

Draws of what is kept are tested at half of the level, and a share of all draws must reach the
bound. The share is random, up to a half, and the same everywhere. What it reaches is worked out,
not drawn, so that it is smooth in the log-odds, and ascents look for where it is least.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from leakbound._base.console import track
from leakbound._base.types import FloatArray
from leakbound.audits.zero_run.levels import ChosenGuesses, Counts
from leakbound.audits.zero_run.log_odds import OddsSet

Endpoint: TypeAlias = tuple[FloatArray, FloatArray]
"""Coefficients of a member of the set, and examples kept, guesses and correct ones there."""
# Correct guesses that the least number found is lowered by: what ascents may have left.
_SEARCH_ALLOWANCE = 0.15
# Random steps from the lowest member that ascents found, and members looked at in each.
_STEPS = 20
_MEMBERS_NEARBY = 8
# How the reach of steps, in radii of the set, changes where one found less, or found nothing.
_GROWS = 1.5
_SHRINKS = 0.7
# Most examples of which ascents are priced twice: of many, one guess is worth less.
_PRICED_TWICE = 5000
# Members of the set whose bounds are computed beside the estimate's.
_FINALISTS = 4
# Share by which the number kept is raised to see what a bound makes of it.
_PRICE_PROBE = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastProved:
    """The least that is proved, the counts that prove it, and the member of the set.

    `estimate` is what the likeliest log-odds would have shown.
    """

    bound: float
    counts: Counts
    coefficients: FloatArray
    estimate: float


@dataclass(frozen=True, eq=False)
class MatchingSearch:
    """What a share of all draws of what is kept makes of chosen guesses, at members of a set."""

    chosen: ChosenGuesses

    @cached_property
    def odds(self) -> OddsSet:
        """The confidence set."""
        return self.chosen.plan.odds

    @property
    def _guesses_and_share(self) -> dict[str, Any]:
        """Which guesses may be made, and how many are: one of what is not kept counts as wrong."""
        chosen = self.chosen
        share = self.odds.draws_needed
        return {"inside": chosen.inside, "made": chosen.guesses, "share": share}

    def reached(self, log_odds: FloatArray) -> FloatArray:
        """Return examples kept, guesses and correct ones that enough draws reach, by row.

        Correct ones beyond a whole number tell members apart.
        """
        order = self.chosen.order
        return self.odds.found.core.matched(
            np.ascontiguousarray(log_odds),
            order.rows,
            order.signs,
            **self._guesses_and_share,
        )

    def whole_counts(self, reached_counts: FloatArray, *, search_allowance: float = 0.0) -> Counts:
        """Return correct guesses, all of them and examples kept, in whole numbers."""
        kept_examples, guesses_made, correct_guesses = reached_counts
        whole_kept = min(self.chosen.plan.game.examples, math.ceil(kept_examples))
        whole_guesses = math.ceil(min(guesses_made, whole_kept))
        whole_correct = max(0, math.floor(correct_guesses - search_allowance))
        return whole_correct, whole_guesses, whole_kept

    @cached_property
    def counts_at_estimate(self) -> Counts:
        """What the likeliest log-odds leave."""
        (reached_counts,) = self.reached(self.odds.likeliest_log_odds[None])
        return self.whole_counts(reached_counts)

    @cached_property
    def bound_at_estimate(self) -> float:
        """What the likeliest log-odds would show."""
        return self.chosen.proved(self.counts_at_estimate)

    def least_proved(self, above: float = 0.0) -> LeastProved:
        """Return the least that is proved at any member, 0 if that is not above a number."""
        estimate = self.bound_at_estimate
        least_proved = LeastProved(
            bound=estimate,
            counts=self.counts_at_estimate,
            coefficients=self.odds.found.coefficients,
            estimate=estimate,
        )
        if not estimate > above:
            return replace(least_proved, bound=0.0)
        for coefficients, reached_counts in self._least_members():
            counts = self.whole_counts(reached_counts, search_allowance=_SEARCH_ALLOWANCE)
            bound_at_counts = self.chosen.proved(counts)
            if bound_at_counts < least_proved.bound:
                least_proved = replace(
                    least_proved, bound=bound_at_counts, counts=counts, coefficients=coefficients
                )
        return least_proved

    def _prices(self, counts: Counts) -> tuple[float, float]:
        """Return the correct guesses that an example kept costs near a bound, and a guess made."""
        correct_guesses, guesses_made, kept_examples = counts
        fewer_correct = min(correct_guesses, max(1, round(correct_guesses**0.5)))
        more_kept = max(1, round(_PRICE_PROBE * kept_examples))
        approximate_bound = partial(self.chosen.proved, roughly=True)
        # Finite differences of the bound, by correct guesses, examples kept and guesses made
        bound_at_counts = approximate_bound(counts)
        with_fewer_correct = approximate_bound(
            (correct_guesses - fewer_correct, guesses_made, kept_examples)
        )
        with_more_kept = approximate_bound(
            (correct_guesses, guesses_made, kept_examples + more_kept)
        )
        with_more_guesses = approximate_bound(
            (correct_guesses, guesses_made + more_kept, kept_examples + more_kept)
        )
        bound_per_correct = (bound_at_counts - with_fewer_correct) / max(1, fewer_correct)
        bound_per_kept = (bound_at_counts - with_more_kept) / more_kept
        bound_per_guess = (bound_at_counts - with_more_guesses) / more_kept - bound_per_kept
        if not (
            0 < bound_per_correct < np.inf
            and 0 <= bound_per_kept < np.inf
            and bound_per_guess < np.inf
        ):
            return 0.0, 0.0
        price_of_kept = min(1.0, bound_per_kept / bound_per_correct)
        price_of_guess = min(1.0, max(0.0, bound_per_guess / bound_per_correct))
        return price_of_kept, price_of_guess

    def _least_members(self) -> list[Endpoint]:
        """Return members found that prove least, and what is reached there."""
        order = self.chosen.order
        counts = self.counts_at_estimate
        endpoints = list[Endpoint]()
        rounds = 1
        if self.chosen.plan.game.examples <= _PRICED_TWICE:
            rounds = 2
        # 1. Where ascents end, at prices of the estimate and then at those of what they found.
        for _ in range(rounds):
            prices = self._prices(counts)
            coefficients, log_odds = self.odds.found.core.least_matched(
                order.rows, order.signs, prices=prices, **self._guesses_and_share
            )
            endpoints += zip(coefficients, self.reached(log_odds), strict=True)
            endpoints.sort(key=self._approximate_bound_at)
            _, least_reached = endpoints[0]
            counts = self.whole_counts(least_reached)
        price_of_kept, price_of_guess = prices
        # 2. Random steps from the lowest.
        objective = np.array([-price_of_kept, -price_of_guess, 1.0])
        endpoints += self._random_steps(endpoints, objective)
        return sorted(endpoints, key=self._approximate_bound_at)[:_FINALISTS]

    def _random_steps(self, endpoints: list[Endpoint], objective: FloatArray) -> list[Endpoint]:
        """Return lower members that random steps find, across the set at first."""
        lowest_coefficients, reached_counts = min(
            endpoints, key=lambda end: float(end[1] @ objective)
        )
        least_value = float(reached_counts @ objective)
        step_reach = 1.0
        lower_members = []
        for step_number in track(range(_STEPS), "Searching the confidence set", total=_STEPS):
            nearby_coefficients, log_odds = self.odds.found.core.members_near(
                lowest_coefficients, reach=step_reach, count=_MEMBERS_NEARBY, draw=step_number
            )
            if not len(nearby_coefficients):
                break
            counts_nearby = self.reached(log_odds)
            objective_values = counts_nearby @ objective
            least_index = int(np.argmin(objective_values))
            step_reach *= _SHRINKS
            if objective_values[least_index] < least_value:
                lowest_coefficients = nearby_coefficients[least_index]
                least_value = float(objective_values[least_index])
                lower_members.append((lowest_coefficients, counts_nearby[least_index]))
                step_reach = min(1.0, step_reach * _GROWS / _SHRINKS)
        return lower_members

    def _approximate_bound_at(self, endpoint: Endpoint) -> float:
        """Return what is roughly proved at a member, given what is reached there."""
        _, reached_counts = endpoint
        return self.chosen.proved(self.whole_counts(reached_counts), roughly=True)


def least_of_searches(searches: Sequence[MatchingSearch]) -> list[LeastProved]:
    """Return the least of each search, 0 where that is no larger than the least of another one.

    A search is long: the one that promises most comes first, and others are left out where they
    promise no more than it found.
    """
    least_of_search = dict[MatchingSearch, LeastProved]()
    largest_bound = 0.0
    for search in sorted(searches, key=lambda one: one.bound_at_estimate, reverse=True):
        least_proved = search.least_proved(above=largest_bound)
        least_of_search[search] = least_proved
        largest_bound = max(largest_bound, least_proved.bound)
    return [least_of_search[search] for search in searches]
