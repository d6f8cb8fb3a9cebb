"""The number of guesses, chosen from the labels outside it, which are revealed step by step."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import integer, shown
from leakbound._base.types import JsonValue, PathOrder, Sides
from leakbound.cuts.few_values import guessed_values
from leakbound.cuts.games import Ties
from leakbound.cuts.policy import ORDERS, Best, BestCut, PathPolicy
from leakbound.errors import InputTypeError, OptionError

Form: TypeAlias = Literal["pure", "approximate", "family"]


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

    @abstractmethod
    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """Return levels and the rule that stops at one of them: labels have no part in it."""

    @abstractmethod
    def limit(self, rule: _core.OutsideIn, guesses: int, correct: int, level: float, /) -> float:
        """Return what correct guesses at the level chosen prove."""

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: one path is cut, or its two ends."""
        return ("ends",) if sides == "auto" else ORDERS[sides][-1:]

    def ladder(self, examples: int, level: float, sides: Sides, /) -> tuple[int, ...]:
        """See `PathPolicy.ladder`."""
        return tuple(self.rule(examples, level, sides).levels)

    def told(self, best: BestCut, _level: float, /) -> dict[str, JsonValue]:
        """See `PathPolicy.told`: the levels, unless ties chose, and the one reached."""
        reached = cast("LevelBest", best)
        said: dict[str, JsonValue] = {"levels": list(reached.levels)} if reached.levels else {}
        said["guesses"] = reached.cut
        return {
            "outside_in": said if reached.members is None else said | {"members": reached.members}
        }

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

    def best_of_values(
        self, _scored: _core.Ranking, _ranking: _core.Ranking, _level: float, /
    ) -> LevelBest | None:
        """Return what is proved by guesses that depend on ties; None where they must not."""
        return None

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
    levels: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", _named(self.levels))

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples than guesses."""
        if self.levels is not None and self.levels[-1] > examples:
            raise OptionError(
                f"cuts=OutsideIn(levels=[…, {self.levels[-1]}]) needs more guesses than there are "
                f"{units} ({examples})"
            )

    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """See `LadderPolicy.rule`."""
        return planned_rule(self, examples, level, sides, "pure")

    def best_of_values(
        self, scored: _core.Ranking, ranking: _core.Ranking, level: float, /
    ) -> LevelBest | None:
        """See `LadderPolicy.best_of_values`: scores may choose, as the choice is free."""
        found = None if self.levels else guessed_values(scored, ranking, level)
        if found is None:
            return None
        guesses, correct, members = found
        limit = self.limit(None, guesses, correct, level)
        return LevelBest(limit, guesses, correct, (), members)

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
