"""What every cut policy answers: what a game proves at a level, and the trial of whole paths."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

import leakbound._core as _core
from leakbound._base.formatting import down
from leakbound._base.records import Lazy, encode
from leakbound._base.types import (
    FloatArray,
    IntArray,
    JsonValue,
    Kind,
    PathName,
    PathOrder,
    Sides,
)
from leakbound.cuts.games import Game, tied_share

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
        """The bound: on the log-odds of a correct guess, or on `parameter`; not clipped."""

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
class Proof:
    """What a policy proves about a game: the best bound, the cut that gave it, and what led there.

    `reason` says why nothing is proved, if nothing is; `limit` is the bound that a perfect attack
    would have reached, and `points` samples so many cuts of the path.
    """

    policy: "Policy"
    game: Game
    ranking: _core.Ranking
    order: PathOrder
    best: BestCut
    reason: str
    options: dict[str, JsonValue]
    warnings: tuple[str, ...]
    limit: Lazy[float]
    points: Callable[[int], CurvePoints]

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter; 0 is nothing."""
        return max(0.0, self.best.logit)

    def with_options(self, more: dict[str, JsonValue]) -> "Proof":
        """Return the same with more options to report."""
        return replace(self, options=self.options | more)


class Policy(ABC):
    """Which cuts of a ranking are tested, and how their number is paid for."""

    kind: ClassVar[Kind] = "lower_bound"
    """What its bounds are."""

    @property
    @abstractmethod
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""

    @abstractmethod
    def audit(self, game: Game, level: float, /) -> Proof:
        """Return the best bound on the log-odds of a correct guess, wrong with chance `level`."""

    def doubt(self, _guesses: int, _correct: int, _level: float, /) -> str:
        """Say why nothing is rejected, where that is not that chance explains it; else ""."""
        return ""

    def check(self, examples: int, units: str = "examples") -> None:  # noqa: B027 (most suit any)
        """Raise OptionError if the policy asks for more guesses than there are examples, or pairs.

        `units` is what messages call them.
        """


_INVERTED = 3
"""Standard deviations below 1/2 from which an AUC looks inverted rather than random."""
_NEAR = 0.9
"""Share of the ceiling from which more examples may show more."""
_REFERENCE = 1.0
"""The ε that a perfect attack should at least be able to refute."""
_FEW = 1000
"""With more examples than this a perfect attack refutes the reference."""


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


class PathPolicy(Policy):
    """A policy that tests cuts of paths, each by itself, and keeps the best."""

    @abstractmethod
    def bound(self, path: _core.Path, level: float, /) -> BestCut:
        """Return the best bound on the log-odds of a correct guess, wrong with chance `level`."""

    @abstractmethod
    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        """Return what would be reported at each of some cuts, had it been the best one.

        At most so many are picked, without looking at which guesses are correct.
        """

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: the best of all paths that serve the sides."""
        self.check(game.examples, game.units)
        ranking, notes = game.ranking(), tuple[str, ...]()
        if game.break_ties and ranking.tied:
            notes = order_warnings(game.tied(ranking))
            ranking = game.without_ties().ranking()
        trial = Trial.of(ranking, self.routes(game.sides), level, game.recall)
        return trial.proof(self, game, notes)

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """Return the names of the paths that are tried, the longest last."""
        return ORDERS[sides]

    def routes(self, sides: Sides) -> Mapping[PathOrder, "PathPolicy"]:
        """Return the policy of each path that is tried."""
        return dict.fromkeys(self.orders(sides), self)

    def path(self, ranking: _core.Ranking, order: PathOrder, /) -> _core.Path:
        """Return a path as the policy visits it."""
        return path_of(ranking, order)

    def perfect(self, order: PathOrder, examples: int, level: float, most: int | None, /) -> float:
        """Return what a perfect attack proves on as many members as non-members; not clipped.

        Cuts of more than `most` guesses are left out.
        """
        half = examples // 2
        right = examples if order in {"interleaved", "pairs"} else half
        path = _core.Path.correct_first(half if order.endswith("half") else examples, right)
        return self.bound(path if most is None else path.prefix(most), level).logit

    @property
    def parameter(self) -> str:
        """What the bounds are on, by name."""
        return "epsilon"

    @property
    def horizon(self) -> int:
        """The most examples with which more of them may be worth asking for."""
        return 100_000

    @property
    def fixed_guesses(self) -> int | None:
        """The number of guesses, if it is fixed in advance."""
        return None

    def ladder(self, _examples: int, _level: float, _sides: Sides, /) -> tuple[int, ...]:
        """Return the numbers of guesses named before labels are seen; none if a scan tests all."""
        return () if self.fixed_guesses is None else (self.fixed_guesses,)

    def with_size(self, _guesses: int, _examples: int, /) -> Self:
        """Return the policy for other numbers: of guesses, if it fixes them, and of examples."""
        return self

    def at_level(self, _level: float, /) -> "PathPolicy":
        """Return the policy with the values that stand for None at a level filled in."""
        return self


B = TypeVar("B", bound=PathPolicy)


@dataclass(frozen=True, kw_only=True)
class DerivedPolicy(PathPolicy, Generic[B]):
    """A policy that tests the cuts of another one under another claim."""

    base: B

    @property
    def fixed_guesses(self) -> int | None:
        """See `PathPolicy.fixed_guesses`."""
        return self.base.fixed_guesses

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`."""
        return self.base.orders(sides)

    def check(self, examples: int, units: str = "examples") -> None:
        """See `Policy.check`."""
        self.base.check(examples, units)

    def at_level(self, level: float, /) -> PathPolicy:
        """See `PathPolicy.at_level`."""
        return self.base.at_level(level)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A policy tested on some paths of a ranking, and the path that won."""

    ranking: _core.Ranking
    policy: PathPolicy
    orders: tuple[PathOrder, ...]
    level: float
    order: PathOrder
    path: _core.Path
    best: BestCut
    recall: float

    @classmethod
    def of(
        cls,
        ranking: _core.Ranking,
        routes: Mapping[PathOrder, PathPolicy],
        level: float,
        recall: float = 1.0,
    ) -> "Trial":
        """Bound every path at its share of the level and keep the best; on equality the first.

        Cuts of more than a share `recall` of the examples are left out.
        """
        level /= len(routes)
        paths = {order: policy.path(ranking, order) for order, policy in routes.items()}
        if recall < 1:
            most = _most(recall, ranking.examples)
            paths = {order: path.prefix(most) for order, path in paths.items()}
        bounds = {order: policy.bound(paths[order], level) for order, policy in routes.items()}
        winner = max(bounds, key=lambda order: bounds[order].logit)
        return cls(
            ranking=ranking,
            policy=routes[winner],
            orders=tuple(routes),
            level=level,
            order=winner,
            path=paths[winner],
            best=bounds[winner],
            recall=recall,
        )

    def perfect(self, policy: PathPolicy, examples: int) -> float:
        """Return what a perfect attack proves on the longest path."""
        most = None if self.recall == 1 else _most(self.recall, examples)
        return policy.perfect(self.orders[-1], examples, self.level, most)

    def proof(self, policy: Policy, game: Game, notes: tuple[str, ...]) -> Proof:
        """Return what a game proves by a policy, with more warnings."""
        best = self.best
        ceiling = Lazy(lambda: max(0.0, best.logit, self.perfect(self.policy, game.examples)))
        options: dict[str, JsonValue] = {
            "cuts": encode(self.policy.at_level(self.level)),
            "paths": [PATH_NAMES[order] for order in self.orders],
            "level": self.level,
        }
        reason = ""
        if best.logit <= 0:
            doubt = policy.doubt(best.cut, best.successes, self.level)
            reason = doubt or chance_explains(best.cut, best.successes)
        return Proof(
            policy=policy,
            game=game,
            ranking=self.ranking,
            order=self.order,
            best=best,
            reason=reason,
            options=options,
            warnings=notes + self._warnings(game, ceiling),
            limit=ceiling,
            points=lambda most: self.policy.curve(self.path, self.level, most),
        )

    def _warnings(self, game: Game, ceiling: Lazy[float]) -> tuple[str, ...]:
        notes = (self._tied(game), self._moved(), self._limit(ceiling, game.units))
        inverted = inverted_warnings(game.rated(self.ranking))
        return inverted + tuple(note for note in notes if note)

    def _tied(self, game: Game) -> str:
        share = game.tied(self.ranking) if self.ranking.tied else ""
        note = "cuts fall only between blocks of ties, so a score of finer precision may show more"
        return share and share + note

    def _moved(self) -> str:
        guesses, fixed = self.best.cut, self.policy.fixed_guesses
        if fixed is None or guesses == fixed:
            return ""
        return f"the cut moved from {fixed} to {guesses} guesses, the end of a block of tied scores"

    def _limit(self, ceiling: Lazy[float], units: str) -> str:
        best, fixed = self.best, self.policy.fixed_guesses is not None
        if (fixed or self.ranking.examples <= _FEW) and ceiling.value <= _REFERENCE:
            needed = self._needed()
            enough = (
                f"at least {needed} {'guesses' if fixed else units}" if needed else "other cuts"
            )
            return (
                f"even a perfect attack would reach {down(ceiling.value)} only: {enough} are "
                f"needed to refute {self.policy.parameter} = {_REFERENCE:g}"
            )
        if best.successes > _NEAR * best.cut and best.logit >= _NEAR * ceiling.value:
            return (
                f"the bound is close to {down(ceiling.value)}, all that a perfect attack would "
                f"have reached: more {units} may show more"
            )
        return ""

    def _needed(self) -> int | None:
        """Return the least number of examples, or of fixed guesses, to refute the reference."""

        def suffices(size: int) -> bool:
            examples = size if self.policy.fixed_guesses is None else 2 * size
            return self.perfect(self.policy.with_size(size, examples), examples) > _REFERENCE

        low, high = 1, 2
        while not suffices(high):
            if high > self.policy.horizon:
                return None
            low, high = high, 2 * high
        return low + bisect_left(range(low, high + 1), True, key=suffices)  # noqa: FBT003


def _most(recall: float, examples: int) -> int:
    """Return the guesses of the longest cut, whose recall is so large if scores say nothing."""
    return max(1, math.floor(recall * examples))


def chance_explains(guesses: int, correct: int) -> str:
    """Say why nothing is proved at the best cut; 0 guesses if no cut stands out."""
    if guesses == 0:
        return "no tested cut has enough correct guesses to count against chance"
    return (
        f"chance explains every tested cut: at the best one {correct} of {guesses} "
        "guesses are right"
    )
