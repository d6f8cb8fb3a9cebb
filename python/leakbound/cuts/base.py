"""What every cut policy answers: what scores and membership prove at a level."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose, permutation
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


@dataclass(frozen=True, eq=False)
class Shown:
    """Scores as figures show them: how many members, and how many others, have each value.

    Values increase and are distinct if the counts are integers; if these are booleans, each value
    is that of one example.
    """

    values: FloatArray
    members: BoolArray | IntArray
    others: BoolArray | IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Game(ABC):
    """Scores and membership of examples, checked, and how they are audited whatever the policy.

    `break_ties` says that ties are broken at random, from the seed, instead of staying together;
    `recall` is the largest share of the examples that a tested cut guesses, in (0, 1].
    """

    sides: Sides
    seed: int
    name: str = "scores"
    break_ties: bool = False
    recall: float = 1.0
    units: ClassVar[str] = "examples"
    """What is guessed about, in words."""

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many examples are audited."""

    @abstractmethod
    def without_ties(self) -> Self:
        """Return the game with ties broken from the seed."""

    @abstractmethod
    def ranked(self) -> _core.Ranking:
        """Rank the examples, or the guesses about them."""

    def ranking(self) -> _core.Ranking:
        """Rank the examples; raise AbstentionError if the scores order nothing."""
        ranking = self.ranked()
        if ranking.blocks == 1:
            message = (
                f"all {self.examples} {self.name} are equal, so every example abstains: use a "
                "score that differs between examples"
            )
            raise AbstentionError(message)
        return ranking

    @abstractmethod
    def labelled(self) -> tuple[FloatArray, BoolArray]:
        """Return distinct scores in the order of the examples', ties broken, and membership."""

    @abstractmethod
    def shown(self) -> Shown:
        """Return scores and membership of the examples, for figures."""

    def rated(self, ranking: _core.Ranking) -> _core.Ranking:
        """Return the ranking of the examples by score, given the one that was audited."""
        return ranking

    def tied(self, ranking: _core.Ranking) -> str:
        """Return how many examples share their score with another, in words; "" if few."""
        return tied_share(ranking)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreGame(Game):
    """A game whose examples each have a score."""

    scores: FloatArray
    member: BoolArray

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return self.scores.size

    def without_ties(self) -> Self:
        """See `Game.without_ties`."""
        return replace(self, scores=self._untied(self.scores))

    def ranked(self) -> _core.Ranking:
        """See `Game.ranked`."""
        return self._ranking

    @cached_property
    def _ranking(self) -> _core.Ranking:
        """Sorted once, however many policies ask."""
        return _core.Ranking(self.scores, self.member)

    def _untied(self, scores: FloatArray) -> FloatArray:
        """Return the ranks of scores, ties broken at random."""
        order = permutation(Purpose.TIES.rng(self.seed), scores.size)
        ranks = np.empty(scores.size)
        ranks[order[np.argsort(scores[order], kind="stable")]] = np.arange(scores.size)
        return ranks

    def labelled(self) -> tuple[FloatArray, BoolArray]:
        """See `Game.labelled`."""
        return self._untied(self.scores), self.member

    def shown(self) -> Shown:
        """See `Game.shown`."""
        return Shown(self.scores, self.member, ~self.member)


def counted_quantile(values: FloatArray, counts: IntArray, q: float) -> float:
    """Return a quantile of increasing values that occur so often each, as NumPy's of all."""
    ends = np.cumsum(counts)
    place = (int(ends[-1]) - 1) * q
    below = math.floor(place)
    around = np.searchsorted(ends, [below, math.ceil(place)], side="right")
    low, high = float(values[around[0]]), float(values[around[1]])
    return low if low == high else low + (place - below) * (high - low)


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

    def check(self, examples: int, units: str = "examples") -> None:  # noqa: B027 (most suit any)
        """Raise OptionError if the policy asks for more guesses than there are examples, or pairs.

        `units` is what messages call them.
        """


_INVERTED = 3
"""Standard deviations below 1/2 from which an AUC looks inverted rather than random."""
_TIED = 0.1
"""Share of tied examples from which fewer ties may show more."""


def tied_share(ranking: _core.Ranking, units: str = "examples", value: str = "score") -> str:
    """Return how many examples share their score with another, in words; "" if few."""
    share = ranking.tied / ranking.examples
    if share <= _TIED:
        return ""
    return f"{100 * share:.0f}% of the {units} share their {value} with another; "


def tie_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that many ties were broken at random, in a ranking by scores as given."""
    return order_warnings(tied_share(ranking))


def order_warnings(share: str) -> tuple[str, ...]:
    """Say that ties were broken at random, given how many in words, "" for few."""
    if not share:
        return ()
    note = "their order was drawn at random, so a score of finer precision may show more"
    return (share + note,)


def inverted_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that scores are higher on non-members."""
    members, others = ranking.members, ranking.examples - ranking.members
    # the spread of the AUC of scores that say nothing: Mann and Whitney 1947
    spread = math.sqrt((ranking.examples + 1) / (12 * max(1, members * others)))
    below = (0.5 - ranking.auc) / spread
    if below <= _INVERTED:
        return ()
    note = (
        f"AUC {ranking.auc:.3f} is {below:.1f} standard deviations below 1/2: the scores look "
        "inverted (higher must mean likelier a member); they are used as given"
    )
    return (note,)
