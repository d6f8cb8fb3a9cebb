"""A fault planted in every audit: its level is twice what it states. Rows near nominal see it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, wraps
from typing import Any

from leakbound.audits import Stream, audit, audit_synthetic
from leakbound.audits.designs import audit_of
from leakbound.stats import binomial_tail
from validity.suite import Case, Rate, most_errors, run

__all__ = ["LEAST_POWER", "NEAR", "check", "doubled", "judge", "power"]

NEAR = 0.85
"""Share of its nominal rate from which on a row must see that the level is doubled."""
LEAST_POWER = 0.95
"""Probability with which it must see that, whatever the seeds."""
ENOUGH = 0.97
"""Probability with which it sees that in as many games as are played at most."""
_AUDITS = (Stream, audit, audit_of, audit_synthetic)


def _at_twice_the_error(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def faulty(*args: Any, confidence: float, **options: Any) -> Any:
        return function(*args, confidence=1 - 2 * (1 - confidence), **options)

    return faulty


@contextmanager
def doubled() -> Iterator[None]:
    """Let the audits that rows call take twice the error that they are given, without a word."""
    changed = [
        (module, name, value)
        for key, module in list(sys.modules.items())
        if key.startswith("validity.")
        for name, value in list(vars(module).items())
        if any(value is audited for audited in _AUDITS)
    ]
    for module, name, value in changed:
        setattr(module, name, _at_twice_the_error(value))
    try:
        yield
    finally:
        for module, name, value in changed:
            setattr(module, name, value)


def power(error: float, tests: int, games: int) -> float:
    """Return the probability that a row fails whose rate is `NEAR` of twice its nominal one."""
    least = most_errors(games, error, tests) + 1
    return float(binomial_tail(least, games, 2 * NEAR * error))


@cache
def enough(error: float, tests: int) -> int:
    """Return the games from which on a row near its nominal rate sees that its level is doubled."""
    games = 10
    while power(error, tests, games) < ENOUGH:
        games += 10
    return games


def judge(case: Case, tests: int) -> tuple[Rate, Rate | None]:
    """Play a quick run of a row and, near its nominal rate, the same games with the fault."""
    if case.valid:
        case = replace(case, quick=min(case.quick, enough(case.error, tests)))
    (rate,) = run([case], tests=tests).rates
    if not case.valid or rate.rate < NEAR * case.error:
        return rate, None
    with doubled():
        (faulty,) = run([case], tests=tests).rates
    return rate, faulty


def check(case: Case, tests: int) -> None:
    """Check that a row comes out as it should and, near its nominal rate, sees the fault."""
    rate, faulty = judge(case, tests)
    assert rate.expected, f"{rate.errors} false claims in {rate.repetitions} games"
    if faulty is not None:
        assert power(case.error, tests, rate.repetitions) > LEAST_POWER, (
            f"{rate.repetitions} games are too few near nominal"
        )
        assert faulty.verdict == "fails", f"{faulty.errors} false claims at twice the level"
