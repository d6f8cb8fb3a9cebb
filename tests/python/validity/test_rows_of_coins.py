"""The rows of `make test` whose members fair coins drew; the others are beside."""

import pytest

from validity import suite
from validity.catalogue import cases
from validity.doubled import check

ROWS = [case for case in cases() if case.quick]
HERE = [case for case in ROWS if case.audit == "one-run"]


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims(case: suite.Case) -> None:
    check(case, tests=len(ROWS))


def test_the_rows_are_few_and_no_two_have_one_name() -> None:
    assert 60 <= len(ROWS) <= 80
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
