"""Playing every game, at every size and seed, under every bound; rows are kept as they come."""

import math
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any, TypeAlias

from leakbound._base.checks import (
    check_length,
    check_membership,
    check_scores,
    complement,
    flag,
    instance,
    integer,
)
from leakbound._base.console import track
from leakbound.benchmark.bounds import Named, oracle, words
from leakbound.benchmark.table import KEY, Rows, Store, Table, origin
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.errors import OptionError
from leakbound.simulate import Game

# From examples and a seed to a game.
Play: TypeAlias = Callable[..., Game]
# Seconds of work that an interruption may lose.
_PATIENCE = 10.0


@dataclass(frozen=True)
class _Task:
    """A game to play once, and what is to be computed of it."""

    play: Play
    m: int
    seed: int
    level: float
    reference: bool
    audits: tuple[tuple[Claim, Named], ...]

    def names(self) -> list[tuple[object, ...]]:
        """Return what tells the rows from all others, in order."""
        game = label(self.play)
        return [
            (game, self.m, self.seed, claim.name, bound.name, bound.options, 1 - self.level)
            for claim, bound in self.audits
        ]


def run(
    games: Sequence[Play],
    bounds: Sequence[Any],
    claims: Sequence[Claim] = (PureDP(),),
    m: Sequence[int] = (1000,),
    seeds: Sequence[int] = range(20),
    *,
    confidence: float = 0.95,
    reference: bool = True,
    store: str | os.PathLike[str] | None = None,
    processes: int = 1,
    progress: bool = False,
) -> Table:
    """Play every game and audit it by every bound; return a row for each.

    Parameters
    ----------
    games : sequence of callable
        ``game(m, seed=seed)`` returns a `leakbound.simulate.Game`: `Gaussian(mu=1)` and the others
        here, `Scores(…)`, `Attack(…)`, or a function or class of your own.
    bounds : sequence of CutPolicy, Audit, callable or None
        Policies of `leakbound.cuts`; None is the default of the claim. A function of your own,
        ``bound(scores, member, claim, level)``, returns a number of at least 0; what has a method
        ``audit(game, claim, level, seed)`` gets all that the game has.
    claims : sequence of Claim
        Guarantees whose parameters are bounded.
    m, seeds : sequence of int
        Numbers of examples; and seeds, each of one game of every size.
    confidence : float
        Probability that a bound is not above the truth, in (0, 1).
    reference : bool
        Whether to compute the oracle, which takes longer than most bounds.
    store : str or os.PathLike, optional
        Folder of parquet files that keeps the rows. Those of the same code that it has are not
        computed again: a run that was interrupted goes on, and a larger one computes what is new.
    processes : int
        How many processes; but for their seconds, rows do not depend on it.
    progress : bool
        Whether to show a bar, where standard error is a terminal.

    Returns
    -------
    Table
        A row for each game, size, seed, claim and bound. One that raises, or is no bound, is a row
        with its error.

    Raises
    ------
    OptionError, InputTypeError
        If there is nothing to do, or an option is out of range.
    FormatError
        If a file of the store is damaged.
    """
    flag(progress, "progress")
    flag(reference, "reference")
    for claim in claims:
        instance(claim, "claims", CLAIMS)
    sizes = [integer(one, "m", least=1) for one in m]
    numbers = [integer(one, "seeds", least=0) for one in seeds]
    audits = tuple(product(claims, map(Named.of, bounds)))
    level = complement(confidence)
    tasks = [_Task(*one, level, reference, audits) for one in product(games, sizes, numbers)]
    keys = [key for task in tasks for key in task.names()]
    if not keys or len(set(keys)) < len(keys):
        message = "nothing to do" if not keys else "two games or two bounds have one name"
        message += ": name games, bounds, claims, m and seeds, each once"
        raise OptionError(message)
    # 1. What the store has is not computed again.
    kept = Store(store)
    rows = kept.rows()
    missing = [one for task in tasks if (one := _without(task, rows)).audits]
    # 2. The rest is kept as it comes.
    fresh: Rows = {}
    began = time.monotonic()
    try:
        played = _played(missing, integer(processes, "processes", least=1))
        for some in track(played, "Playing games", total=len(missing), shown=progress):
            fresh |= some
            if time.monotonic() - began > _PATIENCE:
                kept.add(fresh)
                rows |= fresh
                fresh, began = {}, time.monotonic()
    finally:
        kept.add(fresh)
    # 3. Rows in the order in which they were asked for.
    rows |= fresh
    return Table.of([rows[key] for key in keys])


def label(play: object) -> str:
    """Return what rows call a game: its name and parameters."""
    name, options = words(play, every=True)
    return f"{name}({options})" if options else name


def _without(task: _Task, rows: Rows) -> _Task:
    """Return a task without what is computed already."""
    pairs = zip(task.names(), task.audits, strict=True)
    audits = tuple(audit for key, audit in pairs if key not in rows)
    return replace(task, audits=audits)


def _played(tasks: Sequence[_Task], processes: int) -> Iterator[Rows]:
    """Yield the rows of each task, in the order in which they are ready."""
    if processes == 1 or len(tasks) < 2:
        yield from map(_play, tasks)
        return
    try:
        pickle.dumps(tasks[0])
    except Exception as error:  # pickle has several
        message = f"games and bounds of other processes must be importable, no lambdas: {error}"
        raise OptionError(message) from error
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_play, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _play(task: _Task) -> Rows:
    """Play a game and compute its rows; what raises becomes their error."""
    flaw, audits = "", zip(task.names(), task.audits, strict=True)
    try:
        game = _checked(task.play(task.m, seed=task.seed), task.m)
    except Exception as error:  # whatever a game of the user's does
        game, flaw = None, _said(error)
    rows: Rows = {}
    for claim, some in groupby(audits, lambda one: one[1][0]):
        truth = best = math.nan
        if game is not None:
            truth = _truth(task, claim, game)
            if task.reference:
                best = oracle(game, claim, task.level, task.seed)
        for key, (_, bound) in some:
            value, said, start = math.nan, flaw, time.perf_counter()
            if game is not None:
                try:
                    value = bound(game, claim, task.level, task.seed)
                except Exception as error:  # whatever a bound of the user's does
                    said = _said(error)
            seconds = time.perf_counter() - start
            known = not (math.isnan(value) or math.isnan(truth))
            numbers = {"bound": value, "truth": truth, "oracle": best, "seconds": seconds}
            false = value > truth if known else None
            names = dict(zip(KEY, key, strict=True))
            rows[key] = {**names, **numbers, "false_claim": false, "error": said, **origin()}
    return rows


def _checked(game: Game, m: int) -> Game:
    """Check that a game has a score and membership for each example."""
    scores = check_scores(game.scores)
    check_length(scores, m, "scores of the game")
    check_membership(game.member, m)
    return game


_TRUTHS: dict[tuple[object, ...], float] = {}
"""What is true of games of a name, size and parameter: some of it takes seconds."""


def _truth(task: _Task, claim: Claim, game: Game) -> float:
    key = (label(task.play), task.m, claim, game.parameter, game.truth)
    if key not in _TRUTHS:
        _TRUTHS[key] = game.least(claim)
    return _TRUTHS[key]


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
