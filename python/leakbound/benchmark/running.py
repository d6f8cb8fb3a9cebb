"""Play every game, at every size and seed, under every bound; rows are saved as they come."""

import math
import multiprocessing
import os
import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from leakbound._base.checks import complement, flag, instance, integer
from leakbound._base.console import track
from leakbound.benchmark.bounds import Named, code, label, oracle
from leakbound.benchmark.games import read_parquet
from leakbound.benchmark.table import KEY, Row, Table, origin
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.errors import InputError, OptionError
from leakbound.simulate import Game

# From examples and a seed to a game.
Play: TypeAlias = Callable[..., Game]
Key: TypeAlias = tuple[object, ...]
Rows: TypeAlias = dict[Key, Row]
# Seconds of work that an interruption may lose.
_PATIENCE = 10.0


@dataclass(frozen=True)
class _Task:
    """A game to play once, and the rows to compute from it: keys, claims and bounds."""

    play: Play
    m: int
    seed: int
    level: float
    reference: bool
    audits: Sequence[tuple[Key, Claim, Named]]


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
        here, `Scores(…)`, `Attack(…)`, or your own function or class.
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
    store : str or os.PathLike, optional
        Folder of parquet files for the rows. Rows of the same code are not computed again, so an
        interrupted run resumes, and a larger run computes only new rows.
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
    FormatError
        If a file of the store is damaged.
    """
    flag(progress, "progress")
    flag(reference, "reference")
    for claim in claims:
        instance(claim, "claims", CLAIMS)
    sizes = [integer(one, "m", least=1) for one in m]
    numbers = [integer(one, "seeds", least=0) for one in seeds]
    audits = list(product(claims, map(Named.of, bounds)))
    level = complement(confidence)

    def task(play: Play, examples: int, seed: int) -> _Task:
        game, ours = (label(play), examples, seed), code(play)
        words = ((claim.name, one.name, one.options, ours + one.code) for claim, one in audits)
        keys = [(*game, *some, confidence) for some in words]
        rows = [(key, *audit) for key, audit in zip(keys, audits, strict=True)]
        return _Task(play, examples, seed, level, reference, rows)

    tasks = [task(*one) for one in product(games, sizes, numbers)]
    keys = [audit[0] for one in tasks for audit in one.audits]
    if not keys or len(set(keys)) < len(keys):
        message = "nothing to do" if not keys else "two games or two bounds have one name"
        message += ": name games, bounds, claims, m and seeds, each once"
        raise OptionError(message)
    # 1. What the store has is not computed again.
    folder = None if store is None else Path(store)
    rows = {} if folder is None else _stored(folder)
    left = (replace(one, audits=[a for a in one.audits if a[0] not in rows]) for one in tasks)
    missing = [one for one in left if one.audits]
    # 2. The rest is kept as it comes.
    fresh: list[Row] = []
    began = time.monotonic()
    try:
        played = _played(missing, integer(processes, "processes", least=1))
        for some in track(played, "Playing games", total=len(missing), shown=progress):
            fresh += some.values()
            rows |= some
            if time.monotonic() - began > _PATIENCE:
                _store(folder, fresh)
                fresh, began = [], time.monotonic()
    finally:
        _store(folder, fresh)
    # 3. Rows in the order in which they were asked for.
    return Table.of([rows[key] for key in keys])


def _stored(folder: Path) -> Rows:
    """Return the rows of this code that a folder has."""
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted(folder.glob("*.parquet"))
    rows = [row for file in files for row in read_parquet(file).to_pylist()]
    ours = (row for row in rows if origin().items() <= row.items())
    return {tuple(row[name] for name in KEY): row for row in ours}


def _store(folder: Path | None, rows: Sequence[Row]) -> None:
    """Add a file of rows to a folder."""
    if folder is not None and rows:
        Table.of(rows).to_parquet(folder / f"{secrets.token_hex(8)}.parquet")


def _played(tasks: Sequence[_Task], processes: int) -> Iterator[Rows]:
    """Yield the rows of each task."""
    if processes == 1 or len(tasks) < 2:
        yield from map(_play, tasks)
        return
    try:
        pickle.dumps(tasks[0])
    except Exception as error:  # pickle has several
        message = (
            f"games and bounds must be importable (not lambdas) with several processes: {error}"
        )
        raise OptionError(message) from error
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_play, tasks)


def _play(task: _Task) -> Rows:
    """Play a game and compute its rows; an exception becomes their error."""
    game, flaw = _tried(_game, task)
    rows: Rows = {}
    for claim, some in groupby(task.audits, lambda one: one[1]):
        truth, unknown = (None, flaw) if flaw else _tried(_truth, task, claim, game)
        what = game, claim, task.level, task.seed
        best = oracle(*what) if task.reference and not unknown else None
        for key, _, bound in some:
            began = time.perf_counter()
            value, said = (None, unknown) if unknown else _tried(bound.compute, *what)
            rows[key] = {**dict(zip(KEY, key, strict=True)), **origin()}
            rows[key] |= {"seconds": time.perf_counter() - began, "error": said}
            if not said:
                false = None if truth is None else value > truth
                rows[key] |= {"bound": value, "truth": truth, "oracle": best, "false_claim": false}
    return rows


def _tried(function: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """Return the value of a function and no error, or no value and the error that it raised."""
    try:
        return function(*arguments), ""
    except Exception as error:  # whatever a game or a bound of the user's does
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"


def _game(task: _Task) -> Game:
    """Play a game that has a score and membership for each example."""
    game = task.play(task.m, seed=task.seed)
    if not np.shape(game.scores) == np.shape(game.member) == (task.m,):
        message = f"a game of m={task.m} must have as many scores and memberships"
        raise InputError(message)
    return game


_TRUTHS: dict[tuple[object, ...], float] = {}
"""What is true of games of a name, size and parameter: some of it takes seconds."""


def _truth(task: _Task, claim: Claim, game: Game) -> float | None:
    """Return the smallest parameter that is true, None if it is not known."""
    key = label(task.play), task.m, claim, game.parameter, game.truth
    if key not in _TRUTHS:
        _TRUTHS[key] = game.least(claim)
    return None if math.isnan(_TRUTHS[key]) else _TRUTHS[key]
