"""The rows of `make test` of other designs than fair coins, traps and wrong designs among them."""

import pytest

from validity import suite
from validity.catalogue import cases
from validity.choices import choice_cases
from validity.doubled import check

ROWS = [case for case in cases() if case.quick]
HERE = [case for case in ROWS if case.audit != "one-run"]


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims(case: suite.Case) -> None:
    check(case, tests=len(ROWS))


CHOICES = [case for case in choice_cases() if case.quick]
"""The short grid of choices: the long one is in the catalogue."""


@pytest.mark.parametrize("case", CHOICES, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims_of_choices(case: suite.Case) -> None:
    check(case, tests=len(CHOICES))
