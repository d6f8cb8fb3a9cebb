"""The short grid of choices: the long one is in the catalogue."""

import pytest

from validity import suite
from validity.choices import choice_cases
from validity.doubled import check

ROWS = [case for case in choice_cases() if case.quick]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims(case: suite.Case) -> None:
    check(case, tests=len(ROWS))
