"""Zero-Run by matching: examples are kept so that the membership of each is a fair coin.

At known log-odds one draw of what is kept is audited as in one run. Over a confidence set counts of
several draws are tested at half of the level, and half of the draws must reach the bound: so at
every member, of which a search looks for those where draws prove least.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound._base.records import encode
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound.audits.zero_run.levels import Level, choose_level
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.request import no_overlap
from leakbound.audits.zero_run.study import ShiftProof, Study, distinct_ranks
from leakbound.claims import PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import match, residual_scores

# Parts of the examples to which the number kept is rounded up: a bound falls with it.
_PARTS = 200
# Examples that matching must keep on average.
_FEWEST = 2.0
# Fewest and most members of the set that the search looks at beside those it set out from.
_LOOKED_AT = (48, 1600)
# Their number times the examples, within these limits: of many, one guess is worth less.
_VISITS = 720_000
# Shares of them that are anywhere and that descents look at; random steps have what is left.
_ANYWHERE, _DESCENDED = 0.25, 0.45
# Members looked at together in random steps.
_NEAR = 8
# The smallest reach of a search, in radii of the set, and how it changes.
_CLOSEST, _GROWS, _SHRINKS = 0.01, 1.5, 0.6
# What it begins with.
_REACH = 0.5
# How far from the estimate every other member anywhere is; the others are on the boundary.
_HALFWAY = 0.7
# Of the draws, in order, those whose mean tells members apart that have the same middle one.
_BAND = (0.3, 0.7)
# Members that a search carries on, and those whose bounds are computed beside the estimate's.
_LOWEST, _FINALISTS = 16, 4
# Share by which the number kept is raised to see what a bound makes of it.
_PROBE = 0.1

_THEOREM = (
    "A member is kept with probability min(1, (1 - π)/π), a non-member with min(1, π/(1 - π)); "
    "given features and what is kept, membership of the kept examples is independent and fair, so "
    "an audit of one run applies to them. "
)
_AT_A_MEMBER = "Half of several draws must reach the bound at half of the level."

# A bound, with its guesses, right ones and examples kept.
_Outcome: TypeAlias = tuple[float, int, int, int]


def by_matching(study: Study) -> ShiftProof:
    """Audit the examples that matching keeps as in an audit of one run."""
    if isinstance(study.odds, OddsBox):
        return _OneDraw.of(study, study.odds).proof(study.odds.estimate)
    return _least(Matching.of(study, study.odds))


@dataclass(frozen=True, eq=False)
class _OneDraw:
    """Bounds of examples that one draw keeps, under any log-odds."""

    study: Study
    box: OddsBox
    cuts: CutPolicy | None

    @classmethod
    def of(cls, study: Study, box: OddsBox) -> "_OneDraw":
        """Check what is asked, and choose the cuts."""
        if box.limited:
            message = (
                'correction="match" needs propensities, not limits: take "tamper" or '
                '"poisson_binomial", which use the worst one for each guess'
            )
            raise OptionError(message)
        if study.adversary == "paper_aware":
            message = (
                'adversary="paper_aware" weighs guesses that tampering may drop, and matching '
                'drops none: take "residual" or "raw"'
            )
            raise OptionError(message)
        expected = float((2 / (1 + np.exp(np.abs(box.estimate)))).sum())
        if expected < _FEWEST:
            why = f"matching keeps {expected:.2g} of {study.examples} examples, on average"
            raise no_overlap(why)
        cuts = study.request.cuts
        if cuts is None and not isinstance(study.claim, PureDP):
            # replicates, which prove nothing, are compared at one number of guesses: that for the
            # mean number kept, since the number kept depends on labels
            replicated = box.draws is not None
            cuts = Fixed(study.planned(round(expected), study.level)) if replicated else OutsideIn()
        if isinstance(cuts, KLScan | OutsideIn):
            cuts.check(study.examples)
        return cls(study, box, cuts)

    def proof(self, log_odds: FloatArray) -> ShiftProof:
        """Audit the examples kept under some log-odds."""
        study, cuts = self.study, self.cuts
        kept = match(study.member, log_odds, study.uniforms)
        values, size = study.scores[kept], int(kept.sum())
        halved = study.one_sided and not isinstance(study.claim, PureDP)
        fields: dict[str, Any] = {"kept": size, "m_eff": size / 2 if halved else float(size)}
        if size < self.least:
            of = f"{size} of {study.examples} examples"
            options = {"cuts": None if cuts is None else encode(cuts)}
            reason = f"matching keeps {of}, too few for the cuts tested"
            fields |= {"options": options, "reason": reason, "bounds": self.bounds}
            return study.proof(0.0, 0, 0, theorem=_THEOREM, **fields)
        if study.adversary == "residual" and np.isfinite(values).any():
            values = residual_scores(values, log_odds[kept], prior=0.5)
        if isinstance(cuts, Fixed) and cuts.guesses > size:
            cuts = Fixed(size)
        ranks = distinct_ranks(values, -np.arange(size))
        own = study.as_coins(ranks, study.member[kept], cuts)
        return study.proof(
            own.bound,
            own.correct,
            own.guesses,
            theorem=_THEOREM + own.theorem,
            reason=own.reason,
            own=own,
            bounds=self.bounds,
            **fields,
        )

    @property
    def least(self) -> int:
        """How many examples the cuts take: how many are kept depends on labels."""
        if isinstance(self.cuts, KLScan):
            return max(2, self.cuts.min_guesses or 1)
        levels = self.cuts.levels if isinstance(self.cuts, OutsideIn) else None
        return max(2, *(levels or [2]))

    def bounds(self, draws: FloatArray) -> FloatArray:
        """Return the bound under each row of log-odds."""
        study = self.study
        if not isinstance(self.cuts, Fixed):
            return np.array([self.proof(odds).bound for odds in draws])
        counts = _core.matched_counts(
            study.scores,
            study.member,
            np.ravel(draws),
            study.uniforms,
            guesses=self.cuts.guesses,
            one_sided=study.one_sided,
            residual=study.adversary == "residual",
        )
        step = max(1, study.examples // _PARTS) if draws.shape[0] > 1 else 1
        bounds = [
            study.proved(int(right), int(made), -(-int(kept) // step) * step)
            for kept, made, right in zip(*counts, strict=True)
        ]
        return np.array(bounds)


def _least(matching: "Matching") -> ShiftProof:
    """Match at the least favourable members: the middle bound of draws, at half the level."""
    study, found = matching.study, matching.odds.found
    rows, signs = study.guessed(matching.ranks, study.examples)
    estimate = matching.middle(matching.counts(found.log_odds()[None])[0])
    least, coefficients = estimate, found.coefficients
    for member in matching.lowest(rows, signs, estimate):
        here = matching.middle(member.counts)
        if here[0] < least[0]:
            least, coefficients = here, member.coefficients
    bound, made, correct, kept = least
    return study.proof(
        bound,
        correct,
        made,
        rows=rows,
        signs=signs,
        theorem=_THEOREM + _AT_A_MEMBER,
        ceiling=lambda: by_matching(study.perfect()).bound,
        kept=kept,
        m_eff=kept / 2 if study.one_sided else float(kept),
        options=matching.options | {"draws": len(study.uniforms)},
        at_estimate=estimate[0],
        coefficients=coefficients,
    )


@dataclass(frozen=True, eq=False)
class _Member:
    """A member of the set, and for each draw there: examples kept, guesses made, correct ones."""

    coefficients: FloatArray
    log_odds: FloatArray
    counts: IntArray


class _Prices(NamedTuple):
    """How many correct guesses a bound gives for one example kept less, and for one guess less."""

    kept: float
    made: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Matching:
    """Ranks, and what draws of what is kept make of them at members of the set."""

    study: Study
    odds: OddsSet
    guesses: int
    ranks: FloatArray
    options: dict[str, JsonValue]
    level: Level | None = None
    _proved: dict[tuple[int, int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, odds: OddsSet) -> "Matching":
        """Choose the number of guesses, by labels from the outside in where it can be, and rank."""
        # Labels choose where the claim has a joint proof, no number of guesses is named, and D'
        # says how many examples matching keeps.
        named = isinstance(study.claim, PureDP) or isinstance(study.request.cuts, Fixed)
        level = choose_level(study, odds) if odds.guide.any() and not named else None
        if level is not None:
            levels: JsonValue = list(level.levels)
            made = level.guesses
            options: dict[str, JsonValue] = {"outside_in": {"levels": levels, "guesses": made}}
            ranks = level.ranks()
        else:
            expected = max(2, int(2 * expit(-np.abs(odds.guide)).sum()))
            made = study.planned(min(expected, study.examples), study.draw_level)
            options, ranks = {"planned": made}, study.matched(odds, made)
        return cls(study=study, odds=odds, guesses=made, ranks=ranks, options=options, level=level)

    def counts(self, log_odds: FloatArray) -> IntArray:
        """Return examples kept, guesses made and correct ones, of shape (members, 3, draws).

        All are rounded to the side that proves less, so that few bounds have to be computed: kept,
        and where fewer are kept than should be guessed, guesses up and correct ones down.
        """
        table = self._table(log_odds, np.ones(self.ranks.size, dtype=np.bool_))
        if self.level is not None:
            table[2] = self._table(log_odds, self.level.inside)[2]
        step = max(1, self.study.examples // _PARTS)
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
            self.study.member[rows],
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
            if self.level is not None and kept > 0:
                self._proved[key] = self.level.proved(correct, kept)
            else:
                self._proved[key] = self.study.proved(*key)
        return self._proved[key]

    def roughly(self, correct: int, guesses: int, kept: int) -> float:
        """Return a number that moves with the counts as `proved` does, and no more."""
        if self.level is not None and kept > 0:
            return self.level.roughly(correct, kept)
        return self.proved(correct, guesses, kept)

    def middle(
        self, counts: IntArray, proved: Callable[[int, int, int], float] | None = None
    ) -> _Outcome:
        """Return the bound that half of the draws reach, with its guesses, right ones and kept."""
        kept, made, correct = counts
        return middle(kept, made, correct, proved or self.proved)

    def prices(self, estimate: _Outcome) -> _Prices | None:
        """Return what moves a bound near that of the estimate; None if nothing can be told."""
        _, made, correct, kept = estimate
        few = min(correct, max(1, round(correct**0.5)))
        more = max(1, round(_PROBE * kept))
        top = self.roughly(correct, made, kept)
        of_correct = (top - self.roughly(correct - few, made, kept)) / few
        of_kept = (top - self.roughly(correct, made, kept + more)) / more
        of_made = (top - self.roughly(correct, made + more, kept + more)) / more - of_kept
        if not (0 < of_correct < np.inf and 0 <= of_kept < np.inf and of_made < np.inf):
            return None
        return _Prices(min(1.0, of_kept / of_correct), min(1.0, max(0.0, of_made / of_correct)))

    def lowest(self, rows: IntArray, signs: IntArray, estimate: _Outcome) -> list[_Member]:
        """Return the members found at which draws prove least, as correct guesses and kept go."""
        core = self.odds.found.core
        if not estimate[0] > 0:
            return []
        # 1. Where ascents of mean counts end.
        prices = self.prices(estimate)
        price = 0.0 if prices is None else prices.kept
        ends = self._members(*core.least_matched(rows, signs, kept=self.guesses, price=price))
        if prices is None:
            return ends
        # 2. Members anywhere.
        total = int(np.clip(_VISITS // self.study.examples, *_LOOKED_AT))
        estimated, anywhere = self.odds.found.coefficients, int(_ANYWHERE * total)
        some = core.members_near(estimated, reach=_HALFWAY, count=anywhere, draw=0)
        ends += self._members(*some)
        # 3. Descents from the lowest and from the estimate, by what the draws make of members.
        made = np.zeros(self.ranks.size)
        made[rows[: 2 * self.guesses]] = signs[: 2 * self.guesses]
        left = int(_DESCENDED * total)
        for start in [*self._lowest(ends, prices)[:_FINALISTS], ends[0]]:
            found, looked_at = self._descent(start, made, prices, left)
            ends, left = [*ends, found], left - looked_at
        # 4. Random steps from the lowest of all.
        best, reach = self._lowest(ends, prices), _REACH
        steps = max(0, total - anywhere - int(_DESCENDED * total) + left)
        for number in range(1, steps // _NEAR + 1):
            near = core.members_near(best[0].coefficients, reach=reach, count=_NEAR, draw=number)
            lower = self._lowest([*best, *self._members(*near)], prices)
            reach *= _SHRINKS if lower[0] is best[0] else _GROWS
            reach = min(1.0, reach) if reach > _CLOSEST else _REACH
            best = lower
        # 5. The few of which the recursion, which is soon worked out, proves least.
        if self.level is not None:
            best = sorted(best, key=lambda one: self.middle(one.counts, self.roughly)[0])
        return best[:_FINALISTS]

    def _descent(
        self, start: _Member, made: FloatArray, prices: _Prices, budget: int
    ) -> tuple[_Member, int]:
        """Return where turns towards the slopes of mean counts end, and how many were looked at."""
        looked_at, right = 0, self.study.member == (made > 0)
        while looked_at < budget:
            # log-odds above 0 of a guess drop it where it is right; others keep it where it is not
            z = start.log_odds * made
            slopes = made * np.where(right, z > 0, z < 0) * np.exp(-np.abs(z))
            members = self._members(
                *self.odds.found.core.members_toward(start.coefficients, slopes)
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
            central = max(c - prices.kept * k for _, c, k in _reached(kept, made, correct))
        else:
            central = float(worths[made.size - (made.size + 1) // 2])
        return central, float(worths[first:last].mean())


def middle(
    kept: IntArray, made: IntArray, right: IntArray, proved: Callable[[int, int, int], float]
) -> _Outcome:
    """Return a bound that half of the draws reach, with its guesses, right ones and kept."""
    needed = (right.size + 1) // 2
    number = int(np.sort(made)[::-1][needed - 1])
    if not number:
        return proved(0, 0, 0), 0, 0, int(np.sort(kept)[needed - 1])
    # draws that keep fewer examples than there are guesses make fewer: theirs are compared alone
    if (made == made.max()).sum() < needed:
        each = sorted(
            (proved(int(c), int(n), int(k)), int(n), int(c), int(k))
            for k, n, c in zip(kept, made, right, strict=True)
        )
        return each[right.size - needed]
    bounds = [(proved(c, n, k), n, c, k) for n, c, k in _reached(kept, made, right)]
    return max(bounds, key=lambda one: one[0])


def _reached(kept: IntArray, made: IntArray, right: IntArray) -> list[tuple[int, int, int]]:
    """Return guesses, right ones and kept, such that half of the draws have no fewer, and no more.

    A bound grows with the correct guesses and falls with the examples kept: for each number of
    correct guesses, the draws with at least so many and fewest kept are asked.
    """
    needed, full = (right.size + 1) // 2, made == made.max()
    found: list[tuple[int, int, int]] = []
    for correct in np.unique(right[full])[::-1]:
        enough = np.sort(kept[full & (right >= correct)])
        if enough.size >= needed:
            most = int(enough[needed - 1])
            if not found or most < found[-1][2]:
                found.append((int(made.max()), int(correct), most))
    return found
