"""Zero-Run by matching: examples are kept so that the membership of each is a fair coin.

At known log-odds one draw of what is kept is audited as in one run. Over a confidence set draws are
tested at half of the level, and a share of all draws must reach the bound: so at every member, of
which ascents look for those where that is least. The share is random, up to a half, and the same
everywhere. What it reaches is worked out, not drawn, so that it is smooth in the log-odds.

Where there is D', labels choose the number of guesses from the outside in. One choice serves all
log-odds of a confidence set and all draws of what is kept. Nested sets H_1 ⊂ H_2 ⊂ … of *all*
examples, the most confident first, are fixed by scores and by log-odds that no audited label had a
part in. Whether level l is tested is decided by labels outside H_l, kept or not; guessed are the
first c'_l kept examples of H_l. Take any log-odds. If they are true, then given features, what is
kept, and labels of what is not, the labels of kept examples are fair coins; those that decided are
outside of every set that the example guessed about is in, and levels are functions of what is kept.
So the joint certificate holds, and with it the least bound over the set.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.console import track
from leakbound._base.odds import expit
from leakbound._base.records import encode
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound.audits.policies.approximate_dp import failure_share
from leakbound.audits.policies.f_dp import JointTest
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.request import no_overlap
from leakbound.audits.zero_run.study import AT_A_MEMBER, ShiftProof, Study, distinct_ranks
from leakbound.claims import AnyFamily, ApproxDP, PureDP
from leakbound.claims.base import counts_of
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn
from leakbound.cuts.outside_in import Form, planned_rule
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import match, residual_scores

# Parts of the examples to which the number kept is rounded up: a bound falls with it.
_PARTS = 200
# Examples that matching must keep on average.
_FEWEST = 2.0
# Correct guesses that the least number found is lowered by: what ascents may have left.
_LEFT = 0.15
# Random steps from the lowest member that ascents found, members looked at in each, and how their
# reach, in radii of the set, changes.
_STEPS, _NEAR, _GROWS, _SHRINKS = 20, 8, 1.5, 0.7
# Most examples of which ascents are priced twice: of many, one guess is worth less.
_PRICED_TWICE = 5000
# Members of the set whose bounds are computed beside the estimate's.
_FINALISTS = 4
# Share by which the number kept is raised to see what a bound makes of it.
_PROBE = 0.1
# Part of the examples expected to be kept that a set is sure to keep,
_SHARE = 0.95
# but for so many standard deviations.
_DEVIATIONS = 3.0

_THEOREM = (
    "A member is kept with probability min(1, (1 - π)/π), a non-member with min(1, π/(1 - π)); "
    "given features and what is kept, membership of the kept examples is independent and fair, so "
    "an audit of one run applies to them. "
)


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
            raise OptionError(
                'correction="match" needs propensities, not limits: use "tamper" or '
                '"poisson_binomial", which use the worst one for each guess'
            )
        if study.adversary == "paper_aware":
            raise OptionError(
                'adversary="paper_aware" weighs guesses that tampering may drop, but matching '
                'drops none: use "residual" or "raw"'
            )
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
            reason = f"matching keeps {of}, too few for the tested thresholds"
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
    """Match at the least favourable members: what draws reach, at half the level."""
    study, found = matching.study, matching.odds.found
    counts = matching.counts(matching.reached(found.log_odds()[None])[0])
    estimate = bound = matching.proved(*counts)
    coefficients = found.coefficients
    for place, reached in matching.lowest(estimate, counts):
        here = matching.counts(reached, left=_LEFT)
        if matching.proved(*here) < bound:
            bound, counts, coefficients = matching.proved(*here), here, place
    correct, made, kept = counts
    return study.proof(
        bound,
        correct,
        made,
        rows=matching.rows,
        signs=matching.signs,
        theorem=_THEOREM + AT_A_MEMBER,
        ceiling=lambda: by_matching(study.perfect()).bound,
        kept=kept,
        m_eff=kept / 2 if study.one_sided else float(kept),
        options=matching.options,
        at_estimate=estimate,
        coefficients=coefficients,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Level:
    """A level, the examples that may be guessed about, and what counts at it prove."""

    study: Study
    odds: OddsSet
    levels: tuple[int, ...]
    shares: tuple[float, ...]
    index: int
    inside: BoolArray
    failures: float

    @property
    def guesses(self) -> int:
        """How many guesses are made, if so many examples are kept."""
        return self.levels[self.index]

    def ranks(self) -> FloatArray:
        """Return ranks balanced for so many guesses, examples not to guess about in the middle."""
        order = np.argsort(-self.study.matched(self.odds, self.guesses), kind="stable")
        within, others = order[self.inside[order]], order[~self.inside[order]]
        top = within.size if self.study.one_sided else (within.size + 1) // 2
        ranks = np.empty(order.size)
        ranks[np.concatenate([within[:top], others, within[top:]])] = np.arange(order.size, 0, -1)
        return ranks

    def proved(self, correct: int, kept: int) -> float:
        """Return what so many correct guesses prove, at half of the level.

        Where fewer examples are kept than a level has guesses, the level has so many.
        """
        study = self.study
        if isinstance(study.claim, ApproxDP):
            made = min(self.guesses, kept)
            counts = counts_of(correct, made, kept, one_sided=study.one_sided)
            level = shares.JOINT.of(study.draw_level)
            limit = _core.approx_joint_epsilon(counts, study.claim.delta, level, self.failures)
            return max(0.0, limit)
        test, index = self._test(kept)
        return test.bound(index, correct)

    def roughly(self, correct: int, kept: int) -> float:
        """Return a number that moves with the counts as `proved` does, and no more."""
        if isinstance(self.study.claim, ApproxDP):
            return self.proved(correct, kept)
        test, index = self._test(kept)
        return test.rough(index, correct)

    def _test(self, kept: int) -> tuple[JointTest, int]:
        """Return the joint test of the levels if so many examples are kept, and the one chosen."""
        study, level = self.study, self.study.draw_level
        levels = [made for made in self.levels if made < kept]
        index = min(self.index, len(levels))
        if len(levels) < len(self.levels):
            levels.append(kept)
        test = JointTest(
            claim=cast("AnyFamily", study.claim),
            levels=tuple(levels),
            tau=tuple(share * level for share in self.shares[: len(levels)]),
            examples=kept,
            sides=study.request.sides,
            level=level,
        )
        return test, index


def choose_level(study: Study, odds: OddsSet) -> Level | None:
    """Choose how many kept examples to guess about, by labels from the outside in.

    None where so few examples are kept that no level is reached.
    """
    claim, audited, level = study.claim, study.examples, study.draw_level
    chance = 2 * expit(-np.abs(odds.guide))
    expected = min(audited, max(2, int(chance.sum())))
    rows, signs = study.guessed(study.matched(odds, study.planned(expected, level)), audited)
    here = chance[rows]
    sure = _SHARE * np.cumsum(here) - _DEVIATIONS * np.sqrt(np.cumsum(here * (1 - here)))
    sides, failures = study.request.sides, 0.5
    if isinstance(claim, ApproxDP):
        failures = failure_share(expected, level, claim.delta, sides)

    def planned(levels: list[int] | None) -> _core.OutsideIn:
        form: Form = "approximate" if isinstance(claim, ApproxDP) else "family"
        how = (sides, form, claim.delta, failures)
        return planned_rule(OutsideIn(levels), expected, level, *how)

    levels = np.array(planned(None).levels)
    ends = np.searchsorted(np.maximum.accumulate(sure), levels) + 1
    reached = ends < audited
    if not reached.any():
        return None
    levels, ends = levels[reached], ends[reached]
    plan = planned(levels.tolist())
    # as if no more examples than will be kept were there: some of each shell, evenly spaced
    shells = zip(
        pairwise([0, *levels.tolist(), expected]),
        pairwise([0, *ends.tolist(), audited]),
        strict=True,
    )
    seen = [
        np.linspace(first, last, made - before, endpoint=False).astype(np.int64)
        for (before, made), (first, last) in shells
    ]
    right = study.right(rows, signs)[np.concatenate(seen)]
    index = plan.choose(_core.Path.from_successes(right))
    inside = np.zeros(audited, dtype=np.bool_)
    inside[rows[: ends[index]]] = True
    return Level(
        study=study,
        odds=odds,
        levels=tuple(plan.levels),
        shares=tuple(plan.shares),
        index=index,
        inside=inside,
        failures=failures,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Matching:
    """Guesses in order, and what a share of all draws of what is kept makes of them at a member."""

    study: Study
    odds: OddsSet
    guesses: int
    rows: IntArray
    signs: IntArray
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
        rows, signs = study.guessed(ranks, study.examples)
        return cls(
            study=study,
            odds=odds,
            guesses=made,
            rows=rows,
            signs=signs,
            options=options,
            level=level,
        )

    @property
    def _made(self) -> dict[str, Any]:
        """Which guesses may be made, and how many are: one of what is not kept counts as wrong."""
        inside = self.study.examples if self.level is None else int(self.level.inside.sum())
        return {"inside": inside, "made": self.guesses, "share": self.study.draws_needed}

    def reached(self, log_odds: FloatArray) -> FloatArray:
        """Return examples kept, guesses and correct ones that enough draws reach, by row.

        Correct ones beyond a whole number tell members apart.
        """
        core, given = self.odds.found.core, np.ascontiguousarray(log_odds)
        return core.matched(given, self.rows, self.signs, **self._made)

    def counts(self, reached: FloatArray, *, left: float = 0.0) -> tuple[int, int, int]:
        """Return correct guesses, all of them and examples kept, in whole numbers."""
        kept, made, correct = reached
        most = min(self.study.examples, math.ceil(kept))
        return max(0, math.floor(correct - left)), math.ceil(min(made, most)), most

    def proved(self, correct: int, guesses: int, kept: int) -> float:
        """Return what so many correct guesses prove."""
        key = correct, guesses, kept
        if key not in self._proved:
            if self.level is not None:
                self._proved[key] = self.level.proved(correct, kept)
            else:
                self._proved[key] = self.study.proved(*key)
        return self._proved[key]

    def roughly(self, correct: int, guesses: int, kept: int) -> float:
        """Return a number that moves with the counts as `proved` does, and no more."""
        if self.level is not None:
            return self.level.roughly(correct, kept)
        return self.proved(correct, guesses, kept)

    def prices(self, correct: int, made: int, kept: int) -> tuple[float, float]:
        """Return the correct guesses that an example kept costs near a bound, and a guess made."""
        few = min(correct, max(1, round(correct**0.5)))
        more = max(1, round(_PROBE * kept))
        top = self.roughly(correct, made, kept)
        of_correct = (top - self.roughly(correct - few, made, kept)) / max(1, few)
        of_kept = (top - self.roughly(correct, made, kept + more)) / more
        of_made = (top - self.roughly(correct, made + more, kept + more)) / more - of_kept
        if not (0 < of_correct < np.inf and 0 <= of_kept < np.inf and of_made < np.inf):
            return 0.0, 0.0
        return min(1.0, of_kept / of_correct), min(1.0, max(0.0, of_made / of_correct))

    def lowest(
        self, estimate: float, counts: tuple[int, int, int]
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return members found that prove least, and what is reached there."""
        if not estimate > 0:
            return []
        core, ends = self.odds.found.core, []
        # 1. Where ascents end, at prices of the estimate and then at those of what they found.
        for _ in range(2 if self.study.examples <= _PRICED_TWICE else 1):
            prices = self.prices(*counts)
            places, log_odds = core.least_matched(
                self.rows, self.signs, prices=prices, **self._made
            )
            ends += list(zip(places, self.reached(log_odds), strict=True))
            ends.sort(key=lambda end: self.roughly(*self.counts(end[1])))
            counts = self.counts(ends[0][1])
        worth = np.array([-prices[0], -prices[1], 1.0])
        # 2. Random steps from the lowest, across the set at first.
        place, table = min(ends, key=lambda end: float(end[1] @ worth))
        least, reach = float(table @ worth), 1.0
        for number in track(range(_STEPS), "Searching the confidence set", total=_STEPS):
            near, log_odds = core.members_near(place, reach=reach, count=_NEAR, draw=number)
            if not len(near):
                break
            table = self.reached(log_odds)
            lowest = int(np.argmin(table @ worth))
            reach *= _SHRINKS
            if (table @ worth)[lowest] < least:
                place, least = near[lowest], float((table @ worth)[lowest])
                ends.append((place, table[lowest]))
                reach = min(1.0, reach * _GROWS / _SHRINKS)
        return sorted(ends, key=lambda end: self.roughly(*self.counts(end[1])))[:_FINALISTS]
