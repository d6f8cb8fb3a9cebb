"""Which of the examples that matching keeps are guessed about, over a confidence set of log-odds.

One choice serves all log-odds of the set and all draws of what is kept. Take any log-odds. If they
are true, then given features, what is kept, and labels of what is not, the labels of kept examples
are fair coins. So a bound of one run holds if no label of an example that is guessed about had a
part in the choice, and levels are functions of what is kept.

*From the outside in*, where there is D': nested sets H_1 ⊂ H_2 ⊂ … of *all* examples, the most
confident first, are fixed by scores and by log-odds that no audited label had a part in. Whether
level l is tested is decided by labels outside H_l, kept or not; guessed are the first c'_l kept
examples of H_l. Those that decided are outside of every set that the example guessed about is in.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound.audits.policies.approximate_dp import failure_share
from leakbound.audits.policies.f_dp import JointTest
from leakbound.audits.zero_run.correction import Correction
from leakbound.audits.zero_run.game import Guesses, ObservedGame
from leakbound.audits.zero_run.log_odds import OddsSet
from leakbound.claims import AnyFamily, ApproxDP, PureDP
from leakbound.claims.base import counts_of
from leakbound.cuts import OutsideIn
from leakbound.cuts.outside_in import Form, planned_rule

# Part of the examples expected to be kept that a set is sure to keep,
_SURE_SHARE = 0.95
# but for so many standard deviations.
_SURE_DEVIATIONS = 3.0

Counts: TypeAlias = tuple[int, int, int]
"""Correct guesses, all of them and examples kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder:
    """Numbers of guesses that are planned for the examples expected to be kept.

    `level` is the probability of error of one draw that they are planned for, and `failures` the
    share of a test's level that failures of (ε, δ) have.
    """

    correction: Correction
    odds: OddsSet
    game: ObservedGame
    expected: int
    level: float

    @classmethod
    def of(
        cls, correction: Correction, odds: OddsSet, game: ObservedGame, level: float
    ) -> "Ladder":
        """Plan for what D' says is kept; all examples, where there is none."""
        expected = min(game.examples, max(2, int(odds.kept.sum())))
        return cls(correction=correction, odds=odds, game=game, expected=expected, level=level)

    @cached_property
    def number(self) -> int:
        """The number of guesses that is best at the reference."""
        return self.correction.planned(self.game, self.expected, self.level)

    @cached_property
    def ranked(self) -> Guesses:
        """All guesses in order, balanced for the number that is best at the reference."""
        balanced_ranks = self.odds.matched(self.game, self.number)
        return self.game.guessed(balanced_ranks, self.game.examples)

    def failures(self, level: float) -> float:
        """Return the share of a test's level that failures have."""
        claim = self.correction.claim
        if not isinstance(claim, ApproxDP):
            return 0.5
        return failure_share(self.expected, level, claim.delta, self.game.sides)

    def plan(self, levels: list[int] | None = None) -> _core.OutsideIn:
        """Return levels and the rule that stops at one of them, at these levels if there are."""
        claim = self.correction.claim
        form: Form = "family"
        if isinstance(claim, PureDP):
            form = "pure"
        elif isinstance(claim, ApproxDP):
            form = "approximate"
        return planned_rule(
            OutsideIn(levels),
            examples=self.expected,
            level=self.level,
            sides=self.game.sides,
            form=form,
            delta=claim.delta,
            share=self.failures(self.level),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Chosen(ABC):
    """Which guesses are tested of those that matching leaves, and what counts of them prove.

    Of `order` the first `inside` may be made. So many `guesses` are made of those that are kept,
    and one that is missing counts as wrong. `level` is the probability of error that one draw has.
    """

    ladder: Ladder
    level: float
    order: Guesses
    inside: int
    guesses: int

    @property
    @abstractmethod
    def options(self) -> dict[str, JsonValue]:
        """What options tell of it."""

    @property
    def searched(self) -> str:
        """How many numbers were tested and what chose them, if that is not said of its options."""
        return ""

    @property
    def guessed(self) -> str:
        """What its guesses are called, if they are not the most confident ones."""
        return ""

    @abstractmethod
    def proved(self, counts: Counts) -> float:
        """Return what so many correct guesses prove."""

    def roughly(self, counts: Counts) -> float:
        """Return a number that moves with the counts as `proved` does, and no more."""
        return self.proved(counts)


class Planned(Chosen):
    """A number of guesses that is fixed before any label is seen."""

    @property
    def options(self) -> dict[str, JsonValue]:
        """See `Chosen.options`."""
        return {"planned": self.guesses}

    def proved(self, counts: Counts) -> float:
        """See `Chosen.proved`."""
        return self.ladder.correction.counted(self.ladder.game, counts, self.level)


@dataclass(frozen=True, eq=False, kw_only=True)
class Level(Chosen):
    """One of several numbers of guesses, that labels chose which are not tested.

    All of them have one test, at `shares` of the level; under pure DP that of the number chosen.
    Where fewer examples are kept than a level has guesses, the level has so many.
    """

    levels: tuple[int, ...]
    shares: tuple[float, ...]
    index: int

    @property
    def options(self) -> dict[str, JsonValue]:
        """See `Chosen.options`."""
        return {"outside_in": {"levels": list(self.levels), "guesses": self.guesses}}

    def proved(self, counts: Counts) -> float:
        """See `Chosen.proved`."""
        claim = self.ladder.correction.claim
        if isinstance(claim, PureDP):  # which leaves the choice free
            return self.ladder.correction.counted(self.ladder.game, counts, self.level)
        if isinstance(claim, ApproxDP):
            return self._approximate_epsilon(counts, claim.delta)
        correct, _, kept = counts
        test, index = self._joint_test(kept)
        return test.bound(index, correct)

    def _approximate_epsilon(self, counts: Counts, delta: float) -> float:
        """Return the ε of (ε, δ)-DP that counts prove, where failures may be among them."""
        correct, _, kept = counts
        guesses = min(self.guesses, kept)
        one_sided = self.ladder.game.one_sided
        epsilon = _core.approx_joint_epsilon(
            counts_of(correct, guesses, kept, one_sided=one_sided),
            delta,
            shares.JOINT.of(self.level),
            self.ladder.failures(self.level),
        )
        return max(0.0, epsilon)

    def roughly(self, counts: Counts) -> float:
        """See `Chosen.roughly`."""
        if isinstance(self.ladder.correction.claim, PureDP | ApproxDP):
            return self.proved(counts)
        correct, _, kept = counts
        test, index = self._joint_test(kept)
        return test.rough(index, correct)

    def tested(self, kept: int) -> list[int]:
        """Return the numbers of guesses that have the test if so many examples are kept."""
        guess_numbers = [guesses for guesses in self.levels if guesses < kept]
        if len(guess_numbers) < len(self.levels):
            guess_numbers.append(kept)
        return guess_numbers

    def _joint_test(self, kept: int) -> tuple[JointTest, int]:
        """Return the joint test of the levels if so many examples are kept, and the one chosen.

        Least counts are those of the examples expected, whoever is kept, which no audited label had
        a part in. Counts for the number kept would jump as that grows, and a bound with them.
        """
        guess_numbers = self.tested(kept)
        index = min(self.index, len(guess_numbers) - 1)
        level_shares = self.shares[: len(guess_numbers)]
        test = JointTest(
            claim=cast("AnyFamily", self.ladder.correction.claim),
            levels=tuple(guess_numbers),
            tau=tuple(share * self.level for share in level_shares),
            examples=kept,
            sides=self.ladder.game.sides,
            level=self.level,
            planned=self.ladder.expected,
        )
        return test, index


def surely_kept(chance: FloatArray) -> FloatArray:
    """Return how many of the first one, two, … examples are nearly always kept."""
    mean_kept = np.cumsum(chance)
    # Of a Poisson-binomial law
    variance = np.cumsum(chance * (1 - chance))
    standard_deviation = np.sqrt(variance)
    surely = _SURE_SHARE * mean_kept - _SURE_DEVIATIONS * standard_deviation
    largest_so_far: FloatArray = np.maximum.accumulate(surely)
    return largest_so_far


def planned_number(ladder: Ladder, level: float) -> Planned:
    """Guess about the number of examples that is best at the reference."""
    examples = ladder.game.examples
    return Planned(
        ladder=ladder, level=level, order=ladder.ranked, inside=examples, guesses=ladder.number
    )


def from_outside_in(ladder: Ladder, level: float) -> Level | None:
    """Choose how many kept examples to guess about, by labels from the outside in.

    None where so few examples are kept that no level is reached.
    """
    audited = ladder.game.examples
    ranked = ladder.ranked
    # 1. Levels as planned for the examples expected, and the sets that surely keep so many.
    guess_numbers = np.array(ladder.plan().levels)
    keep_probabilities = ladder.odds.kept[ranked.rows]
    set_sizes = np.searchsorted(surely_kept(keep_probabilities), guess_numbers) + 1
    can_be_tested = set_sizes < audited
    if not can_be_tested.any():
        return None
    guess_numbers = guess_numbers[can_be_tested]
    set_sizes = set_sizes[can_be_tested]
    plan = ladder.plan(guess_numbers.tolist())
    # 2. The choice, as if no more examples than will be kept were there.
    sampled_places = _spaced_places(
        guess_numbers=[*guess_numbers.tolist(), ladder.expected],
        set_sizes=[*set_sizes.tolist(), audited],
    )
    is_correct = ladder.game.right(ranked)[sampled_places]
    index = plan.choose(_core.Path.from_successes(is_correct))
    # 3. Guesses within the set, balanced for the number chosen.
    guesses = plan.levels[index]
    inside = np.zeros(audited, dtype=np.bool_)
    inside[ranked.rows[: set_sizes[index]]] = True
    return Level(
        ladder=ladder,
        level=level,
        order=_inside_first(ladder, inside, guesses),
        inside=int(inside.sum()),
        guesses=guesses,
        levels=tuple(plan.levels),
        shares=tuple(plan.shares),
        index=index,
    )


def _inside_first(ladder: Ladder, inside: BoolArray, guesses: int) -> Guesses:
    """Return guesses balanced for a number, those about examples outside of a set last."""
    game = ladder.game
    balanced_ranks = ladder.odds.matched(game, guesses)
    falling_rows = np.argsort(-balanced_ranks, kind="stable")
    is_inside = inside[falling_rows]
    inside_rows = falling_rows[is_inside]
    outside_rows = falling_rows[~is_inside]
    member_guesses = (inside_rows.size + 1) // 2
    if game.one_sided:
        member_guesses = inside_rows.size
    # Guesses go from both ends: rows outside of the set come in the middle
    reordered_rows = np.concatenate(
        [inside_rows[:member_guesses], outside_rows, inside_rows[member_guesses:]]
    )
    ranks = np.empty(falling_rows.size)
    ranks[reordered_rows] = np.arange(falling_rows.size, 0, -1)
    return game.guessed(ranks, falling_rows.size)


def _spaced_places(*, guess_numbers: list[int], set_sizes: list[int]) -> IntArray:
    """Return some examples of each shell, evenly spaced: as many as guesses between two levels."""
    parts = []
    guess_steps = pairwise([0, *guess_numbers])
    shells = pairwise([0, *set_sizes])
    for (fewer_guesses, more_guesses), (start, stop) in zip(guess_steps, shells, strict=True):
        spaced = np.linspace(start, stop, more_guesses - fewer_guesses, endpoint=False)
        parts.append(spaced.astype(np.int64))
    return np.concatenate(parts)
