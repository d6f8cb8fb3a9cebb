"""Play every game, at every size and seed, under every bound and the oracle."""

import math
import multiprocessing
import pickle
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, complement, flag, instance, integer
from leakbound._base.console import track
from leakbound._base.types import CoinSides, FloatArray, IntArray, SidesChoice
from leakbound._base.workers import end_with_parent
from leakbound._core import __version__
from leakbound.audits import Coins, audit
from leakbound.benchmark.table import Row, Table
from leakbound.claims import CLAIMS, FAMILIES, Claim, PureDP
from leakbound.cuts import CutPolicy, Fixed, Policy, SecondLook
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError
from leakbound.simulate import Game
from leakbound.stats import clopper_pearson, normal_quantile

# Numbers of guesses that the oracle tries, and those tested if tests are slow.
_NUMBERS = 32
_TESTED = 6


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
    """

    cuts: CutPolicy | None = None
    sides: CoinSides = "auto"

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return a lower bound on the claim's parameter, false with chance `level` at most."""
        design = game.design or partial(Coins, game.member)
        options: dict[str, Any] = {"cuts": self.cuts, "sides": self.sides, "seed": seed}
        options |= {"claim": claim, "confidence": 1 - level}
        return float(audit(game.scores, design(), **options).bound)


class Named(NamedTuple):
    """A bound with its name in rows."""

    bound: Any
    name: str
    options: str

    @classmethod
    def of(cls, bound: object) -> "Named":
        """Read a policy, None for the default, an `Audit`, what takes a game, or a function."""
        if bound is None or isinstance(bound, Policy | SecondLook):
            bound = Audit(bound)
        if isinstance(bound, Audit):
            name = "default"
            options = ""
            if bound.cuts:
                name, options = words(bound.cuts)
            more = words(replace(bound, cuts=None))[1]
            return cls(bound=bound, name=name, options=", ".join(filter(None, (options, more))))
        if not callable(bound) and not hasattr(bound, "audit"):
            raise InputTypeError(
                f"a bound must be a cut policy or callable as bound(scores, member, claim, level), "
                f"got {bound!r}"
            )
        return cls(bound, *words(bound))

    def compute(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return the bound, checked."""
        if hasattr(self.bound, "audit"):
            value = self.bound.audit(game, claim, level, seed)
        else:
            value = self.bound(game.scores.copy(), game.member.copy(), claim, level)
        if not float(value) >= 0:
            raise OptionError(
                f"{self.name} returned {value!r}: a bound must be a number of at least 0"
            )
        return float(value)


def words(thing: object) -> tuple[str, str]:
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


def label(play: object) -> str:
    """Return the name of a game in rows: a function or a class, with its parameters."""
    if isinstance(play, partial):
        return "{}({})".format(*words(play))
    name = getattr(play, "__name__", None) or repr(play)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", name)


def oracle(game: Game, claim: Claim, level: float, seed: int) -> float:
    """Return the best bound of a threshold fixed in advance, found by looking at the labels.

    No audit may look so; what it proves beside that is what its search costs. Numbers of guesses
    are tried on a geometric grid: of both sides, of members, and of non-members.
    """
    m = game.member.size
    spaced = np.geomspace(min(4, m), m, _NUMBERS)
    numbers = np.unique(np.rint(spaced)).astype(int)
    views: list[tuple[Game, SidesChoice]] = [(game, "both"), (game, "member")]
    if plain := game.design is None:
        views.append((replace(game, scores=-game.scores, member=~game.member), "member"))
    tries = list(product(views, numbers.tolist()))
    if plain and isinstance(claim, FAMILIES):  # of which each test is dear
        promises = np.concatenate([_promise(*view, numbers, level) for view in views])
        most_promising = np.argsort(-promises)[:_TESTED]
        tries = [tries[i] for i in most_promising]
    bounds = [0.0]
    for (seen, sides), guesses in tries:
        of_threshold = Audit(cuts=Fixed(guesses), sides=sides)
        with suppress(LeakboundError):  # so many guesses cannot be made
            bounds.append(of_threshold.audit(seen, claim, level, seed))
    return max(bounds)


def _promise(game: Game, sides: str, numbers: IntArray, level: float) -> FloatArray:
    """Return μ of the Gaussian curve through the limit on each number of guesses alone."""
    ranked = game.member[np.argsort(-game.scores, kind="stable")]
    right = np.concatenate([[0], np.cumsum(ranked)])
    correct = right[numbers]
    share = np.minimum(1.0, 2 * numbers / ranked.size)
    if sides == "both":
        top = (numbers + 1) // 2
        bottom = numbers // 2
        members_below = right[-1] - right[ranked.size - bottom]
        correct = right[top] + bottom - members_below
        share = numbers / ranked.size
    right_rate = np.asarray(clopper_pearson(correct, numbers, beta=level))
    true_positives = np.clip(share * right_rate, 1e-12, 1 - 1e-12)
    false_positives = np.clip(share * (1 - right_rate), 1e-12, 1 - 1e-12)
    return np.asarray(normal_quantile(true_positives) - normal_quantile(false_positives))


# From examples and a seed to a game.
Play: TypeAlias = Callable[..., Game]


@dataclass(frozen=True)
class _Task:
    """A game to play once, and the claims and bounds of its audits."""

    play: Play
    m: int
    seed: int
    claims: Sequence[Claim]
    bounds: Sequence[Named]
    confidence: float
    reference: bool


def run(
    games: Sequence[Play],
    bounds: Sequence[object],
    claims: Sequence[Claim] = (PureDP(),),
    m: Sequence[int] = (1000,),
    seeds: Sequence[int] = range(20),
    *,
    confidence: float = 0.95,
    reference: bool = True,
    processes: int = 1,
    progress: bool = False,
) -> Table:
    """Play every game and audit it by every bound; return a row for each.

    Parameters
    ----------
    games : sequence of callable
        ``game(m, seed=seed)`` returns a `leakbound.simulate.Game`: functions of that package, such
        as ``partial(gaussian, mu=1)``, `Scores(…)`, `Attack(…)`, or your own function or class.
    bounds : sequence of CutPolicy, Audit, callable or None
        Policies of `leakbound.cuts`; None is the default of the claim. Your own function,
        ``bound(scores, member, claim, level)``, returns a number of at least 0. An object with a
        method ``audit(game, claim, level, seed)`` gets all data of the game.
    claims : sequence of Claim
        Guarantees whose parameters are bounded.
    m, seeds : sequence of int
        Numbers of examples; and seeds, each of one game of every size.
    confidence : float
        Confidence level of the bounds, in (0, 1).
    reference : bool
        Whether to compute the oracle, which takes longer than most bounds.
    processes : int
        Number of processes; rows do not depend on it, except for their seconds.
    progress : bool
        Whether to show progress if standard error is a terminal.

    Returns
    -------
    Table
        A row for each game, size, seed, claim and bound. An exception, or an invalid bound, is a
        row with its error.

    Raises
    ------
    OptionError, InputTypeError
        If there is nothing to do, or an option is out of range.
    """
    flag(progress, name="progress")
    flag(reference, name="reference")
    for claim in claims:
        instance(claim, name="claims", types=CLAIMS)
    sizes = [integer(one, name="m", least=1, most=MOST_EXAMPLES) for one in m]
    numbers = [integer(one, name="seeds", least=0) for one in seeds]
    named = [*map(Named.of, bounds)]
    complement(confidence)
    names: list[Sequence[object]] = [
        [*map(label, games)],
        [one.name for one in claims],
        sizes,
        numbers,
    ]
    names.append([(one.name, one.options) for one in named])
    if not all(names) or any(len(set(part)) < len(part) for part in names):
        message = "nothing to do"
        if all(names):
            message = "two games or two bounds have one name"
        raise OptionError(f"{message}: name games, bounds, claims, m and seeds, each once")
    tasks = [
        _Task(
            play=play,
            m=size,
            seed=seed,
            claims=claims,
            bounds=named,
            confidence=confidence,
            reference=reference,
        )
        for play, size, seed in product(games, sizes, numbers)
    ]
    played = _played(tasks, integer(processes, name="processes", least=1))
    rows = track(played, "Playing games", total=len(tasks), shown=progress)
    return Table.of(chain.from_iterable(rows))


def _played(tasks: Sequence[_Task], processes: int) -> Iterator[list[Row]]:
    """Yield the rows of each task."""
    if processes == 1 or len(tasks) < 2:
        yield from map(_play, tasks)
        return
    try:
        pickle.dumps(tasks[0])
    except Exception as error:  # pickle has several
        raise OptionError(
            f"games and bounds must be importable (not lambdas) with several processes: {error}"
        ) from error
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=end_with_parent) as pool:
        yield from pool.map(_play, tasks)


def _play(task: _Task) -> list[Row]:
    """Play a game and compute its rows; an exception becomes their error."""
    game, flaw = _tried(_game, task)
    rows: list[Row] = []
    for claim in task.claims:
        truth = None
        unknown = flaw
        if not flaw:
            truth, unknown = _tried(_truth, task, claim, game)
        what = game, claim, complement(task.confidence), task.seed
        best = None
        if task.reference and not unknown:
            best = oracle(*what)
        for bound in task.bounds:
            began = time.perf_counter()
            value = None
            said = unknown
            if not unknown:
                value, said = _tried(bound.compute, *what)
            row = {
                "game": label(task.play),
                "m": task.m,
                "seed": task.seed,
                "claim": claim.name,
                "method": bound.name,
                "options": bound.options,
                "confidence": task.confidence,
                "version": __version__,
                "seconds": time.perf_counter() - began,
                "error": said,
            }
            if not said:
                false = None
                if truth is not None:
                    false = value > truth
                row |= {"bound": value, "truth": truth, "oracle": best, "false_claim": false}
            rows.append(row)
    return rows


def _tried(function: Callable[..., object], *arguments: object) -> tuple[Any, str]:
    """Return the value of a function and no error, or no value and the error that it raised."""
    try:
        return function(*arguments), ""
    except Exception as error:  # whatever a game or a bound of the user's does
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"


def _game(task: _Task) -> Game:
    """Play a game that has a score and membership for each example."""
    game = task.play(task.m, seed=task.seed)
    if not np.shape(game.scores) == np.shape(game.member) == (task.m,):
        raise InputError(f"a game of m={task.m} must have as many scores and memberships")
    return game


_TRUTHS: dict[tuple[object, ...], float] = {}
"""What is true of games of a name, size and parameter: some of it takes seconds."""


def _truth(task: _Task, claim: Claim, game: Game) -> float | None:
    """Return the smallest parameter that is true, None if it is not known."""
    key = label(task.play), task.m, claim, game.parameter, game.truth
    if key not in _TRUTHS:
        _TRUTHS[key] = game.least(claim)
    if math.isnan(_TRUTHS[key]):
        return None
    return _TRUTHS[key]
