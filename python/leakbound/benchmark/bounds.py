"""Bounds to compare: cut policies and your own functions, and the oracle."""

import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import product
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from leakbound._base.types import CoinSides, FloatArray, SidesChoice
from leakbound.audits import Coins, audit
from leakbound.claims import FAMILIES, Claim
from leakbound.cuts import CUT_POLICIES, CutPolicy, Fixed
from leakbound.errors import InputTypeError, LeakboundError, OptionError
from leakbound.simulate import Game
from leakbound.stats import clopper_pearson, normal_quantile

# Numbers of guesses that the oracle tries, and those tested if tests are slow.
_NUMBERS, _TESTED = 32, 6


@dataclass(frozen=True)
class Audit:
    """A bound by `leakbound.audit` with other options than a cut policy.

    The design is the one that the game names: true propensities for `ZeroRun`, the true c for
    `Panoramia`, and else `Coins`.

    Parameters
    ----------
    cuts : CutPolicy, optional
        Which cuts of the ranking are tested; the design's own if None.
    sides : {"auto", "both", "member"}
        Whom guesses call members: see `leakbound.audit`.
    design : mapping
        Further options of the design, such as ``{"correction": "tamper"}``.
    """

    cuts: CutPolicy | None = None
    sides: CoinSides = "auto"
    design: Mapping[str, Any] = field(default_factory=dict)

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return a lower bound on the claim's parameter, false with chance `level` at most."""
        design = game.design or partial(Coins, game.member)
        options: dict[str, Any] = {"cuts": self.cuts, "sides": self.sides, "seed": seed}
        options |= {"claim": claim, "confidence": 1 - level}
        return float(audit(game.scores, design(**self.design), **options).bound)


class Named(NamedTuple):
    """A bound with its name in rows, and a digest of its code if it is your own."""

    bound: Any
    name: str
    options: str
    code: str

    @classmethod
    def of(cls, bound: Any) -> "Named":
        """Read a policy, None for the default, an `Audit`, what takes a game, or a function."""
        if bound is None or isinstance(bound, CUT_POLICIES):
            bound = Audit(bound)
        if isinstance(bound, Audit):
            name, options = words(bound.cuts) if bound.cuts else ("default", "")
            more = words(replace(bound, cuts=None))[1]
            return cls(bound, name, ", ".join(filter(None, (options, more))), "")
        if not callable(bound) and not hasattr(bound, "audit"):
            message = (
                f"a bound must be a cut policy or callable as bound(scores, member, claim, level), "
                f"got {bound!r}"
            )
            raise InputTypeError(message)
        return cls(bound, *words(bound), code(bound))

    def compute(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return the bound, checked."""
        if hasattr(self.bound, "audit"):
            value = self.bound.audit(game, claim, level, seed)
        else:
            value = self.bound(game.scores.copy(), game.member.copy(), claim, level)
        if not float(value) >= 0:
            message = f"{self.name} returned {value!r}: a bound must be a number of at least 0"
            raise OptionError(message)
        return float(value)


def words(thing: Any) -> tuple[str, str]:
    """Return the name of an object, and its options that are not defaults."""
    if isinstance(thing, partial):
        options = [
            *map(repr, thing.args),
            *(f"{key}={thing.keywords[key]!r}" for key in thing.keywords),
        ]
        return words(thing.func)[0], ", ".join(options)
    if not is_dataclass(thing):
        return str(getattr(thing, "__name__", type(thing).__name__)), ""
    values = ((one, getattr(thing, one.name)) for one in fields(thing))
    given = [f"{one.name}={value!r}" for one, value in values if value not in (one.default, {})]
    return type(thing).__name__, ", ".join(given)


def label(play: Any) -> str:
    """Return the name of a game in rows: a function, or a class with its parameters."""
    name = getattr(play, "__name__", None) or repr(play)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", name)


def code(thing: Any) -> str:
    """Return a digest of the code of a user's game or bound: of its functions, not what they call.

    Rows of other code are not taken for its own; what the package computes is told by the commit.
    """
    own = [*vars(type(thing)).values(), *getattr(thing, "__dict__", {}).values()]
    functions = [
        one for one in (thing, getattr(thing, "func", None), *own) if inspect.isfunction(one)
    ]
    users = [one for one in functions if one.__module__.split(".")[0] != __name__.split(".")[0]]
    texts = [f"{one.__defaults__} {_text(one.__code__)}" for one in users]
    return sha256("".join(texts).encode()).hexdigest()[:8] if texts else ""


def _text(code: Any) -> str:
    """Return what code does: instructions, names and constants, which have more code in them."""
    if isinstance(code, frozenset):
        return str(sorted(map(repr, code)))
    if not isinstance(code, CodeType):
        return repr(code)
    return f"{code.co_code!r} {code.co_names} {[*map(_text, code.co_consts)]}"


def oracle(game: Game, claim: Claim, level: float, seed: int) -> float:
    """Return the best bound of a threshold fixed in advance, found by looking at the labels.

    No audit may look so; what it proves beside that is what its search costs. Numbers of guesses
    are tried on a geometric grid: of both sides, of members, and of non-members.
    """
    m = game.member.size
    numbers = np.unique(np.rint(np.geomspace(min(4, m), m, _NUMBERS))).astype(int)
    views: list[tuple[Game, SidesChoice]] = [(game, "both"), (game, "member")]
    if plain := game.design is None:
        views.append((replace(game, scores=-game.scores, member=~game.member), "member"))
    tries = list(product(views, numbers.tolist()))
    if plain and isinstance(claim, FAMILIES):  # of which each test is dear
        promises = np.concatenate([_promise(*view, numbers, level) for view in views])
        tries = [tries[i] for i in np.argsort(-promises)[:_TESTED]]
    best = 0.0
    for (seen, sides), guesses in tries:
        with suppress(LeakboundError):  # so many guesses cannot be made
            best = max(best, Audit(Fixed(guesses), sides).audit(seen, claim, level, seed))
    return best


def _promise(game: Game, sides: str, numbers: Any, level: float) -> FloatArray:
    """Return μ of the Gaussian curve through the limit on each number of guesses alone."""
    ranked = game.member[np.argsort(-game.scores, kind="stable")]
    right = np.concatenate([[0], np.cumsum(ranked)])
    correct, share = right[numbers], np.minimum(1.0, 2 * numbers / ranked.size)
    if sides == "both":
        top, bottom = (numbers + 1) // 2, numbers // 2
        correct = right[top] + bottom - (right[-1] - right[ranked.size - bottom])
        share = numbers / ranked.size
    p = np.asarray(clopper_pearson(correct, numbers, beta=level))
    true, false = (np.clip(share * one, 1e-12, 1 - 1e-12) for one in (p, 1 - p))
    return np.asarray(normal_quantile(true) - normal_quantile(false))
