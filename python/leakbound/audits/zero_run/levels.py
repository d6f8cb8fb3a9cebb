"""The number of guesses about matched examples, chosen by labels from the outside in.

One choice serves all log-odds of a confidence set and all draws of what is kept. Nested sets
H_1 ⊂ H_2 ⊂ … of *all* examples, the most confident first, are fixed by scores and by log-odds that
no audited label had a part in. Whether level l is tested is decided by labels outside H_l, kept or
not; guessed are the first c'_l kept examples of H_l. Take any log-odds. If they are true, then
given features, what is kept, and labels of what is not, the labels of kept examples are fair coins;
those that decided are outside of every set that the example guessed about is in, and levels are
functions of what is kept. So the joint certificate holds, and with it the least bound over the set.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.policies.approximate_dp import failure_share
from leakbound.audits.policies.f_dp import JointTest
from leakbound.audits.zero_run.log_odds import OddsSet
from leakbound.audits.zero_run.study import Study
from leakbound.claims import AnyFamily, ApproxDP
from leakbound.claims.base import counts_of
from leakbound.cuts import OutsideIn
from leakbound.cuts.outside_in import Form, planned_rule

# Part of the examples expected to be kept that a set is sure to keep,
_SHARE = 0.95
# but for so many standard deviations.
_DEVIATIONS = 3.0


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
            limit = _core.approx_joint_epsilon(
                counts, study.claim.delta, study.draw_level, self.failures
            )
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
