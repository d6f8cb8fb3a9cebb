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
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.console import track
from leakbound._base.records import encode
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits.policies.approximate_dp import failure_share
from leakbound.audits.policies.f_dp import JointTest
from leakbound.audits.zero_run.correction import AT_A_MEMBER, Correction, Tested, fair
from leakbound.audits.zero_run.game import Guesses, ObservedGame, distinct_ranks
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.options import no_overlap
from leakbound.claims import AnyFamily, ApproxDP, PureDP
from leakbound.claims.base import GuessWords, counts_of
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, Proof, SecondLook
from leakbound.cuts.games import ScoreGame
from leakbound.cuts.outside_in import Form, planned_rule
from leakbound.cuts.policy import Best
from leakbound.cuts.shift import Shift
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import match, residual_scores

# Parts of the examples to which the number kept is rounded up: a bound falls with it.
_PARTS = 200
# Examples that matching must keep on average.
_FEWEST = 2.0
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
# Part of the examples expected to be kept that a set is sure to keep,
_SHARE = 0.95
# but for so many standard deviations.
_DEVIATIONS = 3.0

_THEOREM = (
    "A member is kept with probability min(1, (1 - π)/π), a non-member with min(1, π/(1 - π)); "
    "given features and what is kept, membership of the kept examples is independent and fair, so "
    "an audit of one run applies to them. "
)

Counts: TypeAlias = tuple[int, int, int]
"""Correct guesses, all of them and examples kept."""


class Match(Correction):
    """Examples are kept so that the membership of each is a fair coin."""

    name: ClassVar[CorrectionName] = "match"

    def at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.at_known`: one draw is audited as an audit of one run."""
        cuts = self._checked(odds, game, level)
        proof = self._one_draw(odds.estimate, game, level, cuts)

        def bounds(draws: FloatArray) -> FloatArray:
            if isinstance(cuts, Fixed):
                return self._counted_bounds(draws, game, level, cuts.guesses)
            proofs = (self._one_draw(log_odds, game, level, cuts) for log_odds in draws)
            return np.array([one.bound for one in proofs])

        assert proof.shift is not None
        return replace(proof, shift=replace(proof.shift, bounds=bounds))

    def over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.over_set`: what a share of all draws reaches, at half the level."""
        matching = Matching.of(self, odds, game, level)
        counts = matching.counts(matching.reached(odds.likeliest[None])[0])
        estimate = matching.proved(*counts)
        bound = estimate
        coefficients = odds.found.coefficients
        for place, reached in matching.lowest(estimate, counts):
            here = matching.counts(reached, left=_LEFT)
            proved = matching.proved(*here)
            if proved < bound:
                bound = proved
                counts = here
                coefficients = place
        correct, made, kept = counts
        shift = replace(
            self._kept(game, kept),
            effective=kept / 2 if game.one_sided else float(kept),
            at_estimate=estimate,
            coefficients=coefficients,
        )
        tested = Tested(
            guesses=matching.order, theorem=_THEOREM + AT_A_MEMBER, options=matching.options
        )
        return self.proof(
            game,
            Best(bound, made, correct),
            shift,
            tested,
            level=level,
        )

    def _checked(self, odds: OddsBox, game: ObservedGame, level: float) -> CutPolicy:
        """Check what is asked, and choose the cuts."""
        if odds.limited:
            raise OptionError(
                'correction="match" needs propensities, not limits: use "tamper" or '
                '"poisson_binomial", which use the worst one for each guess'
            )
        if self.adversary == "paper_aware":
            raise OptionError(
                'adversary="paper_aware" weighs guesses that tampering may drop, but matching '
                'drops none: use "residual" or "raw"'
            )
        expected = float((2 / (1 + np.exp(np.abs(odds.estimate)))).sum())
        if expected < _FEWEST:
            why = f"matching keeps {expected:.2g} of {game.examples} examples, on average"
            raise no_overlap(why)
        cuts = self.cuts
        replicated = odds.draws is not None
        if cuts is None and replicated and not isinstance(self.claim, PureDP):
            # replicates, which prove nothing, are compared at one number of guesses: that for the
            # mean number kept, since the number kept depends on labels
            return Fixed(self.planned(game, round(expected), level))
        if isinstance(cuts, KLScan | OutsideIn):
            cuts.check(game.examples)
        return cuts or SecondLook()

    def _one_draw(
        self, log_odds: FloatArray, game: ObservedGame, level: float, cuts: CutPolicy
    ) -> Proof:
        """Audit the examples kept under some log-odds."""
        kept = match(game.member, log_odds, game.uniforms)
        values = game.values[kept]
        size = values.size
        shift = self._kept(game, size)
        if size < _least(cuts):
            return self._too_few(game, shift, level, cuts)
        if self.adversary == "residual" and np.isfinite(values).any():
            values = residual_scores(values, log_odds[kept], prior=0.5)
        if isinstance(cuts, Fixed) and cuts.guesses > size:
            cuts = Fixed(size)
        ranks = distinct_ranks(values, -np.arange(size))
        coins = ScoreGame(scores=ranks, member=game.member[kept], sides=game.sides, seed=game.seed)
        proof = fair(self.claim, cuts, coins, level)
        return replace(
            proof, shift=replace(shift, theorem=_THEOREM + self.claim.theorem(GuessWords()))
        )

    def _kept(self, game: ObservedGame, kept: int) -> Shift:
        """Return that so many examples are kept."""
        halved = game.one_sided and not isinstance(self.claim, PureDP)
        return replace(self.shift(game, kept), effective=kept / 2 if halved else float(kept))

    def _too_few(self, game: ObservedGame, shift: Shift, level: float, cuts: CutPolicy) -> Proof:
        """Return that nothing is proved of the few examples that are kept."""
        of = f"{shift.kept} of {game.examples} examples"
        tested = Tested(
            guesses=game.guessed(game.values, 0),
            theorem=_THEOREM,
            reason=f"matching keeps {of}, too few for the tested thresholds",
            options={"cuts": encode(cuts)},
        )
        return self.proof(game, Best(0.0, 0, 0), shift, tested, level=level)

    def _counted_bounds(
        self, draws: FloatArray, game: ObservedGame, level: float, number: int
    ) -> FloatArray:
        """Return the bound of a fixed number of guesses under each row of log-odds."""
        counts = _core.matched_counts(
            game.values,
            game.member,
            np.ravel(draws),
            game.uniforms,
            guesses=number,
            one_sided=game.one_sided,
            residual=self.adversary == "residual",
        )
        step = max(1, game.examples // _PARTS) if draws.shape[0] > 1 else 1
        bounds = []
        for kept, made, right in zip(*counts, strict=True):
            rounded_up = -(-int(kept) // step) * step
            bounds.append(self.counted(game, (int(right), int(made), rounded_up), level))
        return np.array(bounds)


def _least(cuts: CutPolicy) -> int:
    """How many examples the cuts take: how many are kept depends on labels."""
    if isinstance(cuts, KLScan):
        return max(2, cuts.min_guesses or 1)
    if isinstance(cuts, OutsideIn) and cuts.levels is not None:
        return max(2, *cuts.levels)
    return 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Level:
    """A level, the examples that may be guessed about, and what counts at it prove.

    `draw_level` is the probability of error that one draw has.
    """

    correction: Match
    odds: OddsSet
    game: ObservedGame
    draw_level: float
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
        order = np.argsort(-self.odds.matched(self.game, self.guesses), kind="stable")
        within = order[self.inside[order]]
        others = order[~self.inside[order]]
        top = within.size if self.game.one_sided else (within.size + 1) // 2
        ranks = np.empty(order.size)
        ranks[np.concatenate([within[:top], others, within[top:]])] = np.arange(order.size, 0, -1)
        return ranks

    def proved(self, correct: int, kept: int) -> float:
        """Return what so many correct guesses prove, at half of the level.

        Where fewer examples are kept than a level has guesses, the level has so many.
        """
        claim = self.correction.claim
        if isinstance(claim, ApproxDP):
            made = min(self.guesses, kept)
            counts = counts_of(correct, made, kept, one_sided=self.game.one_sided)
            level = shares.JOINT.of(self.draw_level)
            limit = _core.approx_joint_epsilon(counts, claim.delta, level, self.failures)
            return max(0.0, limit)
        test, index = self._test(kept)
        return test.bound(index, correct)

    def roughly(self, correct: int, kept: int) -> float:
        """Return a number that moves with the counts as `proved` does, and no more."""
        if isinstance(self.correction.claim, ApproxDP):
            return self.proved(correct, kept)
        test, index = self._test(kept)
        return test.rough(index, correct)

    def _test(self, kept: int) -> tuple[JointTest, int]:
        """Return the joint test of the levels if so many examples are kept, and the one chosen."""
        levels = [made for made in self.levels if made < kept]
        index = min(self.index, len(levels))
        if len(levels) < len(self.levels):
            levels.append(kept)
        parts = self.shares[: len(levels)]
        test = JointTest(
            claim=cast("AnyFamily", self.correction.claim),
            levels=tuple(levels),
            tau=tuple(part * self.draw_level for part in parts),
            examples=kept,
            sides=self.game.sides,
            level=self.draw_level,
        )
        return test, index


def choose_level(
    correction: Match, odds: OddsSet, game: ObservedGame, draw_level: float
) -> Level | None:
    """Choose how many kept examples to guess about, by labels from the outside in.

    None where so few examples are kept that no level is reached.
    """
    claim = correction.claim
    audited = game.examples
    chance = odds.kept
    expected = min(audited, max(2, int(chance.sum())))
    number = correction.planned(game, expected, draw_level)
    order = game.guessed(odds.matched(game, number), audited)
    # 1. So many examples of each set are kept for sure: some deviations below the mean.
    here = chance[order.rows]
    mean = np.cumsum(here)
    variance = np.cumsum(here * (1 - here))
    sure = _SHARE * mean - _DEVIATIONS * np.sqrt(variance)
    # 2. Levels as planned for the examples expected, and the sets that reach them.
    failures = 0.5
    form: Form = "family"
    if isinstance(claim, ApproxDP):
        failures = failure_share(expected, draw_level, claim.delta, game.sides)
        form = "approximate"

    def planned(levels: list[int] | None) -> _core.OutsideIn:
        how = (game.sides, form, claim.delta, failures)
        return planned_rule(OutsideIn(levels), expected, draw_level, *how)

    levels = np.array(planned(None).levels)
    ends = np.searchsorted(np.maximum.accumulate(sure), levels) + 1
    reached = ends < audited
    if not reached.any():
        return None
    levels = levels[reached]
    ends = ends[reached]
    plan = planned(levels.tolist())
    # 3. The choice, as if no more examples than will be kept were there.
    seen = _seen([*levels.tolist(), expected], [*ends.tolist(), audited])
    right = game.right(order)[seen]
    index = plan.choose(_core.Path.from_successes(right))
    inside = np.zeros(audited, dtype=np.bool_)
    inside[order.rows[: ends[index]]] = True
    return Level(
        correction=correction,
        odds=odds,
        game=game,
        draw_level=draw_level,
        levels=tuple(plan.levels),
        shares=tuple(plan.shares),
        index=index,
        inside=inside,
        failures=failures,
    )


def _seen(levels: list[int], ends: list[int]) -> IntArray:
    """Return some examples of each shell, evenly spaced: as many as guesses between two levels."""
    parts = []
    shells = zip(pairwise([0, *levels]), pairwise([0, *ends]), strict=True)
    for (before, made), (first, last) in shells:
        spaced = np.linspace(first, last, made - before, endpoint=False)
        parts.append(spaced.astype(np.int64))
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False, kw_only=True)
class Matching:
    """Guesses in order, and what a share of all draws of what is kept makes of them at a member."""

    correction: Match
    odds: OddsSet
    game: ObservedGame
    draw_level: float
    guesses: int
    order: Guesses
    options: dict[str, JsonValue]
    level: Level | None = None
    _proved: dict[Counts, float] = field(default_factory=dict)

    @classmethod
    def of(cls, correction: Match, odds: OddsSet, game: ObservedGame, level: float) -> "Matching":
        """Choose the number of guesses, by labels from the outside in where it can be, and rank."""
        draw_level = odds.of_draw(level)
        # Labels choose where the claim has a joint proof, no number of guesses is named, and D'
        # says how many examples matching keeps.
        named = isinstance(correction.claim, PureDP) or isinstance(correction.cuts, Fixed)
        chosen = None
        if odds.guide.any() and not named:
            chosen = choose_level(correction, odds, game, draw_level)
        options: dict[str, JsonValue]
        if chosen is not None:
            made = chosen.guesses
            ranks = chosen.ranks()
            options = {"outside_in": {"levels": list(chosen.levels), "guesses": made}}
        else:
            expected = min(max(2, int(odds.kept.sum())), game.examples)
            made = correction.planned(game, expected, draw_level)
            ranks = odds.matched(game, made)
            options = {"planned": made}
        return cls(
            correction=correction,
            odds=odds,
            game=game,
            draw_level=draw_level,
            guesses=made,
            order=game.guessed(ranks, game.examples),
            options=options,
            level=chosen,
        )

    @property
    def _made(self) -> dict[str, Any]:
        """Which guesses may be made, and how many are: one of what is not kept counts as wrong."""
        inside = self.game.examples if self.level is None else int(self.level.inside.sum())
        return {"inside": inside, "made": self.guesses, "share": self.odds.draws_needed}

    def reached(self, log_odds: FloatArray) -> FloatArray:
        """Return examples kept, guesses and correct ones that enough draws reach, by row.

        Correct ones beyond a whole number tell members apart.
        """
        given = np.ascontiguousarray(log_odds)
        return self.odds.found.core.matched(given, self.order.rows, self.order.signs, **self._made)

    def counts(self, reached: FloatArray, *, left: float = 0.0) -> Counts:
        """Return correct guesses, all of them and examples kept, in whole numbers."""
        kept, made, correct = reached
        most = min(self.game.examples, math.ceil(kept))
        return max(0, math.floor(correct - left)), math.ceil(min(made, most)), most

    def proved(self, correct: int, guesses: int, kept: int) -> float:
        """Return what so many correct guesses prove."""
        key = (correct, guesses, kept)
        if key not in self._proved:
            if self.level is not None:
                proved = self.level.proved(correct, kept)
            else:
                proved = self.correction.counted(self.game, key, self.draw_level)
            self._proved[key] = proved
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

    def lowest(self, estimate: float, counts: Counts) -> list[tuple[FloatArray, FloatArray]]:
        """Return members found that prove least, and what is reached there."""
        if not estimate > 0:
            return []
        core = self.odds.found.core
        ends: list[tuple[FloatArray, FloatArray]] = []
        # 1. Where ascents end, at prices of the estimate and then at those of what they found.
        for _ in range(2 if self.game.examples <= _PRICED_TWICE else 1):
            prices = self.prices(*counts)
            places, log_odds = core.least_matched(
                self.order.rows, self.order.signs, prices=prices, **self._made
            )
            ends += zip(places, self.reached(log_odds), strict=True)
            ends.sort(key=self._roughly_at)
            counts = self.counts(ends[0][1])
        of_kept, of_made = prices
        worth = np.array([-of_kept, -of_made, 1.0])
        # 2. Random steps from the lowest, across the set at first.
        place, table = min(ends, key=lambda end: float(end[1] @ worth))
        least = float(table @ worth)
        reach = 1.0
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
                ends.append((place, tables[lowest]))
                reach = min(1.0, reach * _GROWS / _SHRINKS)
        return sorted(ends, key=self._roughly_at)[:_FINALISTS]

    def _roughly_at(self, end: tuple[FloatArray, FloatArray]) -> float:
        """Return what is roughly proved at a member, given what is reached there."""
        return self.roughly(*self.counts(end[1]))
