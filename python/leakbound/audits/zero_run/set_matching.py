"""Matching over a confidence set: what half of several draws prove at the worst of its members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound.audits.zero_run.fair_counts import candidates, middle
from leakbound.audits.zero_run.set_levels import choose_level
from leakbound.audits.zero_run.set_study import LeastFavourable, explained
from leakbound.audits.zero_run.study import two_sided

if TYPE_CHECKING:
    from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
    from leakbound.audits.zero_run.set_levels import ChosenLevel
    from leakbound.audits.zero_run.set_study import SetStudy

_DRAWS = (51, 201)
"""Fewest and most draws of what matching keeps, of which the middle bound counts."""
_COINS = 10**6
"""Coins of all draws together, within these limits."""
_LOOKED_AT = (48, 1600)
"""Fewest and most members of the set that the search looks at beside those it set out from."""
_VISITS = 720_000
"""Their number times the examples, within these limits: of many, one guess is worth less."""
_ANYWHERE, _DESCENDED = 0.25, 0.45
"""Shares of them that are anywhere and that descents look at; random steps have what is left."""
_NEAR = 8
"""Members looked at together in random steps."""
_CLOSEST, _GROWS, _SHRINKS = 0.01, 1.5, 0.6
"""The smallest reach of a search, in radii of the set, and how it changes."""
_REACH = 0.5
"""What it begins with."""
_HALFWAY = 0.7
"""How far from the estimate every other member anywhere is; the others are on the boundary."""
_BAND = (0.3, 0.7)
"""Of the draws, in order, those whose mean tells members apart that have the same middle one."""
_LOWEST, _FINALISTS = 16, 4
"""Members that a search carries on, and those whose bounds are computed beside the estimate's."""
_PARTS = 200
"""Parts of the examples to which the number kept is rounded up: a bound falls with it."""
_PROBE = 0.1
"""Share by which the number kept is raised to see what a bound makes of it."""


_Outcome: TypeAlias = tuple[float, int, int, int]
"""A bound, with its guesses, right ones and examples kept."""


def draws_of(examples: int) -> int:
    """Return how many draws are made of what is kept of so many examples: an odd number."""
    few, many = _DRAWS
    return int(np.clip(_COINS // examples, few, many)) | 1


def least_by_matching(study: SetStudy) -> LeastFavourable:
    """Match at the least favourable members: the middle bound of draws, at half the level."""
    found, matching = study.found, Matching.of(study)
    rows, signs = two_sided(matching.ranks, found.audited, study.sides)
    estimate = matching.middle(matching.counts(found.log_odds()[None])[0])
    bound, made, correct, kept = estimate
    at_estimate, coefficients, odds = bound, found.coefficients, found.log_odds()
    for member in matching.lowest(rows, signs, estimate):
        here = matching.middle(member.counts)
        if study.claim.strength(here[0]) < study.claim.strength(bound):
            bound, made, correct, kept = here
            coefficients, odds = member.coefficients, member.log_odds
    return LeastFavourable(
        bound=bound,
        reason="" if study.claim.strength(bound) > 0 else explained(correct, made),
        at_estimate=at_estimate,
        correction="match",
        level=study.level,
        guesses=made,
        correct=correct,
        kept=kept,
        coefficients=coefficients,
        log_odds=odds,
        rows=rows,
        signs=signs,
        options=matching.options | {"draws": draws_of(found.audited)},
        one_sided=study.one_sided,
    )


@dataclass(frozen=True, eq=False)
class _Member:
    """A member of the set, and for each draw there: examples kept, guesses made, correct ones."""

    coefficients: FloatArray
    log_odds: FloatArray
    counts: IntArray


@dataclass(frozen=True)
class _Prices:
    """How many correct guesses a bound gives for one example kept less, and for one guess less."""

    kept: float
    made: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Matching:
    """Ranks, and what draws of what is kept make of them at members of the set."""

    study: SetStudy
    guesses: int
    ranks: FloatArray
    options: dict[str, JsonValue]
    chosen: ChosenLevel | None = None
    _proved: dict[tuple[int, int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, study: SetStudy) -> Matching:
        """Choose the number of guesses, by labels from the outside in where it can be, and rank."""
        chosen = choose_level(study)
        if chosen is not None:
            levels: JsonValue = list(chosen.levels)
            return cls(
                study=study,
                guesses=chosen.guesses,
                ranks=chosen.ranks(),
                options={"outside_in": {"levels": levels, "guesses": chosen.guesses}},
                chosen=chosen,
            )
        expected = max(2, int(2 * expit(-np.abs(study.planned)).sum()))
        guesses = study.plan(min(expected, study.found.audited), study.level / 2)
        return cls(
            study=study,
            guesses=guesses,
            ranks=study.matched(guesses),
            options={"planned": guesses},
        )

    def counts(self, log_odds: FloatArray) -> IntArray:
        """Return examples kept, guesses made and correct ones, of shape (members, 3, draws).

        All are rounded to the side that proves less, so that few bounds have to be computed: kept,
        and where fewer are kept than should be guessed, guesses up and correct ones down.
        """
        table = self._table(log_odds, np.ones(self.ranks.size, dtype=np.bool_))
        if self.chosen is not None:
            table[2] = self._table(log_odds, self.chosen.inside)[2]
        step = max(1, self.study.found.audited // _PARTS)
        short = table[1] < self.guesses
        up = -(-table[:2] // step) * step
        table[0] = up[0]
        table[1] = np.where(short, np.minimum(up[1], self.guesses), table[1])
        table[2] -= np.where(short, table[2] % step, 0)
        return np.ascontiguousarray(table.transpose(1, 0, 2))

    def _table(self, log_odds: FloatArray, rows: BoolArray) -> IntArray:
        """Return what draws keep of some examples, guesses about them and right ones."""
        counts = _core.matched_counts(
            self.ranks[rows],
            self.study.found.member[rows],
            np.ravel(log_odds[:, rows]),
            self.study.uniforms[:, rows].ravel(),
            guesses=self.guesses,
            one_sided=self.study.one_sided,
            residual=False,
        )
        return np.array([np.reshape(one, (len(log_odds), -1)) for one in counts])

    def proved(self, correct: int, guesses: int, kept: int) -> float:
        """Return what so many correct guesses prove."""
        key = correct, guesses, kept
        if key not in self._proved:
            if self.chosen is not None and kept > 0:
                self._proved[key] = self.chosen.proved(correct, kept)
            else:
                self._proved[key] = self.study.fair(*key)
        return self._proved[key]

    def middle(self, counts: IntArray) -> _Outcome:
        """Return the bound that half of the draws reach, with its guesses, right ones and kept."""
        kept, made, correct = counts
        return middle(kept, made, correct, self.study.claim, self.proved)

    def prices(self, estimate: _Outcome) -> _Prices | None:
        """Return what moves a bound near that of the estimate; None if nothing can be told."""
        _, made, correct, kept = estimate
        few = min(correct, max(1, round(correct**0.5)))
        more = max(1, round(_PROBE * kept))

        def strength(correct: int, made: int, kept: int) -> float:
            if self.chosen is not None and kept > 0:
                return self.chosen.roughly(correct, kept)
            return self.study.claim.strength(self.proved(correct, made, kept))

        top = strength(correct, made, kept)

        def lost(correct: int, made: int, kept: int) -> float:
            return top - strength(correct, made, kept)

        of_correct = lost(correct - few, made, kept) / few
        of_kept = lost(correct, made, kept + more) / more
        of_made = lost(correct, made + more, kept + more) / more - of_kept
        if not (0 < of_correct < np.inf and 0 <= of_kept < np.inf and of_made < np.inf):
            return None
        return _Prices(min(1.0, of_kept / of_correct), min(1.0, max(0.0, of_made / of_correct)))

    def lowest(self, rows: IntArray, signs: IntArray, estimate: _Outcome) -> list[_Member]:
        """Return the members found at which draws prove least, as correct guesses and kept go.

        Where ascents of mean counts end is compared with members anywhere. From the lowest, and
        from the estimate, descents of what the draws themselves make of members go on, each turn
        towards where slopes of the mean counts lead; from the lowest of all, random steps.
        """
        core = self.study.found.core
        if not self.study.claim.strength(estimate[0]) > 0:
            return []
        prices = self.prices(estimate)
        price = 0.0 if prices is None else prices.kept
        ends = self._members(*core.least_matched(rows, signs, kept=self.guesses, price=price))
        if prices is None:
            return ends
        total = int(np.clip(_VISITS // self.study.found.audited, *_LOOKED_AT))
        estimated, anywhere = self.study.found.coefficients, int(_ANYWHERE * total)
        some = core.members_near(estimated, reach=_HALFWAY, count=anywhere, draw=0)
        ends += self._members(*some)
        made = np.zeros(self.ranks.size)
        made[rows[: 2 * self.guesses]] = signs[: 2 * self.guesses]
        left = int(_DESCENDED * total)
        for start in [*self._lowest(ends, prices)[:_FINALISTS], ends[0]]:
            found, looked_at = self._descent(start, made, prices, left)
            ends, left = [*ends, found], left - looked_at
        best, reach = self._lowest(ends, prices), _REACH
        steps = max(0, total - anywhere - int(_DESCENDED * total) + left)
        for number in range(1, steps // _NEAR + 1):
            near = core.members_near(best[0].coefficients, reach=reach, count=_NEAR, draw=number)
            lower = self._lowest([*best, *self._members(*near)], prices)
            reach *= _SHRINKS if lower[0] is best[0] else _GROWS
            reach = min(1.0, reach) if reach > _CLOSEST else _REACH
            best = lower
        return self._finalists(best)

    def _finalists(self, members: list[_Member]) -> list[_Member]:
        """Return the few of which the recursion, which is soon worked out, proves least."""
        chosen, claim = self.chosen, self.study.claim
        if chosen is None:
            return members[:_FINALISTS]

        def roughly(correct: int, made: int, kept: int) -> float:
            if kept == 0:
                return self.proved(correct, made, kept)
            return claim.at_strength(chosen.roughly(correct, kept))

        def strength(member: _Member) -> float:
            kept, made, correct = member.counts
            return claim.strength(middle(kept, made, correct, claim, roughly)[0])

        return sorted(members, key=strength)[:_FINALISTS]

    def _descent(
        self, start: _Member, made: FloatArray, prices: _Prices, budget: int
    ) -> tuple[_Member, int]:
        """Return where turns towards the slopes of mean counts end, and how many were looked at."""
        looked_at = 0
        while looked_at < budget:
            # log-odds above 0 of a guess drop it where it is right; others keep it where it is not
            z = start.log_odds * made
            right = self.study.found.member == (made > 0)
            moves = np.where(right, z > 0, z < 0)
            slopes = made * moves * np.exp(-np.abs(z))
            members = self._members(
                *self.study.found.core.members_toward(start.coefficients, slopes)
            )
            if not members:
                break
            looked_at += len(members)
            lowest = self._lowest(members, prices)[0]
            if self._worth(lowest.counts, prices) >= self._worth(start.counts, prices):
                break
            start = lowest
        return start, looked_at

    def _members(self, coefficients: FloatArray, log_odds: FloatArray) -> list[_Member]:
        """Return members with what draws make of them."""
        if not len(coefficients):
            return []
        table = self.counts(log_odds)
        return [_Member(*each) for each in zip(coefficients, log_odds, table, strict=True)]

    def _lowest(self, members: list[_Member], prices: _Prices) -> list[_Member]:
        """Return a few members of which draws prove least, the first found first among equals."""
        return sorted(members, key=lambda one: self._worth(one.counts, prices))[:_LOWEST]

    def _worth(self, counts: IntArray, prices: _Prices) -> tuple[float, float]:
        """Return what orders members as their bounds do, which are nearly linear in counts.

        A bound moves in steps: among equals those come first whose middle draws are lower.
        """
        kept, made, correct = counts
        worths = np.sort(correct - prices.kept * kept - prices.made * (made - self.guesses))
        first, last = (round(share * made.size) for share in _BAND)
        if (made == self.guesses).all():
            middle = max(c - prices.kept * k for _, c, k in candidates(kept, made, correct))
        else:
            middle = float(worths[made.size - (made.size + 1) // 2])
        return middle, float(worths[first:last].mean())
