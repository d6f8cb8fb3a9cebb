"""The number of guesses, chosen from the labels outside it, which are revealed step by step."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import integer, shown
from leakbound._base.messages import Message
from leakbound._base.numerics import expit, logit
from leakbound._base.types import FloatArray, IntArray, JsonValue, PathOrder, Sides
from leakbound.cuts.games import Ties
from leakbound.cuts.policy import ALL_GUESSES, ORDERS, Best, BestCut, PathPolicy, Proof
from leakbound.errors import InputTypeError, OptionError

Form: TypeAlias = Literal["pure", "approximate", "family", "trials"]
Allowed: TypeAlias = tuple[tuple[int, float], ...]
"""Numbers of guesses that may be right by failure, and the level at which each is allowed for."""
# So many values are few, of 1,000 examples; twice as many of ten times the examples.
_FEW_VALUES = 5
_LEAST_FEW_VALUES = 4
_MOST_FEW_VALUES = 20
# Labels revealed of the examples of a value: one in so many up to a number, and from there one in
# so many.
_EXAMPLES_PER_LABEL = 8
_ENOUGH_LABELS = 60
_EXAMPLES_PER_LABEL_OF_MANY = 20
# Log-odds that guesses of a value may have, all as likely.
_LOG_ODDS_SIZES = np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 9])
_LOG_ODDS = np.concatenate([-_LOG_ODDS_SIZES[::-1], _LOG_ODDS_SIZES])
_PROBABILITIES = expit(_LOG_ODDS)
# How often two values at opposite ends have opposite log-odds, if they are as frequent.
_MIRRORED_SHARE = 0.7
# How much a model counts in which a higher score is less often a member's.
_WEIGHT_OF_FALLING = 0.1
# How near to 1 a share of right guesses is taken to be, at most
_LEAST_ERROR_RATE = 1e-12
# Points in a unit cube, spread evenly, one coordinate for each pair of opposite values.
_PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29])
_CUBE_POINTS = np.outer(np.arange(64) + 0.5, np.sqrt(_PRIMES)) % 1


@dataclass(frozen=True)
class LevelBest(Best):
    """The level that labels chose; `members` of its guesses are of "member", if they chose that.

    There are no levels where the guesses are about whole blocks of ties.
    """

    levels: tuple[int, ...]
    members: int | None = None


class LadderPolicy(PathPolicy):
    """A policy that tests one of several numbers of guesses, which labels beyond it choose."""

    ties: ClassVar[Ties] = "broken"
    free: ClassVar[bool] = False
    """Whether labels outside the guesses may choose any number, and not one of a list only."""

    @abstractmethod
    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """Return levels and the rule that stops at one of them: labels have no part in it."""

    @abstractmethod
    def limit(
        self, rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        """Return what correct guesses at the level chosen prove; a free choice has no rule."""

    def weights(self, rule: _core.OutsideIn) -> FloatArray:
        """Return the shares of the level at which numbers of guesses are weighed."""
        return np.array(rule.shares)

    def expected(
        self,
        rule: _core.OutsideIn | None,
        numbers: IntArray,
        accuracy: FloatArray,
        level: float,
        /,
    ) -> FloatArray:
        """Return about what numbers of guesses prove at some accuracies, for a choice of them."""
        correct_guesses = np.rint(numbers * accuracy).astype(np.int64)
        counts = zip(numbers.tolist(), correct_guesses.tolist(), strict=True)
        return np.array([self.limit(rule, guesses, right, level) for guesses, right in counts])

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: one path is cut, or its two ends."""
        if sides == "auto":
            return ("ends",)
        return ORDERS[sides][-1:]

    def searched(
        self, _examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`: one is tested, whatever labels choose."""
        del recall  # one number of guesses, however many there are
        return one_number(f"{units} that are not guessed about", sides)

    def guessed(self, proof: Proof, /) -> str:
        """See `Policy.guessed`: of whole values of the score, labels chose which."""
        best = proof.best
        if isinstance(best, LevelBest) and not best.levels:
            return ALL_GUESSES
        return super().guessed(proof)

    def ladder(self, examples: int, level: float, sides: Sides, /) -> tuple[int, ...]:
        """See `PathPolicy.ladder`."""
        return tuple(self.rule(examples, level, sides).levels)

    def told(self, best: BestCut, _level: float, /) -> dict[str, JsonValue]:
        """See `PathPolicy.told`: the levels, unless ties chose, and the one reached."""
        assert isinstance(best, LevelBest)
        stored: dict[str, JsonValue] = {}
        if best.levels:
            stored["levels"] = list(best.levels)
        stored["guesses"] = best.cut
        if best.members is not None:
            stored["members"] = best.members
        return {"outside_in": stored}

    def best(
        self,
        ranking: _core.Ranking,
        orders: tuple[PathOrder, ...],
        level: float,
        recall: float = 1.0,
        scored: _core.Ranking | None = None,
    ) -> tuple[PathOrder, _core.Path, BestCut]:
        """See `PathPolicy.best`."""
        if orders != ("ends",):
            return super().best(ranking, orders, level, recall)
        best = None
        if scored is not None and scored is not ranking:
            best = self.best_of_values(scored, ranking, level)
        if best is None:
            top = ranking.path("member_half")
            bottom = ranking.path("nonmember_half")
            best = self.best_of_ends(top, bottom, level)
        return "ends", ranking.path("ends"), best

    def allowed(self, _level: float, /) -> Allowed:
        """Return what is allowed for in a choice that depends on ties; nothing if none may."""
        return ()

    def best_of_values(
        self, scored: _core.Ranking, ranking: _core.Ranking, level: float, /
    ) -> LevelBest | None:
        """Return what is proved by guesses that depend on ties; None where they must not."""
        allowed = self.allowed(level)
        if not allowed:
            return None
        guessed = guessed_values(scored, ranking, allowed)
        if guessed is None:
            return None
        guesses, correct, member_guesses = guessed
        limit = self.limit(None, guesses, correct, level)
        return LevelBest(limit, guesses, correct, levels=(), members=member_guesses)

    def perfect(self, examples: int, order: PathOrder, level: float, recall: float, /) -> float:
        """See `PathPolicy.perfect`."""
        if order != "ends":
            return super().perfect(examples, order, level, recall)
        return _perfect_log_odds_of_ends(self, examples, level)

    def best_of_ends(self, top: _core.Path, bottom: _core.Path, level: float) -> LevelBest:
        """Return what is proved by guesses of both roles, as many of each as labels suggest."""
        rule = self.rule(top.guesses + bottom.guesses, level, "auto")
        index, member_guesses = rule.choose_ends(top, bottom)
        guesses = rule.levels[index]
        non_member_guesses = guesses - member_guesses
        correct = 0
        if member_guesses:
            correct += top.count(member_guesses)[1]
        if non_member_guesses:
            correct += bottom.count(non_member_guesses)[1]
        limit = self.limit(rule, guesses, correct, level)
        return LevelBest(limit, guesses, correct, tuple(rule.levels), member_guesses)

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> Best:
        """See `PathPolicy.bound`: what is tested is the level at which the rule stops."""
        sides: Sides = "both"
        if order == "member":
            sides = "member"
        rule = self.rule(path.guesses, level, sides)
        chosen_level = rule.levels[rule.choose(path)]
        guesses, correct = path.count(min(chosen_level, path.guesses))
        limit = self.limit(rule, guesses, correct, level)
        return LevelBest(limit, guesses, correct, tuple(rule.levels))


def one_number(seen: str, sides: Sides, *more: str) -> str:
    """Return a sentence about one number of guesses, and with what it and more were chosen."""
    choices = ["The number of guesses", *more]
    if sides == "auto":
        choices.append("the share of “member” guesses")
    *first_choices, last_choice = choices
    were_chosen = f"{last_choice} was chosen"
    if first_choices:
        were_chosen = f"{', '.join(first_choices)} and {last_choice} were chosen"
    return f"{were_chosen} with {seen}. This test tries no other number."


@lru_cache(maxsize=256)
def _perfect_log_odds_of_ends(policy: LadderPolicy, examples: int, level: float) -> float:
    """Return what is proved where every guess of either role is right."""
    members = examples // 2
    non_members = examples - members
    top = _core.Path.correct_first(members, members)
    bottom = _core.Path.correct_first(non_members, non_members)
    return policy.best_of_ends(top, bottom, level).logit


@dataclass(frozen=True)
class OutsideIn(LadderPolicy):
    """One of a ladder of numbers of guesses, chosen from labels revealed from both ends inwards.

    Levels are fixed in advance. From the largest down, the labels *beyond* a level decide whether
    to stop there: the level is taken if the bound expected of it is at least that of every smaller
    one. No label within the level that is tested is seen before, so that one proof covers them all.

    Parameters
    ----------
    levels : sequence of int, optional
        Numbers of guesses, increasing, at most the number of examples each. If None they are
        planned from the number of examples, confidence, claim and sides alone: in steps of 1.25,
        from a quarter of the number best in the Gaussian game at μ = 1 (an eighth for members only,
        a twelfth where labels choose the roles) up to 95 % of all guesses that could be right.

    Notes
    -----
    Under pure DP the choice is free: the Clopper-Pearson limit has the whole probability of error.
    Under (ε, δ)-DP and for families of trade-off functions number and count have one joint
    certificate, which costs a few per cent of the bound; `docs/theory/outside-in.md` has the proof
    and the prices. Ties are broken by a permutation from the seed. Under pure DP and sides="auto",
    guesses are about whole values where scores have few (up to 5 of 1,000 examples, 10 of 10,000):
    labels of a part of each value choose them, and are not tested.
    """

    design: ClassVar[str] = (
        "One threshold. Labels of examples beyond it, revealed step by step, choose the number of "
        'guesses from a list fixed in advance; with sides="auto" they also choose the end of the '
        "ranking."
    )
    """Which cuts are tested, in a sentence of the result."""
    method: ClassVar[str] = (
        f"{design} Where scores have few values, it lies between two of them, and labels of a part "
        "of each value choose it. Labels that are tested do not influence the choice, so the "
        "Clopper-Pearson limit gets the whole error probability (Clopper and Pearson 1934)."
    )
    free: ClassVar[bool] = True
    levels: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", _checked_guess_levels(self.levels))

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples than guesses."""
        if self.levels is None or self.levels[-1] <= examples:
            return
        message = (
            "{cuts=OutsideIn(levels=…)} needs more guesses, {most}, than there are {units} "
            "({examples})"
        )
        raise OptionError(Message(message, units=units, most=self.levels[-1], examples=examples))

    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """See `LadderPolicy.rule`."""
        return planned_rule(self, examples, level, sides, "pure")

    def allowed(self, level: float, /) -> Allowed:
        """See `LadderPolicy.allowed`: scores may choose, as the choice is free."""
        if self.levels:
            return ()
        return ((0, level),)

    def expected(
        self,
        _rule: _core.OutsideIn | None,
        numbers: IntArray,
        accuracy: FloatArray,
        level: float,
        /,
    ) -> FloatArray:
        """See `LadderPolicy.expected`: Clopper-Pearson limits of all numbers at once."""
        guesses = numbers.astype(np.uint64)
        correct = np.rint(numbers * accuracy).astype(np.uint64)
        error_probabilities = np.full(numbers.size, level)
        limits = _core.clopper_pearson(correct, guesses, beta=error_probabilities)
        return logit(limits)

    def limit(
        self, _rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        """See `LadderPolicy.limit`: the choice is free, and has the whole level."""
        path = _core.Path.correct_first(guesses, correct)
        best_cut = _core.union_bound(path, beta=level, grid=[guesses], ratio=1.5, tail="exact")
        return best_cut.logit


_ROLES_OF_SIDES: dict[Sides, Literal["member", "either"]] = {"member": "member", "auto": "either"}


@lru_cache(maxsize=256)
def planned_rule(
    cuts: OutsideIn,
    examples: int,
    level: float,
    sides: Sides,
    form: Form,
    delta: float = 0.0,
    share: float = 0.5,
    k: int = 2,
) -> _core.OutsideIn:
    """Return levels and the rule that stops at one of them, as a claim of some form needs it."""
    return _core.OutsideIn(
        examples,
        level,
        k=k,
        roles=_ROLES_OF_SIDES.get(sides, "both"),
        form=form,
        delta=delta,
        share=share,
        levels=cuts.levels,
    )


def _checked_guess_levels(levels: object) -> tuple[int, ...]:
    """Check numbers of guesses that are fixed in advance."""
    if not isinstance(levels, Sequence | np.ndarray) or getattr(levels, "shape", None) == ():
        raise InputTypeError(
            f"levels must be a sequence of numbers of guesses, got {shown(levels)}"
        )
    checked = []
    for index, level in enumerate(levels):
        checked.append(integer(level, f"levels[{index}]", least=1))
    increases = all(smaller < larger for smaller, larger in pairwise(checked))
    if not checked or not increases:
        raise OptionError(f"levels must be at least one number, and increase; got {checked}")
    return tuple(checked)


def guessed_values(
    scored: _core.Ranking, ranking: _core.Ranking, allowed: Allowed
) -> tuple[int, int, int] | None:
    """Return guesses, correct ones, and those of "member".

    `ranking` has the ties of `scored` broken. Of each value the labels of its first examples are
    revealed; guesses are about the others, of whole values from either end. None if values are
    many.
    """
    few_values = _FEW_VALUES * 2 ** math.log10(scored.examples / 1000)
    if scored.blocks > max(_LEAST_FEW_VALUES, min(_MOST_FEW_VALUES, few_values)):
        return None
    value_boundaries = _boundaries_of_values(scored)
    first_ranks = np.array(value_boundaries[:-1])
    end_ranks = np.array(value_boundaries[1:])
    value_sizes = end_ranks - first_ranks
    labels_of_many = np.maximum(value_sizes // _EXAMPLES_PER_LABEL_OF_MANY, _ENOUGH_LABELS)
    revealed_labels = np.minimum(value_sizes // _EXAMPLES_PER_LABEL, labels_of_many)
    first_unrevealed_ranks = first_ranks + revealed_labels
    untied_path = ranking.path("member")

    def members_above(upper_ranks: IntArray) -> IntArray:
        member_counts = [untied_path.count(int(rank))[1] if rank else 0 for rank in upper_ranks]
        return np.array(member_counts)

    def members_between(first_ranks_of_values: IntArray, end_ranks_of_values: IntArray) -> IntArray:
        return members_above(end_ranks_of_values) - members_above(first_ranks_of_values)

    revealed_members = members_between(first_ranks, first_unrevealed_ranks)
    values_guessed_member, first_value_guessed_other = chosen_values(
        value_sizes, revealed_labels, revealed_members, allowed
    )
    # No label of these examples had a part in the choice.
    unrevealed_examples = value_sizes - revealed_labels
    unrevealed_members = members_between(first_unrevealed_ranks, end_ranks)
    unrevealed_others = unrevealed_examples - unrevealed_members
    member_guesses = int(unrevealed_examples[:values_guessed_member].sum())
    non_member_guesses = int(unrevealed_examples[first_value_guessed_other:].sum())
    correct_guesses = (
        unrevealed_members[:values_guessed_member].sum()
        + unrevealed_others[first_value_guessed_other:].sum()
    )
    return member_guesses + non_member_guesses, int(correct_guesses), member_guesses


def _boundaries_of_values(scored: _core.Ranking) -> list[int]:
    """Return the ranks at which values begin, and the last one's end; of an even number."""
    path = scored.path("member")
    value_boundaries = [0]
    while value_boundaries[-1] < scored.examples:
        end_of_value, _ = path.count(value_boundaries[-1] + 1)
        value_boundaries.append(end_of_value)
    if scored.blocks % 2:  # a value of no example makes their number even
        middle_boundary = len(value_boundaries) // 2
        value_boundaries.insert(middle_boundary, value_boundaries[middle_boundary])
    return value_boundaries


def chosen_values(
    value_sizes: IntArray, revealed_labels: IntArray, revealed_members: IntArray, allowed: Allowed
) -> tuple[int, int]:
    """Return how many values from the top are guessed "member", and the first guessed not to be.

    Known are the examples of an even number of values, the highest first, and the members among
    those whose labels were revealed. The choice has the largest bound expected, by Wilson's limit,
    over models of how often each value is a member's; the least of limits, where guesses may be
    right by failure.
    """
    unrevealed_examples = value_sizes - revealed_labels
    membership_models = _membership_models(value_sizes, revealed_labels, revealed_members)
    values_guessed_member, first_value_guessed_other = np.triu_indices(value_sizes.size + 1)
    unrevealed_examples_above = np.insert(np.cumsum(unrevealed_examples), 0, 0)
    guesses_below = (
        unrevealed_examples_above[-1] - unrevealed_examples_above[first_value_guessed_other]
    )
    guess_counts = unrevealed_examples_above[values_guessed_member] + guesses_below
    is_guess = guess_counts > 0
    values_guessed_member = values_guessed_member[is_guess]
    first_value_guessed_other = first_value_guessed_other[is_guess]
    guess_counts = guess_counts[is_guess]
    # Members expected above the end of each value, a row for each model
    members_of_values = np.cumsum(unrevealed_examples * membership_models, axis=1)
    members_above = np.insert(members_of_values, 0, 0, axis=1)
    members_below = members_above[:, -1:] - members_above[:, first_value_guessed_other]
    correct_members = members_above[:, values_guessed_member]
    correct_others = guess_counts - unrevealed_examples_above[values_guessed_member] - members_below
    wilson_limits = _least_wilson_limits(guess_counts, correct_members + correct_others, allowed)
    expected_log_odds = np.log(wilson_limits / (1 - wilson_limits))
    steps_between_values = np.diff(membership_models[:, value_sizes > 0])
    is_rising_model = (steps_between_values <= 0).all(axis=1)
    weights_of_models = np.where(is_rising_model, 1, _WEIGHT_OF_FALLING)
    best_choice = (weights_of_models @ expected_log_odds).argmax()
    return int(values_guessed_member[best_choice]), int(first_value_guessed_other[best_choice])


def _membership_models(
    value_sizes: IntArray, revealed_labels: IntArray, revealed_members: IntArray
) -> FloatArray:
    """Return chances that an example of each value is a member: rows are models, drawn evenly.

    They are drawn from the posterior given the members among revealed labels, where the values of a
    pair at opposite ends are alike, and pairs are not.
    """
    priors_of_values = _priors_of_values(value_sizes)
    # The likelihood of the labels of each value, at each of the log-odds
    log_likelihoods = np.outer(revealed_members, np.log(_PROBABILITIES))
    log_likelihoods += np.outer(revealed_labels - revealed_members, np.log1p(-_PROBABILITIES))
    likelihoods_of_values = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    mirrored_probabilities = np.repeat([0, 1 / _LOG_ODDS_SIZES.size], _LOG_ODDS_SIZES.size)
    mirrored_prior = np.fliplr(np.diag(mirrored_probabilities))
    membership_models: FloatArray = np.empty((len(_CUBE_POINTS), value_sizes.size))
    pairs_of_values = range(value_sizes.size // 2)
    for high_value, cube_coordinates in zip(pairs_of_values, _CUBE_POINTS.T, strict=False):
        low_value = value_sizes.size - 1 - high_value
        pair_sizes = value_sizes[[high_value, low_value]]
        mirrored_share = _MIRRORED_SHARE * pair_sizes.min() / pair_sizes.max()
        independent_prior = np.outer(priors_of_values[high_value], priors_of_values[low_value])
        prior_of_pair = mirrored_share * mirrored_prior + (1 - mirrored_share) * independent_prior
        likelihood_of_pair = np.outer(
            likelihoods_of_values[high_value], likelihoods_of_values[low_value]
        )
        cumulative_posterior = np.cumsum(prior_of_pair * likelihood_of_pair)
        posterior_quantiles = cube_coordinates * cumulative_posterior[-1]
        drawn_cells = np.searchsorted(cumulative_posterior, posterior_quantiles)
        membership_models[:, high_value] = _PROBABILITIES[drawn_cells // _PROBABILITIES.size]
        membership_models[:, low_value] = _PROBABILITIES[drawn_cells % _PROBABILITIES.size]
    return membership_models


def _priors_of_values(value_sizes: IntArray) -> FloatArray:
    """Return prior probabilities of the log-odds of values: a row for each, the highest first.

    Sizes of log-odds are all as likely, and the higher a value, the likelier it is a member's.
    """
    examples_to_middle = np.cumsum(value_sizes) - value_sizes / 2
    place_in_ranking = examples_to_middle / value_sizes.sum()
    sign_probabilities = np.stack([place_in_ranking, 1 - place_in_ranking], axis=1)
    return np.repeat(sign_probabilities / _LOG_ODDS_SIZES.size, _LOG_ODDS_SIZES.size, axis=1)


def _least_wilson_limits(
    guess_counts: IntArray, correct_guesses: FloatArray, allowed: Allowed
) -> FloatArray:
    """Return the least of Wilson's lower limits on a chance, at each level allowed for failures."""
    least_limits: FloatArray = np.ones(correct_guesses.shape)
    for failures, level in allowed:
        remaining_guesses = np.maximum(guess_counts - failures, 1)
        expected_accuracy = np.clip((correct_guesses - failures) / remaining_guesses, 0, 1)
        # Wilson's limit: z² / n for the quantile z of the level
        normal_quantile = -_core.normal_quantile(np.array([level]))
        wilson_spread = np.maximum(0, normal_quantile) ** 2 / remaining_guesses
        wilson_variance = (
            expected_accuracy * (1 - expected_accuracy) * wilson_spread + wilson_spread**2 / 4
        )
        wilson_limits = (expected_accuracy + wilson_spread / 2 - np.sqrt(wilson_variance)) / (
            1 + wilson_spread
        )
        np.minimum(least_limits, wilson_limits, out=least_limits)
    return np.clip(least_limits, 0.5, 1 - _LEAST_ERROR_RATE)
