"""Which of the examples that matching keeps are guessed about, over a confidence set of log-odds.

One choice serves all log-odds of the set and all draws of what is kept. Take any log-odds. If they
are true, then given features, what is kept, and labels of what is not, the labels of kept examples
are fair coins. So a bound of one run holds if no label of an example that is guessed about had a
part in the choice, and levels are functions of what is kept.

*From the outside in*, where there is D': nested sets H_1 ⊂ H_2 ⊂ … of *all* examples, the most
confident first, are fixed by scores and by log-odds that no audited label had a part in. Whether
level l is tested is decided by labels outside H_l, kept or not; guessed are the first c'_l kept
examples of H_l. Those that decided are outside of every set that the example guessed about is in.

*The second look* makes one choice of ranks for all log-odds of the set. The ranking is cut into
blocks, of which the middle quarter of the labels is seen, and never tested, kept or not. Seen
labels choose blocks and a number n of guesses. At any log-odds the first n of those examples of the
blocks that are kept, and were not seen, are tested. The choice reads scores, D' and labels seen.
Who is kept it does not read, and so not how many are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
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
from leakbound.audits.zero_run.game import Guesses, ObservedGame, ridge_coefficients
from leakbound.audits.zero_run.log_odds import OddsSet, keep_probability
from leakbound.claims import AnyFamily, ApproxDP, PureDP
from leakbound.claims.base import counts_of
from leakbound.cuts import OutsideIn
from leakbound.cuts.look import CAUTION, PILOT_GUESSES, Look, most_promising
from leakbound.cuts.outside_in import Form, planned_rule
from leakbound.errors import LeakboundError

# Part of the examples expected to be kept that a set is sure to keep,
_SURE_SHARE = 0.95
# but for so many standard deviations.
_SURE_DEVIATIONS = 3.0

Counts: TypeAlias = tuple[int, int, int]
"""Correct guesses, all of them and examples kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchingPlan:
    """Numbers of guesses that are planned for the examples that matching is expected to keep.

    `level` is the probability of error of one draw that they are planned for.
    """

    correction: Correction
    odds: OddsSet
    game: ObservedGame
    expected_kept: int
    level: float

    @classmethod
    def of(
        cls, correction: Correction, odds: OddsSet, game: ObservedGame, level: float
    ) -> "MatchingPlan":
        """Plan for what D' says is kept; all examples, where there is none."""
        expected_kept = min(game.examples, max(2, int(odds.keep_probabilities.sum())))
        return cls(
            correction=correction, odds=odds, game=game, expected_kept=expected_kept, level=level
        )

    @cached_property
    def best_number(self) -> int:
        """The number of guesses that is best at the reference."""
        return self.correction.planned_number(self.game, self.expected_kept, self.level)

    @cached_property
    def ranked(self) -> Guesses:
        """All guesses in order, balanced for the number that is best at the reference."""
        balanced_rows = self.odds.balanced_rows(self.game, self.best_number)
        return self.game.guesses_in_order(balanced_rows, balanced_rows.size)

    def failure_share(self, level: float) -> float:
        """Return the share of a test's level that failures of (ε, δ) have."""
        claim = self.correction.claim
        if not isinstance(claim, ApproxDP):
            return 0.5
        return failure_share(self.expected_kept, level, claim.delta, self.game.sides)

    def outside_in_rule(self, levels: list[int] | None = None) -> _core.OutsideIn:
        """Return levels and the rule that stops at one of them, at these levels if there are."""
        claim = self.correction.claim
        form: Form = "family"
        if isinstance(claim, PureDP):
            form = "pure"
        elif isinstance(claim, ApproxDP):
            form = "approximate"
        return planned_rule(
            OutsideIn(levels),
            examples=self.expected_kept,
            level=self.level,
            sides=self.game.sides,
            form=form,
            delta=claim.delta,
            share=self.failure_share(self.level),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ChosenGuesses:
    """Which guesses are tested of those that matching leaves, and what counts of them prove.

    Of `order` the first `inside` may be made. So many `guesses` are made of those that are kept,
    and one that is missing counts as wrong. `level` is the probability of error that one draw has.

    If labels that are not tested chose the number, it is that of `levels` at `index`. All levels
    have one test, at `level_shares` of the probability of error; under pure DP that of the number
    chosen. Where fewer examples are kept than a level has guesses, the level has so many, or
    nothing is proved if it `must_be_kept`. Without levels the number was fixed in advance.

    `options`, `searched` and `guessed` are the words of results: what options tell of the guesses,
    how many numbers were tested if options do not say so, and what the guesses are called if they
    are not the most confident ones.
    """

    plan: MatchingPlan
    level: float
    order: Guesses
    inside: int
    guesses: int
    levels: tuple[int, ...] = ()
    level_shares: tuple[float, ...] = ()
    index: int = 0
    must_be_kept: bool = False
    options: dict[str, JsonValue] = field(default_factory=dict)
    searched: str = ""
    guessed: str = ""

    def proved(self, counts: Counts, *, roughly: bool = False) -> float:
        """Return what so many correct guesses prove.

        Roughly, it is a number that moves with the counts as what is proved does, and no more.
        """
        correct, _, kept = counts
        if self.must_be_kept and kept <= self.guesses:
            return 0.0
        claim = self.plan.correction.claim
        # Pure DP leaves the choice of a number free
        if not self.levels or isinstance(claim, PureDP):
            return self.plan.correction.bound_of_counts(self.plan.game, counts, self.level)
        if isinstance(claim, ApproxDP):
            return self._approximate_epsilon(counts, claim.delta)
        test, index = self._joint_test(kept)
        if roughly:
            return test.rough(index, correct)
        return test.bound(index, correct)

    def _approximate_epsilon(self, counts: Counts, delta: float) -> float:
        """Return the ε of (ε, δ)-DP that counts prove, where failures may be among them."""
        correct, _, kept = counts
        guesses = min(self.guesses, kept)
        one_sided = self.plan.game.one_sided
        epsilon = _core.approx_joint_epsilon(
            counts_of(correct, guesses, kept, one_sided=one_sided),
            delta,
            shares.JOINT.of(self.level),
            self.plan.failure_share(self.level),
        )
        return max(0.0, epsilon)

    def _tested_levels(self, kept: int) -> list[int]:
        """Return the numbers of guesses that have the test if so many examples are kept."""
        tested_levels = [guesses for guesses in self.levels if guesses < kept]
        if not self.must_be_kept and len(tested_levels) < len(self.levels):
            tested_levels.append(kept)
        return tested_levels

    def _joint_test(self, kept: int) -> tuple[JointTest, int]:
        """Return the joint test of the levels if so many examples are kept, and the one chosen.

        Least counts are those of the examples expected, whoever is kept, which no audited label had
        a part in. Counts for the number kept would jump as that grows, and a bound with them.
        """
        tested_levels = self._tested_levels(kept)
        index = min(self.index, len(tested_levels) - 1)
        level_shares = self.level_shares[: len(tested_levels)]
        test = JointTest(
            claim=cast("AnyFamily", self.plan.correction.claim),
            levels=tuple(tested_levels),
            tau=tuple(share * self.level for share in level_shares),
            examples=kept,
            sides=self.plan.game.sides,
            level=self.level,
            planned=self.plan.expected_kept,
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


def planned_guesses(plan: MatchingPlan, level: float) -> ChosenGuesses:
    """Guess about the number of examples that is best at the reference."""
    return ChosenGuesses(
        plan=plan,
        level=level,
        order=plan.ranked,
        inside=plan.game.examples,
        guesses=plan.best_number,
        options={"planned": plan.best_number},
    )


def guesses_from_outside_in(plan: MatchingPlan, level: float) -> ChosenGuesses | None:
    """Choose how many kept examples to guess about, by labels from the outside in.

    None where so few examples are kept that no level is reached.
    """
    audited = plan.game.examples
    ranked = plan.ranked
    # 1. Levels as planned for the examples expected, and the sets that surely keep so many.
    guess_numbers = np.array(plan.outside_in_rule().levels)
    keep_probabilities = plan.odds.keep_probabilities[ranked.rows]
    set_sizes = np.searchsorted(surely_kept(keep_probabilities), guess_numbers) + 1
    can_be_tested = set_sizes < audited
    if not can_be_tested.any():
        return None
    guess_numbers = guess_numbers[can_be_tested]
    set_sizes = set_sizes[can_be_tested]
    rule = plan.outside_in_rule(guess_numbers.tolist())
    # 2. The choice, as if no more examples than will be kept were there.
    sampled_places = _spaced_places(
        guess_numbers=[*guess_numbers.tolist(), plan.expected_kept],
        set_sizes=[*set_sizes.tolist(), audited],
    )
    is_correct = plan.game.right(ranked)[sampled_places]
    index = rule.choose(_core.Path.from_successes(is_correct))
    # 3. Guesses within the set, balanced for the number chosen.
    guesses = rule.levels[index]
    inside = np.zeros(audited, dtype=np.bool_)
    inside[ranked.rows[: set_sizes[index]]] = True
    return ChosenGuesses(
        plan=plan,
        level=level,
        order=_inside_first(plan, inside, guesses),
        inside=int(inside.sum()),
        guesses=guesses,
        levels=tuple(rule.levels),
        level_shares=tuple(rule.shares),
        index=index,
        options={"outside_in": {"levels": list(rule.levels), "guesses": guesses}},
    )


def _inside_first(plan: MatchingPlan, inside: BoolArray, guesses: int) -> Guesses:
    """Return guesses balanced for a number, those about examples outside of a set last."""
    game = plan.game
    balanced_rows = plan.odds.balanced_rows(game, guesses)
    is_inside = inside[balanced_rows]
    inside_rows = balanced_rows[is_inside]
    outside_rows = balanced_rows[~is_inside]
    member_guesses = (inside_rows.size + 1) // 2
    if game.one_sided:
        member_guesses = inside_rows.size
    # Guesses go from both ends: rows outside of the set come in the middle
    reordered_rows = np.concatenate(
        [inside_rows[:member_guesses], outside_rows, inside_rows[member_guesses:]]
    )
    return game.guesses_in_order(reordered_rows, reordered_rows.size)


def _spaced_places(*, guess_numbers: list[int], set_sizes: list[int]) -> IntArray:
    """Return some examples of each shell, evenly spaced: as many as guesses between two levels."""
    parts = []
    guess_steps = pairwise([0, *guess_numbers])
    shells = pairwise([0, *set_sizes])
    for (fewer_guesses, more_guesses), (start, stop) in zip(guess_steps, shells, strict=True):
        spaced = np.linspace(start, stop, more_guesses - fewer_guesses, endpoint=False)
        parts.append(spaced.astype(np.int64))
    return np.concatenate(parts)


def pilot_guesses(plan: MatchingPlan, look: Look, level: float) -> ChosenGuesses | None:
    """Choose blocks of ranks and a number of guesses by labels seen; None if none proves anything.

    `look` is that of the claim, for the examples expected to be kept.
    """
    ladder_policy = look.ladder
    ranked = plan.ranked
    game = plan.game
    rule = ladder_policy.rule(plan.expected_kept, plan.level, game.sides)
    # 1. Labels that are seen, and log-odds that they, or D', suggest.
    log_odds_of_guesses = planning_log_odds(plan.odds, ranked)
    pilot = weighted_pilot(ranked.signs * log_odds_of_guesses, game.right(ranked))
    ranks_in_order = testable_ranks(pilot)
    # 2. How many ranks surely keep each number of guesses, and what these prove.
    keep_probabilities = keep_probability(log_odds_of_guesses[ranks_in_order])
    guess_numbers = np.array(rule.levels)
    needed_ranks = np.searchsorted(surely_kept(keep_probabilities), guess_numbers) + 1
    expected_accuracies = np.array(pilot.accuracy(needed_ranks.tolist(), CAUTION))
    may_be_chosen = (needed_ranks <= ranks_in_order.size) & (expected_accuracies > 0.5)
    chosen_level = most_promising(
        ladder_policy, rule, guess_numbers, expected_accuracies, may_be_chosen, level=level
    )
    if chosen_level is None:
        return None
    # 3. The guesses: those of the blocks first.
    order, inside = _moved_to_front(ranked, ranks_in_order[: needed_ranks[chosen_level]])
    # A level of as many guesses as are kept would depend on ranks that labels chose
    return ChosenGuesses(
        plan=plan,
        level=level,
        order=order,
        inside=inside,
        guesses=rule.levels[chosen_level],
        levels=tuple(rule.levels),
        level_shares=tuple(ladder_policy.weights(rule).tolist()),
        index=chosen_level,
        must_be_kept=True,
        searched=look.searched(game.examples, game.sides),
        guessed=PILOT_GUESSES,
    )


def revealed_ranks(examples: int) -> IntArray:
    """Return the ranks of so many whose labels are seen: the middle quarter of each block."""
    return _ranks_of_intervals(_core.Pilot.seen_of(examples))


def weighted_pilot(toward_guesses: FloatArray, is_correct: BoolArray) -> _core.Pilot:
    """Look at the `revealed_ranks`; `is_correct` is of the guesses at all ranks.

    `toward_guesses` are log-odds by which they are right whatever the model tells. A label counts
    as often as matching would keep its example, so that features alone make no block look right.
    """
    toward_labels = np.where(is_correct, toward_guesses, -toward_guesses)
    # The keep probability of matching, min(1, exp(-log-odds of the label))
    keep_probabilities = np.exp(-np.maximum(toward_labels, 0.0))
    path_of_guesses = _core.Path.from_successes(is_correct)
    return _core.Pilot.weighted(path_of_guesses, keep_probabilities)


def testable_ranks(pilot: _core.Pilot) -> IntArray:
    """Return the ranks that may be tested, those of the best block first."""
    most_guesses = max(pilot.numbers, default=0)
    blocks_by_accuracy = pilot.tested(most_guesses)
    return _ranks_of_intervals(
        (first_rank, end_rank) for _, first_rank, end_rank in blocks_by_accuracy
    )


def _ranks_of_intervals(intervals: Iterable[tuple[int, int]]) -> IntArray:
    """Return the ranks of intervals, each from its first rank to the one after its last."""
    no_ranks = np.array([], dtype=np.int64)
    return np.concatenate(
        [no_ranks, *(np.arange(first_rank, end_rank) for first_rank, end_rank in intervals)]
    )


def planning_log_odds(odds: OddsSet, order: Guesses) -> FloatArray:
    """Return log-odds of guesses in order, from D', or else from the labels that are seen."""
    log_odds_by_guide = odds.guide[order.rows]
    if odds.guide.any():
        return log_odds_by_guide
    found = odds.found
    revealed_rows = order.rows[revealed_ranks(order.rows.size)]
    revealed_features = found.features[revealed_rows]
    try:
        coefficients = ridge_coefficients(revealed_features, found.member[revealed_rows])
    except LeakboundError:  # all are members, say
        return log_odds_by_guide
    fitted_log_odds = _core.linear_log_odds(coefficients, found.features)[0]
    fitted_in_order: FloatArray = fitted_log_odds[order.rows]
    return fitted_in_order


def _moved_to_front(order: Guesses, chosen_ranks: IntArray) -> tuple[Guesses, int]:
    """Return guesses with those at some ranks first, as many of either sign, and their number."""
    front_ranks = chosen_ranks
    if order.order != "member":
        signs = order.signs[chosen_ranks]
        member_ranks = chosen_ranks[signs > 0]
        nonmember_ranks = chosen_ranks[signs < 0]
        number_of_each_sign = min(member_ranks.size, nonmember_ranks.size)
        alternating_ranks = [
            member_ranks[:number_of_each_sign],
            nonmember_ranks[:number_of_each_sign],
        ]
        front_ranks = np.column_stack(alternating_ranks).ravel()
    every_rank = np.arange(order.rows.size)
    other_ranks = np.setdiff1d(every_rank, front_ranks)
    reordered_guesses = order.taken(np.concatenate([front_ranks, other_ranks]))
    return reordered_guesses, front_ranks.size
