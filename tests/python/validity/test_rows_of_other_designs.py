"""The rows of `make test` of other designs than fair coins, traps and wrong designs among them."""

import pytest

from validity import suite
from validity.catalogue import cases
from validity.doubled import check

ROWS = [case for case in cases() if case.quick]
HERE = [case for case in ROWS if case.audit != "one-run"]


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims(case: suite.Case) -> None:
    check(case, tests=len(ROWS))
