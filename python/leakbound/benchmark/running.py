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

from leakbound._base.checks import MOST_EXAMPLES, complement, flag, integer
from leakbound._base.console import track
from leakbound._base.types import CoinSides, FloatArray, IntArray, SidesChoice
from leakbound._base.workers import end_with_parent
from leakbound._core import __version__
from leakbound.audits import Coins, audit
from leakbound.benchmark.table import Row, Table
from leakbound.claims import CLAIMS, FAMILIES, Claim, PureDP
from leakbound.claims.families import refuse_claim
from leakbound.cuts import CutPolicy, Fixed, Policy, SecondLook
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError
from leakbound.simulate import Game
from leakbound.stats import clopper_pearson, normal_quantile

# Numbers of guesses that the oracle tries, and those tested if tests are slow.
_ORACLE_GUESS_COUNTS = 32
_ORACLE_TESTS = 6


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
        make_design = game.design or partial(Coins, game.member)
        audit_options: dict[str, Any] = {"cuts": self.cuts, "sides": self.sides, "seed": seed}
        audit_options |= {"claim": claim, "confidence": 1 - level}
        return float(audit(game.scores, make_design(), **audit_options).bound)


class NamedBound(NamedTuple):
    """A bound with its name in rows."""

    bound: Any
    name: str
    options: str

    @classmethod
    def of(cls, bound: object) -> "NamedBound":
        """Read a policy, None for the default, an `Audit`, what takes a game, or a function."""
        if bound is None or isinstance(bound, Policy | SecondLook):
            bound = Audit(bound)
        if isinstance(bound, Audit):
            name = "default"
            options = ""
            if bound.cuts:
                name, options = name_and_options(bound.cuts)
            _, audit_options = name_and_options(replace(bound, cuts=None))
            options = ", ".join(filter(None, (options, audit_options)))
            return cls(bound, name, options)
        if not callable(bound) and not hasattr(bound, "audit"):
            raise InputTypeError(
                f"a bound must be a cut policy or callable as bound(scores, member, claim, level), "
                f"got {bound!r}"
            )
        return cls(bound, *name_and_options(bound))

    def checked_bound(self, game: Game, claim: Claim, level: float, seed: int) -> float:
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


def name_and_options(thing: object) -> tuple[str, str]:
    """Return the name of an object, and its options that are not defaults."""
    if isinstance(thing, partial):
        shown_options = [repr(argument) for argument in thing.args]
        shown_options += [f"{key}={value!r}" for key, value in thing.keywords.items()]
        name, _ = name_and_options(thing.func)
        return name, ", ".join(shown_options)
    if not is_dataclass(thing):
        return str(getattr(thing, "__name__", type(thing).__name__)), ""
    changed_options = []
    for option in fields(thing):
        value = getattr(thing, option.name)
        if value not in (option.default, {}):
            changed_options.append(f"{option.name}={value!r}")
    return type(thing).__name__, ", ".join(changed_options)


def game_label(play: object) -> str:
    """Return the name of a game in rows: a function or a class, with its parameters."""
    if isinstance(play, partial):
        name, options = name_and_options(play)
        return f"{name}({options})"
    name = getattr(play, "__name__", None) or repr(play)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", name)


def oracle(game: Game, claim: Claim, level: float, seed: int) -> float:
    """Return the best bound of a threshold fixed in advance, found by looking at the labels.

    No audit may look so; what it proves beside that is what its search costs. Numbers of guesses
    are tried on a geometric grid: of both sides, of members, and of non-members.
    """
    m = game.member.size
    geometric_grid = np.geomspace(min(4, m), m, _ORACLE_GUESS_COUNTS)
    guess_counts = np.unique(np.rint(geometric_grid)).astype(int)
    games_and_sides: list[tuple[Game, SidesChoice]] = [(game, "both"), (game, "member")]
    if is_fair_coins := game.design is None:
        games_and_sides.append((replace(game, scores=-game.scores, member=~game.member), "member"))
    candidate_thresholds = list(product(games_and_sides, guess_counts.tolist()))
    if is_fair_coins and isinstance(claim, FAMILIES):  # of which each test is dear
        promised_parameters = np.concatenate(
            [_gaussian_promise(*view, guess_counts, level) for view in games_and_sides]
        )
        most_promising_places = np.argsort(-promised_parameters)[:_ORACLE_TESTS]
        candidate_thresholds = [candidate_thresholds[place] for place in most_promising_places]
    bounds_of_thresholds = [0.0]
    for (seen_game, sides), guess_count in candidate_thresholds:
        fixed_threshold = Audit(cuts=Fixed(guess_count), sides=sides)
        with suppress(LeakboundError):  # so many guesses cannot be made
            bounds_of_thresholds.append(fixed_threshold.audit(seen_game, claim, level, seed))
    return max(bounds_of_thresholds)


def _gaussian_promise(game: Game, sides: str, guess_counts: IntArray, level: float) -> FloatArray:
    """Return μ of the Gaussian curve through the limit on each number of guesses alone."""
    ranked_membership = game.member[np.argsort(-game.scores, kind="stable")]
    members_above = np.concatenate([[0], np.cumsum(ranked_membership)])
    correct_guesses = members_above[guess_counts]
    guessed_shares = np.minimum(1.0, 2 * guess_counts / ranked_membership.size)
    if sides == "both":
        guesses_of_members = (guess_counts + 1) // 2
        guesses_of_nonmembers = guess_counts // 2
        members_below = (
            members_above[-1] - members_above[ranked_membership.size - guesses_of_nonmembers]
        )
        correct_guesses = members_above[guesses_of_members] + guesses_of_nonmembers - members_below
        guessed_shares = guess_counts / ranked_membership.size
    correct_guess_rates = np.asarray(clopper_pearson(correct_guesses, guess_counts, beta=level))
    true_positive_rates = np.clip(guessed_shares * correct_guess_rates, 1e-12, 1 - 1e-12)
    false_positive_rates = np.clip(guessed_shares * (1 - correct_guess_rates), 1e-12, 1 - 1e-12)
    return np.asarray(normal_quantile(true_positive_rates) - normal_quantile(false_positive_rates))


# From examples and a seed to a game.
Play: TypeAlias = Callable[..., Game]


@dataclass(frozen=True)
class _GameTask:
    """A game to play once, and the claims and bounds of its audits."""

    play: Play
    m: int
    seed: int
    claims: Sequence[Claim]
    bounds: Sequence[NamedBound]
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
        if type(claim) not in CLAIMS:
            refuse_claim(claim, name="claims")
    checked_sizes = [integer(size, name="m", least=1, most=MOST_EXAMPLES) for size in m]
    checked_seeds = [integer(seed, name="seeds", least=0) for seed in seeds]
    checked_bounds = [*map(NamedBound.of, bounds)]
    complement(confidence)
    keys_of_rows: list[Sequence[object]] = [
        [*map(game_label, games)],
        [claim.name for claim in claims],
        checked_sizes,
        checked_seeds,
    ]
    keys_of_rows.append([(bound.name, bound.options) for bound in checked_bounds])
    if not all(keys_of_rows) or any(len(set(keys)) < len(keys) for keys in keys_of_rows):
        message = "nothing to do"
        if all(keys_of_rows):
            message = "two games or two bounds have one name"
        raise OptionError(f"{message}: name games, bounds, claims, m and seeds, each once")
    game_tasks = [
        _GameTask(
            play=play,
            m=size,
            seed=seed,
            claims=claims,
            bounds=checked_bounds,
            confidence=confidence,
            reference=reference,
        )
        for play, size, seed in product(games, checked_sizes, checked_seeds)
    ]
    rows_by_task = _rows_of_tasks(game_tasks, integer(processes, name="processes", least=1))
    rows_with_progress = track(rows_by_task, "Playing games", total=len(game_tasks), shown=progress)
    return Table.of(chain.from_iterable(rows_with_progress))


def _rows_of_tasks(tasks: Sequence[_GameTask], processes: int) -> Iterator[list[Row]]:
    """Yield the rows of each task."""
    if processes == 1 or len(tasks) < 2:
        yield from map(_rows_of_task, tasks)
        return
    try:
        pickle.dumps(tasks[0])
    except Exception as error:  # pickle has several
        raise OptionError(
            f"games and bounds must be importable (not lambdas) with several processes: {error}"
        ) from error
    spawn_context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn_context, initializer=end_with_parent) as pool:
        yield from pool.map(_rows_of_task, tasks)


def _rows_of_task(task: _GameTask) -> list[Row]:
    """Play a game and compute its rows; an exception becomes their error."""
    game, game_error = _value_or_error(_checked_game, task)
    benchmark_rows: list[Row] = []
    for claim in task.claims:
        true_parameter = None
        error_before = game_error
        if not game_error:
            true_parameter, error_before = _value_or_error(_known_truth, task, claim, game)
        audit_arguments = game, claim, complement(task.confidence), task.seed
        oracle_bound = None
        if task.reference and not error_before:
            oracle_bound = oracle(*audit_arguments)
        for bound in task.bounds:
            started = time.perf_counter()
            bound_value = None
            error_text = error_before
            if not error_before:
                bound_value, error_text = _value_or_error(bound.checked_bound, *audit_arguments)
            benchmark_row = {
                "game": game_label(task.play),
                "m": task.m,
                "seed": task.seed,
                "claim": claim.name,
                "method": bound.name,
                "options": bound.options,
                "confidence": task.confidence,
                "version": __version__,
                "seconds": time.perf_counter() - started,
                "error": error_text,
            }
            if not error_text:
                is_false_claim = None
                if true_parameter is not None:
                    is_false_claim = bound_value > true_parameter
                benchmark_row |= {
                    "bound": bound_value,
                    "truth": true_parameter,
                    "oracle": oracle_bound,
                    "false_claim": is_false_claim,
                }
            benchmark_rows.append(benchmark_row)
    return benchmark_rows


def _value_or_error(function: Callable[..., object], *arguments: object) -> tuple[Any, str]:
    """Return the value of a function and no error, or no value and the error that it raised."""
    try:
        return function(*arguments), ""
    except Exception as error:  # whatever a game or a bound of the user's does
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"


def _checked_game(task: _GameTask) -> Game:
    """Play a game that has a score and membership for each example."""
    played_game = task.play(task.m, seed=task.seed)
    if not np.shape(played_game.scores) == np.shape(played_game.member) == (task.m,):
        raise InputError(f"a game of m={task.m} must have as many scores and memberships")
    return played_game


_KNOWN_TRUTHS: dict[tuple[object, ...], float] = {}
"""What is true of games of a name, size and parameter: some of it takes seconds."""


def _known_truth(task: _GameTask, claim: Claim, game: Game) -> float | None:
    """Return the smallest parameter that is true, None if it is not known."""
    game_and_claim = game_label(task.play), task.m, claim, game.parameter, game.truth
    if game_and_claim not in _KNOWN_TRUTHS:
        _KNOWN_TRUTHS[game_and_claim] = game.least(claim)
    if math.isnan(_KNOWN_TRUTHS[game_and_claim]):
        return None
    return _KNOWN_TRUTHS[game_and_claim]
