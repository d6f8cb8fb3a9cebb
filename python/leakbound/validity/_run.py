"""Playing cases, counting false claims and judging the counts.

The public names are those of `leakbound.validity`.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal, TypeAlias

from leakbound._json import Record
from leakbound._progress import track
from leakbound._validate import choice, flag, integer
from leakbound.errors import OptionError
from leakbound.stats import binomial_tail

__all__ = ["FAMILY_WISE", "Case", "Rate", "ValidityReport", "most_errors", "run"]

FAMILY_WISE = 1e-3
"""Probability that bad luck makes any of the valid cases of one run look invalid."""
_CHUNK = 250
"""Games of one task."""

Length: TypeAlias = Literal["quick", "long"]
Verdict: TypeAlias = Literal["holds", "fails"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One audit on one kind of game.

    Parameters
    ----------
    audit, claim, cuts, sides, truth : str
        What is audited, how, and on which games, each in a word or two.
    error : float
        The share of false claims that the audit may make, in (0, 1).
    trial : callable
        Plays the game of a seed, an integer, and returns whether the audit claimed more than the
        truth. It depends on nothing but the seed, and can be pickled.
    valid : bool
        Whether the audit promises to keep to `error`; if not it is here to be caught.
    quick, long : int
        Games of a quick and of a long run; a quick run leaves out a case whose number is 0.
    """

    audit: str
    claim: str
    cuts: str
    sides: str
    truth: str
    error: float
    trial: Callable[[int], bool]
    valid: bool = True
    quick: int = 200
    long: int = 20_000

    def __post_init__(self) -> None:
        flag(self.valid, "valid")

    @property
    def name(self) -> str:
        """The words of the case, which no other case of a table shares."""
        return " ".join((self.audit, self.claim, self.cuts, self.sides, self.truth))

    def repetitions(self, length: Length | int) -> int:
        """Return the number of games of a run.

        Parameters
        ----------
        length : {"quick", "long"} or int
            Which run, or the number itself.

        Returns
        -------
        int
            Games.
        """
        return length if isinstance(length, int) else getattr(self, length)

    def count(self, first: int, last: int, seed: int) -> int:
        """Count the false claims in games number `first` to `last` - 1.

        Parameters
        ----------
        first, last : int
            Numbers of games, from 0.
        seed : int
            Seed of the run.

        Returns
        -------
        int
            False claims.
        """
        base = (seed << 64) + (zlib.crc32(self.name.encode()) << 32)
        return sum(self.trial(base + number) for number in range(first, last))


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What happened to one case.

    Parameters
    ----------
    audit, claim, cuts, sides, truth, error, valid
        As for `Case`.
    repetitions, errors : int
        Games played, and claims above the truth among them.
    p_value : float
        P(Bin(repetitions, error) ≥ errors): how well luck explains so many.
    verdict : {"holds", "fails"}
        "fails" if `p_value` is below the case's share of the family-wise level.
    """

    audit: str
    claim: str
    cuts: str
    sides: str
    truth: str
    error: float
    valid: bool
    repetitions: int
    errors: int
    p_value: float
    verdict: Verdict

    @property
    def rate(self) -> float:
        """Share of games with a claim above the truth."""
        return self.errors / self.repetitions

    @property
    def expected(self) -> bool:
        """Whether a valid audit holds, or an invalid one fails."""
        return (self.verdict == "holds") == self.valid


@dataclass(frozen=True, kw_only=True, eq=False)
class ValidityReport(Record):
    """What happened to all cases of a run.

    Parameters
    ----------
    rates : tuple of Rate
        One for each case, in order.
    family_wise : float
        Probability that bad luck alone gives a valid case the verdict "fails".
    seed : int
        Seed of the run.
    """

    rates: tuple[Rate, ...]
    family_wise: float
    seed: int

    @property
    def ok(self) -> bool:
        """Whether every valid audit holds its rate and every invalid one is caught."""
        return all(rate.expected for rate in self.rates)


def most_errors(repetitions: int, error: float, tests: int) -> int:
    """Return the most false claims that do not count against a valid audit.

    Parameters
    ----------
    repetitions : int
        Games played.
    error : float
        Share of false claims that the audit may make.
    tests : int
        Number of cases that share the family-wise level.

    Returns
    -------
    int
        The largest count v with P(Bin(repetitions, error) ≥ v) at or above 0.001 / tests.

    Examples
    --------
    >>> most_errors(200, 0.1, 100)
    40
    """
    low, high = 0, repetitions + 1
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_tail(middle, repetitions, error) >= FAMILY_WISE / tests:
            low = middle
        else:
            high = middle
    return low


def run(
    cases: Sequence[Case],
    *,
    repetitions: Length | int = "quick",
    seed: int = 0,
    tests: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> ValidityReport:
    """Play every case and judge the number of its false claims.

    Parameters
    ----------
    cases : sequence of Case
        What to play: `cases()`, or `attack_cases(…)` for an attack of yours.
    repetitions : {"quick", "long"} or int
        Games of each case: the case's own numbers, or one number for all.
    seed : int
        Seed of the run, at least 0.
    tests : int, optional
        Number of cases that share the family-wise level, if these are some of more.
    executor : concurrent.futures.Executor, optional
        Where games are played; the report does not depend on it. Here, one after another, if None.
    progress : bool
        Whether to show a bar, where standard error is a terminal.

    Returns
    -------
    ValidityReport
        Counts and verdicts.

    Raises
    ------
    OptionError, OptionTypeError
        If there is no case, or an option is outside its range or of the wrong type.

    Notes
    -----
    A case gets the verdict "fails" if P(Bin(n, β) ≥ errors) is below 0.001 divided by the number of
    cases: with valid audits only, no case fails with probability 0.999 at least, whatever their
    dependence.

    Examples
    --------
    >>> from leakbound.validity import cases
    >>> for rate in run(cases("one-run pure kl member p=0.73"), repetitions=100).rates:
    ...     print(rate.verdict, rate.rate <= 0.2)
    holds True
    """
    flag(progress, "progress")
    if isinstance(repetitions, str):
        choice(repetitions, "repetitions", Length)
    else:
        integer(repetitions, "repetitions", least=1)
    cases = [case for case in cases if case.repetitions(repetitions)]
    if not cases:
        message = "no case to run: check the words that select them"
        raise OptionError(message)
    integer(seed, "seed", least=0)
    share = integer(len(cases) if tests is None else tests, "tests", least=1)
    errors = [0] * len(cases)
    tasks = [
        (index, first, min(first + _CHUNK, total))
        for index, case in enumerate(cases)
        for total in [case.repetitions(repetitions)]
        for first in range(0, total, _CHUNK)
    ]
    done = _counts(cases, tasks, seed, executor)
    for index, count in track(done, "Playing games", total=len(tasks), shown=progress):
        errors[index] += count
    rates = tuple(
        _judge(case, case.repetitions(repetitions), count, share)
        for case, count in zip(cases, errors, strict=True)
    )
    return ValidityReport(rates=rates, family_wise=FAMILY_WISE, seed=seed)


def _counts(
    cases: Sequence[Case],
    tasks: Sequence[tuple[int, int, int]],
    seed: int,
    executor: Executor | None,
) -> Iterator[tuple[int, int]]:
    """Yield the index of a case and the false claims of one of its tasks."""
    if executor is None:
        for index, first, last in tasks:
            yield index, cases[index].count(first, last, seed)
        return
    futures = [(task[0], executor.submit(cases[task[0]].count, *task[1:], seed)) for task in tasks]
    try:
        for index, future in futures:
            yield index, future.result()
    finally:
        for _, future in futures:
            future.cancel()


def _judge(case: Case, repetitions: int, errors: int, tests: int) -> Rate:
    p_value = binomial_tail(errors, repetitions, case.error)
    return Rate(
        audit=case.audit,
        claim=case.claim,
        cuts=case.cuts,
        sides=case.sides,
        truth=case.truth,
        error=case.error,
        valid=case.valid,
        repetitions=repetitions,
        errors=errors,
        p_value=p_value,
        verdict="fails" if p_value < FAMILY_WISE / tests else "holds",
    )
