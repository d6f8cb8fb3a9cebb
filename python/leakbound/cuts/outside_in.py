"""The number of guesses chosen by the data, from labels looked at from the outside in.

The public name is that of `leakbound.cuts`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Self, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import integer, shown
from leakbound._base.types import IntArray, JsonValue, PathOrder, Sides
from leakbound.cuts.games import Game
from leakbound.cuts.policy import (
    ORDERS,
    Best,
    BestCut,
    CurvePoints,
    DerivedPolicy,
    PathPolicy,
    Proof,
)
from leakbound.errors import InputTypeError, OptionError

Form: TypeAlias = Literal["pure", "approximate", "family"]


@dataclass(frozen=True)
class OutsideIn(PathPolicy):
    """One of a ladder of numbers of guesses, chosen from labels looked at from the outside in.

    Levels are fixed in advance. From the largest down, the labels *beyond* a level decide whether
    to stop there: the level is taken if the bound expected of it is at least that of every smaller
    one. No label within the level that is tested is seen before, so that one proof covers them all.

    Parameters
    ----------
    levels : sequence of int, optional
        Numbers of guesses, increasing, at most the number of examples each. If None they are
        planned from the number of examples, confidence, claim and sides alone: in steps of 1.25,
        from a quarter of the number best in the Gaussian game at μ = 1 up to 95 % of all guesses
        that could be right.

    Raises
    ------
    OptionError, InputTypeError
        If they are not increasing positive integers.

    Notes
    -----
    Under pure DP the choice is free: the Clopper-Pearson limit has the whole probability of error.
    Under (ε, δ)-DP and for families of trade-off functions number and count have one joint
    certificate, which costs a few per cent of the bound; `docs/outside-in.md` has theorem, proof
    and prices. Ties are broken by a permutation from the seed.

    Examples
    --------
    >>> from leakbound.cuts import OutsideIn
    >>> OutsideIn()
    OutsideIn(levels=None)
    """

    levels: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", named_levels(self.levels))

    @property
    def design(self) -> str:
        """Which cuts are tested, in a sentence of the result."""
        return (
            "One cut, at the one of a ladder of numbers of guesses, fixed in advance, that labels "
            "beyond it suggest, looked at from the outside in."
        )

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            f"{self.design} Labels within it had no part in the choice, so the Clopper-Pearson "
            "limit has the whole probability of error (Clopper and Pearson 1934)."
        )

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: one path is cut."""
        return ORDERS[sides][-1:]

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples than guesses."""
        if self.levels is not None:
            check_levels(type(self).__name__, self.levels, examples, units)

    def with_size(self, _guesses: int, examples: int, /) -> Self:
        """See `PathPolicy.with_size`: levels beyond the examples are left out."""
        if self.levels is None:
            return self
        return replace(self, levels=[one for one in self.levels if one <= examples] or [examples])

    def routes(self, sides: Sides) -> dict[PathOrder, PathPolicy]:
        """See `PathPolicy.routes`: what is planned depends on sides."""
        return dict.fromkeys(self.orders(sides), _Pure(base=self, sides=sides))

    def ladder(self, examples: int, level: float, sides: Sides, /) -> tuple[int, ...]:
        """See `PathPolicy.ladder`."""
        return tuple(self.plan(examples, level, sides, "pure").levels)

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: ties are broken, so that every level is a cut."""
        found = super().audit(replace(game, break_ties=True), level)
        plan = self.plan(found.ranking.examples, level, game.sides, "pure")
        chosen: dict[str, JsonValue] = {"levels": list(plan.levels), "guesses": found.best.cut}
        return replace(found, options=found.options | {"outside_in": chosen})

    def bound(self, path: _core.Path, level: float, /) -> BestCut:
        """See `PathPolicy.bound`: that of guesses of both sides."""
        return _Pure(base=self, sides="both").bound(path, level)

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        """See `PathPolicy.curve`: that of guesses of both sides."""
        return _Pure(base=self, sides="both").curve(path, level, points)

    def plan(
        self,
        examples: int,
        level: float,
        sides: Sides,
        form: Form,
        delta: float = 0.0,
        share: float = 0.5,
    ) -> _core.OutsideIn:
        """Return levels and the rule that stops at one of them: labels have no part in it."""
        levels = None if self.levels is None else tuple(self.levels)
        return _plan(examples, level, sides, form, levels, delta, share)


@dataclass(frozen=True, kw_only=True)
class _Pure(DerivedPolicy[OutsideIn]):
    """The policy under pure DP: a free choice."""

    sides: Sides

    @property
    def method(self) -> str:
        return self.base.method

    def with_size(self, guesses: int, examples: int, /) -> Self:
        return replace(self, base=self.base.with_size(guesses, examples))

    def bound(self, path: _core.Path, level: float, /) -> Best:
        plan = self.base.plan(path.guesses, level, self.sides, "pure")
        guesses, correct = chosen_cut(plan, path)
        best = _core.union_bound(path, beta=level, grid=[guesses], ratio=1.5, tail="exact")
        return Best(best.logit, guesses, correct)

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        best = self.bound(path, level)
        return marked(path, points, best.cut, best.logit)


def marked(path: _core.Path, points: int, cut: int, bound: float) -> CurvePoints:
    """Return cuts of a path, one of which has a bound."""
    others, _ = path.sample(max(1, points - 1))
    guesses: IntArray = np.union1d(others, [cut])
    correct = np.array([path.count(int(made))[1] for made in guesses], dtype=np.int64)
    bounds = np.full(guesses.size, np.nan)
    bounds[np.searchsorted(guesses, cut)] = bound
    return guesses, correct, bounds


@lru_cache(maxsize=256)
def _plan(
    examples: int,
    level: float,
    sides: Sides,
    form: Form,
    levels: tuple[int, ...] | None,
    delta: float,
    share: float,
) -> _core.OutsideIn:
    return _core.OutsideIn(
        examples,
        level,
        one_sided=sides == "member",
        form=form,
        delta=delta,
        share=share,
        levels=levels,
    )


def chosen_cut(plan: _core.OutsideIn, path: _core.Path) -> tuple[int, int]:
    """Return guesses and correct guesses of the level at which the rule stops."""
    guesses = plan.levels[plan.choose(path)]
    return path.count(min(guesses, path.guesses))


def named_levels(levels: object) -> tuple[int, ...]:
    """Check numbers of guesses that are fixed in advance."""
    if not isinstance(levels, Sequence | np.ndarray) or getattr(levels, "shape", None) == ():
        message = f"levels must be a sequence of numbers of guesses, got {shown(levels)}"
        raise InputTypeError(message)
    named = tuple(integer(one, f"levels[{i}]", least=1) for i, one in enumerate(levels))
    if not named or any(a >= b for a, b in pairwise(named)):
        message = f"levels must be at least one number, and increase; got {list(named)}"
        raise OptionError(message)
    return named


def check_levels(
    policy: str, levels: Sequence[int], examples: int, units: str = "examples"
) -> None:
    """Raise OptionError if a policy asks for more guesses than there are examples."""
    if levels[-1] > examples:
        message = (
            f"cuts={policy}(levels=[…, {levels[-1]}]) asks for more guesses than there are "
            f"{units} ({examples})"
        )
        raise OptionError(message)
