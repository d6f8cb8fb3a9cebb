"""The rows of `make test` of other designs than fair coins, traps and wrong designs among them."""

import pytest

from validity import suite
from validity.catalogue import cases
from validity.choices import choice_cases
from validity.copies import copies_cases
from validity.doubled import check
from validity.dp_sgd import dp_sgd_cases
from validity.users import user_cases

ROWS = [case for case in cases() if case.quick]
HERE = [case for case in ROWS if case.audit != "one-run"]


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims(case: suite.Case) -> None:
    check(case, tests=len(ROWS))


SHORT = [
    case
    for case in (*choice_cases(), *copies_cases(), *dp_sgd_cases(), *user_cases())
    if case.quick
]
"""Short grids of choices, copies, noise and users: the long ones are in the catalogue."""


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims_of_short_grids(case: suite.Case) -> None:
    check(case, tests=sum(one.audit == case.audit for one in SHORT))
