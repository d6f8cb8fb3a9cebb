"""How often audits claim more than the truth: counted, and judged by exact binomial tests.

A case is an audit with its claim, cut policy and sides, on games whose truth is known. An audit at
confidence 1 - β may claim more than the truth in a share β of games, and an audit that is offered
for comparison only should be seen to do so more often. `run` plays the games.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

import leakbound
import leakbound._core as _core
from leakbound._base.checks import choice, flag, integer
from leakbound._base.console import track
from leakbound._base.files import Checkpoints
from leakbound.errors import DesignError, OptionError
from leakbound.stats import binomial_tail

__all__ = ["Case", "Rate", "Report", "most_errors", "run", "source_digest"]

# Probability that bad luck makes any of the valid cases of one run look invalid.
FAMILY_WISE = 1e-3
# Games of one task: what an interruption may lose.
_CHUNK = 250

# Columns of the table of an audit in the report.
_WORDS, _NUMBERS = "claim cuts sides truth", "games counted rate nominal p-value"

Length: TypeAlias = Literal["quick", "long"]
Verdict: TypeAlias = Literal["holds", "fails"]
# Numbers of the first game of a chunk, and of the first after it.
Chunk: TypeAlias = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a case and its rate have in common."""

    audit: str
    claim: str
    cuts: str
    sides: str
    truth: str
    error: float
    valid: bool = True


@dataclass(frozen=True, kw_only=True)
class Rate(Row):
    """What happened to one case: games played, false claims, and how well luck explains those.

    `p_value` is P(Bin(repetitions, error) ≥ errors); the verdict is "fails" if it is below the
    case's share of the family-wise level.
    """

    repetitions: int
    errors: int
    p_value: float
    verdict: Verdict

    @property
    def rate(self) -> float:
        """Share of games with a false claim."""
        return self.errors / self.repetitions

    @property
    def expectation(self) -> Verdict:
        """What should come out: "holds" of a valid audit, "fails" of another one."""
        return "holds" if self.valid else "fails"

    @property
    def expected(self) -> bool:
        """Whether that came out."""
        return self.verdict == self.expectation


@dataclass(frozen=True, kw_only=True)
class Report:
    """What happened to all cases of a run, and the version and SHA-256 of the code."""

    rates: tuple[Rate, ...]
    family_wise: float
    seed: int
    leakbound: str
    source: str

    @property
    def ok(self) -> bool:
        """Whether every case came out as expected."""
        return all(rate.expected for rate in self.rates)

    def summary(self) -> str:
        """Return in a sentence how many cases came out as expected, of valid audits and others."""
        parts = []
        for valid, words in ((True, "valid audits hold"), (False, "invalid ones fail")):
            expected = [rate.expected for rate in self.rates if rate.valid is valid]
            if expected:
                parts.append(f"{sum(expected):,} of {len(expected):,} {words}")
        test = f"each judged by an exact binomial test, family-wise at {self.family_wise:g}"
        return f"{', '.join(parts)}: {test}."

    def to_markdown(self) -> str:
        """Return the counts as a page of Markdown, with a table for each audit."""
        return "\n".join(_lines(self))


@dataclass(frozen=True, kw_only=True)
class Case(Row):
    """One audit on one kind of game.

    Parameters
    ----------
    audit, claim, cuts, sides, truth : str
        What is audited, how, and on which games, each in a word or two.
    error : float
        The share of false claims that the audit may make, in (0, 1).
    valid : bool
        Whether the audit promises to keep to `error`; if not it is here to be caught.
    trial : callable
        Plays the game of a seed, an integer, and returns whether the audit claimed more than the
        truth. It depends on nothing but the seed, and can be pickled.
    quick, long : int
        Games of a quick and of a long run; a quick run leaves out a case whose number is 0.
    """

    trial: Callable[[int], bool]
    quick: int = 1_000
    long: int = 20_000

    def __post_init__(self) -> None:
        flag(self.valid, "valid")

    @property
    def name(self) -> str:
        """The words of the case, which no other case of a table shares."""
        return " ".join((self.audit, self.claim, self.cuts, self.sides, self.truth))

    @property
    def identity(self) -> str:
        """Everything about the case but its numbers of games; of functions, only their names."""
        games = replace(self, quick=0, long=0)
        return re.sub(r" at 0x[0-9a-fA-F]+", "", f"{self.name}: {games!r}")


def most_errors(repetitions: int, error: float, tests: int) -> int:
    """Return the most false claims that do not count against a valid audit.

    That is the largest count v with P(Bin(repetitions, error) ≥ v) at or above 0.001 / tests.

    Examples
    --------
    >>> most_errors(200, 0.1, 100)
    40
    """
    most = int(repetitions * error)
    while binomial_tail(most + 1, repetitions, error) >= FAMILY_WISE / tests:
        most += 1
    return most


def run(
    cases: Sequence[Case],
    *,
    repetitions: Length | int = "quick",
    seed: int = 0,
    tests: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Report:
    """Play every case and judge the number of its false claims.

    `repetitions` are the games of each case: the case's own numbers, or one number for all. `tests`
    is the number of cases that share the family-wise level, if these are some of more. The report
    does not depend on `executor`, where games are played. The folder `checkpoint` keeps the counts
    of every 250 games, and gives back those it has of the same code and seed: a run that was
    interrupted goes on.

    A case gets the verdict "fails" if P(Bin(n, β) ≥ errors) is below 0.001 divided by the number of
    cases: with valid audits only, no case fails with probability 0.999 at least, whatever their
    dependence.
    """
    flag(progress, "progress")
    if isinstance(repetitions, str):
        choice(repetitions, "repetitions", Length)
    else:
        integer(repetitions, "repetitions", least=1)
    cases = [case for case in cases if _games(case, repetitions)]
    if not cases:
        raise OptionError("no case to run: check the words that select them")
    if len({case.identity for case in cases}) < len(cases) and checkpoint is not None:
        raise OptionError("two cases have the same name and trial: counts could not be told apart")
    integer(seed, "seed", least=0)
    share = integer(len(cases) if tests is None else tests, "tests", least=1)
    played = {"leakbound": _core.__version__, "source": source_digest()}
    # 1. Read the counts that the checkpoint has.
    stored = Checkpoints(checkpoint, {"seed": str(seed), **played})
    counts = [_read(stored, case) for case in cases]
    # 2. Play what is missing, and store it as it comes.
    tasks = [
        (index, chunk)
        for index, case in enumerate(cases)
        for chunk in _chunks(_games(case, repetitions))
        if chunk not in counts[index]
    ]
    done = _counts(cases, tasks, seed, executor)
    for index, chunk, count in track(done, "Playing games", total=len(tasks), shown=progress):
        counts[index][chunk] = count
        case = cases[index]
        rows = [[*chunk, count] for chunk, count in sorted(counts[index].items())]
        stored.save(_name_of(case), {"case": np.array(case.identity), "counts": np.array(rows)})
    # 3. Judge each case by its share of the family-wise level.
    rates = []
    for case, by_chunk in zip(cases, counts, strict=True):
        games = _games(case, repetitions)
        rates.append(_judge(case, games, sum(by_chunk[chunk] for chunk in _chunks(games)), share))
    return Report(rates=tuple(rates), family_wise=FAMILY_WISE, seed=seed, **played)


@cache
def source_digest() -> str:
    """Return SHA-256 of the Python files and core of the package, and of the rows played."""
    total = hashlib.sha256()
    for folder in (Path(leakbound.__file__).parent, Path(__file__).parent):
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".py", ".so", ".pyd"}:
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                total.update(f"{file.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()


def _games(case: Case, length: Length | int) -> int:
    return length if isinstance(length, int) else int(getattr(case, length))


def _count(case: Case, chunk: Chunk, seed: int) -> int:
    """Count false claims; an audit that refuses what the coins came to makes none."""
    base = (seed << 64) + (zlib.crc32(case.name.encode()) << 32)
    count = 0
    for number in range(*chunk):
        try:
            count += case.trial(base + number)
        except DesignError:  # on coins that come once in a million games
            continue
    return count


def _name_of(case: Case) -> str:
    return hashlib.sha256(case.identity.encode()).hexdigest()[:24]


def _read(stored: Checkpoints, case: Case) -> dict[Chunk, int]:
    """Return the counts of a case that are stored, by chunk."""
    rows = (stored.load(_name_of(case)) or {"counts": np.empty((0, 3))})["counts"]
    return {(first, last): count for first, last, count in rows.tolist()}


def _chunks(games: int) -> Iterator[Chunk]:
    for first in range(0, games, _CHUNK):
        yield first, min(first + _CHUNK, games)


def _counts(
    cases: Sequence[Case], tasks: Sequence[tuple[int, Chunk]], seed: int, executor: Executor | None
) -> Iterator[tuple[int, Chunk, int]]:
    """Yield the index of a case, a chunk and its count, in the order in which they are ready."""
    if executor is None:
        for index, chunk in tasks:
            yield index, chunk, _count(cases[index], chunk, seed)
        return
    futures = {executor.submit(_count, cases[task[0]], task[1], seed): task for task in tasks}
    try:
        for future in as_completed(futures):
            yield *futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _judge(case: Case, repetitions: int, errors: int, tests: int) -> Rate:
    p_value = binomial_tail(errors, repetitions, case.error)
    return Rate(
        **{name: getattr(case, name) for name in Row.__dataclass_fields__},
        repetitions=repetitions,
        errors=errors,
        p_value=p_value,
        verdict="fails" if p_value < FAMILY_WISE / tests else "holds",
    )


def _lines(report: Report) -> Iterator[str]:
    rates = sorted(report.rates, key=lambda rate: rate.audit)
    games = sum(rate.repetitions for rate in rates)
    yield "# False claims, counted\n"
    yield f"leakbound {report.leakbound}, seed {report.seed}:"
    yield f"{games:,} games of {len(rates):,} cases. {report.summary()}"
    for audit, group in groupby(rates, lambda rate: rate.audit):
        yield f"\n## {audit}\n"
        yield f"| {' | '.join([*_WORDS.split(), *_NUMBERS.split(), 'expected', 'verdict'])} |"
        yield f"{'|---' * 4}{'|--:' * 5}|---|---|"
        yield from map(_row, group)
    yield ""


def _row(rate: Rate) -> str:
    cells = (
        rate.claim,
        rate.cuts,
        rate.sides,
        rate.truth,
        f"{rate.repetitions:,}",
        f"{rate.errors:,}",
        f"{100 * rate.rate:.2f} %",
        f"{100 * rate.error:g} %",
        f"{rate.p_value:.2g}",
        rate.expectation,
        rate.verdict if rate.expected else f"**{rate.verdict}**",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
