"""What every cut policy answers: what a game proves at a level, and by which cut of a path."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.checks import integer, real, shown
from leakbound._base.formatting import down
from leakbound._base.records import Lazy, encode
from leakbound._base.types import (
    Adversary,
    Correction,
    FloatArray,
    IntArray,
    JsonObject,
    JsonValue,
    PathName,
    PathOrder,
    Sides,
)
from leakbound.cuts.games import Game, Ties, inverted_warnings, near_ceiling
from leakbound.errors import LeakboundError, OptionError


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """How the bound moves with the propensities."""

    _bounds: Lazy[FloatArray] = field(repr=False)
    estimate: float
    """The bound at the point estimate of the propensities."""
    p: float
    """Share of the error probability that the replicates take."""

    @property
    def bounds(self) -> FloatArray:
        """The bound under each replicate of the propensities, everything drawn held fixed.

        Pure DP computes those that the percentile does not need when they are first asked for.
        """
        return self._bounds.value


@dataclass(frozen=True, kw_only=True, eq=False)
class Shift:
    """How shift was taken out of a proof, and what that left.

    `rows` and `signs` are the guesses looked at, the most confident first. `bounds` returns what is
    proved under rows of log-odds, and `lowest`, where that takes less time than all, the bound of a
    rank from 1 upwards. Over a confidence set `coefficients` are those of the least
    favourable member, and `at_estimate` is what the likeliest one would have shown.
    """

    correction: Correction
    adversary: Adversary
    kept: int
    """Examples that matching keeps, at most if log-odds are a set."""
    effective: float
    """The effective number of examples of the test."""
    theorem: str = ""
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    signs: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    bounds: Callable[[FloatArray], FloatArray] | None = None
    lowest: Callable[[FloatArray, int], float] | None = None
    bootstrap: Bootstrap | None = None
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    at_estimate: float = 0.0


CurvePoints: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Guesses, correct guesses and log-odds bound (not clipped; NaN where not tested) at some cuts."""

# The paths of a ranking that serve a choice of sides, the longest last
ORDERS: dict[Sides, tuple[PathOrder, ...]] = {
    "member": ("member",),
    "both": ("member_half", "nonmember_half", "interleaved"),
    "auto": ("member_half", "nonmember_half", "interleaved"),
    "pairs": ("pairs",),
}
# How results call the paths
PATH_NAMES: dict[PathOrder, PathName] = {
    "member": "member",
    "member_half": "members",
    "nonmember_half": "non-members",
    "interleaved": "interleaved",
    "ends": "ends",
    "pairs": "pairs",
}

# What guesses are called: those of whole paths are of no end of the ranking
ALL_GUESSES, SUREST_GUESSES = "guesses", "most confident guesses"
# The ε that a perfect attack should at least be able to refute
_REFERENCE_EPSILON = 1.0
# With more examples than this a perfect attack refutes the reference
_FEW_EXAMPLES = 1000


@dataclass(frozen=True)
class Best:
    """A bound and the cut that gave it, of a policy that does not get these from the core.

    `logit` is on the log-odds of a correct guess or what else is bounded, not clipped, and -inf if
    nothing is shown; `cut` are the guesses made, 0 if no cut stands out, and `successes` the right
    ones.
    """

    logit: float
    cut: int
    successes: int


BestCut: TypeAlias = _core.Bound | Best
"""A bound and the cut that gave it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """What a policy proves about a game: the best bound, the cut that gave it, and what led there.

    `reason` says why nothing is proved, if nothing is, and `notes` that ties were broken, which
    `scored` still has; `perfect`
    returns what a perfect attack proves, and `points` so many cuts of the path, both in log-odds or
    in what else the policy's bounds are on. Each path had the probability of error `level`.
    `shift` says what was taken out where nobody drew who became a member.
    """

    policy: "Procedure"
    game: Game
    ranking: _core.Ranking
    order: PathOrder
    best: BestCut
    level: float
    reason: str
    options: dict[str, JsonValue]
    notes: tuple[str, ...] = ()
    scored: _core.Ranking | None = None
    shift: Shift | None = None
    perfect: Callable[[], float]
    points: Callable[[int], CurvePoints]

    @cached_property
    def bound(self) -> float:
        """The bound on the claim's parameter; 0 is nothing."""
        return max(0.0, self.best.logit)

    @cached_property
    def ceiling(self) -> float:
        """The bound that a perfect attack would have reached."""
        return max(self.bound, self.perfect())

    @cached_property
    def examples(self) -> _core.Ranking:
        """The ranking of the examples by score, ties as they are."""
        if self.game.sides == "pairs":
            return self.game.rated()
        return self.scored or self.ranking

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know; none of it changes the bound."""
        return self.notes + self.policy.remarks(self)

    @property
    def theorem(self) -> str:
        """Why shift is taken out, if it is, and why the test is valid."""
        taken_out = "" if self.shift is None else self.shift.theorem
        method = self.policy.method
        if self.game.named:
            method = method.replace("examples", self.game.named)
        return taken_out + method

    @property
    def drawn(self) -> "Proof":
        """The proof whose path curves show."""
        return self

    @property
    def guessed(self) -> str:
        """What the guesses of the bound are called."""
        return self.policy.guessed(self)

    @property
    def searched(self) -> str:
        """How many thresholds were tested and what chose them, in sentences of the result."""
        game = self.game
        return self.policy.searched(
            self.ranking.examples, game.sides, units=game.units, recall=game.recall
        )

    def with_options(self, more: dict[str, JsonValue]) -> "Proof":
        """Return the same with more options to report."""
        return replace(self, options=self.options | more)


class Proved(Protocol):
    """What one attack proves."""

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter."""

    def with_options(self, more: dict[str, JsonValue]) -> Self:
        """Return the same with more options to report."""


class Procedure(ABC):
    """A test in words of results: why it is valid, what it searched, how its guesses are called."""

    ties: ClassVar[Ties] = "together"
    """They are broken where the number of guesses must not depend on scores."""
    on_path: ClassVar[bool] = True
    """Whether the guesses that count are those of the path, up to the chosen cut."""

    @property
    @abstractmethod
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""

    @abstractmethod
    def searched(
        self, examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """Return how many thresholds are tested and what chooses them, in a sentence of results.

        It stands alone, and says what the confidence accounts for: nothing more, as the report of
        an audit repeats it. `examples` are ranked, or what `units` names, and cuts of more than a
        share `recall` of them are left out.
        """

    def guessed(self, proof: Proof, /) -> str:
        """Return what the guesses of a proof are called: "most confident guesses", or all."""
        return ALL_GUESSES if proof.best.cut >= proof.ranking.examples else SUREST_GUESSES

    def remarks(self, _proof: Proof) -> tuple[str, ...]:
        """Return what a reader of a proof should know."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Stated(Procedure):
    """A test that says the same whatever was found."""

    theorem: str = ""
    thresholds: str
    """How many were tested, and what chose them."""

    @property
    def method(self) -> str:
        """See `Procedure.method`."""
        return self.theorem

    def searched(
        self,
        _examples: int,
        _sides: Sides,
        /,
        *,
        units: str = "examples",  # noqa: ARG002 (of policies)
        recall: float = 1.0,  # noqa: ARG002 (of policies)
    ) -> str:
        """See `Procedure.searched`."""
        return self.thresholds


class Policy(Procedure):
    """Which thresholds of a ranking are tested, and the correction for their number."""

    @abstractmethod
    def audit(self, game: Game, level: float, /) -> Proof:
        """Return the best bound on the log-odds of a correct guess, wrong with chance `level`."""

    def above(self, _least: float) -> Self:
        """Return the same policy, which need not compute bounds up to this one: 0 is valid."""
        return self


def stored(policy: object) -> JsonValue:
    """Return a policy as files have it: its type, and its fields if it has any."""
    content: JsonObject = {"type": type(policy).__name__}
    if is_dataclass(policy):
        for one in fields(policy):
            content[one.name] = _stored_field(getattr(policy, one.name))
    return content


def _stored_field(value: object) -> JsonValue:
    """Return a field of a policy as files have it: another policy may have no fields."""
    if isinstance(value, Policy):
        return stored(value)
    if isinstance(value, list | tuple):
        return [_stored_field(part) for part in value]
    return encode(value)


class PathPolicy(Policy):
    """A policy that tests cuts of paths, each by itself, and keeps the best."""

    of_odds: ClassVar[bool] = True
    """Whether bounds are on the log-odds of a guess, and not on the claim's own parameter."""

    @property
    def fixed_guesses(self) -> int | None:
        """The number of guesses, if it is fixed in advance."""
        return None

    @abstractmethod
    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> BestCut:
        """Return the best bound on the log-odds of a correct guess, wrong with chance `level`.

        An audit raises OptionError if it is not below infinity, as NaN is not, or if there are more
        guesses than examples, or more correct ones than guesses.
        """

    def curve(
        self, path: _core.Path, _order: PathOrder, _level: float, points: int, /
    ) -> CurvePoints:
        """Return what would be reported at each of some cuts, had it been the best one.

        At most so many are picked, without looking at which guesses are correct. No bound is given
        where a policy tests one cut only: figures add what it reports.
        """
        return untested(path, points)

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: the best of all paths that serve the sides."""
        # 1. Examples in the order of their scores; what is tied stays together, or is parted.
        examples = game.examples
        self.check(examples, game.units)
        scored, ranking, notes = game.ranking(self.ties)
        # 2. Every path at its share of the level.
        orders = self.orders(game.sides)
        share, recall = shares.PATHS.of(level, len(orders)), game.recall
        order, path, best = self.best(ranking, orders, share, recall, scored)
        told = self.told(best, share)
        # 3. What that proves.
        proof = Proof(
            policy=self,
            game=game,
            ranking=ranking,
            scored=scored,
            order=order,
            best=best,
            level=share,
            reason="",
            options={
                "cuts": self.described(share),
                "paths": [PATH_NAMES[one] for one in orders],
                "level": share,
                **told,
            },
            notes=notes,
            perfect=lambda: self.perfect(examples, orders[-1], share, recall),
            points=lambda most: self.curve(path, order, share, most),
        )
        if self.of_odds and game.k > 2:
            proof = _proof_among_values(proof, game.k)
        if proof.bound > 0:
            return proof
        return replace(proof, reason=self.unproved(best.cut, best.successes, share))

    def best(
        self,
        ranking: _core.Ranking,
        orders: tuple[PathOrder, ...],
        level: float,
        recall: float = 1.0,
        scored: _core.Ranking | None = None,  # noqa: ARG002 (for thresholds that depend on ties)
    ) -> tuple[PathOrder, _core.Path, BestCut]:
        """Bound every path at a level and return the best; on equality the first.

        Cuts of more than a share `recall` of the examples are left out.
        """
        paths = self.paths(ranking, orders)
        if recall < 1:
            paths = _paths_up_to_recall(paths, recall, ranking.examples)
        bounds = dict[PathOrder, BestCut]()
        for order, path in paths.items():
            bound = self.bound(path, order, level)
            if not isinstance(bound, _core.Bound):
                bound = _checked_best(bound, type(self), ranking.examples)
            bounds[order] = bound
        winner = max(bounds, key=lambda order: bounds[order].logit)
        return winner, paths[winner], bounds[winner]

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples, or pairs, than guesses asked for."""

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """Return the names of the paths that are tried, the longest last."""
        return ORDERS[sides]

    def paths(
        self, ranking: _core.Ranking, orders: tuple[PathOrder, ...]
    ) -> dict[PathOrder, _core.Path]:
        """Return paths by name; of pairs the ranking is by confidence, right guesses as members."""
        return {order: ranking.path("member" if order == "pairs" else order) for order in orders}

    def perfect(self, examples: int, order: PathOrder, level: float, recall: float, /) -> float:
        """Return what a perfect attack proves on as many members as non-members; not clipped."""
        right = examples // 2 if order == "member" else examples
        path = _core.Path.correct_first(examples, right)
        if recall < 1:
            path = path.prefix(_most_guesses_at_recall(recall, examples))
        bound = self.bound(path, order, level)
        if not isinstance(bound, _core.Bound):
            bound = _checked_best(bound, type(self), examples)
        return bound.logit

    def told(self, _best: BestCut, _level: float, /) -> dict[str, JsonValue]:
        """Return what else options tell of the best cut."""
        return {}

    def unproved(self, guesses: int, correct: int, _level: float, /) -> str:
        """Say why nothing is rejected: mostly that chance explains it."""
        return chance_explains(guesses, correct)

    def valued(self, bound: float, symbol: str, /) -> str:
        """Return a bound as remarks write it: as this symbol of the game, or as a family's ε."""
        return f"{symbol} = {down(bound)}"

    def described(self, _level: float, /) -> JsonValue:
        """Return the policy as options show it, with what stands for None at a level."""
        return stored(self)

    def ladder(self, _examples: int, _level: float, _sides: Sides, /) -> tuple[int, ...]:
        """Return the numbers of guesses named before labels are seen; none if a scan tests all."""
        return () if self.fixed_guesses is None else (self.fixed_guesses,)

    def remarks(self, proof: Proof) -> tuple[str, ...]:
        """See `Policy.remarks`: scores look inverted, cuts moved, or examples are few."""
        notes = [*inverted_warnings(proof.examples, proof.game.units)]
        if proof.ranking.tied:
            notes += self._remarks_on_ties(proof)
        notes.append(self._remark_on_ceiling(proof, fixed=self.fixed_guesses is not None))
        return tuple(filter(None, notes))

    def _remarks_on_ties(self, proof: Proof) -> Iterator[str]:
        """Yield remarks on ties that are kept together, of which a fixed cut may move the end."""
        tied = proof.game.tied(proof.ranking)
        if tied:
            yield f"{tied}thresholds never separate ties, so a more precise score may show more"
        fixed = self.fixed_guesses
        cut = proof.best.cut
        if fixed not in {None, cut}:
            yield (
                f"the threshold moved from {fixed} to {cut} guesses, the end of a block of tied "
                "scores"
            )

    def _remark_on_ceiling(self, proof: Proof, *, fixed: bool) -> str:
        """Say that more examples may show more, or more guesses where their number is fixed."""
        best, units = proof.best, proof.game.units

        def valued(bound: float) -> str:
            return self.valued(bound, proof.game.symbol)

        if (
            fixed or proof.ranking.examples <= _FEW_EXAMPLES
        ) and proof.ceiling <= _REFERENCE_EPSILON:
            return _ceiling_below_reference(valued(proof.ceiling), "guesses" if fixed else units)
        return near_ceiling(
            best.logit, best.cut, best.successes, lambda: proof.ceiling, valued, units
        )


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
        """See `PathPolicy.check`."""
        self.base.check(examples, units)

    def described(self, level: float, /) -> JsonValue:
        """See `PathPolicy.described`."""
        return self.base.described(level)

    def searched(
        self, examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        return self.base.searched(examples, sides, units=units, recall=recall)


def _checked_best(answer: object, policy: type[PathPolicy], examples: int) -> Best:
    """Return what a policy answered, which may be from outside, with numbers of Python."""
    if not isinstance(answer, Best):
        raise OptionError(_message_about_answer(answer, policy))
    try:
        log_odds = real(answer.logit, name="logit", below=math.inf)
        guesses = integer(answer.cut, name="cut", least=0, most=examples)
        correct_guesses = integer(answer.successes, name="successes", least=0, most=guesses)
    except LeakboundError as error:
        raise OptionError(f"{_message_about_answer(answer, policy)}: {error}") from None
    return replace(answer, logit=log_odds, cut=guesses, successes=correct_guesses)


def _message_about_answer(answer: object, policy: type[PathPolicy]) -> str:
    """Say what a policy must answer, and what it did."""
    return (
        f"{policy.__name__}.bound must return Best(logit, cut, successes): a bound on the log-odds "
        "of a correct guess, -inf where nothing is shown, the guesses made, and how many of them "
        f"were correct; got {shown(answer)}"
    )


def untested(path: _core.Path, points: int) -> CurvePoints:
    """Return cuts of a path without bounds."""
    guesses, correct = path.sample(points)
    return guesses, correct, np.full(guesses.size, np.nan)


def _most_guesses_at_recall(recall: float, examples: int) -> int:
    """Return the guesses of the longest cut, whose recall is so large if scores say nothing."""
    return max(1, math.floor(recall * examples))


def _paths_up_to_recall(
    paths: dict[PathOrder, _core.Path], recall: float, examples: int
) -> dict[PathOrder, _core.Path]:
    """Return paths without cuts of more than a share of the examples."""
    most = _most_guesses_at_recall(recall, examples)
    return {order: path.prefix(most) for order, path in paths.items()}


def _proof_among_values(proof: Proof, k: int) -> Proof:
    """Return the proof of guesses among k values: odds are e^ε / (k - 1) at most."""
    shift = math.log(k - 1)
    best = proof.best

    def points(most: int) -> CurvePoints:
        guesses, correct, bounds = proof.points(most)
        return guesses, correct, bounds + shift

    return replace(
        proof,
        best=Best(best.logit + shift, best.cut, best.successes),
        perfect=lambda: proof.perfect() + shift,
        points=points,
    )


def _ceiling_below_reference(ceiling: str, more: str) -> str:
    return (
        f"even a perfect attack would reach only {ceiling}: use more {more} "
        "(leakbound.planning.ceiling gives the ceiling for each number)"
    )


def chance_explains(guesses: int, correct: int) -> str:
    """Say why nothing is proved at the best cut; 0 guesses if no cut stands out."""
    if guesses == 0:
        return "no tested threshold has more correct guesses than chance explains"
    return f"no more guesses are right than chance explains: {correct} of {guesses}"
