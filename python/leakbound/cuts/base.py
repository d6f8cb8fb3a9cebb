"""What every cut policy answers: what scores and membership prove at a level."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    BoolArray,
    FloatArray,
    IntArray,
    JsonValue,
    Kind,
    PathName,
    PathOrder,
    Sides,
)
from leakbound.errors import AbstentionError

__all__ = [
    "ORDERS",
    "PATH_NAMES",
    "Best",
    "BestCut",
    "CurvePoints",
    "Finding",
    "Game",
    "Policy",
    "path_of",
    "untied",
]

CurvePoints: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Guesses, correct guesses and log-odds bound (not clipped; NaN where not tested) at some cuts."""

ORDERS: dict[Sides, tuple[PathOrder, ...]] = {
    "member": ("member",),
    "both": ("member_half", "nonmember_half", "interleaved"),
    "pairs": ("pairs",),
}
"""The paths of a ranking that serve a choice of sides, the longest last."""
PATH_NAMES: dict[PathOrder, PathName] = {
    "member": "member",
    "member_half": "members",
    "nonmember_half": "non-members",
    "interleaved": "interleaved",
    "pairs": "pairs",
}
"""How results call the paths."""


def path_of(ranking: _core.Ranking, order: PathOrder) -> _core.Path:
    """Return a path; for pairs, the ranking is by confidence and its members are right guesses."""
    return ranking.path("member" if order == "pairs" else order)


class BestCut(Protocol):
    """A bound and the cut that gave it."""

    @property
    def logit(self) -> float:
        """The bound: on the log-odds of a correct guess, or what `strength` says; not clipped."""

    @property
    def cut(self) -> int:
        """Guesses made; 0 if no cut stands out."""

    @property
    def successes(self) -> int:
        """Correct guesses."""


@dataclass(frozen=True)
class Best:
    """A `BestCut` of a policy that does not get one from the core."""

    logit: float
    cut: int
    successes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Game:
    """Scores and membership, checked, and how they are audited whatever the policy.

    `break_ties` says that ties are broken at random, from the seed, instead of staying together;
    `recall` is the largest share of the examples that a tested cut guesses, in (0, 1].
    """

    scores: FloatArray
    member: BoolArray
    sides: Sides
    seed: int = 0
    name: str = "scores"
    break_ties: bool = False
    recall: float = 1.0

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return self.scores.size

    def part(self, rows: BoolArray, name: str) -> Self:
        """Return the game of some of the examples."""
        return replace(self, scores=self.scores[rows], member=self.member[rows], name=name)

    def without_ties(self) -> Self:
        """Return the game with ties broken from the seed."""
        return replace(self, scores=untied(self.scores, self.seed))

    def ranking(self) -> _core.Ranking:
        """Rank the examples; raise AbstentionError if the scores order nothing."""
        ranking = _core.Ranking(self.scores, self.member)
        if ranking.blocks == 1:
            message = (
                f"all {self.scores.size} {self.name} are equal, so every example abstains: use a "
                "score that differs between examples"
            )
            raise AbstentionError(message)
        return ranking

    def shown(self) -> tuple[FloatArray, BoolArray]:
        """Return scores and membership of the examples, for figures."""
        return self.scores, self.member

    def rated(self, ranking: _core.Ranking) -> _core.Ranking:
        """Return the ranking of the examples by score, given the one that was audited."""
        return ranking


def untied(scores: FloatArray, seed: int) -> FloatArray:
    """Return the ranks of scores, ties broken by a permutation that membership has no part in."""
    draw = Purpose.TIES.rng(seed).permutation(scores.size)
    ranks = np.empty(scores.size)
    ranks[np.lexsort((draw, scores))] = np.arange(scores.size)
    return ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What a policy finds in a game: the best bound, the cut that gave it, and what led there.

    `reason` says why nothing is proved, if nothing is; `points` samples so many cuts of the path.
    """

    game: Game
    ranking: _core.Ranking
    order: PathOrder
    best: BestCut
    reason: str
    options: dict[str, JsonValue]
    warnings: tuple[str, ...]
    ceiling: Lazy[float]
    points: Callable[[int], CurvePoints]


class Policy(ABC):
    """Which cuts of a ranking are tested, and how their number is paid for."""

    kind: ClassVar[Kind] = "lower_bound"
    """What its bounds are."""

    @property
    @abstractmethod
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""

    @abstractmethod
    def audit(self, game: Game, level: float, /) -> Finding:
        """Return the best bound on the log-odds of a correct guess, wrong with chance `level`."""

    def check(self, examples: int) -> None:  # noqa: B027 (most policies suit any number)
        """Raise OptionError if the policy asks for more guesses than there are examples."""
