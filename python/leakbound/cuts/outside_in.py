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
from leakbound._base.odds import expit, logit
from leakbound._base.types import FloatArray, IntArray, JsonValue, PathOrder, Sides
from leakbound.cuts.games import Ties
from leakbound.cuts.policy import ALL_GUESSES, ORDERS, Best, BestCut, PathPolicy, Proof
from leakbound.errors import InputTypeError, OptionError

Form: TypeAlias = Literal["pure", "approximate", "family", "trials"]
Allowed: TypeAlias = tuple[tuple[int, float], ...]
"""Numbers of guesses that may be right by failure, and the level at which each is allowed for."""
# So many values are few, of 1,000 examples; twice as many of ten times the examples.
_FEW, _LEAST, _MOST = 5, 4, 20
# Labels seen of the examples of a value: the first share up to a number, from there the second.
_SEEN, _ENOUGH, _SEEN_OF_MANY = 8, 60, 20
# Log-odds that guesses of a value may have, all as likely.
_SIZES = np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 9])
_LOG_ODDS = np.concatenate([-_SIZES[::-1], _SIZES])
_CHANCES = expit(_LOG_ODDS)
# How often two values at opposite ends have opposite log-odds, if they are as frequent.
_MIRRORED = 0.7
# How much a model counts in which a higher score is less often a member's.
_FALLING = 0.1
# How near to 1 a share of right guesses is taken to be, at most
_CLOSE = 1e-12
# Points in a unit cube, spread evenly, one coordinate for each pair of opposite values.
_PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29])
_POINTS = np.outer(np.arange(64) + 0.5, np.sqrt(_PRIMES)) % 1


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
        correct = np.rint(numbers * accuracy).astype(np.int64)
        counts = zip(numbers.tolist(), correct.tolist(), strict=True)
        return np.array([self.limit(rule, made, right, level) for made, right in counts])

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: one path is cut, or its two ends."""
        return ("ends",) if sides == "auto" else ORDERS[sides][-1:]

    def searched(
        self, _examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`: one is tested, whatever labels choose."""
        del recall  # one number of guesses, however many there are
        return one_number(f"{units} that are not guessed about", sides)

    def guessed(self, proof: Proof, /) -> str:
        """See `Policy.guessed`: of whole values of the score, labels chose which."""
        best = proof.best
        values = isinstance(best, LevelBest) and not best.levels
        return ALL_GUESSES if values else super().guessed(proof)

    def ladder(self, examples: int, level: float, sides: Sides, /) -> tuple[int, ...]:
        """See `PathPolicy.ladder`."""
        return tuple(self.rule(examples, level, sides).levels)

    def told(self, best: BestCut, _level: float, /) -> dict[str, JsonValue]:
        """See `PathPolicy.told`: the levels, unless ties chose, and the one reached."""
        assert isinstance(best, LevelBest)
        said: dict[str, JsonValue] = {}
        if best.levels:
            said["levels"] = list(best.levels)
        said["guesses"] = best.cut
        if best.members is not None:
            said["members"] = best.members
        return {"outside_in": said}

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
            top, bottom = ranking.path("member_half"), ranking.path("nonmember_half")
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
        found = guessed_values(scored, ranking, allowed) if allowed else None
        if found is None:
            return None
        guesses, correct, members = found
        limit = self.limit(None, guesses, correct, level)
        return LevelBest(limit, guesses, correct, (), members)

    def perfect(self, examples: int, order: PathOrder, level: float, recall: float, /) -> float:
        """See `PathPolicy.perfect`."""
        if order != "ends":
            return super().perfect(examples, order, level, recall)
        return _perfect_ends(self, examples, level)

    def best_of_ends(self, top: _core.Path, bottom: _core.Path, level: float) -> LevelBest:
        """Return what is proved by guesses of both roles, as many of each as labels suggest."""
        rule = self.rule(top.guesses + bottom.guesses, level, "auto")
        index, members = rule.choose_ends(top, bottom)
        guesses = rule.levels[index]
        counts = [path.count(n) for path, n in ((top, members), (bottom, guesses - members)) if n]
        correct = sum(right for _, right in counts)
        limit = self.limit(rule, guesses, correct, level)
        return LevelBest(limit, guesses, correct, tuple(rule.levels), members)

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> Best:
        """See `PathPolicy.bound`: what is tested is the level at which the rule stops."""
        rule = self.rule(path.guesses, level, "member" if order == "member" else "both")
        made = rule.levels[rule.choose(path)]
        guesses, correct = path.count(min(made, path.guesses))
        limit = self.limit(rule, guesses, correct, level)
        return LevelBest(limit, guesses, correct, tuple(rule.levels))


def one_number(seen: str, sides: Sides, *more: str) -> str:
    """Return a sentence about one number of guesses, and with what it and more were chosen."""
    chosen = ["The number of guesses", *more]
    if sides == "auto":
        chosen.append("the share of “member” guesses")
    were = "were"
    if len(chosen) == 1:
        were = "was"
    listed = ", ".join([*chosen[:-2], " and ".join(chosen[-2:])])
    return f"{listed} {were} chosen with {seen}. This test tries no other number."


@lru_cache(maxsize=256)
def _perfect_ends(policy: LadderPolicy, examples: int, level: float) -> float:
    """Return what is proved where every guess of either role is right."""
    half = examples // 2
    top, bottom = (_core.Path.correct_first(n, n) for n in (half, examples - half))
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
            object.__setattr__(self, "levels", _named(self.levels))

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples than guesses."""
        if self.levels is not None and self.levels[-1] > examples:
            message = (
                "{cuts=OutsideIn(levels=…)} needs more guesses, {most}, than there are {units} "
                "({examples})"
            )
            counts = {"most": self.levels[-1], "examples": examples}
            raise OptionError(Message(message, units=units, **counts))

    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """See `LadderPolicy.rule`."""
        return planned_rule(self, examples, level, sides, "pure")

    def allowed(self, level: float, /) -> Allowed:
        """See `LadderPolicy.allowed`: scores may choose, as the choice is free."""
        return () if self.levels else ((0, level),)

    def expected(
        self,
        _rule: _core.OutsideIn | None,
        numbers: IntArray,
        accuracy: FloatArray,
        level: float,
        /,
    ) -> FloatArray:
        """See `LadderPolicy.expected`: Clopper-Pearson limits of all numbers at once."""
        correct = np.rint(numbers * accuracy).astype(np.uint64)
        beta = np.full(numbers.size, level)
        return logit(_core.clopper_pearson(correct, numbers.astype(np.uint64), beta=beta))

    def limit(
        self, _rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        """See `LadderPolicy.limit`: the choice is free, and has the whole level."""
        path = _core.Path.correct_first(guesses, correct)
        return _core.union_bound(path, beta=level, grid=[guesses], ratio=1.5, tail="exact").logit


_ROLES: dict[Sides, Literal["member", "either"]] = {"member": "member", "auto": "either"}


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
        roles=_ROLES.get(sides, "both"),
        form=form,
        delta=delta,
        share=share,
        levels=cuts.levels,
    )


def _named(levels: object) -> tuple[int, ...]:
    """Check numbers of guesses that are fixed in advance."""
    if not isinstance(levels, Sequence | np.ndarray) or getattr(levels, "shape", None) == ():
        raise InputTypeError(
            f"levels must be a sequence of numbers of guesses, got {shown(levels)}"
        )
    named = tuple(integer(one, f"levels[{i}]", least=1) for i, one in enumerate(levels))
    if not named or any(a >= b for a, b in pairwise(named)):
        raise OptionError(f"levels must be at least one number, and increase; got {list(named)}")
    return named


def guessed_values(
    scored: _core.Ranking, ranking: _core.Ranking, allowed: Allowed
) -> tuple[int, int, int] | None:
    """Return guesses, correct ones, and those of "member".

    `ranking` has the ties of `scored` broken. Of each value the labels of its first examples are
    seen; guesses are about the others, of whole values from either end. None if values are many.
    """
    few = _FEW * 2 ** math.log10(scored.examples / 1000)
    if scored.blocks > max(_LEAST, min(_MOST, few)):
        return None
    path = scored.path("member")
    ends = [0]
    while ends[-1] < scored.examples:
        stop, _ = path.count(ends[-1] + 1)
        ends.append(stop)
    if scored.blocks % 2:  # a value of no example makes their number even
        ends.insert(len(ends) // 2, ends[len(ends) // 2])
    start = np.array(ends[:-1])
    end = np.array(ends[1:])
    sizes = end - start
    seen = np.minimum(sizes // _SEEN, np.maximum(sizes // _SEEN_OF_MANY, _ENOUGH))
    order = ranking.path("member")

    def members_above(ranks: IntArray) -> IntArray:
        return np.array([order.count(int(rank))[1] if rank else 0 for rank in ranks])

    def members(first: IntArray, last: IntArray) -> IntArray:
        return members_above(last) - members_above(first)

    top, bottom = chosen(sizes, seen, members(start, start + seen), allowed)
    left = sizes - seen
    # No label of these examples had a part in the choice.
    right = members(start + seen, end)
    wrong = left - right
    named = int(left[:top].sum())
    others = int(left[bottom:].sum())
    correct = int(right[:top].sum() + wrong[bottom:].sum())
    return named + others, correct, named


def chosen(sizes: IntArray, seen: IntArray, members: IntArray, allowed: Allowed) -> tuple[int, int]:
    """Return how many values from the top are guessed "member", and the first guessed not to be.

    Known are the examples of an even number of values, the highest first, and the members among
    those that were `seen` of each. The choice has the largest bound expected, by Wilson's limit,
    over models of how often each value is a member's; the least of limits, where guesses may be
    right by failure.
    """
    left = sizes - seen
    models = _models(sizes, seen, members)
    top, bottom = np.triu_indices(sizes.size + 1)
    above = np.insert(np.cumsum(left), 0, 0)
    guesses = above[top] + above[-1] - above[bottom]
    top = top[guesses > 0]
    bottom = bottom[guesses > 0]
    guesses = guesses[guesses > 0]
    # Members expected above the end of each value, a row for each model
    held = np.insert(np.cumsum(left * models, axis=1), 0, 0, axis=1)
    right_members = held[:, top]
    members_below = held[:, -1:] - held[:, bottom]
    right_others = guesses - above[top] - members_below
    limit = _least_limits(guesses, right_members + right_others, allowed)
    bounds = np.log(limit / (1 - limit))
    rising = (np.diff(models[:, sizes > 0]) <= 0).all(axis=1)
    beliefs = np.where(rising, 1, _FALLING)
    best = (beliefs @ bounds).argmax()
    return int(top[best]), int(bottom[best])


def _models(sizes: IntArray, seen: IntArray, members: IntArray) -> FloatArray:
    """Return chances that an example of each value is a member: rows are models, drawn evenly.

    They are drawn from the posterior given the members among those `seen`, where the values of a
    pair at opposite ends are alike, and pairs are not.
    """
    beliefs = _beliefs_of_values(sizes)
    fit = np.outer(members, np.log(_CHANCES)) + np.outer(seen - members, np.log1p(-_CHANCES))
    fit = np.exp(fit - fit.max(axis=1, keepdims=True))
    each_size = np.repeat([0, 1 / _SIZES.size], _SIZES.size)
    opposite = np.fliplr(np.diag(each_size))
    chance: FloatArray = np.empty((len(_POINTS), sizes.size))
    for one, points in zip(range(sizes.size // 2), _POINTS.T, strict=False):
        other = sizes.size - 1 - one
        pair = sizes[[one, other]]
        share = _MIRRORED * pair.min() / pair.max()
        belief = share * opposite + (1 - share) * np.outer(beliefs[one], beliefs[other])
        sums = np.cumsum(belief * np.outer(fit[one], fit[other]))
        drawn = np.searchsorted(sums, points * sums[-1])
        chance[:, one] = _CHANCES[drawn // _CHANCES.size]
        chance[:, other] = _CHANCES[drawn % _CHANCES.size]
    return chance


def _beliefs_of_values(sizes: IntArray) -> FloatArray:
    """Return prior probabilities of the log-odds of values: a row for each, the highest first.

    Sizes of log-odds are all as likely, and the higher a value, the likelier it is a member's.
    """
    place = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    signs = np.stack([place, 1 - place], axis=1)
    return np.repeat(signs / _SIZES.size, _SIZES.size, axis=1)


def _least_limits(guesses: IntArray, correct: FloatArray, allowed: Allowed) -> FloatArray:
    """Return the least of Wilson's lower limits on a chance, at each level allowed for failures."""
    least: FloatArray = np.ones(correct.shape)
    for failures, level in allowed:
        rest = np.maximum(guesses - failures, 1)
        right = np.clip((correct - failures) / rest, 0, 1)
        # Wilson's limit: z² / n for the quantile z of the level
        quantile = -_core.normal_quantile(np.array([level]))
        spread = np.maximum(0, quantile) ** 2 / rest
        root = np.sqrt(right * (1 - right) * spread + spread**2 / 4)
        limit = (right + spread / 2 - root) / (1 + spread)
        np.minimum(least, limit, out=least)
    return np.clip(least, 0.5, 1 - _CLOSE)
