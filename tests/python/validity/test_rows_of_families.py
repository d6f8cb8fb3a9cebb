"""Short rows of zero-concentrated DP and of events: the level holds, twice the level is seen."""

import pytest

from leakbound.stats import binomial_tail
from validity.doubled import doubled
from validity.families import GAMES, HIGH, family_cases
from validity.suite import most_errors, run

ROWS = {case.audit: case for case in family_cases() if case.quick}


def test_games_are_enough_to_see_twice_the_nominal_rate() -> None:
    """Exactly, and whatever the seeds."""
    assert ROWS.keys() == {"zcdp", "events"}
    assert {(case.quick, case.error) for case in ROWS.values()} == {(GAMES, HIGH)}
    least = most_errors(GAMES, HIGH, len(ROWS)) + 1
    assert binomial_tail(least, GAMES, 0.9 * 2 * HIGH) >= 0.8


@pytest.mark.parametrize("audit", ROWS)
def test_the_level_holds_and_twice_the_level_is_seen(audit: str) -> None:
    (rate,) = run([ROWS[audit]], tests=len(ROWS)).rates
    assert rate.verdict == "holds", f"{rate.errors} false claims in {rate.repetitions} games"
    with doubled():
        (faulty,) = run([ROWS[audit]], tests=len(ROWS)).rates
    assert faulty.verdict == "fails", f"{faulty.errors} false claims at twice the level"
