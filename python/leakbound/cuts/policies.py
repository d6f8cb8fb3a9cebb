"""The policies by themselves: scans, grids, fixed numbers of guesses, and weights without cuts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.checks import choice, instance, integer, numbers, real, shown
from leakbound._base.formatting import percent
from leakbound._base.messages import Message
from leakbound._base.numerics import logit
from leakbound._base.records import encode
from leakbound._base.types import InWords, JsonValue, PathOrder, Sides, TailOptions
from leakbound.cuts.games import Game, ScoreGame
from leakbound.cuts.look import SecondLook
from leakbound.cuts.outside_in import OutsideIn
from leakbound.cuts.policy import (
    ALL_GUESSES,
    ORDERS,
    Best,
    CurvePoints,
    PathPolicy,
    Policy,
    Proof,
    untested,
)
from leakbound.errors import AbstentionError, InputTypeError, OptionError

Tail: TypeAlias = Literal["exact", "hoeffding"]

ScanGrid: TypeAlias = Literal["auto", "all"]
# Guesses up to which the core's grid "auto" has every cut
_EVERY_CUT_UP_TO = 20_000
# A deviation that no number of guesses reaches
_LARGEST_DEVIATION = 1e12
# Weights are rounded to multiples of one over this, which keeps the tail exact and quick
_WEIGHT_STEPS = 64
UnionGrid: TypeAlias = Literal["all", "geometric"]
AnyTail: TypeAlias = Tail | TailOptions


@dataclass(frozen=True, kw_only=True)
class KLScan(PathPolicy):
    """All cuts at once, by the largest Kullback-Leibler deviation: the default.

    Parameters
    ----------
    kappa : float, optional
        Deviation r·KL(W/r ‖ q) that a cut must reach, in nats, below 1e12; ln(1/β) + 1 if None.
        Smaller values favour few guesses, larger ones broad and weak signals. Choose it before
        looking.
    min_guesses : int, optional
        Smallest number of guesses tested; 1 if None.
    grid : {"auto", "all"}
        Cuts tested: all, or (auto) all up to 20,000 guesses and beyond that a fixed geometric grid
        of ratio 1.005. All take time and memory of every example, of a tally too, which the grid
        does not: some 2 seconds, not 0.5, at 10^7 examples.

    Notes
    -----
    The statistic is the largest q that some cut rejects at deviation κ. Its law under independent
    guesses, right with probability p, is computed exactly by a boundary-crossing recursion and
    inverted (Buehler 1957), so all cuts cost less than a union bound over a dozen.
    """

    method: ClassVar[str] = (
        "All thresholds are tested at once, by inverting the exact distribution of the largest "
        "Kullback-Leibler deviation over the ranking, from a boundary-crossing recursion (Buehler "
        "1957)."
    )
    kappa: float | None = None
    min_guesses: int | None = None
    grid: ScanGrid = "auto"

    def __post_init__(self) -> None:
        if self.kappa is not None:
            object.__setattr__(
                self, "kappa", real(self.kappa, "kappa", above=0, below=_LARGEST_DEVIATION)
            )
        if self.min_guesses is not None:
            least = integer(self.min_guesses, "min_guesses", least=1)
            object.__setattr__(self, "min_guesses", least)
        choice(self.grid, "grid", ScanGrid)

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if `min_guesses` exceeds the number of examples."""
        if self.min_guesses is not None and self.min_guesses > examples:
            policy = f"KLScan(min_guesses={self.min_guesses})"
            raise _more_guesses_than_examples(policy, examples, units)

    def searched(
        self, examples: int, _sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        which = "Every threshold"
        if self.grid == "auto" and examples > _EVERY_CUT_UP_TO:
            which = _THRESHOLDS_OF_MANY
        if self.min_guesses is not None and self.min_guesses > 1:
            which += f" from {self.min_guesses:,} guesses on"
        if recall < 1:
            which += f" up to {percent(recall)} of the {units}"
        return f"{which} was tested; the confidence accounts for all of them."

    def described(self, level: float, /) -> JsonValue:
        """See `PathPolicy.described`: `kappa` and `min_guesses` are filled in."""
        if type(self) is not KLScan:
            # A class derived from this one has fields of its own, and may use another level.
            return super().described(level)
        return {"type": "KLScan", **self._options(level)}

    def _options(self, level: float) -> dict[str, Any]:
        kappa = self.kappa or math.log(1 / level) + 1
        return {"kappa": kappa, "min_guesses": self.min_guesses or 1, "grid": self.grid}

    def bound(
        self, path: _core.Path, _order: PathOrder, level: float, failures: float = 0.0, /
    ) -> _core.Bound:
        """See `PathPolicy.bound`; a guarantee may fail for so many guesses on average."""
        return _core.kl_scan(path, beta=level, failures=failures, **self._options(level))

    def curve(
        self, path: _core.Path, _order: PathOrder, level: float, points: int, failures: float = 0, /
    ) -> CurvePoints:
        """See `PathPolicy.curve`; failures as for `bound`."""
        options = self._options(level)
        return _core.kl_curve(path, beta=level, points=points, failures=failures, **options)


_THRESHOLDS_OF_MANY = (
    f"Every threshold up to {_EVERY_CUT_UP_TO:,} guesses, and beyond that a fixed grid of them,"
)
DEFAULT_SCAN = KLScan()
"""The default of guesses about examples, checked once."""


def default_scan(sides: Sides, level: float) -> KLScan:
    """Return the policy for pure DP: on one path with the whole level, smaller deviations count."""
    if sides == "pairs":
        return KLScan(kappa=math.log(1 / level))
    return DEFAULT_SCAN


@dataclass(frozen=True, kw_only=True)
class UnionBound(PathPolicy):
    """Every cut of a grid at an equal share of the level: the papers' choice, for comparison.

    Parameters
    ----------
    grid : {"all", "geometric"} or sequence of int
        Numbers of guesses that are tested. "all" divides by the length of the path, always; a
        cut inside a block of tied scores moves to its end.
    ratio : float
        Ratio of the geometric grid, above 1.
    tail : {"exact", "hoeffding"}
        Clopper-Pearson limits, or those of Hoeffding's inequality (equation 1 of PANORAMIA, Kazmi
        et al. 2024).
    """

    grid: UnionGrid | Sequence[int] = "all"
    ratio: float = 1.5
    tail: Tail = "exact"

    def __post_init__(self) -> None:
        if isinstance(self.grid, str):
            choice(self.grid, "grid", UnionGrid)
        else:
            object.__setattr__(self, "grid", _checked_grid(self.grid))
        object.__setattr__(self, "ratio", real(self.ratio, "ratio", above=1, below=math.inf))
        choice(self.tail, "tail", Tail)

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        limit = "Clopper-Pearson" if self.tail == "exact" else "Hoeffding"
        return f"{self._named_union_bound}: {limit} limits, each at an equal share of the level."

    @property
    def design(self) -> str:
        """Which cuts are tested, in a sentence of the result."""
        return f"{self._named_union_bound}, each at an equal share."

    def searched(
        self, _examples: int, _sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        which = {
            "all": "Every threshold was",
            "geometric": "A geometric grid of thresholds, fixed in advance, was",
        }.get(str(self.grid), f"{len(self.grid)} thresholds, fixed in advance, were")
        limit = f" up to {percent(recall)} of the {units}" if recall < 1 else ""
        return f"{which} tested{limit}, each at an equal share of the error probability."

    @property
    def _named_union_bound(self) -> str:
        grid = self.grid if isinstance(self.grid, str) else f"{len(self.grid)}-point"
        return f"Union bound over the {grid} grid of thresholds"

    def bound(
        self, path: _core.Path, _order: PathOrder, level: float, tail: AnyTail | None = None, /
    ) -> _core.Bound:
        """See `PathPolicy.bound`; by the tail of another claim, if there is one."""
        return _core.union_bound(path, beta=shares.GRID.of(level), **self._options(path, tail))

    def curve(
        self,
        path: _core.Path,
        _order: PathOrder,
        level: float,
        points: int,
        tail: AnyTail | None = None,
        /,
    ) -> CurvePoints:
        """See `PathPolicy.curve`; the tail as for `bound`."""
        options = self._options(path, tail)
        return _core.union_curve(path, beta=shares.GRID.of(level), points=points, **options)

    def _options(self, path: _core.Path, tail: AnyTail | None) -> dict[str, Any]:
        """Return what the core takes: cuts beyond the end of a path move there."""
        named = self.grid if isinstance(self.grid, str) else self.cuts(path.guesses)
        return {"grid": named, "ratio": self.ratio, "tail": tail or self.tail}

    def cuts(self, length: int) -> list[int]:
        """Return the numbers of guesses that are tested on a path of some length, increasing."""
        if self.grid == "all":
            return list(range(1, length + 1))
        grid = _geometric_grid(length, self.ratio) if self.grid == "geometric" else self.grid
        return sorted({min(int(cut), length) for cut in grid})


@dataclass(frozen=True)
class Fixed(PathPolicy):
    """One number of guesses, chosen in advance: Clopper-Pearson.

    With `sides="both"` the top ⌈r/2⌉ examples are guessed members and the bottom ⌊r/2⌋ not. A cut
    inside a block of tied scores moves to its end, and the result says so.

    Parameters
    ----------
    guesses : int
        Number of guesses r, at least 1 and at most the number of examples.
    """

    method: ClassVar[str] = (
        "One threshold, fixed in advance: the Clopper-Pearson limit (Clopper and Pearson 1934)."
    )
    design: ClassVar[str] = "One threshold, fixed in advance."
    guesses: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "guesses", integer(self.guesses, "guesses", least=1))

    @property
    def fixed_guesses(self) -> int:
        """The number of guesses."""
        return self.guesses

    def searched(
        self, _examples: int, _sides: Sides, /, *, units: str = "", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        del units, recall  # one threshold, however many there are
        return "One threshold was tested, and it was fixed in advance."

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: one path is cut."""
        return ORDERS[sides][-1:]

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples than guesses."""
        if self.guesses > examples:
            policy = f"Fixed(guesses={self.guesses})"
            raise _more_guesses_than_examples(policy, examples, units)

    def bound(
        self, path: _core.Path, _order: PathOrder, level: float, tail: AnyTail = "exact", /
    ) -> Best:
        """See `PathPolicy.bound`; the tail may be that of another claim."""
        guesses, correct = self.cut(path)
        best = _core.union_bound(path, beta=level, grid=[guesses], ratio=1.5, tail=tail)
        return Best(best.logit, guesses, correct)

    def cuts(self, length: int) -> list[int]:
        """Return the number of guesses that is tested on a path of some length."""
        return [min(self.guesses, length)]

    def cut(self, path: _core.Path) -> tuple[int, int]:
        """Return guesses and correct guesses at the first allowed cut with so many guesses."""
        return path.count(min(self.guesses, path.guesses))


@dataclass(frozen=True)
class Weighted(Policy):
    """No cut at all: every example is guessed a member, with its score in [0, 1] as a weight.

    The weight of all members is compared with its largest law (Kazmi et al. 2024, Propositions 1
    and 2, as stated). For scores that are calibrated beforehand, such as probabilities; they are
    rounded to multiples of 1/64. Guesses are of "member" only.
    """

    method: ClassVar[str] = (
        "One test without thresholds: the weight of the members is compared with that of "
        "independent guesses, a weighted Poisson-binomial tail."
    )

    def searched(
        self, _examples: int, _sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        del recall  # there is no threshold
        return f"No threshold was tested: guesses about all {units} count, each by its score."

    def guessed(self, _proof: Proof, /) -> str:
        """See `Policy.guessed`: all that weigh anything."""
        return ALL_GUESSES

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: bound the odds by the weight that members have in all.

        If each example is a member with probability at most p, given the scores and the coins
        before, the weight of the members is dominated by Σ t_i S'_i, S' independent Bernoulli(p).
        The bound is the largest p at which that is so large with probability at most `level`.
        """
        # 1. Members are guessed, each with its score as a weight.
        if game.sides != "member":
            way = "which of {several} is one: take {KLScan}"
            several: object = game.k
            if game.k == 2:
                several = "a pair"
            if game.sides in {"both", "auto"}:
                way = 'non-members: set {sides="member"}'
            message = f"{{cuts=Weighted()}} guesses members only, not {way}"
            raise OptionError(Message(message, several=several))
        if not isinstance(game, ScoreGame):
            message = (
                "{cuts=Weighted()} weighs every example by its score, and a tally only has the "
                "order of scores: use {KLScan}, or audit the scores themselves"
            )
            raise OptionError(Message(message))
        scores, member = game.scores, game.member
        numbers(scores, f"{game.name}, which are weights,", least=0, most=1)
        steps = np.rint(scores * _WEIGHT_STEPS).astype(np.int64)
        guessed = steps > 0
        if not guessed.any():
            raise AbstentionError(
                f"all {game.name} round to 0, so no guess is made: some weight must be larger"
            )
        # 2. The weight of the members is tested against that of coins.
        steps //= np.gcd.reduce(steps)
        weights, weight = steps[guessed].astype(np.uint64), int(steps[member].sum())
        log_odds = -math.inf
        if weight:
            fair, threshold = np.zeros(weights.size), np.array([weight], dtype=np.int64)
            log_odds = float(
                _core.weighted_epsilon(fair, threshold, beta=level, weights=weights)[0]
            )
        # 3. No cut is tested, so that the curve has a bound at no other one.
        ranking = game.ranked()
        share = weight / int(weights.sum())
        return Proof(
            policy=self,
            game=game,
            ranking=ranking,
            order="member",
            best=Best(log_odds, int(guessed.sum()), int((guessed & member).sum())),
            level=level,
            reason=""
            if log_odds > 0
            else f"members have {share:.3f} of the weight, which chance explains",
            options={"cuts": encode(self), "paths": ["member"], "level": level},
            perfect=lambda: _perfect_weighted_log_odds(scores.size // 2, level),
            points=lambda most: untested(ranking.path("member"), most),
        )


def _perfect_weighted_log_odds(members: int, level: float) -> float:
    """Return the bound where all members have weight 1, and nothing else has any."""
    return logit(level ** (1 / members)) if members else 0.0


def _more_guesses_than_examples(policy: str, examples: int, units: str) -> OptionError:
    """Return the error of a policy that asks for more guesses than there are examples."""
    message = f"{{cuts={policy}}} needs more guesses than there are {units} ({examples})"
    return OptionError(Message(message))


def _checked_grid(grid: Any) -> tuple[int, ...]:
    listed = isinstance(grid, Sequence | np.ndarray) and getattr(grid, "shape", None) != ()
    if not listed or len(grid) == 0:
        raise InputTypeError(
            'grid must be "all", "geometric" or a sequence of numbers of guesses, got '
            f"{shown(grid)}"
        )
    return tuple(sorted({integer(cut, f"grid[{i}]", least=1) for i, cut in enumerate(grid)}))


def _geometric_grid(length: int, ratio: float) -> list[int]:
    """Return the grid of a union bound: 1, then by the ratio, but by one at least, to the end."""
    cuts, x = [], 1.0
    while x < length:
        cuts.append(round(x))
        x = max(ratio * x, x + 1)
    return [*cuts, length]


if TYPE_CHECKING:
    CutPolicy: TypeAlias = Policy | SecondLook
else:
    CutPolicy = InWords("CutPolicy", Policy | SecondLook)
"""Any policy that an audit takes: those of the package, and classes derived from `Policy`."""
CUT_POLICIES = (KLScan, UnionBound, Fixed, OutsideIn, SecondLook, Weighted)


def check_policy(cuts: object) -> None:
    """Check that an option is a policy, of the package or derived from `Policy`."""
    if not isinstance(cuts, Policy):
        instance(cuts, "cuts", CUT_POLICIES)
