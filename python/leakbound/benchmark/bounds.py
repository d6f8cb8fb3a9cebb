"""Bounds to compare: cut policies, functions of the user's; and the oracle beside them."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np

from leakbound._base.types import ArrayInput, BoolArray, FloatArray, SidesChoice
from leakbound.audits import Coins, Panoramia, ZeroRun, audit
from leakbound.claims import FAMILIES, Claim
from leakbound.cuts import CUT_POLICIES, CutPolicy, Fixed
from leakbound.errors import InputTypeError, LeakboundError, OptionError
from leakbound.simulate import Game, NoisySum, RankedGame, ShiftedGame
from leakbound.stats import clopper_pearson, normal_quantile

# Numbers of guesses that the oracle tries, and those tested where tests are dear.
_NUMBERS, _TESTED = 32, 6

# From scores, membership, claim and level to a bound.
Function: TypeAlias = Callable[[FloatArray, BoolArray, Claim, float], float]


class Bound(Protocol):
    """What takes a whole game: a function gets its scores and membership alone."""

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return a lower bound on the claim's parameter, false with chance `level` at most."""


@dataclass(frozen=True)
class Audit:
    """A bound by `leakbound.audit` with other options than a cut policy.

    The design follows from the game: `ZeroRun` with the true propensities for one whose members
    differ, `Panoramia` with the true c for one with a baseline, and else `Coins`.

    Parameters
    ----------
    cuts : CutPolicy, optional
        Which cuts of the ranking are tested; the design's own if None.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    design : mapping
        Further options of the design, such as ``{"correction": "tamper"}``.
    """

    cuts: CutPolicy | None = None
    sides: SidesChoice = "both"
    design: Mapping[str, Any] = field(default_factory=dict)

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """See `Bound.audit`."""
        design: Any
        if isinstance(game, RankedGame):
            limits: dict[str, Any] = {"baseline": game.baseline, "c_upper": game.c}
            design = Panoramia(game.member, **(limits | dict(self.design)))
        elif isinstance(game, ShiftedGame | NoisySum):
            design = ZeroRun(game.member, game.propensity, **self.design)
        else:
            design = Coins(game.member, **self.design)
        scores: ArrayInput = game.scores
        options: dict[str, Any] = {"cuts": self.cuts, "sides": self.sides, "seed": seed}
        return float(audit(scores, design, claim=claim, confidence=1 - level, **options).bound)


@dataclass(frozen=True)
class Named:
    """A bound as rows have it: what computes it, its name, and its options in words."""

    compute: Bound | Function
    name: str
    options: str

    @classmethod
    def of(cls, bound: object) -> "Named":
        """Read a policy, None for the default, an `Audit`, what takes a game, or a function."""
        if bound is None or isinstance(bound, CUT_POLICIES):
            bound = Audit(bound)
        if isinstance(bound, Audit):
            name, options = ("default", "") if bound.cuts is None else words(bound.cuts)
            more = words(Audit(None, bound.sides, bound.design))[1]
            return cls(bound, name, ", ".join(filter(None, (options, more))))
        if not callable(bound) and not hasattr(bound, "audit"):
            message = (
                f"a bound must be a cut policy or callable as bound(scores, member, claim, level), "
                f"got {bound!r}"
            )
            raise InputTypeError(message)
        return cls(bound, *words(bound))

    def __call__(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return the bound, checked."""
        whole = getattr(self.compute, "audit", None)
        if whole is not None:
            value = whole(game, claim, level, seed)
        else:
            function: Any = self.compute
            value = function(game.scores.copy(), game.member.copy(), claim, level)
        if not float(value) >= 0:
            message = f"{self.name} returned {value!r}: a bound must be a number of at least 0"
            raise OptionError(message)
        return float(value)


def words(thing: object, *, every: bool = False) -> tuple[str, str]:
    """Return the name of an object, and its options: every one, or those that are no defaults.

    Those of a function of the user's are a digest of its code, so that rows of other code are not
    taken for its own.
    """
    if isinstance(thing, partial):
        name, options = words(thing.func, every=every)
        given = [*map(repr, thing.args), *(f"{k}={v!r}" for k, v in thing.keywords.items())]
        return name, ", ".join(filter(None, [*given, options]))
    if is_dataclass(thing):
        given = [
            f"{one.name}={_value(getattr(thing, one.name))}"
            for one in fields(thing)
            if every or getattr(thing, one.name) not in (one.default, {})
        ]
        return type(thing).__name__, ", ".join(given)
    name = str(getattr(thing, "__qualname__", type(thing).__name__))
    code = getattr(thing, "__code__", None)
    if code is None or str(getattr(thing, "__module__", "")).startswith("leakbound."):
        return name, ""
    parts = [code.co_code, *(one for one in code.co_consts if not hasattr(one, "co_code"))]
    return name, f"code {sha256(repr(parts).encode()).hexdigest()[:8]}"


def _value(value: object) -> str:
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    named = callable(value) and not is_dataclass(value)
    return " ".join(words(value)) if named else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def oracle(game: Game, claim: Claim, level: float, seed: int) -> float:
    """Return the best bound of all cuts fixed in advance, found with the labels at hand.

    No audit may look so; what it proves beside that is what its search costs. Numbers of guesses
    are tried on a geometric grid: of both sides, of members, and of non-members.
    """
    m = game.member.size
    numbers = np.unique(np.rint(np.geomspace(min(4, m), m, _NUMBERS))).astype(int)
    views: list[tuple[Game, SidesChoice]] = [(game, "both")]
    if not isinstance(game, RankedGame):
        views.append((game, "member"))
    plain = type(game) is Game
    if plain:
        views.append((replace(game, scores=-game.scores, member=~game.member), "member"))
    tries = list(product(views, numbers.tolist()))
    if not plain:
        tries = tries[::2]
    elif isinstance(claim, FAMILIES):
        promises = np.concatenate([_promise(*view, numbers, level) for view in views])
        tries = [tries[i] for i in np.argsort(-promises)[:_TESTED]]
    best = 0.0
    for (seen, sides), guesses in tries:
        try:
            best = max(best, Audit(Fixed(guesses), sides).audit(seen, claim, level, seed))
        except LeakboundError:  # so many guesses cannot be made
            continue
    return best


def _promise(game: Game, sides: str, numbers: Any, level: float) -> FloatArray:
    """Return μ of the Gaussian curve through the limit on each number of guesses alone."""
    ranked = game.member[np.argsort(-game.scores, kind="stable")]
    right = np.concatenate([[0], np.cumsum(ranked)])
    if sides == "member":
        correct, share = right[numbers], np.minimum(1.0, 2 * numbers / ranked.size)
    else:
        top, bottom = (numbers + 1) // 2, numbers // 2
        wrong = right[-1] - right[ranked.size - bottom]
        correct, share = right[top] + bottom - wrong, numbers / ranked.size
    p = clopper_pearson(correct, numbers, beta=level)
    inside = (1e-12, 1 - 1e-12)
    rates = (np.clip(share * one, *inside) for one in (np.asarray(p), 1 - np.asarray(p)))
    true, false = (np.asarray(normal_quantile(rate)) for rate in rates)
    return np.asarray(true - false)
